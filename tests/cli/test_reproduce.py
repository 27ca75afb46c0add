"""An experiment at a tiny scale: what it trains, keeps, prints and draws."""

import dataclasses
import json

import numpy as np
import pytest
from in_process import trained_in_process
from PIL import Image

import steadyrl
from steadyrl import exact
from steadyrl.cli.main import main
from steadyrl.cli.reproduce import reproduce
from steadyrl.reports.curves import read_recorded
from steadyrl.reports.figures.curves import so_far, style
from steadyrl.reports.palette import Palette
from steadyrl.reports.results.file import read_results
from steadyrl.reports.results.publish import Output
from steadyrl.reports.tables import interval
from steadyrl.runs.experiment import Scale, load_experiment
from steadyrl.runs.scheduler import train_all
from steadyrl.training.loop import learn_together
from steadyrl.training.run_folder import read_config

pytestmark = pytest.mark.optimized  # Whole trainings of five runs in one program.
COMMAND = ["reproduce", "maze", "--quick", "--seeds", "2", "--episodes", "1000", "--agents", "mvo", "--out"]


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    out = tmp_path_factory.mktemp("maze")
    with trained_in_process():
        main([*COMMAND, str(out), "--log", "jsonl"])
    return out


def test_every_variant_and_seed_has_a_run(reproduced):
    for goal in (20, 40):
        for seed in (0, 1):
            config = read_config(reproduced / f"goal-{goal}" / "mvo" / f"seed{seed}")
            assert config["env"]["options"] == {"goal_reward": goal}
            assert (config["seed"], config["vmap_width"], config["threads"]) == (seed, 5, 1)


def test_every_run_is_logged(reproduced):
    logs = list(reproduced.rglob("log.jsonl"))
    assert len(logs) == 4
    assert all([json.loads(line)["episodes"] for line in log.read_text().splitlines()][-1] == 1000 for log in logs)


def test_tables_hold_the_numbers_of_the_runs(reproduced, capsys):
    folders = [reproduced / "goal-20" / "mvo" / f"seed{seed}" for seed in (0, 1)]
    recorded = read_recorded(folders)
    curves = recorded.training
    assert curves["return"].shape == (2, 2)  # 1,000 episodes, a record each 500
    last = curves["return"][:, -1]
    main([*COMMAND, str(reproduced)])
    printed = capsys.readouterr().out
    shown = next(line for line in printed.splitlines() if line.startswith("  MVO printed"))
    assert f"{last.mean():.1f} ±{last.std(ddof=1) / np.sqrt(2):.1f}" in shown
    written = next(
        line for line in (reproduced / "summary.md").read_text().splitlines() if line.startswith("| goal 20")
    )
    low, high = interval(last)
    assert f"{last.mean():.2f} [{low:.2f}, {high:.2f}]" in written
    agents = [steadyrl.load(folder / "checkpoint.steady") for folder in folders]
    mdp = agents[0].env.unwrapped.maze.mdp
    V = np.mean([exact.return_distribution(mdp, agent.probabilities(), 0.999).variance for agent in agents])
    assert f"| {V:.2f} [" in written
    *table, heading, curves, risk, returns, page = printed.splitlines()
    assert max(len(line) for line in table if not line.startswith(("Kept", "Results: "))) <= 80
    assert (heading, curves) == ("The figures are:", f"  {reproduced / 'learning_curves.png'}")
    assert risk == f"  {reproduced / 'risk_curves.png'}"
    assert returns == f"  {reproduced / 'distributions.png'}"
    assert page == f"Page: {reproduced / 'report.html'}"
    numbers = json.loads((reproduced / "curves.json").read_text())["goal 20"]["mvo"]["training"]
    assert numbers["episodes"] == [500, 1000]
    assert numbers["mean"]["return"][-1] == pytest.approx(last.mean(), rel=1e-3)


def test_evaluations_are_of_the_learned_policy_and_do_not_touch_learning(reproduced):
    folder = reproduced / "goal-20" / "mvo" / "seed1"
    evaluations = read_recorded([folder]).evaluations
    assert evaluations["episodes"].tolist() == [[1000]]
    agent = steadyrl.load(folder / "checkpoint.steady")
    last = exact.return_distribution(agent.env.unwrapped.maze.mdp, agent.probabilities(), 0.999)
    assert evaluations["exact_gini_deviation"][0, -1] == pytest.approx(last.gini_deviation, rel=1e-12)
    assert evaluations["exact_mean"][0, -1] == pytest.approx(last.mean, rel=1e-12)
    # Ten episodes of about 60 in spread: their mean is near the exact one, and not equal to that of the records.
    assert evaluations["discounted_return"][0, -1] == pytest.approx(last.mean, abs=4 * np.sqrt(last.variance / 10))
    alone = [steadyrl.MVO(agent.env, seed=seed, **dataclasses.asdict(agent.settings)) for seed in (0, 1)]
    learn_together(alone, total_episodes=1000, progress_bar=False)
    np.testing.assert_array_equal(alone[1].probabilities(), agent.probabilities())


def test_the_picture_has_a_curve_of_each_method(reproduced):
    picture = np.asarray(Image.open(reproduced / "learning_curves.png").convert("RGB")).reshape(-1, 3)
    of_mvo = Palette({"mvo": "mvo"}).colour("mvo")
    colour = np.array([int(of_mvo[i : i + 2], 16) for i in (1, 3, 5)])
    assert (np.abs(picture.astype(int) - colour).max(axis=1) < 8).sum() > 100


@pytest.mark.usefixtures("in_process")
def test_finished_runs_are_kept_and_others_trained_again(reproduced, capsys):
    kept = reproduced / "goal-20" / "mvo" / "seed0" / "checkpoint.steady"
    lost = reproduced / "goal-40" / "mvo" / "seed1" / "checkpoint.steady"
    before, bits = kept.stat().st_mtime_ns, lost.read_bytes()
    lost.unlink()
    main([*COMMAND, str(reproduced)])
    assert "Kept 3 finished runs" in capsys.readouterr().out
    assert kept.stat().st_mtime_ns == before
    assert lost.read_bytes() == bits


def test_other_runs_are_not_replaced(reproduced, capsys):
    other = [*COMMAND, str(reproduced)]
    other[other.index("1000")] = "500"
    with pytest.raises(SystemExit):
        main(other)
    assert "already holds a run with other budget (episodes 1000, here 500)" in capsys.readouterr().err


@pytest.mark.usefixtures("in_process")
def test_a_run_shorter_than_a_record_has_one(tmp_path):
    cells = load_experiment("maze", quick=True, seeds=1, episodes=100).only(["mvo"]).cells(tmp_path)
    assert train_all([*cells.values()][:1], tmp_path) == []
    assert read_recorded([tmp_path / "goal-20" / "mvo" / "seed0"]).training["episodes"].tolist() == [[100]]


@pytest.mark.slow
def test_an_experiment_with_networks_keeps_the_seeds_it_has(tmp_path, capsys):
    command = ["reproduce", "inverted_pendulum", "--quick", "--episodes", "60", "--agents", "reinforce,tamar"]
    for seeds, kept in (("1", False), ("2", True)):
        main([*command, "--seeds", seeds, "--out", str(tmp_path)])
        assert ("Kept 2 finished runs" in capsys.readouterr().out) == kept
    single = read_recorded([tmp_path / "InvertedPendulum" / "tamar" / "seed0"]).training
    assert single["episodes"].tolist() == [[50, 60]]  # Rounds of one episode are recorded together.
    assert single["gini_deviation"].min() > 0
    recorded = read_recorded([tmp_path / "InvertedPendulum" / "reinforce" / f"seed{seed}" for seed in (0, 1)])
    assert recorded.evaluations["episodes"].tolist() == [[60], [60]]
    assert recorded.training["episodes"].tolist() == [[30, 60]] * 2
    assert (recorded.evaluations["visiting_rate"] <= 1).all()
    assert len(set(recorded.evaluations["return"][:, 0])) == 2
    for picture in ("learning_curves.png", "risk_curves.png"):
        assert (tmp_path / picture).stat().st_size > 10_000


@pytest.mark.usefixtures("in_process")
def test_a_sensitivity_study_trains_each_value_and_draws_its_figure(tmp_path):
    whole = load_experiment("maze", seeds=2, episodes=500)
    sensitivity = dataclasses.replace(
        whole.sensitivity,
        values={"tamar": {v: {"risk_aversion": v} for v in (1e-6, 1e-3)}},
        scale=Scale(2, 100, 50, 100),
    )
    one = dataclasses.replace(
        whole.only(["tamar"]), variants=whole.variants[:1], sensitivity=sensitivity, scale=Scale(2, 100, 50, 100)
    )
    reproduce(one, tmp_path / "maze")
    for value in ("1e-06", "0.001"):
        config = read_config(tmp_path / "maze-sweep" / "goal-20" / f"tamar={value}" / "seed1")
        assert config["settings"]["risk_aversion"] == float(value)
        assert config["settings"]["threshold"] == 50
    assert (tmp_path / "maze" / "sensitivity.png").stat().st_size > 10_000
    assert "Tamar printed 1e-06" in (tmp_path / "maze" / "sensitivity.md").read_text()


@pytest.mark.usefixtures("in_process")
def test_a_study_of_curves_is_trained_published_and_continued(tmp_path):
    whole = load_experiment("maze", seeds=2, episodes=100)
    values = {"tamar": {v: {"risk_aversion": v} for v in (0.1, 0.4)}}
    study = dataclasses.replace(whole.lambda_curves, values=values)
    one = dataclasses.replace(whole.only(["tamar"]), sensitivity=None, lambda_curves=study)
    out, again = tmp_path / "maze", tmp_path / "again"
    reproduce(one, out)
    runs = sorted(path.parent.name for path in (tmp_path / "maze-lambda-curves" / "goal-20").glob("*/seed*"))
    assert runs == ["tamar=0.4", "tamar=0.4"]  # With 0.1 they are runs of the experiment itself.
    assert not (tmp_path / "maze-lambda-curves" / "goal-40").exists()
    main(["reproduce", "maze", "--from", str(out / "results.json.gz"), "--out", str(tmp_path / "drawn")])
    for folder in (out, tmp_path / "drawn"):
        assert (folder / "lambda_curves.png").stat().st_size > 10_000
        assert "| goal 20 | Tamar printed 0.4 |" in (folder / "lambda_curves.md").read_text()
    # What a results file has is not trained again.
    known = read_results(out / "results.json.gz")
    scale = dataclasses.replace(study.scale, seeds=3)
    more = dataclasses.replace(one, lambda_curves=dataclasses.replace(study, scale=scale))
    reproduce(more, again, output=Output(again, 100, known=known))
    assert sorted(path.name for path in (tmp_path / "again-lambda-curves").rglob("seed*")) == ["seed2", "seed2"]
    cells = read_results(again / "results.json.gz").lambda_curves.cells
    assert {key: cell.seeds for key, cell in cells.items()} == {
        ("goal 20", f"tamar={value}"): (0, 1, 2) for value in (0.1, 0.4)
    }


def write_records(folder, **files):
    folder.mkdir()
    for name, records in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def test_seeds_trained_for_steps_are_read_at_the_same_steps(tmp_path):
    """One plays few long episodes, the other many short ones; the return is a hundredth of the steps learned from."""
    for seed, length in enumerate((500, 20)):
        records = [
            {"episodes": n, "timesteps": n * length, "return": n * length / 100, "gini_deviation": 1.0}
            for n in range(10, 10_000 // length + 1, 10)
        ]
        last = {"episodes": records[-1]["episodes"] + 1, "timesteps": 10_100, "return": 999.0}  # One episode: no GD.
        write_records(tmp_path / f"seed{seed}", metrics=[*records, last], evaluations=records)
    recorded = read_recorded([tmp_path / "seed0", tmp_path / "seed1"], over="timesteps")
    for curves in recorded:
        steps = curves["timesteps"]
        assert (steps[0] == steps[1]).all()
        assert steps[0, 0] == 5_000
        assert steps[0, -1] == 10_000
        np.testing.assert_allclose(curves["return"], steps / 100)
        assert (curves["gini_deviation"] == 1).all()
    assert recorded.training["episodes"][:, -1].tolist() == [20, 500]


def test_a_last_record_without_spread_takes_no_measure_away(tmp_path):
    records = [{"episodes": 10, "return": 1.0, "variance": 4.0}, {"episodes": 20, "return": 2.0, "variance": 5.0}]
    write_records(tmp_path / "seed0", metrics=[*records, {"episodes": 21, "return": 3.0}], evaluations=records)
    assert read_recorded([tmp_path / "seed0"]).training["variance"].tolist() == [[4, 5]]


def test_no_two_methods_look_alike():
    methods = load_experiment("maze").methods
    palette = Palette({method.name: method.agent for method in methods})
    styles = [tuple(style(palette, method.name).values()) for method in methods]
    assert len(set(styles)) == len(styles) == len(methods)


def test_optimal_risk_aversion_rate_is_the_share_of_all_episodes_so_far():
    curves = {"episodes": np.array([[100, 200, 400]]), "white_path_rate": np.array([[0.0, 1.0, 0.5]])}
    np.testing.assert_allclose(so_far(curves, "white_path_rate"), [[0.0, 0.5, 0.5]])


def test_intervals_over_seeds():
    values = np.random.default_rng(0).normal(size=200)
    low, high = interval(values)
    error = values.std(ddof=1) / np.sqrt(200)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.3 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.3 * error)
    assert interval(np.full(5, 3.0)) == (3.0, 3.0)
