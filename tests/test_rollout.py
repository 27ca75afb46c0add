"""The compiled collector: its step, its episodes, and the batches made of them."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steadyrl.batch import batch_of_pairs, batch_of_steps
from steadyrl.envs.guarded_maze import GuardedMazeEnv, Maze
from steadyrl.mdp import FiniteMDP
from steadyrl.returns import discounted_returns, rewards_to_go
from steadyrl.rollout import Tables, finite_face, play, sample_episodes, step, uniforms

UNIFORM = np.full((36, 4), 0.25)


def random_mdp(seed=0, S=4, A=3, K=3, horizon=6):
    rng = np.random.default_rng(seed)
    return FiniteMDP(
        next_state=rng.integers(S, size=(S, A, K)),
        reward=rng.normal(size=(S, A, K)),
        ends=rng.random((S, A, K)) < 0.15,
        probability=rng.dirichlet(np.ones(K), size=(S, A)),
        initial=rng.dirichlet(np.ones(S)),
        horizon=horizon,
    )


MAZES = {
    "maze": Maze().mdp,
    "no draw on bump": Maze(draw_on_bump=False).mdp,
    "random": random_mdp(),
    "one outcome": random_mdp(K=1),
}


@pytest.mark.parametrize("mdp", MAZES.values(), ids=MAZES.keys())
def test_a_step_is_the_process_transition_by_transition(mdp):
    """For every pair, u swept over [0, 1) meets every outcome, in order and in proportion to its probability."""
    tables = Tables.of(mdp)
    u = jnp.asarray((np.arange(2000) + 0.5) / 2000, jnp.float32)
    for s in range(mdp.n_states):
        for a in range(mdp.n_actions):
            outcome, there, reward, ends = step(tables, jnp.full(2000, s), jnp.full(2000, a), u)
            k = np.asarray(outcome) - (s * mdp.n_actions + a) * mdp.reward.shape[-1]
            shares = np.bincount(k, minlength=mdp.reward.shape[-1]) / 2000
            np.testing.assert_allclose(shares, mdp.probability[s, a], atol=1e-3)
            np.testing.assert_array_equal(there, mdp.next_state[s, a, k])
            np.testing.assert_allclose(reward, mdp.reward[s, a, k], rtol=1e-6)
            np.testing.assert_array_equal(ends, mdp.ends[s, a, k])


def test_the_compiled_maze_and_gymnasiums_walk_the_same_way():
    """The actions of compiled episodes, replayed in the Gymnasium face, visit the same cells with the same ends."""
    episodes = sample_episodes(Maze(), UNIFORM, 60, jax.random.key(0))
    env = GuardedMazeEnv()
    ended = 0
    for i in range(60):
        T = int(episodes.mask[i].sum())
        s, _ = env.reset(seed=i)
        for t in range(T):
            assert s == episodes.observations[i, t]
            s, reward, terminated, truncated, info = env.step(int(episodes.actions[i, t]))
            possible = {-15.0, -1.0, 13.0} if env.maze.grid.flat[s] == "R" else {reward}
            assert episodes.rewards[i, t] in possible
            assert (terminated or truncated) == (t == T - 1)
        ended += terminated
        assert info["facts"] == {name: values[i] for name, values in episodes.facts.items()}
    assert ended == episodes.facts["goal_rate"].sum() > 0


def test_episodes_follow_the_process_in_distribution():
    mdp = random_mdp()
    n = 40_000
    policy = np.random.default_rng(1).dirichlet(np.ones(3), size=4)

    class Face:
        def __init__(self):
            self.mdp = mdp

        def facts(self, visits, ended):
            return {"ended": ended.astype(float)}

    episodes = sample_episodes(Face(), policy, n, jax.random.key(3))
    # The expected number of visits of each state at each step, by the forward recursion.
    alive = mdp.initial.copy()
    for t in range(mdp.horizon):
        seen = np.bincount(episodes.observations[:, t], episodes.mask[:, t], minlength=4) / n
        error = np.sqrt(alive * (1 - alive) / n)
        assert np.all(np.abs(seen - alive) <= 4.5 * error + 1e-12)
        arrive = np.einsum("s,sa,sak->sak", alive, policy, mdp.probability * ~mdp.ends)
        alive = np.bincount(mdp.next_state.ravel(), arrive.ravel(), minlength=4)
    assert episodes.rewards.dtype == np.float64


def test_an_episode_depends_on_its_key_alone():
    tables = Tables.of(Maze().mdp)
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(5), i))(jnp.arange(8))
    together = play(tables, jnp.asarray(UNIFORM, jnp.float32)[None], keys[None], 100)
    alone = play(tables, jnp.asarray(UNIFORM, jnp.float32)[None], keys[None, 3:4], 100)
    np.testing.assert_array_equal(together.outcome[:, 0, 3], alone.outcome[:, 0, 0])


def test_uniforms_are_uniform_and_independent_of_each_other():
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(0), i))(jnp.arange(500))
    u = np.stack([np.asarray(uniforms(keys, t)) for t in range(40)]).reshape(-1, 2).astype(float)
    n = len(u)
    assert u.min() >= 0
    assert u.max() < 1
    np.testing.assert_allclose(u.mean(axis=0), 0.5, atol=4 / np.sqrt(12 * n))
    assert abs(np.corrcoef(u.T)[0, 1]) < 4 / np.sqrt(n)
    counts = np.bincount((u[:, 0] * 16).astype(int) * 16 + (u[:, 1] * 16).astype(int), minlength=256)
    chi2 = ((counts - n / 256) ** 2 / (n / 256)).sum()
    assert chi2 < 255 + 4 * np.sqrt(2 * 255)


def test_pairs_are_the_sums_of_steps():
    maze = Maze()
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(7), i))(jnp.arange(20))
    tables = Tables.of(maze.mdp)
    pairs = batch_of_pairs(tables, play(tables, jnp.asarray(UNIFORM, jnp.float32)[None], keys[None], 100), 0.99)
    episodes = sample_episodes(maze, UNIFORM, 20, jax.random.key(7))
    steps = batch_of_steps(episodes, 0.99)
    visits, g = np.zeros((20, 36, 4)), np.zeros((20, 36, 4))
    where = (np.arange(20)[:, None], episodes.observations, episodes.actions)
    np.add.at(visits, where, np.asarray(steps.visits)[..., 0])
    np.add.at(g, where, np.asarray(steps.rewards_to_go)[..., 0])
    np.testing.assert_array_equal(pairs.visits[0], visits)
    np.testing.assert_allclose(pairs.rewards_to_go[0], g, rtol=2e-5, atol=2e-3)
    np.testing.assert_allclose(pairs.returns[0], steps.returns, rtol=2e-6)
    np.testing.assert_array_equal(pairs.lengths[0], steps.lengths)


def test_returns_and_rewards_to_go_by_hand():
    rewards = np.array([[1.0, 2.0, 4.0], [3.0, 0.0, 0.0]])
    np.testing.assert_allclose(discounted_returns(rewards, 0.5), [3.0, 3.0])
    np.testing.assert_allclose(rewards_to_go(rewards, 0.5), [[3.0, 4.0, 4.0], [3.0, 0.0, 0.0]])


def test_a_wrapper_that_may_change_rewards_hides_the_finite_face():
    env = gym.make("steadyrl/GuardedMaze-v0")
    assert finite_face(env) == Maze()
    assert finite_face(gym.wrappers.TransformReward(env, lambda r: 2 * r)) is None
    assert finite_face(gym.make("FrozenLake-v1")) is None
