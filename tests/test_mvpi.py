"""Q-learning and MVPI around it: single steps by hand, exact value iteration, and the paper's own arithmetic."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steadyrl.agents import MVPI, QLearning
from steadyrl.envs.guarded_maze import Maze
from steadyrl.rollout import Tables, play, sample_episodes
from steadyrl.transitions import Transitions, transitions_of_episodes, transitions_of_plays

ENV = "steadyrl/GuardedMaze-v0"
SMALL = """
    . . .
    S # G
    . R .
"""


def one_episode(states, actions, rewards, last_state, terminated):
    """Transitions of one episode, with two steps of padding."""
    T = len(states)
    happened = np.arange(T + 2) < T

    def pad(x):
        return jnp.asarray([[*x, 0, 0]])

    return Transitions(
        observations=pad(states),
        actions=pad(actions),
        rewards=pad(rewards).astype(jnp.float32),
        next_observations=pad([*states[1:], last_state]),
        ends=jnp.asarray([(np.arange(T + 2) == T - 1) & terminated]),
        last=jnp.asarray([np.arange(T + 2) == T - 1]),
        happened=jnp.asarray([happened]),
    )


@pytest.mark.parametrize("time_out_ends", [True, False])
@pytest.mark.parametrize("terminated", [True, False])
def test_q_learning_by_hand(time_out_ends, terminated):
    agent = QLearning(ENV, gamma=0.9, q_learning_rate=0.5, time_out_ends=time_out_ends)
    start = jnp.zeros((36, 4)).at[7].set(jnp.asarray([4.0, 8.0, 0.0, 0.0]))
    steps = one_episode([3, 5, 3], [1, 2, 1], [1.0, 2.0, 3.0], 7, terminated)
    learner, updates = agent.algorithm.update(agent.learner._replace(theta=start), steps)
    first = 0.5 * (1 + 0.9 * 0)
    second = 0.5 * (2 + 0.9 * first)
    beyond = 0.0 if terminated or time_out_ends else 8.0
    third = first + 0.5 * (3 + 0.9 * beyond - first)
    expected = np.array(start)
    expected[3, 1], expected[5, 2] = third, second
    np.testing.assert_allclose(learner.theta, expected, rtol=1e-6)
    assert updates == 3


def test_acting_explores_and_shares_ties():
    agent = QLearning(ENV, exploration=0.2)
    learner = agent.learner._replace(theta=agent.learner.theta.at[0].set(jnp.asarray([1.0, 3.0, 3.0, 2.0])))
    np.testing.assert_allclose(agent.algorithm.learned(learner)[0], [0, 0.5, 0.5, 0])
    np.testing.assert_allclose(agent.algorithm.acting(learner)[0], [0.05, 0.45, 0.45, 0.05])
    np.testing.assert_allclose(agent.algorithm.acting(learner)[1], 0.25)


def test_transitions_are_the_same_from_plays_and_from_episodes():
    maze, uniform = Maze(horizon=30), jnp.full((36, 4), 0.25)
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(2), i))(jnp.arange(40))
    tables = Tables.of(maze.mdp)
    compiled = jax.tree.map(lambda x: x[0], transitions_of_plays(tables, play(tables, uniform[None], keys[None], 30)))
    hosted = transitions_of_episodes(sample_episodes(maze, uniform, 40, jax.random.key(2)))
    happened = np.asarray(compiled.happened)
    np.testing.assert_array_equal(happened, hosted.happened)
    for name in Transitions._fields:
        np.testing.assert_array_equal(
            np.asarray(getattr(compiled, name))[happened], np.asarray(getattr(hosted, name))[happened]
        )
    assert np.asarray(hosted.ends).sum() == np.asarray(hosted.ends)[np.asarray(hosted.last)].sum() > 0
    assert np.all(np.asarray(hosted.last).sum(axis=1) == 1)


def test_no_aversion_to_risk_is_q_learning_bit_for_bit():
    neutral = QLearning(ENV, seed=3).learn(total_episodes=150, progress_bar=False)
    mvpi = MVPI(ENV, seed=3, risk_aversion=0.0).learn(total_episodes=150, progress_bar=False)
    np.testing.assert_array_equal(neutral.learner.theta, mvpi.learner.theta)
    assert np.any(np.asarray(neutral.learner.theta) != 0)


def test_the_papers_arithmetic_of_transformed_rewards():
    """Its appendix: y = -0.0952 turns 20 into -60.7, 40 into -281.5, and red into {-59.4, -1.16, -21.2}."""
    agent = MVPI(ENV, initial_dual=-0.0952, q_learning_rate=1.0, gamma=1.0)
    for reward, modified in [(20, -60.76), (40, -281.52), (-15, -59.43), (-1, -1.162), (13, -21.295)]:
        learner, _ = agent.algorithm.update(agent.learner, one_episode([2], [1], [float(reward)], 3, True))
        np.testing.assert_allclose(learner.theta[2, 1], modified, atol=0.01)


def test_y_is_the_mean_of_the_last_iteration_and_stands_still_in_between():
    agent = MVPI(gym.make(ENV), episodes_per_iteration=100, initial_dual=-0.5, seed=1)
    agent.learn(total_episodes=50, progress_bar=False)
    assert agent.learner.risk.y == -0.5
    agent.learn(total_episodes=50, progress_bar=False)
    mean = np.mean([record["discounted_return"] for record in agent.history])
    np.testing.assert_allclose(agent.learner.risk.y, (1 - 0.999) * mean, rtol=1e-4)
    assert agent.learner.risk.episodes == 0


def exact_q(mdp, y, risk_aversion, gamma):
    """Q* of the transformed rewards, by value iteration to convergence."""
    r = mdp.reward - risk_aversion * mdp.reward**2 + 2 * risk_aversion * mdp.reward * y
    Q = np.zeros((mdp.n_states, mdp.n_actions))
    for _ in range(3000):
        Q = (mdp.probability * (r + gamma * ~mdp.ends * Q.max(axis=1)[mdp.next_state])).sum(axis=-1)
    return Q


@pytest.mark.parametrize(("risk_aversion", "avoids_red"), [(0.0, False), (0.2, True)])
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
        time_out_ends=False,
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
        assert kind(ENV).settings.time_out_ends is True
        assert kind(ENV, time_out_ends=False).settings.time_out_ends is False
        assert kind("FrozenLake-v1").settings.time_out_ends is False
        assert kind("FrozenLake-v1", time_out_ends=True).settings.time_out_ends is True
