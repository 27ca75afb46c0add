"""Records of several rounds that are merged into one."""

import numpy as np
import pytest

import steadyrl
from steadyrl.training.records import dispersions, merge_records


def record(episodes, **more):
    counters = {"iteration": episodes, "episodes": episodes, "timesteps": 10 * episodes, "time": 0.5 * episodes}
    return {**counters, "return": float(episodes), "discounted_return": float(-episodes), **more}


def test_counters_are_the_last_work_is_summed_and_the_rest_averaged():
    merged = merge_records(
        [record(50, idle_steps=2.0, seconds_updating=1.0), record(100, idle_steps=3.0, seconds_updating=2.0)]
    )
    expected = {**record(100), "return": 75.0, "discounted_return": -75.0, "idle_steps": 5.0, "seconds_updating": 3.0}
    assert merged == expected


def test_a_metric_that_only_some_rounds_have_is_kept():
    """A short episode may have no update, and the last round of a budget no dispersion."""
    merged = merge_records([record(50, loss=1.0), record(100, loss=3.0, variance=4.0), record(101)])
    assert merged == {
        **record(101),
        "return": pytest.approx(251 / 3),
        "discounted_return": pytest.approx(-251 / 3),
        "loss": 2.0,
        "variance": 4.0,
    }


def test_single_episodes_have_the_dispersion_of_their_returns():
    merged = merge_records([record(1), record(2), record(3)])
    returns = np.array([1.0, 2.0, 3.0])
    for name, value in dispersions(returns, -returns).items():
        assert merged[name] == pytest.approx(value)
    assert merged["variance"] == 1
    assert merge_records([record(1)]) == record(1)


def test_the_history_of_an_agent_is_bounded(monkeypatch):
    """A run folder has every record; an agent that learns for days must not fill the memory with them."""
    monkeypatch.setattr("steadyrl.training.records.MAX_HISTORY", 3)
    agent = steadyrl.MeanGini("steadyrl/GuardedMaze-v0").learn(total_episodes=250, progress_bar=False)
    assert [record["episodes"] for record in agent.history] == [150, 200, 250]
