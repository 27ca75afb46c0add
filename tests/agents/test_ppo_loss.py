"""PPO's clipped objective: its gradient by automatic differentiation against the gradient written by hand."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steadyrl.agents import MeanGini
from steadyrl.agents.ppo_update import PPOSteps

pytestmark = pytest.mark.usefixtures("numpys_layers")
N, LENGTH, INPUTS, ACTIONS = 6, 20, 3, 4
EPSILON, ENTROPY = 0.1, 0.03


class Spaces(gym.Env):
    """Never played in."""

    observation_space, action_space = gym.spaces.Box(-1, 1, (INPUTS,)), gym.spaces.Discrete(ACTIONS)


@jax.jit
def log_prob_and_entropy(algorithm, theta, steps):
    log_prob, entropy = algorithm.policy.log_prob_and_entropy(theta, steps.observations, steps.actions)
    return log_prob[..., 0], entropy


def random_steps(algorithm, theta, rng):
    """Steps of trajectories with padding; about half of their ratios are out of range."""
    lengths = rng.integers(LENGTH // 4, LENGTH, size=(N, 1))
    normal = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)  # noqa: E731
    steps = PPOSteps(
        observations=normal(N, LENGTH, INPUTS),
        actions=jnp.asarray(rng.integers(ACTIONS, size=(N, LENGTH, 1))),
        old_log_prob=jnp.zeros((N, LENGTH)),
        advantages=normal(N, LENGTH),
        targets=jnp.zeros((N, LENGTH)),
        mask=jnp.asarray(np.arange(LENGTH) < lengths, jnp.float32),
    )
    log_prob, _ = log_prob_and_entropy(algorithm, theta, steps)
    return steps._replace(old_log_prob=log_prob + 0.15 * normal(N, LENGTH))


def gradient_of_the_loss(algorithm, theta, steps, weights):
    loss = lambda theta: algorithm.policy_loss(theta, steps, lambda log_ratios: (weights, ()))  # noqa: E731
    gradient, (_, metrics) = jax.grad(loss, has_aux=True)(theta)
    return gradient, metrics


def gradient_by_hand(algorithm, theta, steps, weights):
    """A step counts with ratio * A, unless its ratio is out of range on the side that A favors; and their share."""
    (log_prob, _), vjp = jax.vjp(lambda theta: log_prob_and_entropy(algorithm, theta, steps), theta)
    ratio = jnp.exp(log_prob - steps.old_log_prob)
    inside, beside = (weights, 0.0) if algorithm.risk_by_step else (0.0, weights)
    A = steps.advantages + inside
    unclipped = jnp.where(A > 0, ratio < 1 + EPSILON, ratio > 1 - EPSILON)
    of_log_prob = steps.shares * (unclipped * ratio * A + beside)
    (gradient,) = vjp((-of_log_prob, -ENTROPY * steps.shares))
    return gradient, (steps.shares * ~unclipped).sum()


@jax.jit
def both_gradients(*args):
    return gradient_of_the_loss(*args), gradient_by_hand(*args)


@pytest.mark.parametrize("risk_ratios", ["step", "trajectory"])
def test_the_gradient_of_the_loss_is_the_one_by_hand(risk_ratios):
    settings = {"mean": "ppo", "hidden": (8,), "clip_range": EPSILON, "entropy_coefficient": ENTROPY}
    agent = MeanGini(Spaces, credit="trajectory", risk_ratios=risk_ratios, initial_output_scale=1.0, **settings)
    algorithm, theta, rng = agent.algorithm, agent.learner.theta, np.random.default_rng(0)
    steps = random_steps(algorithm, theta, rng)
    weights = jnp.asarray(rng.normal(size=(N, 1)), jnp.float32)
    (gradient, metrics), (expected, share_clipped) = both_gradients(algorithm, theta, steps, weights)
    assert 0.1 < share_clipped < metrics["clip_fraction"] < 0.9
    for x, y in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected), strict=True):
        assert np.abs(y).max() > 1e-3
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-6)

    altered = steps._replace(advantages=jnp.where(steps.mask > 0, steps.advantages, 7.0))
    assert np.any(altered.advantages != steps.advantages)
    (again, _), _ = both_gradients(algorithm, theta, altered, weights)
    for x, y in zip(jax.tree.leaves(again), jax.tree.leaves(gradient), strict=True):
        np.testing.assert_array_equal(x, y, err_msg="steps in the padding count")
