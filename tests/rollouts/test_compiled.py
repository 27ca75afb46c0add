"""The compiled collector: its step, its episodes, and the batches made of them."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steadyrl.envs.finite import finite_model
from steadyrl.envs.guarded_maze import GuardedMazeEnv, Maze
from steadyrl.exact.mdp import FiniteMDP
from steadyrl.rollouts.compiled import Tables, _play, sample_episodes, step, uniforms
from steadyrl.training.batch import EpisodeBatch, batch_from_episodes, batch_from_plays
from steadyrl.training.returns import discounted_returns, rewards_to_go

UNIFORM = np.full((36, 4), 0.25)
N = 60
"""Episodes of the maze: always as many, so that one program plays them all."""


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


def keys_of(seed, n):
    return jax.vmap(lambda i: jax.random.fold_in(jax.random.key(seed), i))(jnp.arange(n))


MAZES = {
    "maze": Maze().mdp,
    "no draw on bump": Maze(draw_on_bump=False).mdp,
    "random": random_mdp(),
    "one outcome": random_mdp(K=1),
}


@pytest.mark.parametrize("mdp", MAZES.values(), ids=MAZES.keys())
def test_a_step_is_the_process_transition_by_transition(mdp):
    """For every pair, u swept over [0, 1) meets every outcome, in order and in proportion to its probability."""
    u = jnp.asarray((np.arange(2000) + 0.5) / 2000, jnp.float32)
    s, a, u = np.meshgrid(np.arange(mdp.n_states), np.arange(mdp.n_actions), u, indexing="ij")
    outcome, there, reward, ends = map(np.asarray, jax.jit(step)(Tables.of(mdp), s, a, u))
    k = outcome - (s * mdp.n_actions + a) * mdp.reward.shape[-1]
    assert (np.diff(k, axis=-1) >= 0).all()
    shares = np.stack([(k == outcome).mean(axis=-1) for outcome in range(mdp.reward.shape[-1])], axis=-1)
    np.testing.assert_allclose(shares, mdp.probability, atol=1e-3)
    np.testing.assert_array_equal(there, mdp.next_state[s, a, k])
    np.testing.assert_allclose(reward, mdp.reward[s, a, k], rtol=1e-6)
    np.testing.assert_array_equal(ends, mdp.ends[s, a, k])


def test_the_compiled_maze_and_gymnasiums_walk_the_same_way():
    """The actions of compiled episodes, replayed in Gymnasium, visit the same cells with the same ends."""
    episodes = sample_episodes(Maze(), UNIFORM, N, jax.random.key(0))
    env = GuardedMazeEnv()
    ended = 0
    for i in range(N):
        T = int(episodes.mask[i].sum())
        s, _ = env.reset(seed=i)
        for t in range(T):
            assert s == episodes.observations[i, t]
            s, reward, terminated, truncated, info = env.step(int(episodes.actions[i, t]))
            possible = {-15.0, -1.0, 13.0} if env.maze.grid.flat[s] == "R" else {reward}
            assert episodes.rewards[i, t] in possible
            assert (terminated or truncated) == (t == T - 1)
        ended += terminated
        assert info["episode_metrics"] == {name: values[i] for name, values in episodes.episode_metrics.items()}
    assert ended == episodes.episode_metrics["goal_rate"].sum() > 0


def test_episodes_follow_the_process_in_distribution():
    mdp = random_mdp()
    n = 40_000
    policy = np.random.default_rng(1).dirichlet(np.ones(3), size=4)

    class Model:
        def __init__(self):
            self.mdp = mdp

        def metrics(self, visits, ended):
            return {"ended": ended.astype(float)}

    episodes = sample_episodes(Model(), policy, n, jax.random.key(3))
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
    tables, keys = Tables.of(Maze().mdp), keys_of(5, N)
    together = _play(tables, jnp.asarray(UNIFORM, jnp.float32)[None], keys[None], 100)
    alone = _play(tables, jnp.asarray(UNIFORM, jnp.float32)[None], keys[None, 3:4], 100)
    np.testing.assert_array_equal(together.outcome[:, 0, 3], alone.outcome[:, 0, 0])


def test_uniforms_are_uniform_and_independent_of_each_other():
    steps = jax.jit(jax.vmap(uniforms, in_axes=(None, 0)))(keys_of(0, 500), jnp.arange(40))
    u = np.asarray(steps).reshape(-1, 2).astype(float)
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
    tables = Tables.of(maze.mdp)
    plays = _play(tables, jnp.asarray(UNIFORM, jnp.float32)[None], keys_of(7, N)[None], 100)
    pairs = jax.jit(batch_from_plays)(tables, plays, jnp.array([0.99]))
    episodes = EpisodeBatch.of(sample_episodes(maze, UNIFORM, N, jax.random.key(7)), 0.99, np.asarray)
    steps = jax.jit(batch_from_episodes)(episodes, 0.99)
    visits, g = np.zeros((N, 36, 4)), np.zeros((N, 36, 4))
    where = (np.arange(N)[:, None], episodes.observations, episodes.actions)
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


def test_a_wrapper_that_may_change_rewards_hides_the_finite_model():
    env = gym.make("steadyrl/GuardedMaze-v0")
    assert finite_model(env) == Maze()
    assert finite_model(gym.wrappers.TransformReward(env, lambda r: 2 * r)) is None
    assert finite_model(gym.make("FrozenLake-v1")) is None
