"""What no PPO or TD3 can do without: the physics of its episodes, and the matrix products of acting and updates.

Neither contains activations, losses, optimisers or rewards. The products work in any library with NumPy's `@`.
"""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np


def network(inputs, hidden, outputs):
    """Weights of each layer, in 32 bits."""
    sizes = (inputs, *hidden, outputs)
    random = np.random.default_rng(0)
    return [random.normal(0, 1 / np.sqrt(pair[0]), pair).astype(np.float32) for pair in pairwise(sizes)]


def forward(weights, x):
    """The inputs of each layer, and the output."""
    layers = [x]
    for w in weights:
        layers.append(layers[-1] @ w)
    return layers


def forward_and_backward(weights, x):
    """The products of a gradient: forwards, then for each layer the gradients of its weights and of its inputs."""
    *layers, slope = forward(weights, x)
    gradients = []
    for i in reversed(range(len(weights))):
        gradients.append(layers[i].T @ slope)
        if i:  # Nothing below the first layer needs a gradient.
            slope = slope @ weights[i].T
    return gradients


class PPOProducts:
    """The products of one round of PPO in one library.

    `shape` has the numbers of inputs, actions, episodes and passes, the length of episodes, and the hidden layers.
    `array` makes the library's arrays, `compiled` its functions, and `done` waits for a result.
    """

    def __init__(self, shape, array=np.asarray, compiled=lambda function: function, done=lambda result: result):
        policy, value = (
            [array(w) for w in network(shape["inputs"], shape["hidden"], outputs)] for outputs in (shape["actions"], 1)
        )
        random = np.random.default_rng(1)
        rows = shape["episodes"] * shape["length"]
        batch = array(random.normal(size=(rows, shape["inputs"])).astype(np.float32))
        few = batch[: shape["episodes"]]
        act = compiled(lambda x: forward(policy, x)[-1])
        both = compiled(lambda x: (forward_and_backward(policy, x), forward_and_backward(value, x)))
        self._steps, self._passes = shape["length"], shape["passes"]
        self._act, self._pass = lambda: done(act(few)), lambda: done(both(batch))

    def seconds(self):
        """Of acting through all episodes, and of all passes over the batch with both networks."""
        return _time(self._act, self._steps), _time(self._pass, self._passes)


def _time(function, times):
    start = time.perf_counter()
    for _ in range(times):
        function()
    return time.perf_counter() - start


class TD3Products:
    """The products of updates of TD3 from `rows` transitions of `inputs` numbers, with `actions` numbers each."""

    def __init__(self, inputs, actions, hidden, rows):
        self._policy = network(inputs, hidden, actions)
        self._critic = network(inputs + actions, hidden, 1)
        random = np.random.default_rng(1)
        self._observations = random.normal(size=(rows, inputs)).astype(np.float32)
        self._pairs = random.normal(size=(rows, inputs + actions)).astype(np.float32)
        self.updates = 0

    def update(self, count):
        """So many updates: targets, both critics, and every second time the policy, up the first of them."""
        for _ in range(count):
            forward(self._policy, self._observations)
            for _ in range(2):
                forward(self._critic, self._pairs)
                forward_and_backward(self._critic, self._pairs)
            self.updates += 1
            if self.updates % 2 == 0:
                self._update_policy()

    def _update_policy(self):
        forward_and_backward(self._policy, self._observations)
        slope = forward(self._critic, self._pairs)[-1]
        for weights in reversed(self._critic):
            slope = slope @ weights.T


class Physics:
    """The episodes of a MuJoCo environment once more, from the same states with the same actions, on all cores."""

    def __init__(self, env, threads):
        from mujoco import rollout

        self._env, self._threads = env.unwrapped, threads
        self._pool = rollout.Rollout(nthread=threads)

    def seconds(self, seeds, actions):
        """Of the physics alone, for actions [n, T, a]; also where each episode ends, [n]."""
        import mujoco

        model, data, states, warm = self._env.model, self._env.data, [], []
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        for seed in seeds:
            self._env.reset(seed=int(seed))
            states.append(np.empty(mujoco.mj_stateSize(model, kind)))
            mujoco.mj_getState(model, data, states[-1], kind)
            warm.append(data.qacc_warmstart.copy())
        control = np.repeat(np.asarray(actions, np.float64), self._env.frame_skip, axis=1)
        room = np.empty((len(seeds), control.shape[1], len(states[0])))
        datas = [mujoco.MjData(model) for _ in range(self._threads)]
        start = time.perf_counter()
        self._pool.rollout(
            model, datas, np.array(states), control, state=room, initial_warmstart=np.array(warm), skip_checks=False
        )
        return time.perf_counter() - start, room[:, -1, 1]
