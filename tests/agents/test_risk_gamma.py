"""Risk credit with a gamma of its own: both parts of the gradient look as far ahead."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from critic_steps import NETWORKS, steps_of

from steadyrl.agents.networks.quantiles import TABLE_QUANTILES
from steadyrl.agents.networks.running_scale import RunningScale
from steadyrl.agents.risk_critic import RiskCritic
from steadyrl.risk import MEASURES
from steadyrl.training.batch import Steps
from steadyrl.training.returns import generalized_advantages, rewards_to_go

named = pytest.mark.parametrize


class Mean:
    """A measure whose utility is the return itself: its risk part is the mean part."""

    def utility(self, returns, law):
        return returns


def arbitrary(critic):
    state = critic.init(jax.random.key(1))
    parameters = jax.random.normal(jax.random.key(2), (3, TABLE_QUANTILES))
    return state._replace(parameters=parameters, scale=RunningScale(jnp.float32(2), jnp.float32(13), jnp.float32(0)))


def with_gamma(measure, gamma, gae_lambda, discount=1.0):
    return RiskCritic(NETWORKS["table"], measure, discount, gamma * gae_lambda, 0.01, 0, gamma=gamma)


@named("gae_lambda", [0.0, 0.8, 1.0])
def test_credit_for_the_return_itself_is_the_advantage_of_the_mean_part(gae_lambda):
    steps = steps_of([5, 1, 3, 6], 6, NETWORKS["table"])
    critic = with_gamma(Mean(), 0.8, gae_lambda)
    state = arbitrary(critic)
    quantiles = state.parameters[steps.observations]
    values = (state.scale.mean + state.scale.std * quantiles).mean(axis=-1) * steps.mask
    expected = generalized_advantages(steps.rewards, values, 0.8, gae_lambda) * steps.mask
    np.testing.assert_allclose(critic.advantages(state, steps), expected, rtol=1e-4, atol=1e-4)


def test_whatever_the_critic_says_credit_is_the_discounted_change_of_utility_less_a_baseline():
    gamma, steps = 0.8, steps_of([5, 1, 3, 6], 6, NETWORKS["table"])
    critic = with_gamma(MEASURES["gini"], gamma, 1.0)
    state = arbitrary(critic)
    found, R = np.asarray(critic.advantages(state, steps), float), np.asarray(steps.rewards, float).sum(axis=1)
    to_come = np.asarray(state.scale.mean + state.scale.std * state.parameters[steps.observations], float)
    for i, T in enumerate(np.asarray(steps.mask.sum(axis=1), int)):
        others = np.delete(R, i)
        utility = lambda x, others=others: -np.abs(x - others[:, None]).mean(axis=0)  # noqa: E731
        C = np.cumsum([0.0, *np.asarray(steps.rewards[i], float)])[: T + 1]
        changes = np.diff(utility(C))
        for t in range(T):
            baseline = utility(C[t] + to_come[i, t]).mean() - utility(C[t : t + 1])[0]
            expected = sum(gamma**k * change for k, change in enumerate(changes[t:])) - baseline
            assert found[i, t] == pytest.approx(expected, rel=1e-4, abs=1e-3)


@named("discount", [1.0, 0.9])
def test_the_critic_learns_returns_up_to_a_stop_after_each_step_with_probability_1_less_gamma(discount):
    gamma, n = 0.7, 40_000
    rewards, mask = np.array([1.0, 10.0, -4.0, 3.0]), np.ones(4)
    critic = with_gamma(MEASURES["gini"], gamma, 1.0, discount)
    steps = Steps(
        jnp.zeros((n, 4), int), *(jnp.broadcast_to(jnp.asarray(x, jnp.float32), (n, 4)) for x in (rewards, mask))
    )
    drawn = np.asarray(critic.to_come(jax.random.key(3), steps), float)
    for t in range(4):
        sums = np.cumsum(discount ** np.arange(4 - t) * rewards[t:])
        probabilities = [*(gamma**k * (1 - gamma) for k in range(3 - t)), gamma ** (3 - t)]
        shares = [np.isclose(drawn[:, t], value, atol=1e-4).mean() for value in sums]
        np.testing.assert_allclose(shares, probabilities, atol=4 * 0.5 / n**0.5)


def test_gamma_1_is_no_gamma():
    steps, near = steps_of([5, 1, 3, 6], 6, NETWORKS["table"]), with_gamma(MEASURES["gini"], 1 - 1e-6, 1.0)
    to_the_end = RiskCritic(NETWORKS["table"], MEASURES["gini"], 1.0, 1.0, 0.01, 0)
    state = arbitrary(near)
    np.testing.assert_allclose(near.advantages(state, steps), to_the_end.advantages(state, steps), rtol=1e-3, atol=1e-2)
    for critic in (near, to_the_end):
        drawn = critic.to_come(jax.random.key(0), steps)
        np.testing.assert_allclose(drawn, rewards_to_go(steps.rewards, 1.0), rtol=1e-4, atol=1e-4)
