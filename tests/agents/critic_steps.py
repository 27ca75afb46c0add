"""Small batches of steps for tests of the risk critic, and what learns its quantiles."""

import jax.numpy as jnp
import numpy as np

from steadyrl.agents.networks.quantiles import QuantileNetwork, QuantileTable
from steadyrl.training.batch import Steps

NETWORKS = {"table": QuantileTable(3), "network": QuantileNetwork.of(2)}


def steps_of(lengths, T, network, seed=5, rewards=None):
    """Episodes of these lengths, padded to T steps."""
    rng, shape = np.random.default_rng(seed), (len(lengths), T)
    mask = (np.arange(T) < np.array(lengths)[:, None]).astype(np.float32)
    seen = rng.integers(3, size=shape) if isinstance(network, QuantileTable) else rng.normal(size=(*shape, 2))
    paid = rng.normal(1, 3, size=shape) if rewards is None else rewards
    return Steps(jnp.asarray(seen), jnp.asarray(paid * mask, jnp.float32), jnp.asarray(mask))
