"""The same episodes in Gymnasium, one after the other, and in a simulator, side by side."""

import numpy as np
import pytest


def play_alone(env, seed, act):
    """The transitions of one episode, `act(seen, t)` choosing the actions, and its facts."""
    seen, _ = env.reset(seed=seed)
    played, over = [], False
    while not over:
        seen, paid, terminated, truncated, info = env.step(act(seen, len(played)))
        played.append((seen, paid, terminated, truncated))
        over = terminated or truncated
    return played, info["facts"]


def play_together(simulator, seeds, act):
    """The transitions of each episode, and its facts; every slot is stepped until its episode is over."""
    seen, slots, t = simulator.reset(seeds), np.arange(len(seeds)), 0
    played, facts = [[] for _ in seeds], {}
    while len(slots):
        steps = simulator.step(slots, act(seen, t))
        for k, slot in enumerate(slots):
            played[slot].append((steps.observations[k], steps.rewards[k], steps.terminated[k], steps.truncated[k]))
        facts |= steps.facts
        over = steps.terminated | steps.truncated
        slots, seen, t = slots[~over], steps.observations[~over], t + 1
    return played, [facts[slot] for slot in range(len(seeds))]


def assert_same(env, simulator, seeds, act):
    """Both give the same transitions and facts; those of the simulator are returned."""
    together, facts = play_together(simulator, seeds, act)
    for seed, mine, my_facts in zip(seeds, together, facts, strict=True):
        alone, their_facts = play_alone(env, seed, act)
        assert len(mine) == len(alone)
        for column in range(4):
            ours, theirs = ([step[column] for step in steps] for steps in (mine, alone))
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
        assert my_facts == pytest.approx(their_facts, abs=1e-12)
    return together, facts
