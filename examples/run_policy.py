"""Run a policy that `agent.export("policy.npz")` wrote. It needs NumPy and this file, nothing of steadyrl."""

import numpy as np

STEPS = {  # What policies consist of: each makes rows of numbers from others, with arrays of the file.
    "features": lambda x, column, value: np.where(np.isnan(value), x[:, column], x[:, column] == value),
    "normalize": lambda x, mean, std: (x.astype(np.float32) - mean) / std,
    "convolve": lambda x, at, w, b, rest: np.hstack([(x[:, at] @ w + b).reshape(len(x), -1), x[:, rest]]),
    "dense": lambda x, w, b: x @ w + b,
    "layer_norm": lambda x, scale, shift: ((x.T - x.mean(1)) / np.sqrt(x.var(1) + 1e-6)).T * scale + shift,
    "clip": np.clip,
    "tanh": np.tanh,
    "elu": lambda x: np.maximum(x, 0) + np.expm1(np.minimum(x, 0)),
    "silu": lambda x: x * (1 + np.tanh(x / 2)) / 2,
    "choose": lambda x, own, first: np.where(own, x[:, None], -np.inf).argmax(axis=2) + first,
}


def rows(x):
    """[k, numbers]: a batch of observations as rows; those of a dict or tuple side by side, keys in order."""
    parts = [x[key] for key in sorted(x)] if isinstance(x, dict) else x
    return np.hstack([*map(rows, parts)]) if isinstance(x, dict | tuple) else np.reshape(x, (len(x), -1))


def act(policy, observations):
    """The most likely action for each of a batch of observations, with `policy = dict(np.load("policy.npz"))`."""
    x = rows(observations)
    for step, *arrays in map(str.split, policy["steps"]):
        x = STEPS[step](x, *(policy[name] for name in arrays))
    return x.reshape(-1, *policy["action"].shape).astype(policy["action"].dtype)
