"""What no TD3 can do without: the matrix products of its updates, without activations, losses or optimisers."""

from __future__ import annotations

import numpy as np
from ppo_limit import forward, forward_and_backward, network


class Products:
    """The products of an update of TD3 from `rows` transitions of `inputs` numbers, with `actions` numbers each."""

    def __init__(self, inputs, actions, hidden, rows):
        self._policy = network(inputs, hidden, actions)
        self._critic = network(inputs + actions, hidden, 1)
        random = np.random.default_rng(1)
        self._seen = random.normal(size=(rows, inputs)).astype(np.float32)
        self._done = random.normal(size=(rows, inputs + actions)).astype(np.float32)
        self._updates = 0

    def update(self):
        """Targets, both critics, and every second time the policy up the first of them."""
        forward(self._policy, self._seen)
        for _ in range(2):
            forward(self._critic, self._done)
            forward_and_backward(self._critic, self._done)
        self._updates += 1
        if self._updates % 2 == 0:
            forward_and_backward(self._policy, self._seen)
            slope = forward(self._critic, self._done)[-1]
            for weights in reversed(self._critic):
                slope = slope @ weights.T
