"""Episode metrics in `info`: the key and the old key, wherever episodes are played."""

from functools import partial

import numpy as np
import pytest
from gathering import actor_for, gather, gather_from
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toy_envs import Counter

from steadyrl.envs.episode_metrics import MetricNames, metrics_info, metrics_of, stack_metrics
from steadyrl.evaluation.evaluate import evaluate
from steadyrl.rollouts.collector import FaultyEnvironmentError, Limits, collect
from steadyrl.rollouts.simulators.gymnasium import GymnasiumSimulator
from steadyrl.rollouts.simulators.vector import VectorEnvSimulator


class Reporting(Counter):
    """Reports metrics under the given keys."""

    def __init__(self, *keys):
        super().__init__()
        self.keys = keys

    def step(self, action):
        *step, _ = super().step(action)
        return *step, {key: {f"{key}_rate": self.t} for key in self.keys}


CASES = {("facts",): "facts_rate", ("episode_metrics",): "episode_metrics_rate"}
CASES |= {("facts", "episode_metrics"): "episode_metrics_rate"}


@pytest.mark.parametrize(("keys", "name"), CASES.items())
def test_both_keys_are_read_and_the_new_one_wins(keys, name):
    env, seeds = partial(Reporting, *keys), [0, 1, 2, 3]
    lengths = [1, 2, 3, 4]
    collected = [gather(env, seeds)]
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        collected.append(gather_from(VectorEnvSimulator(SyncVectorEnv([env] * 4, autoreset_mode=mode)), seeds))
    for episodes in collected:
        assert list(episodes.episode_metrics) == [name]
        np.testing.assert_array_equal(episodes.episode_metrics[name], lengths)
    report = evaluate(lambda observation: 0, env, episodes=2)
    assert list(report.facts) == [name]


def test_our_environments_report_under_both():
    metrics = {"goal_rate": 1.0}
    assert metrics_info(metrics) == {"episode_metrics": metrics, "facts": metrics}
    assert metrics_of(metrics_info(metrics)) == metrics
    assert metrics_of({}) == {}


def test_episodes_report_the_same_names():
    assert stack_metrics([{}, {}]) == {}
    with pytest.raises(ValueError, match=r"episode 1 ended with the metrics \['b'\], episode 0 with \['a'\]"):
        stack_metrics([{"a": 1.0}, {"b": 1.0}])


def test_episodes_are_counted_from_the_start_of_training():
    with pytest.raises(ValueError, match=r"episode 41 ended with the metrics \['b'\], episode 40 with \['a'\]"):
        stack_metrics([{"a": 1.0}, {"b": 1.0}], first_episode=40)


def test_names_are_compared_with_those_of_earlier_batches():
    names = MetricNames()
    stack_metrics([{"a": 1.0}], names=names)
    with pytest.raises(ValueError, match=r"episode 7 ended with the metrics \['b'\], episode 0 with \['a'\]"):
        stack_metrics([{"b": 1.0}], first_episode=7, names=names)


def test_reserved_names_are_refused():
    with pytest.raises(ValueError, match=r"the episode metric 'return' .* Rename it in info\[\"episode_metrics\"\]"):
        stack_metrics([{"a": 1.0, "return": 2.0}], names=MetricNames(lambda name: name == "return"))


@pytest.mark.parametrize("metrics", [None, [], "goal_rate", 1.0, {1: 2.0}])
def test_metrics_are_a_dictionary_by_name(metrics):
    for key in ("episode_metrics", "facts"):
        with pytest.raises(ValueError, match=rf'info\["{key}"\] of type .* that does not map names to numbers'):
            metrics_of({key: metrics})


def test_the_collector_names_the_environment_and_the_episode():
    class Forgetful(Reporting):
        def step(self, action):
            *step, info = super().step(action)
            return *step, {} if self.seed == 7 else info

    simulator = GymnasiumSimulator(Forgetful("facts"), None, 1)
    actor = actor_for(simulator.observation_space, simulator.action_space)
    with pytest.raises(FaultyEnvironmentError, match=r"^Toy: episode 62 ended with the metrics \[\], episode 60 with"):
        collect(simulator, actor, [3, 4, 7], Limits("Toy", 9, first_episode=60))
