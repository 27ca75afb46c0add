"""Risk credit with a gamma of its own: both parts of the gradient look as far ahead."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from critic_steps import NETWORKS, steps_of

from steadyrl.agents import risk_critic
from steadyrl.agents.networks.quantiles import TABLE_QUANTILES, QuantileTable
from steadyrl.agents.networks.running_scale import RunningScale
from steadyrl.agents.risk_critic import RiskCritic
from steadyrl.risk import MEASURES
from steadyrl.training.batch import Steps
from steadyrl.training.returns import generalized_advantages, rewards_to_go

named = pytest.mark.parametrize
LENGTHS = [5, 1, 3, 6]


class Mean:
    """A measure whose utility is the return itself: its risk part is the mean part."""

    def utility(self, returns, law):
        return returns


@pytest.fixture(autouse=True)
def many_stops(monkeypatch):
    """So that means over the stops after the end of an episode are exact but for rounding."""
    monkeypatch.setattr(risk_critic, "STOPS", 100_000)


def arbitrary(critic):
    state = critic.init(jax.random.key(1))
    parameters = jax.random.normal(jax.random.key(2), (3, TABLE_QUANTILES))
    return state._replace(parameters=parameters, scale=RunningScale(jnp.float32(2), jnp.float32(13), jnp.float32(0)))


def to_come(state, steps):
    """What an arbitrary critic expects: [n, T, quantiles]."""
    return np.asarray(state.scale.mean + state.scale.std * state.parameters[steps.observations], float)


class TimedTable(QuantileTable):
    """A table that learns what networks do."""

    knows_time = True


def with_gamma(measure, gamma, gae_lambda, discount=1.0, table=QuantileTable):
    return RiskCritic(table(3), measure, discount, gamma * gae_lambda, 0.01, 0, gamma=gamma)


def others_rewards(rewards):
    """[n, T]: the mean reward of the other episodes at each time, 0 for those that have ended."""
    return (rewards.sum(axis=0) - rewards) / (len(rewards) - 1)


@named("gae_lambda", [0.0, 0.8, 1.0])
def test_credit_for_the_return_itself_is_the_advantage_of_the_mean_part_with_a_baseline_of_time(gae_lambda):
    gamma, steps = 0.8, steps_of(LENGTHS, 6, NETWORKS["table"])
    critic = with_gamma(Mean(), gamma, gae_lambda)
    state = arbitrary(critic)
    others = others_rewards(np.asarray(steps.rewards, float))
    still = np.cumsum(others[:, ::-1], axis=1)[:, ::-1]
    values = (to_come(state, steps).mean(axis=-1) - still) * steps.mask
    after_end = np.array([-others[i, T:] @ gamma ** np.arange(1, 7 - T) for i, T in enumerate(LENGTHS)])
    gained = np.where(steps.last, after_end[:, None], 0) + (np.asarray(steps.rewards) - others) * np.asarray(steps.mask)
    expected = generalized_advantages(gained, values, gamma, gae_lambda) * steps.mask
    np.testing.assert_allclose(critic.advantages(state, steps), expected, rtol=1e-3, atol=3e-3)


@named("table", [QuantileTable, TimedTable])
@named(("gamma", "discount"), [(0.8, 1.0), (0.8, 0.9), (1 - 1e-5, 0.9), (1.0, 1.0), (1.0, 0.9)])
def test_whatever_the_critic_says_credit_is_the_discounted_change_of_utility_less_a_baseline(gamma, discount, table):
    steps = steps_of(LENGTHS, 6, NETWORKS["table"])
    critic = with_gamma(MEASURES["gini"], gamma, 1.0, discount, table)
    state = arbitrary(critic)
    discounts = discount ** np.arange(6)
    found, rewards = np.asarray(critic.advantages(state, steps), float), np.asarray(steps.rewards, float) * discounts
    expects = to_come(state, steps) * discounts[:, None]
    for i, T in enumerate(LENGTHS):
        others = np.delete(rewards.sum(axis=1), i)
        utility = lambda x, others=others: -np.abs(x - others[:, None]).mean(axis=0)  # noqa: E731
        still = np.cumsum(np.append(others_rewards(rewards)[i], 0)[::-1])[::-1] if gamma < 1 else np.zeros(7)
        so_far = np.cumsum([0.0, *rewards[i]])
        projected = so_far + still
        changes = np.diff(utility(projected))
        for t in range(T):
            baseline = (
                utility((projected if table.knows_time else so_far)[t] + expects[i, t]).mean()
                - utility(projected[t : t + 1])[0]
            )
            expected = sum(gamma**k * change for k, change in enumerate(changes[t:])) - baseline
            assert found[i, t] == pytest.approx(expected, rel=1e-3, abs=3e-3)


@named("table", [QuantileTable, TimedTable])
def test_an_episode_like_the_others_is_expected_to_end_like_them(table):
    """Early in it, the return so far is below or above all returns."""
    critic = with_gamma(MEASURES["gini"], 0.8, 1.0, table=table)
    rewards = np.tile([-3.0, -1, 4, -5, 2, -9], (4, 1))
    steps = steps_of([6, 6, 6, 6], 6, NETWORKS["table"], rewards=rewards)
    drawn = critic.targets(jax.random.key(3), steps)
    expected = 0 if table.knows_time else rewards_to_go(steps.rewards, 1.0)
    np.testing.assert_allclose(drawn, expected, atol=1e-5)


@named("discount", [1.0, 0.9])
def test_the_critic_learns_returns_with_a_stop_after_each_step_with_probability_1_less_gamma(discount):
    gamma, n = 0.7, 40_000
    rewards = np.array([1.0, 10.0, -4.0, 3.0])
    critic = with_gamma(MEASURES["gini"], gamma, 1.0, discount)
    given = jnp.asarray(rewards * (np.arange(n) % 2 == 0)[:, None], jnp.float32)
    steps = Steps(jnp.zeros((n, 4), int), given, jnp.ones((n, 4), jnp.float32))
    drawn = np.asarray(critic.targets(jax.random.key(3), steps), float)[::2]
    for t in range(4):
        paid = discount ** np.arange(4 - t) * rewards[t:]
        sums = np.cumsum(paid) / 2 + paid.sum() / 2  # The others have half of it on average.
        probabilities = [*(gamma**k * (1 - gamma) for k in range(3 - t)), gamma ** (3 - t)]
        shares = [np.isclose(drawn[:, t], value, atol=2e-3).mean() for value in sums]
        np.testing.assert_allclose(shares, probabilities, atol=4 * 0.5 / (n / 2) ** 0.5)


def test_after_a_stop_beyond_its_end_an_episode_has_what_others_still_collect():
    rewards = np.zeros((2, 6)) + 1.0
    steps = steps_of([2, 6], 6, NETWORKS["table"], rewards=rewards)
    critic = with_gamma(Mean(), 0.8, 1.0)
    draw = jax.jit(lambda key: critic.targets(key, steps))
    drawn = np.stack([draw(jax.random.key(k)) for k in range(400)])
    # One step before its end: 1, and then what the other has left 1, 2, ... steps later.
    found, expected = np.unique(np.round(drawn[:, 0, 1], 4)), [1.0, 2.0, 3.0, 4.0, 5.0]
    np.testing.assert_allclose(found, expected)
    assert np.mean(drawn[:, 0, 1] == 5) == pytest.approx(0.2, abs=0.08)


def test_few_stops_after_the_end_are_enough(monkeypatch):
    """For the credit of ending an episode of which hundreds of steps are left."""
    monkeypatch.undo()
    steps = steps_of([1, 300], 300, NETWORKS["table"], rewards=np.full((2, 300), -1.0))
    critic = with_gamma(Mean(), 0.99, 1.0, table=TimedTable)
    state = critic.init(jax.random.key(0))._replace(scale=RunningScale(jnp.float32(0), jnp.float32(0), jnp.float32(0)))
    exact = sum(0.99**k for k in range(1, 300))
    assert critic.advantages(state, steps)[0, 0] == pytest.approx(exact, rel=0.05)


def test_with_gamma_1_the_critic_learns_the_return_still_to_come():
    steps, critic = steps_of(LENGTHS, 6, NETWORKS["table"]), with_gamma(MEASURES["gini"], 1.0, 1.0)
    drawn = critic.targets(jax.random.key(0), steps)
    np.testing.assert_allclose(drawn, rewards_to_go(steps.rewards, 1.0), rtol=1e-5, atol=1e-5)


def test_a_small_discount_of_a_long_return_is_no_division_by_zero():
    steps = steps_of([900, 1000], 1000, NETWORKS["table"])
    critic = with_gamma(MEASURES["gini"], 0.99, 0.9, discount=0.5)
    state = arbitrary(critic)
    assert np.isfinite(critic.advantages(state, steps)).all()
    assert np.isfinite(critic.targets(jax.random.key(0), steps)).all()
