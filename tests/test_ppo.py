"""Algorithm 2 against a second implementation of it, its risk part against the measures', and PPO as users have it."""

import dataclasses

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from plain_maze import gini_eta, leave_one_out, softmax

import steadyrl
from steadyrl.agents import MVO, MVP, PPO, MeanGini, MeanRisk, Tamar
from steadyrl.batch import batch_of_steps
from steadyrl.engines import _padded, _update
from steadyrl.envs.guarded_maze import Maze
from steadyrl.returns import generalised_advantages
from steadyrl.risk import Order, Sample
from steadyrl.rollout import sample_episodes

MAZE = "steadyrl/GuardedMaze-v0"
NO_LIMIT = 1e9


def on_its_way(kind, seed=0, **settings):
    """An agent with a table whose policy and values are not those it started with, and a batch of its episodes."""
    agent = kind(MAZE, optimiser="sgd", **{"mean": "ppo"} if kind is not PPO else {}, **settings)
    rng = np.random.default_rng(seed)
    theta = jnp.asarray(rng.normal(size=(36, 4)), jnp.float32)
    learner = agent.learner._replace(theta=theta, phi=jnp.asarray(rng.normal(size=36) * 10, jnp.float32))
    episodes = sample_episodes(Maze(), jax.nn.softmax(theta), agent.settings.n, jax.random.key(seed))
    return agent, learner, episodes


def backwards(x, discount):
    """The sum of what comes, discounted, from each step on."""
    total, sums = 0.0, []
    for one in x[::-1]:
        total = one + discount * total
        sums.append(total)
    return np.array(sums[::-1])


def shortened(gradient, most):
    return gradient * min(1, most / np.linalg.norm(gradient))


def plain_update(theta, V, episodes, s, risk_weights):
    """The inner loop of Algorithm 2 for tables, one trajectory and one step at a time, in place."""
    trajectories = []
    for i, m in enumerate(episodes.mask.astype(bool)):
        states, actions, rewards = episodes.observations[i][m], episodes.actions[i][m], episodes.rewards[i][m].copy()
        R = (rewards * s.gamma ** np.arange(len(rewards))).sum()
        if not episodes.terminated[i] and not s.time_out_ends:
            rewards[-1] += s.gamma * V[episodes.last_observations[i]]
        v = V[states]
        delta = rewards + s.gamma * np.append(v[1:], 0) - v
        advantages = backwards(delta, s.gamma * s.gae_lambda)
        trajectories.append((states, actions, R, backwards(rewards, s.gamma), advantages))
    every = np.concatenate([A for *_, A in trajectories])
    middle, spread = (every.mean(), every.std()) if s.normalise_advantages else (0.0, 1.0)
    n, steps, R = len(trajectories), len(every), np.array([t[2] for t in trajectories])
    sampled, seen = np.log(softmax(theta)), set()
    for _ in range(s.inner_updates):
        pi, ascent = softmax(theta), np.zeros_like(theta)
        log_ratio = np.log(pi) - sampled
        rho = np.minimum(np.exp([log_ratio[st, a].sum() for st, a, *_ in trajectories]), s.ratio_bound)
        by_step = s.risk_ratios == "step"
        rho = np.ones(n) if by_step else rho
        weights = s.risk_aversion * rho * risk_weights(R) / spread * n  # In a mean over n T steps.
        for i, (states, actions, _, _, A) in enumerate(trajectories):
            advantages = (A - middle) / spread + by_step * weights[i]
            for state, action, advantage in zip(states, actions, advantages, strict=True):
                ratio = np.exp(log_ratio[state, action])
                clipped = np.clip(ratio, 1 - s.clip_range, 1 + s.clip_range)
                score = np.eye(4)[action] - pi[state]
                seen.add((ratio * advantage <= clipped * advantage, bool(advantage * (advantage - weights[i]) > 0)))
                if ratio * advantage <= clipped * advantage:
                    ascent[state] += ratio * advantage * score / steps
                ascent[state] += (not by_step) * weights[i] * score / steps
                entropy = -(pi[state] * np.log(pi[state])).sum()
                ascent[state] -= s.entropy_coefficient * pi[state] * (np.log(pi[state]) + entropy) / steps
        for states, _, _, g, _ in trajectories:
            slope = np.zeros_like(V)
            np.add.at(slope, states, 2 * s.value_coefficient * (V[states] - g) / len(g))
            V -= s.value_learning_rate * shortened(slope, s.max_gradient_norm)
        theta += s.policy_learning_rate * shortened(ascent, s.max_gradient_norm)
    return seen


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        ("paper", {"ratio_bound": 1.1, "risk_ratios": "trajectory"}),
        (
            "paper",
            {
                "ratio_bound": 2.0,
                "risk_ratios": "trajectory",
                "normalise_advantages": False,
                "time_out_ends": True,
                "clip_range": 0.02,
            },
        ),
        ("unbiased", {"inner_updates": 1, "max_gradient_norm": 1e-3}),
        ("unbiased", {"risk_ratios": "step", "clip_range": 0.005, "risk_aversion": 5.0}),
    ],
    ids=["as in the paper", "not normalised", "one update, shortened", "step by step"],
)
def test_the_update_is_algorithm_2(estimator, settings):
    rates = {"policy_learning_rate": 0.5, "value_learning_rate": 0.05}
    agent, learner, episodes = on_its_way(MeanGini, estimator=estimator, **{**rates, **settings})
    assert not episodes.terminated.all()
    assert episodes.terminated.any()
    updated, count = _update(agent.algorithm, learner, _padded(episodes))
    assert count == agent.settings.inner_updates
    theta, V = np.array(learner.theta, float), np.array(learner.phi, float)
    n = agent.settings.n
    # The unbiased weights correct both members of a pair; the plain loop knows ratios of 1 alone.
    weights = {"paper": lambda R: gini_eta(R) / (n - 1), "unbiased": lambda R: leave_one_out(R) / (n - 2)}[estimator]
    seen = plain_update(theta, V, episodes, agent.settings, weights)
    if agent.settings.clip_range < 0.1:
        # Steps were clipped and steps were not, with and without risk turning the sign of what they are worth.
        assert len(seen) == 4 or agent.settings.risk_ratios == "trajectory"
        assert {clipped for clipped, _ in seen} == {True, False}
    moved = theta - np.asarray(learner.theta)
    assert np.abs(moved).max() > 1e-4
    np.testing.assert_allclose(updated.theta - learner.theta, moved, atol=1e-3 * np.abs(moved).max())
    np.testing.assert_allclose(updated.phi, V, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (MeanGini, {}),
        (MeanGini, {"estimator": "paper"}),
        (MVO, {}),
        (MeanRisk, {"measure": "gini_paper"}),
        (Tamar, {"initial_mean": -80.0, "initial_variance": 900.0}),
        (MVP, {"initial_dual": -70.0, "dual_learning_rate": 0.1}),
    ],
)
def test_the_risk_part_is_the_measures_own(kind, settings):
    """lambda rho_i weight_i / T in a sum over steps, so n times as much in their mean; rho is clipped at zeta."""
    agent = kind(MAZE, mean="ppo", risk_aversion=0.7, ratio_bound=1.5, risk_ratios="trajectory", **settings)
    R, log_ratios = jnp.float32([3, -50, 20, 7]), jnp.float32([0, 9, -1, 0.2])
    rho = jnp.float32([1, 1.5, np.exp(-1), np.exp(0.2)])
    weights, state = agent.risk_measure().weights(Sample(R, rho, jnp.ones(4, bool)), agent.learner.risk)
    found, after = agent.algorithm.weigh(agent.learner.risk, R, Order.of(R), log_ratios, jnp.float32(2.0))
    np.testing.assert_allclose(found, 0.7 * 4 * rho * weights / 2.0, rtol=1e-5)
    np.testing.assert_array_equal(jax.tree.leaves(after), jax.tree.leaves(state))
    if kind is MeanGini and settings:
        np.testing.assert_allclose(found, 0.7 * 4 * rho * gini_eta(np.array([3, -50, 20, 7])) / 3 / 2, rtol=1e-5)


def test_mvps_dual_goes_to_the_mean_alone():
    """With PPO for the mean, y* = E[G0]; with the vanilla policy gradient it also holds 1 / (2 lambda)."""
    agent = MVP(MAZE, mean="ppo", risk_aversion=0.1, dual_learning_rate=0.5)
    R = jnp.full(1, -70.0)
    _, y = agent.risk_measure().weights(Sample(R, jnp.ones(1), jnp.ones(1, bool)), jnp.float32(0))
    assert float(y) == -70.0


def test_running_estimates_count_a_batch_once_however_often_it_is_used():
    agent = Tamar(MAZE, mean="ppo", inner_updates=3, moments_learning_rate=0.1, initial_mean=100.0)
    agent.learn(total_episodes=1, progress_bar=False)
    R = agent.history[0]["discounted_return"]
    np.testing.assert_allclose(agent.learner.risk.mean, 100 + 0.1 * (R - 100), rtol=1e-5)


def test_one_episode_can_be_a_good_one():
    """Counted from the mean of a batch of one, its advantage would be nothing; the penalty here never comes."""
    agent = Tamar(Wager, mean="ppo", threshold=1e9, entropy_coefficient=0.0, hidden=(8,), seed=0)
    start = agent.learner.theta[-1]["bias"]
    agent.learn(total_episodes=1, progress_bar=False)
    assert np.abs(agent.learner.theta[-1]["bias"] - start).max() > 1e-5


def test_learns_a_table_with_its_own_rates():
    agent = PPO(MAZE, seed=0).learn(total_episodes=500, progress_bar=False)
    assert agent.engine == "gymnasium"
    assert agent.history[-1]["goal_rate"] > agent.history[0]["goal_rate"] + 0.3


def test_advantages_of_hand_worked_numbers():
    rewards, values = jnp.float32([[1, 2, 4], [3, 0, 0]]), jnp.float32([[10, 20, 30], [5, 0, 0]])
    # delta = (1 + 10 - 10, 2 + 15 - 20, 4 - 30) and 3 - 5, with gamma 0.5; gamma lambda = 0.1.
    expected = [[1 - 0.3 - 0.26, -3 - 2.6, -26], [-2, 0, 0]]
    for gae in (generalised_advantages, jax.jit(generalised_advantages, static_argnums=(2, 3))):
        np.testing.assert_allclose(gae(rewards, values, 0.5, 0.2), expected, rtol=1e-6)
    # With lambda = 1 they are the rewards to go less the values.
    to_go = generalised_advantages(rewards, values, 0.5, 1.0)[0]
    np.testing.assert_allclose(to_go, [3 - 10, 4 - 20, 4 - 30], rtol=1e-6)


def test_a_pass_in_minibatches_uses_every_step_once():
    """With steps too small to matter to each other, parts of equal size add up to as many whole batches."""
    common = {
        "inner_updates": 1,
        "max_gradient_norm": NO_LIMIT,
        "normalise_advantages": True,
        "risk_ratios": "trajectory",
    }
    rates = {"policy_learning_rate": 1e-2, "value_learning_rate": 1e-4}
    whole, learner, episodes = on_its_way(MeanGini, **common, **rates)
    total = int(episodes.mask.sum())
    size = next(size for size in range(100, 0, -1) if total % size == 0)
    parts = total // size
    assert parts > 5
    agent = MeanGini(MAZE, mean="ppo", optimiser="sgd", minibatch_size=size, **common, **rates)
    in_parts, count = _update(agent.algorithm, learner._replace(key=agent.learner.key), _padded(episodes))
    assert count == parts
    together, _ = _update(whole.algorithm, learner, _padded(episodes))
    moved, once = (np.asarray(x.theta - learner.theta) for x in (in_parts, together))
    np.testing.assert_allclose(moved, parts * once, atol=2e-2 * np.abs(parts * once).max())
    V = np.array(learner.phi, float)
    _, targets = whole.algorithm.advantages(learner, batch_of_steps(episodes, 0.99), episodes)
    slope, m = np.zeros(36), episodes.mask > 0
    np.add.at(slope, episodes.observations[m], (V[episodes.observations] - np.asarray(targets))[m] / total)
    np.testing.assert_allclose(in_parts.phi - V, -1e-4 * parts * slope, atol=2e-2 * parts * 1e-4 * np.abs(slope).max())
    assert not np.array_equal(in_parts.key, agent.learner.key)


def leaves(agent):
    return [np.asarray(x) for x in jax.tree.leaves(agent.learner)]


def test_no_aversion_to_risk_is_ppo_bit_for_bit():
    common = {"hidden": (8,), "seed": 4, "minibatch_size": 3, "inner_updates": 2}
    neutral, same = PPO(Wager, **common), MeanGini(Wager, mean="ppo", risk_aversion=0.0, **common)
    for agent in (neutral, same):
        agent.learn(total_episodes=30, progress_bar=False)
    for x, y in zip(leaves(neutral), leaves(same), strict=True):
        np.testing.assert_array_equal(x, y)
    # 10 steps in parts of at most 3 are 4 parts, twice.
    assert neutral.history[-1]["updates"] == 8


@pytest.mark.parametrize(("kind", "minibatch_size"), [(MeanGini, 4), (Tamar, 0)])
def test_learns_on_after_loading_bit_for_bit(kind, minibatch_size, tmp_path):
    settings = {"episodes_per_update": 5, "minibatch_size": minibatch_size, "normalise_observations": True}
    agent = kind(Wager, seed=1, mean="ppo", hidden=(8,), **settings)
    agent.learn(total_episodes=10, progress_bar=False)
    agent.save(tmp_path / "agent.steady")
    loaded = steadyrl.load(tmp_path / "agent.steady", env=Wager)
    assert loaded.settings == agent.settings
    for each in (agent, loaded):
        each.learn(total_episodes=10, progress_bar=False)
    for x, y in zip(leaves(agent), leaves(loaded), strict=True):
        np.testing.assert_array_equal(x, y)


class Wager(gym.Env):
    """One step: action 1 pays 1 plus or minus 2, action 0 pays 0.5 for sure."""

    observation_space, action_space = spaces.Box(-1, 1, (1,)), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        reward = 1 + 2 * float(self.np_random.choice([-1, 1])) if action else 0.5
        return np.zeros(1, np.float32), reward, True, False, {}


@pytest.mark.parametrize(
    ("kind", "settings", "best"),
    [
        (PPO, {}, 1),
        (MeanGini, {"mean": "ppo", "risk_aversion": 2.0}, 0),
        (MeanGini, {"mean": "ppo", "risk_aversion": 2.0, "risk_ratios": "trajectory", "minibatch_size": 16}, 0),
    ],
    ids=["neutral", "averse", "averse in minibatches"],
)
def test_risk_aversion_turns_the_choice(kind, settings, best):
    """D of the wager is 1, and E - lambda D of it 1 - lambda: worth less than a sure 0.5 for lambda above 0.5."""
    common = {"hidden": (8,), "episodes_per_update": 50, "policy_learning_rate": 0.01, "inner_updates": 3}
    agent = kind(Wager, seed=0, **common, **settings).learn(total_episodes=3000, progress_bar=False)
    chosen = agent.predict(np.zeros((400, 1), np.float32))[0]
    assert (chosen == best).mean() > 0.85


def test_the_paper_s_settings_are_the_defaults():
    def settings(kind, **given):
        return kind.settings_of(given).completed(tabular=False)

    assert [settings(kind, mean="ppo").risk_aversion for kind in (Tamar, MVP)] == [0.2, 0.2]
    assert settings(PPO).optimiser == PPO.settings_of({}).completed(tabular=True).optimiser == "adam"
    s = settings(PPO)
    assert (s.gamma, s.gae_lambda, s.entropy_coefficient, s.value_coefficient) == (0.99, 0.95, 0.01, 0.5)
    assert (s.clip_range, s.max_gradient_norm, s.inner_updates, s.n, s.hidden) == (0.2, 0.5, 5, 10, (256, 256))
    assert (s.policy_learning_rate, s.value_learning_rate) == (3e-4, 3e-4)
    for kind in (Tamar, MVP):
        s = settings(kind, mean="ppo")
        assert (s.n, s.inner_updates, s.policy_learning_rate, s.value_learning_rate) == (1, 1, 7e-5, 7e-5)
    assert settings(MVO, mean="ppo").policy_learning_rate == 7e-5
    assert settings(MeanGini).mean == "vpg"
    assert settings(MeanGini, **dataclasses.asdict(settings(MeanGini, mean="ppo"))) == settings(MeanGini, mean="ppo")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MeanGini(MAZE, clip_range=0.1), "clip_range: it is a setting of mg with mean='ppo'"),
        (lambda: MVP(MAZE, mean="ppo", clip_rnage=0.1), "Did you mean 'clip_range'"),
        (lambda: MeanGini(MAZE, mean="ppo", ratio_range=0.1), "ratio_range: it is a setting of mg with mean='vpg'"),
        (lambda: MeanGini(MAZE, mean=["ppo"]), "a str is needed"),
        (lambda: MeanGini(MAZE, clip_rnage=0.1), "Did you mean 'clip_range'"),
        (lambda: MeanGini(MAZE, mean="trpo"), "mean=trpo: it is one of vpg, ppo"),
        (lambda: PPO(MAZE, minibatch_size=-1), "minibatch_size=-1: it must be at least 0"),
        (lambda: PPO(MAZE, risk_aversion=1.0), "unknown setting 'risk_aversion'"),
        (lambda: PPO(MAZE, engine="compiled"), "not PPO"),
    ],
)
def test_mistakes_get_an_error_that_helps(make, message):
    with pytest.raises(ValueError, match=message):
        make()
