"""The speed benchmarks at a tiny scale: what they run, not how fast it is; peers where they are installed."""

import dataclasses
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.peers import environment, turns
from benchmarks.speed import (
    checkpoint_cost,
    collect,
    finished_runs,
    limits,
    maze,
    off_policy,
    packing,
    playing_processes,
    ppo,
    ppo_parts,
    reaching,
    replay,
    risk_credit,
    runs_per_hour,
    scaling,
    start,
    td3_parts,
    workers,
)
from steadyrl.cli.main import main

pytestmark = pytest.mark.slow

for package in ("Box2D", "mujoco"):
    pytest.importorskip(package, reason="needs steadyrl[box2d,mujoco]")
needs_peers = pytest.mark.skipif(not environment.installed(), reason="no .venv-peers: see benchmarks/README.md")
TINY = {"hidden": [8, 8], "learning_starts": 50, "batch_size": 16, "buffer_size": 1000}
TD3 = dataclasses.replace(off_policy.CASES["TD3"], env="Pendulum-v1", settings=TINY, steps=100)
OURS = off_policy.Side("ours", (50, 50), 1)


@pytest.fixture
def small_ppo(monkeypatch):
    monkeypatch.setattr(ppo, "SHAPE", ppo.SHAPE | {"hidden": [8], "episodes": 3, "passes": 1})
    monkeypatch.setattr(ppo, "STEPS", 3 * ppo.SHAPE["length"])
    monkeypatch.setattr(ppo, "WARM_UP", 0)
    monkeypatch.setattr(ppo, "TRIALS", 1)


def test_maze(monkeypatch, capsys):
    monkeypatch.setattr(maze, "PLAIN_ROUNDS", 1)
    maze.main(["--seeds", "2", "--episodes", "100", "--stages", "2"])
    printed = capsys.readouterr().out
    assert "MG, 2 seeds x 100 episodes" in printed
    assert re.search(r"episodes 50-100 .* ep/s", printed)
    (row,) = maze.rows(seeds=2, episodes=100, stages=2)
    assert row.ours > 0
    assert row.peers["NumPy"] > 0


def test_ours_in_a_jax_environment(monkeypatch, capsys):
    pytest.importorskip("gymnax")
    monkeypatch.setitem(reaching.TASKS, "CartPole-v1", reaching.TASKS["CartPole-v1"] | {"episodes": 2, "limit": 1})
    for name, value in {"STEPS": 1, "MINIBATCH": 8, "PASSES": 1, "EVALUATED": 2}.items():
        monkeypatch.setattr(reaching, name, value)
    monkeypatch.setattr("sys.argv", ["reaching", "ours", "CartPole-v1", "0"])
    reaching.main()
    found = json.loads(capsys.readouterr().out)
    assert (found["seeds"], found["reached"]) == (1, 0)
    assert 0 < found["seconds_compiled"] < found["seconds"]
    assert found["steps"] > 0


def test_workers(capsys):
    workers.main(["--rounds", "1", "--milliseconds", "0.01", "--length", "5", "--workers", "0", "1"])
    assert re.search(r"1 workers .* steps/s .* times 0", capsys.readouterr().out)


def test_start(capsys):
    start.main(["--rounds", "1"])
    assert re.match(r"empty cache .* s, full cache .* s, --help .* s", capsys.readouterr().out)


@pytest.mark.parametrize("part", ["eta", "batch", "seeds"])
def test_scaling(part, tmp_path):
    (series,) = scaling.measure([part], quick=True)
    assert all(len(values) == len(series.sizes) == 2 for values in series.values.values())
    assert min(min(values) for values in series.values.values()) > 0


def test_collect_replays_the_same_episodes(monkeypatch, capsys):
    # An untrained pendulum: its episodes are short. `measure` itself compares their returns.
    name, engine, _, theirs = collect.CASES["InvertedPendulum"]
    monkeypatch.setitem(collect.CASES, "InvertedPendulum", (name, engine, 0, theirs))
    monkeypatch.setattr(collect, "HIDDEN", (8, 8))
    monkeypatch.setattr(environment, "installed", lambda: False)
    collect.main(["--rounds", "1", "--only", "InvertedPendulum"])
    printed = capsys.readouterr().out
    assert "InvertedPendulum (mujoco)" in printed
    assert "not measured" not in printed


def test_ppo_without_peers(small_ppo, capsys):
    ppo.main(["--rounds", "1", "--no-peers"])
    printed = capsys.readouterr().out
    assert "limit: physics + products" in printed
    assert "Stable-Baselines3" not in printed


def test_the_parts_of_ppo(small_ppo, capsys):
    ppo_parts.main(["--rounds", "1"])
    assert "ratio: " in capsys.readouterr().out


def test_playing_processes(monkeypatch, capsys):
    monkeypatch.setattr(playing_processes, "EPISODES", 2)
    monkeypatch.setattr(playing_processes, "WARM_UP", 0)
    playing_processes.main(["--rounds", "1"])
    assert len(re.findall(r" [1-9]\d* ms for 2 episodes", capsys.readouterr().out)) == 2


def test_the_parts_of_td3(monkeypatch, capsys):
    monkeypatch.setattr(td3_parts, "SETTINGS", {**TINY, "hidden": (8, 8)})
    td3_parts.main(["--rounds", "1"])
    assert "products of the update, in XLA" in capsys.readouterr().out


def test_padded_and_packed_updates(monkeypatch, capsys):
    name = "MG-PPO, whole batches"
    monkeypatch.setitem(packing.AGENTS, name, packing.AGENTS[name] | {"hidden": (8,), "inner_updates": 1})
    packing.main(["--rounds", "1", "--only", name])
    assert re.search(name + r" +16,384 +6,144", capsys.readouterr().out)


def test_the_cost_of_credit_by_step_is_told_for_each_environment(monkeypatch, capsys):
    monkeypatch.setitem(risk_credit.BATCHES, "maze", 1)
    risk_credit.main(["--rounds", "2", "--envs", "maze"])
    ratio = r" +[\d.]+ \([\d.]+ to [\d.]+\)"
    assert re.search(r"\nmaze +[\d.]+ +[\d.]+" + 2 * ratio + "\n", capsys.readouterr().out)


def test_a_ratio_of_credit_is_that_of_its_median_round():
    costs = {"step": [risk_credit.Cost(x, 2 * x) for x in (2.0, 3.0, 8.0)]}
    costs["trajectory"] = [risk_credit.Cost(2.0, 1.0)] * 3
    assert risk_credit.line("maze", costs).split()[:5] == ["maze", "3.0", "2.0", "1.50", "(1.00"]
    assert risk_credit.line("maze", costs).endswith("6.00 (4.00 to 16.00)")


def test_the_products_of_a_gradient_are_those_of_a_linear_network():
    weights = limits.network(3, (5, 4), 2)
    x = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)

    def half_square(weights):
        return (limits.forward(weights, jnp.asarray(x))[-1] ** 2).sum() / 2

    expected = jax.grad(half_square)([jnp.asarray(w) for w in weights])
    for found, right in zip(reversed(limits.forward_and_backward(weights, x)), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4)


def test_td3_takes_turns_in_a_process_of_its_own():
    with off_policy.start(TD3, OURS) as process:
        assert process.read_line() == "ready\n"
        assert off_policy.rate(process, TD3) > 0


def test_a_process_that_fails_shows_its_error():
    with (
        pytest.raises(RuntimeError, match="no_such_setting"),
        off_policy.start(dataclasses.replace(TD3, settings={"no_such_setting": 1}), OURS) as process,
    ):
        process.read_line()


@pytest.mark.parametrize("more", [{"measure": "td3_products", "cores": 2}, {"batched": True}, {"batched": False}])
def test_measures_without_acting(more):
    run = off_policy.description(TD3, OURS, **{"measure": "updates_together", "seeds": 2, **more})
    assert turns.MEASURES[run["measure"]](run)(50) > 0


def test_the_report_compares_with_the_best_of_each_peer():
    slow, fast = (off_policy.Side("sbx", (50, 50), threads) for threads in (1, 2))
    lines = off_policy.report(off_policy.CASES["TD3"], {OURS: 100.0, slow: 10.0, fast: 80.0, off_policy.LIMIT: 200.0})
    assert "ours / SBX (50 updates / 50 steps, 2 thread(s)): 1.25 times the steps per second" in lines
    assert "target at least 1.5: missed" in lines
    assert "200 updates/s, 2.00 times ours" in lines


def test_replay_buffer():
    generator = np.random.default_rng(0)
    full = replay.full_buffer(generator, 500)
    assert full.nbytes == 500 * 4 * (2 * 17 + 6 + 2)
    assert replay.sampling_seconds(full, generator, 2) > 0
    assert "1.0% of an update's 1000 us; target below 5%: met" in replay.report(full, 1e-5, 1e-3)


def test_checkpoint_cost(tmp_path, capsys):
    checkpoint_cost.main(["--rounds", "1", "--buffer-size", "100", "--out", str(tmp_path)])
    assert [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()[1:]] == list(checkpoint_cost.CASES)


def test_the_readme_names_every_script():
    text = (environment.ROOT / "benchmarks" / "README.md").read_text()
    folders = [environment.ROOT / "benchmarks" / name for name in ("speed", "learning", "peers")]
    scripts = {
        f"benchmarks.{path.parent.name}.{path.stem}"
        for folder in folders
        for path in folder.glob("*.py")
        if "def main(" in path.read_text() and path.stem != "turns"
    }
    assert scripts <= set(re.findall(r"python -m ([\w.]+)", text))
    for module in set(re.findall(r"python -m ([\w.]+)", text)):
        assert (environment.ROOT / f"{module.replace('.', '/')}.py").is_file()


@pytest.mark.slow
def test_off_policy_and_its_limit(monkeypatch, capsys):
    case = dataclasses.replace(off_policy.CASES["TD3"], settings=TINY, steps=100)
    monkeypatch.setitem(off_policy.CASES, "TD3", case)
    off_policy.main(["--only", "TD3", "--rounds", "1", "--no-peers"])
    assert "times ours" in capsys.readouterr().out


@pytest.mark.slow
def test_runs_per_hour():
    rates = runs_per_hour.measure(TD3, rounds=1)
    assert len(rates) == 4
    assert min(rates.values()) > 0


@pytest.mark.slow
def test_the_time_of_an_update():
    assert replay.update_seconds(TD3, rounds=1) != 0


@pytest.mark.slow
def test_sweeps_end_with_the_same_bits(capsys):
    finished_runs.main(["--runs", "1", "--episodes", "20", "--only", "sweep again"])
    assert "sweep again: the same bits as sweep" in capsys.readouterr().out


def test_runs_one_by_one(monkeypatch, tmp_path):
    """In this process, where the compilation cache is not the point."""
    monkeypatch.setattr(finished_runs, "steadyrl", lambda cache, *arguments: main(list(map(str, arguments))))
    finished_runs.train_all("one by one", tmp_path, runs=1, episodes=20)
    assert len(finished_runs.checkpoints(tmp_path / "one-by-one")) == 1


@needs_peers
@pytest.mark.slow
def test_peers_collect():
    assert collect.peer_rate("CartPole-v1", rounds=1) > 0


@needs_peers
@pytest.mark.slow
def test_ppo_beside_peers(small_ppo):
    printed = ppo.report(*ppo.measure(1))
    assert "ours / SBX" in printed


@needs_peers
@pytest.mark.slow
def test_off_policy_beside_peers():
    rates = off_policy.measure(dataclasses.replace(TD3, rounds=[(50, 50)]), rounds=1)
    assert {side.library for side in rates} == {"ours", "sbx", "sb3"}
