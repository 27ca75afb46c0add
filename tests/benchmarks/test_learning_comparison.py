"""The learning comparisons at a tiny scale; the peers' side where they are installed."""

import dataclasses
import json
from pathlib import Path

import pytest

from benchmarks.learning import compare, defaults, memory, report
from benchmarks.learning.compare import Family
from benchmarks.learning.train_one import EVALUATION_EPISODES, train_one, windows
from benchmarks.peers import environment
from benchmarks.peers.agents import make_ours
from benchmarks.speed import recurrent

pytestmark = pytest.mark.slow

ENV = "CartPole-v1"
for package in ("Box2D", "mujoco"):
    pytest.importorskip(package, reason="needs steadyrl[box2d,mujoco]")
needs_peers = pytest.mark.skipif(not environment.installed(), reason="no .venv-peers: see benchmarks/README.md")


def tiny(name, page="page.md"):
    """A family with one environment, a small budget and small networks."""
    family = Family.load(name)
    case = family.cases[ENV] | {"timesteps": 300}
    case["settings"] = case["settings"] | {"hidden": [8]} | ({"learning_starts": 50} if name == "off_policy" else {})
    return dataclasses.replace(family, cases={ENV: case}, page=str(page))


def result(timesteps):
    """What `train_one` might print."""
    returns = [1.0] * EVALUATION_EPISODES
    curve = [[timesteps // 4 * (q + 1), 10, float(q)] for q in range(4)]
    found = {"timesteps": timesteps, "seconds": 1.0, "deterministic": returns, "stochastic": returns, "curve": curve}
    return found | {"versions": {"numpy": "2"}, "python": "3", "date": "2026-01-01", "cores": 2, "machine": "x86_64"}


def fake_runs(family):
    runs = {}
    for env in family.cases:
        for library in ("ours", family.peer):
            asked = family.description(env, library, seed=0, threads=1)
            runs[env, library, 0] = {"library": library, "asked": asked, **result(asked["timesteps"])}
    return runs


@pytest.mark.parametrize("name", compare.FAMILIES)
def test_the_page_has_the_stored_settings_and_text(name):
    family = Family.load(name)
    written, stored = report.page(family, fake_runs(family)), (environment.ROOT / family.page).read_text()
    assert written[written.index("## Settings") :] == stored[stored.index("## Settings") :]
    assert "| 0.0 | 1.0 | 2.0 | 3.0 |" in written  # Returns by quarter.


@pytest.mark.parametrize("name", compare.FAMILIES)
@pytest.mark.usefixtures("numpys_layers")
def test_every_description_makes_one_of_our_agents(name):
    family = Family.load(name)
    for env in family.cases:
        run = family.description(env, "ours", seed=0, threads=1)
        agent = make_ours(run)
        assert list(agent.settings.hidden) == run["settings"]["hidden"]
        if run["algorithm"] == "TD3":  # Their targets move at every update, ours at every second one.
            theirs = family.description(env, family.peer, seed=0, threads=1)["settings"]["tau"]
            assert 1 - agent.settings.tau == pytest.approx((1 - theirs) ** agent.settings.policy_delay)


def test_a_comparison_trains_what_is_missing_and_writes_its_page(monkeypatch, tmp_path, capsys):
    family = tiny("ppo", tmp_path / "page.md")
    monkeypatch.setattr(compare.Family, "load", lambda name: family)
    command = ["ppo", "--library", "ours", "--seeds", "1", "--out", str(tmp_path)]
    compare.main(command)
    compare.main(command)
    assert capsys.readouterr().out.count("seed 0 ...") == 1
    (run,) = map(json.loads, (tmp_path / "runs.jsonl").read_text().splitlines())
    assert run["timesteps"] >= 300
    assert len(run["stochastic"]) == EVALUATION_EPISODES
    compare.main([*command, "--report"])
    assert f"| {ENV} | steadyrl | 1 |" in Path(family.page).read_text()
    del run["asked"]["algorithm"]  # As in runs of PPO before it was recorded.
    (tmp_path / "old.jsonl").write_text(json.dumps(run))
    assert len(family.finished(tmp_path / "old.jsonl")) == 1
    changed = dataclasses.replace(family, shared={"PPO": family.shared["PPO"] | {"gamma": 0.5}})
    assert changed.finished(tmp_path / "old.jsonl") == {}


def test_an_unknown_environment_or_library_is_refused(capsys):
    for wrong in (["--only", "Nowhere-v0"], ["--library", "sbx"]):
        with pytest.raises(SystemExit):
            compare.main(["ppo", *wrong])
        assert "is not one of" in capsys.readouterr().err


def test_dqn_is_trained_and_evaluated():
    run = tiny("off_policy").description(ENV, "ours", seed=0, threads=1)
    found = train_one(run, ["deterministic"])
    assert found["timesteps"] >= 300
    assert sum(n for _, n, _ in found["curve"]) > 1
    assert set(found["versions"]) == {"steadyrl", "jax", "gymnasium", "mujoco", "numpy"}


def test_episodes_are_sorted_into_windows_by_their_end():
    ended = [(1, 2.0), (5, 4.0), (100, 6.0)]
    assert windows(ended, timesteps=100) == [[5, 2, 3.0], [100, 1, 6.0]]


@needs_peers
@pytest.mark.slow
@pytest.mark.parametrize("name", compare.FAMILIES)
def test_peers_are_trained_from_the_same_description(name, tmp_path):
    family = tiny(name)
    file = tmp_path / "runs.jsonl"
    compare.train_missing(family, file, [(ENV, family.peer, 0)], threads=1)
    (run,) = family.finished(file).values()
    assert run["timesteps"] >= 300


def test_defaults_at_a_tiny_scale(tmp_path, monkeypatch):
    """One run of a table and one of a network make a table and a page."""
    monkeypatch.setattr(defaults, "EVALUATED", 3)
    runs = [
        defaults.run("FrozenLake-v1", "Q-learning", 0, episodes=5),
        defaults.run("Pendulum-v1", "PPO", 0, steps=400),
    ]
    assert defaults.table(runs).count("\n") == 3
    assert "| Pendulum-v1 | PPO | 1 | -" in defaults.page(runs)
    assert len(defaults.cases()) == 40


@pytest.mark.slow
def test_memory_at_a_tiny_scale():
    results = {("PPO", "gru"): [memory.run("PPO", "gru", 0, 100, {"hidden": (4,)}), (31.0, 2.0)]}
    returned = results["PPO", "gru"][0][0]
    assert memory.table(results).endswith(f"| PPO | `gru` | {returned:.0f}, 31 | {(returned + 31) / 2:.0f} |")
    assert set(recurrent.measured(1, steps=5)) == set(recurrent.NETWORKS)
