"""DQN and TD3 at a tiny size, which is the same in most tests: every other size would be compiled."""

from functools import partial

import jax
import numpy as np
import pytest
from toy_envs import BOX, NUMBERS, TINY, walk

from steadyrl.agents import DQN, TD3

NEVER = 10**6
SPACES = {DQN: NUMBERS, TD3: BOX}
each_kind = pytest.mark.parametrize("kind", [DQN, TD3])


def tiny(kind, seed=0, env=None, **settings):
    space, common = TINY[kind.name]
    return kind(env or partial(walk, space), seed=seed, **{**common, **settings})


def learned(kind, episodes, **given):
    return tiny(kind, **given).learn(total_episodes=episodes, progress_bar=False)


def bits(agent):
    """Everything that further training depends on."""
    counts = [agent.iterations, agent.episodes, agent.timesteps, agent.replay_buffer.added]
    return [*map(np.asarray, jax.tree.leaves(agent.learner)), agent.replay_buffer.rows, np.array(counts)]


def assert_same(ours, others):
    for x, y in zip(bits(ours), bits(others), strict=True):
        np.testing.assert_array_equal(x, y)
