"""The steps of a batch in random order, in parts of nearly equal size."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Minibatches(NamedTuple):
    """Parts of at most `size` steps, which together are all unmasked steps, each once."""

    order: Array
    """[steps + size]: the unmasked steps, shuffled, then filler."""
    parts: Array
    """How many parts there are."""
    steps: Array
    """How many steps there are in all."""

    @classmethod
    def of(cls, key: Array, mask: Array, size: int) -> Minibatches:
        """Drawn without replacement from the steps where `mask` [steps] is not 0.

        The k-th of them takes the k-th random number: how a batch is padded does not matter.
        """
        numbers = jax.random.uniform(key, mask.shape)[jnp.cumsum(mask > 0) - 1]
        order = jnp.argsort(jnp.where(mask > 0, numbers, 2.0))
        steps = (mask > 0).sum(dtype=jnp.int32)
        return cls(jnp.concatenate([order, jnp.zeros(size, order.dtype)]), -(-steps // size), steps)

    def part(self, k: Array, size: int) -> tuple[Array, Array]:
        """[size]: which steps are in part `k`, and whether each of them is, for a part may be one shorter."""
        least, longer = self.steps // self.parts, self.steps % self.parts
        start = k * least + jnp.minimum(k, longer)
        return jax.lax.dynamic_slice(self.order, (start,), (size,)), jnp.arange(size) < least + (k < longer)
