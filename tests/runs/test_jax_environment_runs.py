"""Runs in JAX environments, as other commands and functions see them: compared, swept, and on the page."""

import json

import numpy as np
import pytest
from in_process import trained_in_process
from jax_worlds import Coins
from report_runs import data_of, plots_of, text_of

import steadyrl
from steadyrl.cli.main import main
from steadyrl.training.run_folder import read_config

ENV, EPISODES = "jax_worlds:coins", 40
SMALL = ["--set", "episodes_per_update=10", "--episodes", str(EPISODES)]


def test_compare_plays_the_episodes_of_evaluate():
    """Which have the same random numbers for all policies."""
    make = {"episodes_per_update": 10}
    first, second = (steadyrl.Reinforce(Coins(3), seed=seed, **make) for seed in (0, 1))
    trained = steadyrl.Reinforce(Coins(3), policy_learning_rate=1.0, **make)
    trained.learn(total_episodes=EPISODES, progress_bar=False)
    comparison = steadyrl.compare(trained, first, Coins(3), episodes=30, seed=4)
    for report, agent in ((comparison.a, trained), (comparison.b, first)):
        np.testing.assert_array_equal(report.returns, steadyrl.evaluate(agent, Coins(3), episodes=30, seed=4).returns)
    assert not np.array_equal(comparison.a.returns, comparison.b.returns)
    assert comparison.mean.value == pytest.approx(comparison.a.returns.mean() - comparison.b.returns.mean())
    rates = [report.facts["two_heads_rate"] for report in (comparison.a, comparison.b)]
    assert comparison.facts["two_heads_rate"] == pytest.approx(rates[0] - rates[1])
    # Tables start from zeros whatever the seed: the same policy wins the same in each episode.
    np.testing.assert_array_equal(*(steadyrl.evaluate(a, Coins(3), episodes=30).returns for a in (first, second)))
    same = steadyrl.compare(first, second, Coins(3), episodes=30)
    assert (same.mean.low, same.mean.value, same.mean.high) == (0, 0, 0)
    methods = steadyrl.compare([trained, trained], [first, second], Coins(3), episodes=30, seed=4)
    assert methods.difference["mean"].value == pytest.approx(comparison.mean.value)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A sweep over two methods and two seeds, by the command."""
    folder = tmp_path_factory.mktemp("runs") / "sweep"
    with trained_in_process():
        main(["sweep", ENV, "--agents", "mg,mvo", "--seeds", "2", *SMALL, "--no-page", "--out", str(folder)])
    return folder


def test_runs_of_a_sweep_are_those_of_the_train_command(sweep, tmp_path):
    for agent in ("mg", "mvo"):
        (folder,) = sweep.glob(f"**/{agent}*/seed1")
        assert read_config(folder)["engine"] == "jax"
        alone = tmp_path / agent
        main(["train", ENV, "--agent", agent, "--seed", "1", *SMALL, "--no-progress", "--out", str(alone)])
        one, other = (
            [json.loads(line) for line in (f / "metrics.jsonl").read_text().splitlines()] for f in (folder, alone)
        )
        assert one[-1]["episodes"] == EPISODES
        assert [record["timesteps"] for record in one] == [record["timesteps"] for record in other]
        np.testing.assert_allclose([r["return"] for r in one], [r["return"] for r in other], rtol=1e-5)


def test_the_page_shows_curves_and_returns(sweep, capsys):
    main(["report", str(sweep), "--episodes", "20", "--env", ENV, "--no-films"])
    page = sweep / "report.html"
    assert capsys.readouterr().err == ""
    methods = data_of(page)["methods"]
    assert sorted(method["name"] for method in methods) == ["MG", "MVO"]
    assert sorted(methods[plot["m"]]["name"] for plot in plots_of(page, "bars")) == ["MG", "MVO"]
    assert "two heads" in text_of(page), "a metric of the environment"
    for folder in sweep.glob("**/seed?"):
        stored = json.loads((folder / "final_evaluation.json").read_text())
        agent = steadyrl.load(folder / "checkpoint.steady", env=Coins(3))
        assert stored["returns"] == pytest.approx(
            steadyrl.evaluate(agent, Coins(3), episodes=20, seed=agent.seed).returns
        )


def test_commands_that_read_a_run(sweep, capsys):
    (folder,) = sweep.glob("**/mg*/seed0")
    main(["evaluate", str(folder), "--env", ENV, "--episodes", "20"])
    assert "two_heads_rate" in capsys.readouterr().out
    (other,) = sweep.glob("**/mvo*/seed0")
    main(["compare", str(folder), str(other), "--env", ENV, "--episodes", "20"])
    assert "Steadier, by Gini deviation" in capsys.readouterr().out
