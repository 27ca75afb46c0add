"""MVPI around DQN and TD3: the solver itself on rewards that are transformed with the current y."""

from functools import partial

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from toy_envs import BOX, TINY, walk

import steadyrl
from steadyrl.agents import DQN, MVPI, TD3
from steadyrl.training.engines.engine import as_arrays
from steadyrl.training.engines.replay import _update

AVERSE = {"risk_aversion": 0.5, "initial_dual": 0.3, "episodes_per_iteration": 8}
each_solver = pytest.mark.parametrize("solver", [DQN, TD3])

pytestmark = pytest.mark.usefixtures("numpys_layers")


def tiny(kind, solver, env=None, **settings):
    space, common = TINY[solver.name]
    return kind(env or partial(walk, space), seed=2, **{**common, **settings})


def leaves(agent):
    return [*map(np.asarray, jax.tree.leaves(agent.learner)), agent.replay_buffer.rows]


def transformed(rewards, y):
    """Eq. 5 with lambda 0.5."""
    return rewards - 0.5 * rewards**2 + rewards * y


@pytest.mark.parametrize(
    ("env", "solver"),
    [
        ("steadyrl/GuardedMaze-v0", "q_learning"),
        ("FrozenLake-v1", "q_learning"),
        ("CartPole-v1", "dqn"),
        (partial(walk, BOX), "td3"),
    ],
)
def test_the_solver_follows_from_the_spaces(env, solver):
    chosen = MVPI(env, **{} if solver == "q_learning" else {"hidden": (8,)}).settings
    assert chosen.solver == solver
    assert chosen.risk_aversion == 0.2
    assert chosen.episodes_per_iteration == (1000 if solver == "q_learning" else 10)


def test_numbered_states_may_be_left_to_a_network():
    agent = MVPI("FrozenLake-v1", solver="dqn", hidden=(8,))
    assert agent.algorithm.layout.inputs == 16
    assert agent.predict(3)[0] in range(4)


@each_solver
def test_without_risk_aversion_it_is_the_solver_bit_for_bit(solver):
    neutral, mvpi = tiny(solver, solver), tiny(MVPI, solver, risk_aversion=0)
    start = leaves(mvpi)
    for agent in (neutral, mvpi):
        agent.learn(total_episodes=12, progress_bar=False)
    for x, y in zip(leaves(neutral), leaves(mvpi), strict=True):
        np.testing.assert_array_equal(x, y)
    assert np.any(leaves(mvpi)[0] != start[0])


class Paying(gym.RewardWrapper):
    """Pays what MVPI makes of the reward with a y that is known beforehand."""

    y = 0.3

    def reward(self, reward):
        return float(transformed(reward, self.y))


@each_solver
def test_it_is_the_solver_on_rewards_transformed_with_the_current_y(solver):
    """Also of transitions that were stored under another y: they are transformed when they are sampled."""
    env = Paying(walk(TINY[solver.name][0]))
    mvpi, by_hand = tiny(MVPI, solver, **AVERSE), tiny(solver, solver, env)
    reward = mvpi.algorithm.layout.inputs + mvpi.algorithm.layout.outputs

    def both_learn(episodes):
        for agent in (mvpi, by_hand):
            agent.learn(total_episodes=episodes, progress_bar=False)
        for name in ("theta", "phi", "targets"):
            ours, theirs = (jax.tree.leaves(getattr(agent.learner, name)) for agent in (mvpi, by_hand))
            for x, y in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5)
        expected = transformed(mvpi.replay_buffer.rows[:, reward], env.y)
        np.testing.assert_allclose(by_hand.replay_buffer.rows[:, reward], expected, rtol=1e-4, atol=1e-5)

    both_learn(8)
    mean = np.mean([record["discounted_return"] for record in mvpi.history])
    env.y = float(mvpi.learner.risk.y)
    assert env.y == pytest.approx((1 - 0.9) * mean, rel=1e-5)
    assert abs(env.y - 0.3) > 0.2
    by_hand.replay_buffer.rows[:, reward] = transformed(mvpi.replay_buffer.rows[:, reward], env.y)
    both_learn(7)


@each_solver
def test_an_update_takes_the_y_of_the_learner(solver):
    mvpi, neutral = tiny(MVPI, solver, **AVERSE), tiny(solver, solver)
    layout, rng = mvpi.algorithm.layout, np.random.default_rng(0)
    first, reward = layout.inputs, layout.inputs + layout.outputs
    rows = rng.uniform(-1, 1, (3, 4, layout.width)).astype(np.float32)
    rows[..., first:reward] = rng.integers(0, 2, (3, 4, layout.outputs))
    rows[..., -1] = rng.random((3, 4)) < 0.3
    for y in (-2.0, 1.5):
        learner, by_hand = mvpi.learner._replace(risk=mvpi.learner.risk._replace(y=jnp.float32(y))), rows.copy()
        by_hand[..., reward] = transformed(rows[..., reward], y)
        ours, our_metrics = _update(as_arrays(mvpi.algorithm), learner, rows, 9)
        theirs, their_metrics = _update(as_arrays(neutral.algorithm), learner._replace(risk=()), by_hand, 9)
        assert our_metrics == {name: pytest.approx(float(value), rel=1e-3) for name, value in their_metrics.items()}
        assert ours.risk.y == np.float32(y)
        for x, z in zip(*map(jax.tree.leaves, (ours._replace(risk=()), theirs)), strict=True):
            np.testing.assert_allclose(x, z, rtol=1e-3, atol=1e-5)


def test_y_is_estimated_from_the_last_iteration_and_constant_during_the_next():
    """Of the environment's own rewards, discounted; it does not wait for updates."""
    agent = tiny(MVPI, DQN, **{**AVERSE, "episodes_per_iteration": 3, "learning_starts": 10**6, "buffer_size": 100})
    returns, y = [], 0.3
    for _ in range(10):
        agent.learn(total_episodes=1, progress_bar=False)
        rewards = agent.algorithm.layout.parts(agent.replay_buffer.rows, 0).rewards[-int(agent.history[-1]["length"]) :]
        returns.append(np.sum(rewards * 0.9 ** np.arange(len(rewards))))
        y = (1 - 0.9) * np.mean(returns[-3:]) if len(returns) % 3 == 0 else y
        assert agent.learner.risk.y == pytest.approx(y, rel=1e-5)
        assert agent.learner.risk.episodes == len(returns) % 3


def test_y_may_be_the_mean_of_the_latest_rewards(monkeypatch):
    """At the last round of updates, of so many steps, across episodes; every step here is followed by an update."""
    monkeypatch.setattr("steadyrl.agents.mvpi.RECENT_REWARDS", 7)
    agent = tiny(MVPI, DQN, **AVERSE, dual_estimate="rewards", train_freq=1, learning_starts=5, buffer_size=500)
    for _ in range(4):
        agent.learn(total_episodes=5, progress_bar=False)
        rewards = agent.algorithm.layout.parts(agent.replay_buffer.rows, 0).rewards[-7:]
        assert agent.learner.risk.y == pytest.approx(rewards.mean(), rel=1e-5)


@each_solver
@pytest.mark.parametrize("dual_estimate", ["returns", "rewards"])
def test_y_and_the_replay_buffer_are_part_of_its_file(solver, dual_estimate, tmp_path):
    agent = tiny(MVPI, solver, **AVERSE, dual_estimate=dual_estimate).learn(total_episodes=11, progress_bar=False)
    assert agent.learner.risk.episodes == (3 if dual_estimate == "returns" else 0)
    agent.save(tmp_path / "agent.steady")
    loaded = steadyrl.load(tmp_path / "agent.steady", env=agent.env)
    assert type(loaded.algorithm.solver) is type(agent.algorithm.solver)
    for each in (agent, loaded):
        each.learn(total_episodes=6, progress_bar=False)
    for x, y in zip(leaves(agent), leaves(loaded), strict=True):
        np.testing.assert_array_equal(x, y)


class Wages(gym.Env):
    """Each step, action 1 pays 1 plus or minus 2, and action 0 pays 0.5 for sure."""

    observation_space, action_space = gym.spaces.Box(-1, 1, (1,)), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        reward = 1 + 2 * float(self.np_random.choice([-1, 1])) if action else 0.5
        return np.zeros(1, np.float32), reward, False, False, {}


@pytest.mark.parametrize(("risk_aversion", "best"), [(1e-9, 1), (0.5, 0)], ids=["neutral", "averse"])
def test_risk_aversion_turns_the_choice(risk_aversion, best):
    """At lambda 0.5 and y = 0.75, of random actions, the wager is worth 1 - 2.5 + y, and the sure 0.5 0.375 + y / 2.

    With squared errors: the Huber loss cannot tell what is the mean of two rewards that are 4 apart.
    """
    settings = {"gamma": 0.9, "hidden": (8,), "batch_size": 128, "learning_rate": 0.01, "exploration_final_eps": 1.0}
    settings |= {"learning_starts": 200, "train_freq": 20, "target_update_interval": 20, "episodes_per_iteration": 10}
    agent = MVPI(lambda: TimeLimit(Wages(), 50), risk_aversion=risk_aversion, huber=False, seed=0, **settings)
    agent.learn(1000, progress_bar=False)
    assert agent.predict(np.zeros(1, np.float32))[0] == best
    if not best:
        assert agent.learner.risk.y == pytest.approx(0.75, abs=0.4)
