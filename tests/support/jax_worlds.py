"""JAX environments whose every number is known beforehand, and stand-ins for those of other libraries."""

import dataclasses
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from jax.interpreters import batching


@dataclass(frozen=True)
class Coins:
    """Action 1 tosses a coin for 1 or 0, action 0 pays 0.4. Over after `tosses` steps, or after two heads in a row."""

    tosses: int = 3
    observation_space = Discrete(3)
    action_space = Discrete(2)

    @property
    def horizon(self):
        return self.tosses

    def reset(self, key):
        return jnp.int32(0), jnp.int32(0)

    def step(self, key, heads, action):
        won = jax.random.bernoulli(key) & (action == 1)
        heads = jnp.where(won, heads + 1, 0)
        reward = jnp.where(action == 1, won, 0.4)
        return heads, heads, reward, heads == 2

    def episode_metrics(self, heads):
        return {"two_heads_rate": (heads == 2).astype(jnp.float32)}


class CountState(NamedTuple):
    t: Any
    length: Any
    total: Any


class Counter:
    """Draws a length from 1 to 4. Even lengths terminate, odd ones are truncated, which is not the horizon's doing.

    A step pays its number plus a tenth of the first action. Observations hold the number of steps and the length.
    """

    observation_space = Dict({"steps": Box(0, 9, (1,)), "odd": Discrete(2), "more": Box(0, 255, (1, 2), np.uint8)})
    action_space = Box(np.float32([-1, 0]), np.float32([1, 4]))
    horizon = 6

    def reset(self, key):
        state = CountState(jnp.int32(0), jax.random.randint(key, (), 1, 5), jnp.float32(0))
        return self.observe(state), state

    def step(self, key, state, action):
        reward = state.t + action[0] / 10
        state = CountState(state.t + 1, state.length, state.total + reward)
        over = state.t >= state.length
        odd = state.length % 2 == 1
        return self.observe(state), state, reward, over & ~odd, over & odd

    def observe(self, state):
        more = jnp.stack([state.t, state.length])[None].astype(jnp.uint8)
        return {"steps": state.t[None].astype(jnp.float32), "odd": state.length % 2, "more": more}

    def episode_metrics(self, state):
        return {"total": state.total, "drawn": state.length}


class Slope:
    """One step: the return is minus the square of the distance of the action from 0.5."""

    observation_space, action_space, horizon = Box(0, 1, (1,)), Box(-1, 1, (1,)), 1

    def reset(self, key):
        return jnp.ones(1), jnp.int32(0)

    def step(self, key, state, action):
        return jnp.ones(1), state, -((action[0] - 0.5) ** 2), True


@jax.tree_util.register_dataclass
@dataclass
class BraxState:
    """The fields of a State of Brax that are read."""

    pipeline_state: Any
    obs: Any
    reward: Any
    done: Any
    metrics: dict
    info: dict


class BraxLike:
    """A point that starts at up to 1 from 0 and moves by the action; beyond 2 it is over. Pays minus the distance."""

    observation_size, action_size = 2, 1

    def reset(self, rng):
        x = jax.random.uniform(rng, (), minval=-1, maxval=1)
        zero = jnp.float32(0)
        return BraxState(x, self.observe(x), zero, zero, {}, {"rng": rng})

    def step(self, state, action):
        x = state.pipeline_state + action[0]
        done = (jnp.abs(x) > 2).astype(jnp.float32)
        return BraxState(x, self.observe(x), -jnp.abs(x), done, {}, state.info)

    def observe(self, x):
        return jnp.stack([x, x**2])


class Fixed:
    """Constants in a state of MuJoCo: equal by their values, whatever else `repr` shows."""

    def __init__(self, *values):
        self.values = values

    def __eq__(self, other):
        return self.values == other.values

    def __hash__(self):
        return hash(self.values)


@partial(jax.tree_util.register_dataclass, data_fields=["x", "work"], meta_fields=["fixed"])
@dataclass
class WarpData:
    """As the state of MuJoCo Warp: `work` is shared by all episodes, and so has no axis of them."""

    x: Any
    work: Any
    fixed: Fixed


def _map_x(function, data):
    return WarpData(function(data.x), data.work, data.fixed)


batching.register_vmappable(
    WarpData,
    int,
    int,
    lambda part, _, data, axis: _map_x(lambda x: part(x, axis), data),
    lambda part, size, data, axis: _map_x(lambda x: part(size, x, axis), data),
    None,
)


class WarpLike(BraxLike):
    """`BraxLike` with such a state."""

    def reset(self, rng):
        return self._with_data(super().reset(rng))

    def step(self, state, action):
        plain = dataclasses.replace(state, pipeline_state=state.pipeline_state.x)
        return self._with_data(super().step(plain, action))

    def _with_data(self, state):
        data = WarpData(state.pipeline_state, jnp.zeros((0, 3)), Fixed(1, 2))
        return dataclasses.replace(state, pipeline_state=data)


class EpisodeWrapper:
    """As that of Brax: `done` after `episode_length` steps, marked as a truncation."""

    def __init__(self, env, episode_length):
        self.env, self.episode_length = env, episode_length
        self.observation_size, self.action_size, self.unwrapped = env.observation_size, env.action_size, env

    def reset(self, rng):
        state = self.env.reset(rng)
        zero = jnp.float32(0)
        state.info = {**state.info, "steps": zero, "truncation": zero}
        return state

    def step(self, state, action):
        following = self.env.step(state, action)
        steps = state.info["steps"] + 1
        late = steps >= self.episode_length
        info = {**following.info, "steps": steps, "truncation": jnp.where(late, 1 - following.done, 0.0)}
        following.info, following.done = info, jnp.where(late, 1.0, following.done)
        return following


class AutoResetWrapper(EpisodeWrapper):
    """What must not be trained in."""


def playground_like():
    """A Playground environment has its episode length in a configuration."""
    env = BraxLike()
    env._config = SimpleNamespace(episode_length=7)
    return env


def coins(tosses=3):
    return Coins(tosses)
