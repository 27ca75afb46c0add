"""JAX environments of every kind: taken as they are, stepped one by one, and refused with a reason."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from jax_worlds import AutoResetWrapper, BraxLike, Coins, Counter, EpisodeWrapper, Slope, playground_like

import steadyrl
from steadyrl.envs.jax_env import action_key, jax_model, reset_key, step_key
from steadyrl.envs.jax_libraries import as_jax_model
from steadyrl.envs.jax_simulator import JaxSimulator
from steadyrl.envs.resolve import resolve


def test_single_steps_follow_the_protocol():
    env = steadyrl.from_jax(Counter())
    key = jax.random.key(3)
    observation, _ = env.reset(options={"key": key})
    length = int(jax.random.randint(reset_key(key), (), 1, 5))
    assert observation["more"].tolist() == [[0, length]]
    rewards = []
    for t in range(1, length + 1):
        observation, reward, terminated, truncated, info = env.step(np.float32([0.5, 1]))
        rewards.append(reward)
        assert env.observation_space.contains(observation)
        assert observation["steps"].tolist() == [t]
        assert (terminated, truncated) == (t == length and length % 2 == 0, t == length and length % 2 == 1)
    np.testing.assert_allclose(rewards, np.arange(length) + 0.05, rtol=1e-6)
    assert info["episode_metrics"] == {"total": pytest.approx(sum(rewards)), "drawn": length}


def test_the_horizon_truncates_and_a_seed_is_a_whole_episode():
    env = steadyrl.from_jax(Coins(9), horizon=2)
    tosses = []
    for _ in range(2):
        env.reset(seed=4_000_000_000)
        tosses.append([env.step(1)[:4] for _ in range(2)])
    assert tosses[0] == tosses[1]
    assert tosses[0][1][2] or tosses[0][1][3]
    expected = [bool(jax.random.bernoulli(step_key(jax.random.key(4_000_000_000), t))) for t in range(2)]
    assert [bool(step[1]) for step in tosses[0]] == expected


def test_keys_for_different_purposes_differ():
    episode = jax.random.key(0)
    keys = [reset_key(episode), *[step_key(episode, t) for t in range(3)], *[action_key(episode, t) for t in range(3)]]
    assert len({tuple(np.asarray(jax.random.key_data(key)).tolist()) for key in keys}) == len(keys)


def test_many_episodes_side_by_side_are_those_one_by_one():
    model, seeds = as_jax_model(Counter()), [5, 2**32 - 1, 7]
    simulator, env = JaxSimulator(model, 4), steadyrl.from_jax(Counter())
    simulator.reset(seeds)
    active, returns, metrics = np.arange(3), np.zeros(3), {}
    while active.size:
        result = simulator.step(active, np.tile(np.float32([0.3, 0]), (len(active), 1)))
        returns[active] += result.rewards
        metrics |= result.episode_metrics
        active = active[~(result.terminated | result.truncated)]
    for slot, seed in enumerate(seeds):
        env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            _, reward, terminated, truncated, info = env.step(np.float32([0.3, 0]))
            total, over = total + reward, terminated or truncated
        assert total == returns[slot]
        assert metrics[slot] == info["episode_metrics"]


def test_environments_of_brax_and_playground():
    raw, limited = as_jax_model(BraxLike()), as_jax_model(EpisodeWrapper(BraxLike(), 3))
    assert (raw.horizon, limited.horizon, as_jax_model(playground_like()).horizon) == (1000, 3, 7)
    assert raw.observation_space == Box(-np.inf, np.inf, (2,), np.float32)
    assert raw.action_space == Box(-1, 1, (1,), np.float32)
    env = steadyrl.from_jax(EpisodeWrapper(BraxLike(), 3))
    first = env.reset(seed=1)[0][0]
    ends = [env.step(np.float32([0.1]))[1:4] for _ in range(3)]
    np.testing.assert_allclose([end[0] for end in ends], -np.abs(first + 0.1 * np.arange(1, 4)), rtol=1e-5)
    assert [end[1:] for end in ends] == [(False, False), (False, False), (False, True)]
    env.reset(seed=1)
    while not (end := env.step(np.float32([1.0])))[2]:
        assert not end[3]


def test_what_agents_take_as_an_environment():
    for given in (Coins(), Coins, "jax_worlds:coins"):
        assert jax_model(resolve(given)) == as_jax_model(Coins())
    assert jax_model(resolve("jax_worlds:coins", tosses=5)).horizon == 5
    assert jax_model(gym.wrappers.TimeLimit(resolve(Coins()), 2)) is None
    assert as_jax_model(gym.make("CartPole-v1")) is None
    with pytest.raises(TypeError, match="pass an environment of gymnax or Brax"):
        steadyrl.from_jax(object())
    with pytest.raises(TypeError, match="or a JAX environment with reset"):
        resolve(object())


def test_equal_environments_share_a_program():
    same, other = Counter(), Counter()
    assert as_jax_model(same) == as_jax_model(same) != as_jax_model(other)
    assert as_jax_model(Coins(3)) == as_jax_model(Coins(3)) != as_jax_model(Coins(4))
    assert hash(as_jax_model(Coins(3))) == hash(as_jax_model(Coins(3)))


class Faulty(Slope):
    def __init__(self, **faults):
        vars(self).update(faults)


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"horizon": 0}, "horizon=0: a whole number of at least 1"),
        ({"observation_space": Box(0, 1, (2,))}, r"reset returned an observation of shape \(1,\) that is not in"),
        ({"observation_space": Discrete(2)}, "of dtype float32"),
        ({"step": lambda key, s, a: (jnp.ones(1), (s, s), 0.0, True)}, "have different structures"),
        ({"reset": lambda key: (jnp.ones(1), jnp.float32(0)), "step": lambda k, s, a: (jnp.ones(1), 1, 0.0, True)},
         "state is float32 after reset and int32 after step"),
        ({"step": lambda key, s, a: (jnp.ones(1), jnp.zeros(2, int), 0.0, True)}, r"shape \(\) after reset and \(2,\)"),
        ({"step": lambda key, s, a: (jnp.ones(1), s, a if a[0] > 0 else -a, True)}, "jnp.where or jax.lax.cond"),
        ({"step": lambda key, s, a: (jnp.ones(1), s, jnp.ones(3), True)}, "3 numbers as reward"),
        ({"episode_metrics": lambda s: {"many": jnp.ones(2)}}, "dictionary of names and scalars"),
    ],
)  # fmt: skip
def test_mistakes_are_explained_on_one_line(faults, message):
    with pytest.raises(ValueError, match=message) as found:
        as_jax_model(Faulty(**faults))
    assert "\n" not in str(found.value)
    assert str(found.value).startswith("Faulty: ")


def test_environments_that_reset_themselves_are_refused():
    with pytest.raises(TypeError, match=r"wrapped in AutoResetWrapper.*env.unwrapped"):
        as_jax_model(AutoResetWrapper(BraxLike(), 3))
