"""Values in units of their targets: what stays the same when the units change, and what is learned in them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steadyrl.agents import PPO
from steadyrl.agents.networks import MLP, NormalisedValue
from steadyrl.agents.ppo_passes import PPOSteps

VALUE = NormalisedValue(MLP((3, 16, 1)))


def observations(count=64):
    return jax.random.normal(jax.random.key(1), (count, 3))


def seen_before(parameters, episodes):
    return parameters._replace(scale=parameters.scale._replace(episodes=jnp.float32(episodes)))


def test_new_units_leave_what_was_learned_as_it_was():
    parameters, seen = seen_before(VALUE.init(jax.random.key(0)), 1), observations()
    rng = np.random.default_rng(0)
    for offset, scale in [(500, 30), (-3, 0.1), (0, 2000)]:
        before = VALUE(parameters, seen)
        targets = jnp.asarray(offset + scale * rng.normal(size=(4, 10)), jnp.float32)
        parameters = VALUE.rescaled(parameters, targets, jnp.full((4, 10), 1 / 40), 4)
        np.testing.assert_allclose(VALUE(parameters, seen), before, rtol=1e-4, atol=1e-3)
        assert parameters.scale.std > scale / 2


def test_units_are_those_of_recent_targets_without_padding():
    parameters = VALUE.init(jax.random.key(0))
    targets, mask = jnp.array([[4.0, 8.0, 99.0], [6.0, 99.0, 99.0]]), jnp.array([[1, 1, 0], [1, 0, 0]])
    first = VALUE.rescaled(parameters, targets, mask / 3, 2)
    np.testing.assert_allclose([first.scale.mean, first.scale.std], [6, np.sqrt(8 / 3)], rtol=1e-5)
    np.testing.assert_allclose(VALUE(first, observations()), 6, atol=0.1)  # Before, nothing had been learned.
    both = VALUE.rescaled(first, targets + 3, mask / 3, 2)
    np.testing.assert_allclose(both.scale.mean, 7.5, rtol=1e-5)  # Two episodes of four.
    late = VALUE.rescaled(seen_before(first, 10_000), targets + 3, mask / 3, 2)
    np.testing.assert_allclose(late.scale.mean, 6 + 3 * 2 / 102, rtol=1e-5)


@pytest.mark.parametrize(("offset", "scale"), [(0, 1), (3000, 1000), (-1, 1e-3)])
def test_values_of_any_size_are_learned_as_well(offset, scale):
    agent = PPO("Pendulum-v1", hidden=(32,), seed=0)
    algorithm, seen = agent.algorithm, observations()
    targets = offset + scale * (jnp.tanh(seen[:, 0]) + 0.5 * seen[:, 1])
    mask = jnp.ones(len(seen))
    steps = PPOSteps(seen, jnp.zeros((64, 1, 1)), mask, mask, targets, mask)
    phi = algorithm.value.rescaled(agent.learner.phi, targets, steps.shares, 8)
    learn = jax.jit(lambda learner: jax.lax.scan(lambda x, _: algorithm.step_values(x, steps), learner, length=2000))
    learner, metrics = learn(agent.learner._replace(phi=phi))
    errors = (algorithm.value(learner.phi, seen) - targets) / scale
    assert jnp.sqrt((errors**2).mean()) < 0.1
    np.testing.assert_allclose(metrics["value_loss"][-1], ((scale * errors) ** 2).mean(), rtol=0.2)


def test_a_table_has_no_units():
    with pytest.raises(ValueError, match="normalise_values=True: it is for networks"):
        PPO("steadyrl/GuardedMaze-v0", normalise_values=True)
