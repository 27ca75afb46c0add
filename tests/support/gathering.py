"""Episodes of toy environments with a small untrained policy, and comparisons of them."""

import jax
import numpy as np
from toy_envs import LONG

from steadyrl.agents.networks import Architecture, networks_for
from steadyrl.rollouts.acting import Actor
from steadyrl.rollouts.collector import Limits, collect
from steadyrl.rollouts.simulators.gymnasium import GymnasiumSimulator

SEEDS = [4, 7, 2, 5, 8, 1]


def actor_for(observation_space, action_space, network="mlp", hidden=(8,)):
    """With parameters from NumPy: JAX would compile its own random numbers, for each shape."""
    policy, _ = networks_for(observation_space, action_space, Architecture(network, hidden), -0.5)
    rng, shapes = np.random.default_rng(0), jax.eval_shape(policy.init, jax.random.key(0))
    parameters = jax.tree.map(lambda x: rng.standard_normal(x.shape, dtype=np.float32) / 2, shapes)
    return Actor(policy, parameters, None if network == "table" else observation_space)


def gather_from(simulator, seeds=SEEDS, network="mlp", max_steps=1000, **options):
    actor = actor_for(simulator.observation_space, simulator.action_space, network)
    return collect(simulator, actor, seeds, Limits("Toy", max_steps), **options)


def gather(env, seeds=SEEDS, slots=None, **options):
    """Episodes of what `env` creates, in so many slots."""
    return gather_from(GymnasiumSimulator(env(), env, len(seeds) if slots is None else slots), seeds, **options)


def assert_same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one._asdict(), other._asdict())


def is_fair(returns):
    """Whether so many returns could come from a fair coin: within 4 standard errors."""
    return abs(np.mean(np.asarray(returns) == LONG) - 0.5) < 4 * 0.5 / len(returns) ** 0.5
