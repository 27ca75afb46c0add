"""CVaR by return capping and by its plain estimator: exact gradients, capped rewards, and what is learned."""

import dataclasses
from functools import partial

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradient_cases import assert_unbiased, case, directions
from gymnasium.spaces import Discrete
from small_process import PPO_STEP, Model, small_case, updates
from wager import Wager

import steadyrl
from steadyrl import CVaR, MeanRisk, Reinforce, exact
from steadyrl.agents.networks.quantiles import QuantileTable
from steadyrl.agents.risk_critic import RiskCritic
from steadyrl.exact.mdp import FiniteMDP
from steadyrl.risk import measure_by_name
from steadyrl.training.batch import Steps
from steadyrl.training.returns import rewards_to_go

named = pytest.mark.parametrize
CASES = {
    "maze": partial(case, "maze"),
    "random": partial(case, "random"),
    "small, discounted": partial(small_case, 0.9),
}


def value_at_risk(of, alpha):
    return of.distribution.values[np.searchsorted(of.distribution.probabilities.cumsum()[:-1], alpha)]


@named("alpha", [0.05, 0.1, 0.5])
@named("name", CASES)
def test_capped_at_the_value_at_risk_the_mean_has_alpha_times_the_gradient_of_cvar(name, alpha):
    of = CASES[name]()
    cap = value_at_risk(of, alpha)
    capped = of.gradient(lambda values, probabilities: probabilities @ jnp.minimum(values, cap))
    truth = alpha * of.gradient(exact.cvar(alpha))
    assert np.linalg.norm(truth) > 1e-4
    np.testing.assert_allclose(capped, truth, rtol=1e-9, atol=1e-10 * np.linalg.norm(truth))


def test_without_expectations_credit_is_the_capped_rewards():
    # The critic expects nothing more to come: U_t = u(C_t), so changes of it are the rewards of return capping.
    rng, alpha, cap = np.random.default_rng(0), 0.1, 1.5
    critic = RiskCritic(QuantileTable(2), measure_by_name("cvar:0.1"), 1.0, 0.9, 0.02, 1)
    lengths = np.array([6, 1, 4])
    mask = (np.arange(6) < lengths[:, None]).astype(np.float32)
    rewards = rng.normal(0.5, 1, size=mask.shape) * mask
    steps = Steps(jnp.zeros(mask.shape, int), jnp.asarray(rewards, jnp.float32), jnp.asarray(mask))
    state = critic.init(jax.random.key(0))._replace(returns=jnp.array([cap]), known=jnp.array([1e6]))
    so_far = np.concatenate([np.zeros((3, 1)), rewards.cumsum(axis=1)], axis=1)
    capped = np.diff(np.minimum(so_far, cap), axis=1)
    assert np.any(capped != rewards)
    expected = rewards_to_go(jnp.asarray(capped / alpha), 0.9) * mask
    np.testing.assert_allclose(critic.advantages(state, steps), expected, rtol=1e-4, atol=1e-4)


FORMS = {
    "capping, vpg": {"gae_lambda": 1.0},
    "capping, ppo": PPO_STEP,
    "plain, vpg": {"estimator": "plain"},
    "plain, ppo": {"estimator": "plain", **PPO_STEP},
}


@named(("form", "alpha"), [*((form, 0.3) for form in FORMS), ("capping, vpg", 1.0)])
def test_updates_ascend_cvar_and_nothing_else_if_the_cap_is_known(form, alpha):
    of = small_case(1.0)
    truth = of.gradient(exact.cvar(alpha))
    on = directions(truth)
    # One remembered return, known so well that the returns of a batch do not move the cap.
    known = {"returns": jnp.array([value_at_risk(of, alpha)], jnp.float32), "known": jnp.array([1e6])}
    found = updates(CVaR, 1.0, remembered=known, alpha=alpha, returns_remembered=1, **FORMS[form])
    assert_unbiased(found @ on.T, truth, on, precision=0.15)


# Learning

GAMBLE = FiniteMDP(
    next_state=np.zeros((2, 2, 2)) + np.array([1, 0])[:, None, None],
    # In either state: 1 for sure, or 6 and, with probability 0.2, -4.
    reward=np.broadcast_to(np.array([[1.0, 1.0], [6.0, -4.0]]), (2, 2, 2)),
    ends=np.broadcast_to(np.array([False, True])[:, None, None], (2, 2, 2)),
    probability=np.broadcast_to(np.array([[1.0, 0.0], [0.8, 0.2]]), (2, 2, 2)),
    initial=[1.0, 0.0],
    horizon=2,
)
"""Twice a sure reward, or a lottery: the former has the higher CVaR, 2 against -2.3 and less, the latter the mean."""


class Gamble(gym.Env):
    observation_space, action_space = Discrete(2), Discrete(2)

    @property
    def finite_model(self):
        return Model(GAMBLE)


def learned(kind, **settings):
    """The return distribution of what an agent learns."""
    agent = kind(Gamble, policy_learning_rate=0.03, seed=3, **settings)
    agent.learn(total_episodes=4_000, progress_bar=False)
    assert np.all(np.isfinite(agent.learner.theta))
    return exact.return_distribution(GAMBLE, agent.probabilities(), 1.0)


@pytest.mark.slow
def test_capping_learns_what_the_mean_does_not():
    safe, risky = learned(CVaR), learned(Reinforce)
    assert safe.cvar(0.1) > 1.5
    assert risky.mean > 7.5
    assert risky.cvar(0.1) < 0
    uniform = exact.return_distribution(GAMBLE, np.full((2, 2), 0.5), 1.0)
    assert safe.cvar(0.1) > uniform.cvar(0.1) + 3


def test_with_alpha_1_it_is_risk_neutral():
    assert learned(CVaR, alpha=1.0).mean > 7.5


class NoisyWager(Wager):
    """Action 1 pays 1 plus or minus about 2, action 0 pays 0.5: its worst returns differ, so CVaR has a gradient."""

    def step(self, action):
        reward = 1 + 2 * self.np_random.normal() if action else 0.5
        return np.zeros(1, np.float32), float(reward), True, False, {}


def test_a_network_learns_to_take_the_sure_reward():
    agent = CVaR(NoisyWager, seed=0, hidden=(8,), policy_learning_rate=3e-3, minibatch_size=32)
    assert agent.settings.mean == "ppo"
    agent.learn(total_episodes=20 * agent.settings.episodes_per_update, progress_bar=False)
    actions, _ = agent.predict(np.zeros((200, 1), np.float32))
    assert np.mean(actions) < 0.2
    assert {"risk_critic_loss", "policy_loss"} <= agent.history[-1].keys()
    assert not {"value_loss", "explained_variance"} & agent.history[-1].keys()


@named("estimator", ["capping", "plain"])
def test_training_continues_after_loading_bit_for_bit(estimator, tmp_path):
    settings = {"estimator": estimator, "episodes_per_update": 10, "seed": 1}
    agent, whole = (CVaR("steadyrl/GuardedMaze-v0", **settings) for _ in range(2))
    agent.learn(total_episodes=20, progress_bar=False)
    agent.save(tmp_path / "cvar.steady")
    loaded = steadyrl.load(tmp_path / "cvar.steady")
    assert (loaded.settings.alpha, loaded.settings.estimator) == (0.1, estimator)
    loaded.learn(total_episodes=20, progress_bar=False)
    whole.learn(total_episodes=40, progress_bar=False)
    for one, other in zip(*(jax.tree.leaves(each.learner) for each in (loaded, whole)), strict=True):
        np.testing.assert_array_equal(one, other)


# Settings


@named(
    ("make", "number"),
    [
        (partial(CVaR, "steadyrl/GuardedMaze-v0"), "alpha"),
        (partial(MeanRisk, "steadyrl/GuardedMaze-v0", measure="inter_es_range"), "alpha"),
        (partial(MeanRisk, "steadyrl/GuardedMaze-v0", measure="cvar", credit="trajectory"), "alpha"),
        (partial(MeanRisk, "steadyrl/GuardedMaze-v0", measure="entropic_risk"), "beta"),
    ],
)
def test_agents_with_other_levels_share_compiled_programs(make, number):
    one, other = (make(**{number: value}).algorithm for value in (0.1, 0.4))
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert jax.tree.leaves(one) != jax.tree.leaves(other)


@named(
    ("make", "message"),
    [
        (partial(MeanRisk, measure="gini", alpha=0.2), r"alpha=0.2: gini has no alpha. Leave it out, or .* cvar\."),
        (partial(MeanRisk, measure="cvar", beta=2), "beta=2: cvar has no beta. .* one: entropic_risk"),
        (partial(MeanRisk, measure="inter_quantile_range", alpha=0.7), "alpha=0.7: .* 0 < alpha < 0.5"),
        (partial(CVaR, alpha=0), "alpha=0.0: it must be above 0"),
        (partial(CVaR, value_learning_rate=0.1), "unknown setting 'value_learning_rate'"),
        (partial(CVaR, episodes_per_update=2), "episodes_per_update=2: cvar compares .* at least 3"),
    ],
)
def test_wrong_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make("steadyrl/GuardedMaze-v0")


def test_the_number_of_a_measure_is_recorded():
    agent = MeanRisk("steadyrl/GuardedMaze-v0", measure="inter_quantile_range")
    assert dataclasses.asdict(agent.settings)["alpha"] == 0.25
    assert MeanRisk("steadyrl/GuardedMaze-v0").settings.alpha is None
