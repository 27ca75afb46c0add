"""Episode metrics in `info`: the key and the old key, wherever episodes are played."""

from functools import partial

import numpy as np
import pytest
from gathering import gather, gather_from
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toy_envs import Counter

from steadyrl.envs.episode_metrics import metrics_info, metrics_of, stack_metrics
from steadyrl.evaluation.evaluate import evaluate
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
