"""A policy for several choices at once: a softmax for each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import MultiDiscrete
from jax import Array
from numpy.typing import NDArray

from steadyrl.agents.networks.masks import masked
from steadyrl.agents.networks.network_policy import NetworkPolicy
from steadyrl.agents.networks.protocols import Network
from steadyrl.agents.networks.tables import draw
from steadyrl.envs.spaces import choices


@dataclass(frozen=True)
class Heads:
    """The choices of an action in a MultiDiscrete or MultiBinary space."""

    numbers: tuple[int, ...]
    """How many there are to choose from, for each of them."""
    first: tuple[int, ...]
    """The number that the space counts from, for each of them."""
    shape: tuple[int, ...]
    """Of an action as the environment takes it; here actions are flat."""
    dtype: str
    """Of an action as the environment takes it."""

    @classmethod
    def of(cls, space: gym.Space[Any]) -> Heads:
        """Those of an action space."""
        numbers = choices(space)
        first = tuple(map(int, space.start.ravel())) if isinstance(space, MultiDiscrete) else (0,) * len(numbers)
        return cls(numbers, first, space.shape or (), str(space.dtype))

    @property
    def padded(self) -> tuple[int, int]:
        """The number of heads, and of the outputs of the largest."""
        return len(self.numbers), max(self.numbers)

    @cached_property
    def exists(self) -> Any:
        """[heads, largest] bool: which outputs a head has."""
        return np.arange(max(self.numbers)) < np.asarray(self.numbers)[:, None]

    def split(self, x: Any, fill: Any) -> Any:
        """[..., sum of numbers] to [..., heads, largest], with `fill` where a head has fewer; in NumPy or in JAX."""
        xp = jnp if isinstance(x, jax.Array) else np
        if self.exists.all():
            return x.reshape(*x.shape[:-1], *self.padded)
        ends = np.cumsum(self.numbers)
        parts = [
            xp.concatenate(
                [x[..., end - n : end], xp.full((*x.shape[:-1], self.padded[1] - n), fill, x.dtype)], axis=-1
            )
            for n, end in zip(self.numbers, ends, strict=True)
        ]
        return xp.stack(parts, axis=-2)

    def to_space(self, actions: Any) -> Any:
        """[k, heads] as the environment takes them."""
        if isinstance(actions, jax.Array):
            return (actions + jnp.asarray(self.first)).reshape(-1, *self.shape)
        return (actions + np.asarray(self.first)).reshape(-1, *self.shape).astype(self.dtype)


@dataclass(frozen=True)
class MultiCategoricalNetwork(NetworkPolicy):
    """pi(a|s) is a product over the choices, each of which is the softmax of its own outputs of one network."""

    mlp: Network
    heads: Heads
    initial_output_scale: float = field(default=1.0, compare=False)  # Not part of what an update is compiled for.

    def init(self, key: Array) -> Any:
        """Parameters to start from."""
        return self.mlp.init(key, self.initial_output_scale)

    def log_prob(
        self, parameters: Any, observations: Array | None, actions: Array | None, masks: Array | None = None
    ) -> Array:
        """Log pi(a|s) for each observation and each of its P actions [..., P, heads]: a sum over the choices."""
        return self.log_prob_and_entropy(parameters, observations, actions, masks)[0]

    def log_prob_and_entropy(
        self, parameters: Any, observations: Array | None, actions: Array | None, masks: Array | None = None
    ) -> tuple[Array, Array]:
        """Also the entropy at each observation, the sum over the choices."""
        assert observations is not None, "only tables have a probability for every state"
        assert actions is not None, "actions come with observations"
        table = jax.nn.log_softmax(self._logits(self.mlp(parameters, observations), masks))
        chosen = jax.nn.one_hot(actions, self.heads.padded[1])
        log_prob = jnp.einsum("...ha,...pha->...p", table, chosen)
        return log_prob, -(jnp.exp(table) * table).sum(axis=(-2, -1))

    def _logits(self, outputs: Any, masks: Any) -> Any:
        """[..., heads, largest]: those of what does not exist or is not allowed are so low that it is never drawn."""
        logits = masked(self.heads.split(outputs, 0.0), self.heads.exists)
        return logits if masks is None else masked(logits, self.heads.split(masks, False))

    def noise(self, generator: np.random.Generator, steps: int) -> NDArray[np.float32]:
        """[steps, heads, largest]: see `gumbel`."""
        return generator.gumbel(size=(steps, *self.heads.padded)).astype(np.float32)

    def jax_noise(self, key: Array) -> Array:
        """[heads, largest]: see `gumbel`."""
        return jax.random.gumbel(key, self.heads.padded)

    def choose(self, parameters: Any, outputs: Any, noise: Any, masks: Any = None) -> Any:
        """[k, heads]: a number for each choice and each row of outputs."""
        return draw(self._logits(outputs, masks), noise)

    def act_jax(self, parameters: Any, observations: Array, noise: Array | None) -> Array:
        """The same in JAX."""
        action: Array = draw(self._logits(self.mlp(parameters, observations), None), noise)
        return action

    def to_space(self, actions: Any) -> Any:
        """In the space's shape, counted from its first numbers."""
        return self.heads.to_space(actions)

    def at_level(self, parameters: Any, level: float) -> Any:
        """The parameters without the last input, which is a level."""
        return self.mlp.with_input_fixed(parameters, -1, level)
