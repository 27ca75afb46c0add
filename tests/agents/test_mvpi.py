"""Q-learning and MVPI around it: single steps by hand, exact value iteration, and the paper's own arithmetic."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from maze_batches import episode_batch, update

from steadyrl.agents import MVPI, QLearning
from steadyrl.envs.guarded_maze import Maze
from steadyrl.rollouts.compiled import Tables, _play, sample_episodes
from steadyrl.training.returns import discount_factors
from steadyrl.training.transitions import Transitions, transitions_from_episodes, transitions_from_plays

ENV = "steadyrl/GuardedMaze-v0"
SMALL = """
    . . .
    S # G
    . R .
"""


LENGTH = 5


def one_episode(states, actions, rewards, last_state, terminated, gamma=1.0):
    """Transitions of one episode of at most three steps, padded."""
    T = len(states)

    def pad(x):
        return jnp.asarray([[*x, *[0] * (LENGTH - T)]])

    return Transitions(
        observations=pad(states),
        actions=pad(actions),
        rewards=pad(rewards).astype(jnp.float32),
        next_observations=pad([*states[1:], last_state]),
        terminated=jnp.asarray([(np.arange(LENGTH) == T - 1) & terminated]),
        last=jnp.asarray([np.arange(LENGTH) == T - 1]),
        mask=jnp.asarray([np.arange(LENGTH) < T]),
        returns=jnp.asarray([np.sum(rewards * gamma ** np.arange(T))], jnp.float32),
    )


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("terminated", [True, False])
def test_q_learning_by_hand(bootstrap, terminated):
    agent = QLearning(ENV, gamma=0.9, q_learning_rate=0.5, bootstrap_on_truncation=bootstrap)
    start = jnp.zeros((36, 4)).at[7].set(jnp.asarray([4.0, 8.0, 0.0, 0.0]))
    steps = one_episode([3, 5, 3], [1, 2, 1], [1.0, 2.0, 3.0], 7, terminated)
    learner, metrics = update(agent.algorithm, agent.learner._replace(theta=start), steps)
    first = 0.5 * (1 + 0.9 * 0)
    second = 0.5 * (2 + 0.9 * first)
    next_value = 8.0 if bootstrap and not terminated else 0.0
    third = first + 0.5 * (3 + 0.9 * next_value - first)
    expected = np.array(start)
    expected[3, 1], expected[5, 2] = third, second
    np.testing.assert_allclose(learner.theta, expected, rtol=1e-6)
    assert metrics.keys() == {"updates", "critic_loss", "mean_q"}
    assert metrics["updates"] == 3
    # The error of a step is its change over the rate of 0.5.
    np.testing.assert_allclose(
        metrics["critic_loss"], np.mean(np.square([2 * first, 2 * second, 2 * (third - first)])), rtol=1e-6
    )
    np.testing.assert_allclose(metrics["mean_q"], expected.mean(), rtol=1e-6)


def test_acting_explores_and_shares_ties():
    agent = QLearning(ENV, exploration=0.2)
    learner = agent.learner._replace(theta=agent.learner.theta.at[0].set(jnp.asarray([1.0, 3.0, 3.0, 2.0])))
    np.testing.assert_allclose(agent.algorithm.learned_table(learner)[0], [0, 0.5, 0.5, 0])
    np.testing.assert_allclose(agent.algorithm.exploring_table(learner)[0], [0.05, 0.45, 0.45, 0.05])
    np.testing.assert_allclose(agent.algorithm.exploring_table(learner)[1], 0.25)


def test_transitions_are_the_same_from_plays_and_from_episodes():
    maze, uniform, n = Maze(), jnp.full((36, 4), 0.25), 50
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(2), i))(jnp.arange(n))
    tables, T = Tables.of(maze.mdp), maze.mdp.horizon
    discounts = jnp.asarray(discount_factors(0.9, T)[None], jnp.float32)
    plays = _play(tables, uniform[None], keys[None], T)
    compiled = jax.jit(transitions_from_plays)(tables, plays, discounts)
    compiled = jax.tree.map(lambda x: np.asarray(x)[0], compiled)
    episodes = episode_batch(sample_episodes(maze, uniform, n, jax.random.key(2)), 0.9)
    hosted = jax.tree.map(np.asarray, jax.jit(transitions_from_episodes)(episodes))
    assert not hosted.mask[:, T:].any(), "the host pads to one of a few lengths"
    np.testing.assert_allclose(compiled.returns, hosted.returns, rtol=1e-5)
    of_steps = [name for name, x in hosted._asdict().items() if name != "returns" and x is not None]
    hosted = hosted._replace(**{name: getattr(hosted, name)[:, :T] for name in of_steps})
    np.testing.assert_array_equal(compiled.mask, hosted.mask)
    for name in of_steps:
        np.testing.assert_array_equal(getattr(compiled, name)[compiled.mask], getattr(hosted, name)[compiled.mask])
    assert hosted.terminated.sum() == hosted.terminated[hosted.last].sum() > 0
    assert not hosted.terminated.any(axis=1).all(), "some were truncated"
    assert np.all(hosted.last.sum(axis=1) == 1)


def test_without_risk_aversion_it_is_q_learning_bit_for_bit():
    neutral, mvpi = QLearning(ENV, q_learning_rate=0.3), MVPI(ENV, risk_aversion=0.0, q_learning_rate=0.3)
    assert type(mvpi.algorithm) is type(neutral.algorithm)
    steps = one_episode([3, 5, 3], [1, 2, 1], [1.0, 2.0, 3.0], 7, True)
    learners = [update(agent.algorithm, agent.learner, steps)[0] for agent in (neutral, mvpi)]
    np.testing.assert_array_equal(learners[0].theta, learners[1].theta)
    assert jax.tree.structure(learners[0]) == jax.tree.structure(learners[1])
    assert np.any(np.asarray(learners[0].theta) != 0)


def test_the_papers_arithmetic_of_transformed_rewards():
    """Its appendix: y = -0.0952 turns 20 into -60.7, 40 into -281.5, and red into {-59.4, -1.16, -21.2}."""
    agent = MVPI(ENV, initial_dual=-0.0952, q_learning_rate=1.0, gamma=1.0)
    for reward, modified in [(20, -60.76), (40, -281.52), (-15, -59.43), (-1, -1.162), (13, -21.295)]:
        learner, _ = update(agent.algorithm, agent.learner, one_episode([2], [1], [float(reward)], 3, True))
        np.testing.assert_allclose(learner.theta[2, 1], modified, atol=0.01)


def test_y_is_estimated_from_the_last_iteration_and_constant_during_the_next():
    agent = MVPI(gym.make(ENV), episodes_per_iteration=100, initial_dual=-0.5, seed=1, gamma=0.999)
    agent.learn(total_episodes=50, progress_bar=False)
    assert agent.learner.risk.y == -0.5
    agent.learn(total_episodes=50, progress_bar=False)
    mean = np.mean([record["discounted_return"] for record in agent.history])
    np.testing.assert_allclose(agent.learner.risk.y, (1 - 0.999) * mean, rtol=1e-4)
    assert agent.learner.risk.episodes == 0


def test_y_may_be_the_mean_reward_of_a_step():
    agent = MVPI(gym.make(ENV), episodes_per_iteration=100, dual_estimate="rewards", seed=1, gamma=0.999)
    agent.learn(total_episodes=100, progress_bar=False)
    rewards, steps = (np.sum([record[name] for record in agent.history]) for name in ("return", "length"))
    np.testing.assert_allclose(agent.learner.risk.y, rewards / steps, rtol=1e-4)
    np.testing.assert_array_equal(agent.learner.risk.total, 0)


def exact_q(mdp, y, risk_aversion, gamma):
    """Q* of the transformed rewards, by value iteration to convergence."""
    r = mdp.reward - risk_aversion * mdp.reward**2 + 2 * risk_aversion * mdp.reward * y
    Q = np.zeros((mdp.n_states, mdp.n_actions))
    for _ in range(3000):
        Q = (mdp.probability * (r + gamma * ~mdp.ends * Q.max(axis=1)[mdp.next_state])).sum(axis=-1)
    return Q


@pytest.mark.slow
@pytest.mark.optimized
@pytest.mark.parametrize(("risk_aversion", "avoids_red"), [(1e-9, False), (0.2, True)])
def test_it_finds_what_exact_value_iteration_finds(risk_aversion, avoids_red):
    """With y fixed. Red pays a gamble of mean 0 here, so that only aversion to risk avoids it."""
    options = {"layout": SMALL, "goal_reward": 5, "red_rewards": (-3.0, 3.0), "red_probabilities": (0.5, 0.5)}
    env, gamma = gym.make(ENV, **options), 0.9
    agent = MVPI(
        env,
        risk_aversion=risk_aversion,
        initial_dual=0.02,
        episodes_per_iteration=10**6,
        gamma=gamma,
        q_learning_rate=0.02,
        exploration=0.5,
        bootstrap_on_truncation=True,
        seed=0,
    ).learn(total_episodes=6000, progress_bar=False)
    Q = exact_q(env.unwrapped.maze.mdp, 0.02, risk_aversion, gamma)
    s = env.unwrapped.maze.start
    path = [s]
    while env.unwrapped.maze.live[s]:
        assert agent.predict(s, deterministic=True)[0] == Q[s].argmax()
        np.testing.assert_allclose(agent.learner.theta[s].max(), Q[s].max(), atol=0.25)
        s = int(env.unwrapped.maze.destination[s, Q[s].argmax()])
        path.append(s)
    assert (7 not in path) == avoids_red


def test_only_a_limit_that_is_part_of_the_process_is_an_end():
    for kind in (QLearning, MVPI):
        assert kind(ENV).settings.bootstrap_on_truncation is False
        assert kind(ENV, bootstrap_on_truncation=True).settings.bootstrap_on_truncation is True
        assert kind("FrozenLake-v1").settings.bootstrap_on_truncation is True
        assert kind("FrozenLake-v1", bootstrap_on_truncation=False).settings.bootstrap_on_truncation is False
