"""The same episodes in Gymnasium, one after the other, and in a simulator, all at once."""

import numpy as np
import pytest


def play_alone(env, seed, act):
    """The transitions of one episode, with actions `act(observation, t)`, and its metrics."""
    observation, _ = env.reset(seed=seed)
    played, done = [], False
    while not done:
        observation, reward, terminated, truncated, info = env.step(act(observation, len(played)))
        played.append((observation, reward, terminated, truncated))
        done = terminated or truncated
    return played, info["episode_metrics"]


def play_together(simulator, seeds, act):
    """The transitions of each episode, and its metrics; every slot is stepped until its episode ends."""
    observations, slots, t = simulator.reset(seeds), np.arange(len(seeds)), 0
    played, metrics = [[] for _ in seeds], {}
    while len(slots):
        result = simulator.step(slots, act(observations, t))
        for k, slot in enumerate(slots):
            row = result.observations[k], result.rewards[k], result.terminated[k], result.truncated[k]
            played[slot].append(row)
        metrics |= result.episode_metrics
        done = result.terminated | result.truncated
        slots, observations, t = slots[~done], result.observations[~done], t + 1
    return played, [metrics[slot] for slot in range(len(seeds))]


def assert_same(env, simulator, seeds, act):
    """Both give the same transitions and metrics; those of the simulator are returned."""
    together, metrics = play_together(simulator, seeds, act)
    for seed, ours, our_metrics in zip(seeds, together, metrics, strict=True):
        alone, expected_metrics = play_alone(env, seed, act)
        assert len(ours) == len(alone)
        for column in range(4):
            actual, expected = ([step[column] for step in steps] for steps in (ours, alone))
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)
        assert our_metrics == pytest.approx(expected_metrics, abs=1e-12)
    return together, metrics
