"""Runs that begin with what another agent has learned."""

import jax
import numpy as np
import pytest

from steadyrl import MVO, MVPI, MeanGini
from steadyrl.runs.job import Job, run_job
from steadyrl.runs.ray_cluster import read_files, write_files
from steadyrl.training.run import Plan
from steadyrl.training.run_files import START, remove_run_files
from steadyrl.training.run_folder import read_config
from steadyrl.training.warm_start import apply_start, place_start, start_entry

MAZE = "steadyrl/GuardedMaze-v0"


def equal(a, b):
    return jax.tree.structure(a) == jax.tree.structure(b) and all(
        np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Agents with lambda 0 and 1, and the files that they are saved in."""
    folder = tmp_path_factory.mktemp("trained")
    agents = {}
    for aversion in (0.0, 1.0):
        agents[aversion] = MeanGini(MAZE, risk_aversion=aversion).learn(total_episodes=50, progress_bar=False)
        agents[aversion].save(folder / f"{aversion}.steady")
    return agents, folder


def started(folder, file, kind=MeanGini, **settings):
    place_start(folder, file)
    agent = kind(MAZE, **settings)
    apply_start(agent, folder)
    return agent


def test_everything_learned_is_taken_over_and_counters_begin_at_0(trained, tmp_path):
    agents, folder = trained
    agent = started(tmp_path, folder / "1.0.steady", risk_aversion=0.5)
    assert equal(agent.learner, agents[1.0].learner)
    assert (agent.iterations, agent.episodes, agent.timesteps) == (0, 0, 0)
    assert agent.settings.risk_aversion == 0.5
    assert agent.config_entries == start_entry(tmp_path)


@pytest.mark.parametrize(
    ("kind", "env", "settings"),
    [
        (MeanGini, MAZE, {"mean": "ppo", "annealing_episodes": 100}),
        (MVPI, "Pendulum-v1", {"solver": "td3", "hidden": (4,), "max_episode_steps": 20}),
    ],
)
def test_updates_are_counted_from_0(kind, env, settings, tmp_path):
    """With them, step sizes that have fallen would stay there."""
    other = kind(env, **settings)
    other.learner = other.learner._replace(updates=other.learner.updates + 7)
    other.save(tmp_path / "other.steady")
    place_start(tmp_path, tmp_path / "other.steady")
    agent = kind(env, seed=1, **settings)
    apply_start(agent, tmp_path)
    assert equal(agent.learner, other.learner._replace(updates=other.learner.updates - 7))
    assert agent.learner.updates == 0


def test_what_the_other_agent_does_not_have_begins_untrained(trained, tmp_path):
    agents, folder = trained
    agent = started(tmp_path, folder / "0.0.steady", risk_aversion=0.5)
    new = MeanGini(MAZE, risk_aversion=0.5)
    assert equal(agent.learner.theta, agents[0.0].learner.theta)
    assert equal(agent.learner.phi, agents[0.0].learner.phi)
    assert not equal(agent.learner.theta, new.learner.theta)
    assert equal(agent.learner.risk, new.learner.risk)


def test_other_agents_are_refused(trained, tmp_path):
    _, folder = trained
    with pytest.raises(ValueError, match="holds a mg agent, and this run is of mvo"):
        started(tmp_path / "a", folder / "1.0.steady", MVO)
    with pytest.raises(ValueError, match="of another shape"):
        started(tmp_path / "b", folder / "1.0.steady", network="mlp", mean="vpg")


def test_a_run_depends_on_its_folder_alone(trained, tmp_path):
    """Also when its files are sent to another machine before it begins."""
    _, folder = trained
    place_start(tmp_path / "here" / "seed0", folder / "1.0.steady")
    write_files(tmp_path / "there" / "seed0", read_files(tmp_path / "here" / "seed0"))
    for place in ("here", "there"):
        plan, settings = Plan({"episodes": 50}), {"risk_aversion": 0.5}
        cell = {"env": MAZE, "agent": "mg", "settings": settings, "seeds": [0], "title": "x", "plan": plan}
        (agent,) = run_job(Job.cell(**cell, folder=tmp_path / place))
        assert agent.episodes == 50
    bits = [(tmp_path / place / "seed0" / "checkpoint.steady").read_bytes() for place in ("here", "there")]
    assert bits[0] == bits[1]
    assert (
        read_config(tmp_path / "here" / "seed0")["warm_start"] == start_entry(tmp_path / "here" / "seed0")["warm_start"]
    )
    # What was learned is removed if the run has to begin anew, but not what it begins with.
    remove_run_files(tmp_path / "here" / "seed0")
    assert [path.name for path in (tmp_path / "here" / "seed0").iterdir()] == [START]


def test_a_start_is_not_replaced(trained, tmp_path):
    _, folder = trained
    place_start(tmp_path, folder / "0.0.steady")
    before = start_entry(tmp_path)
    place_start(tmp_path, folder / "1.0.steady")
    assert start_entry(tmp_path) == before
    assert start_entry(tmp_path / "elsewhere") == {}
