"""Run a policy that `agent.export("policy.npz")` wrote. It needs NumPy and this file, nothing of steadyrl."""

import numpy as np

ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "silu": lambda x: x * (1 + np.tanh(x / 2)) / 2,
}


class Policy:
    """The policy in a file: `actions = Policy("policy.npz")(observations)`."""

    def __init__(self, path):
        with np.load(path) as file:
            self.arrays = dict(file)

    def __call__(self, observations):
        """The most likely action for each of a batch of observations [k, ...], or of a dict or tuple of such."""
        p = self.arrays
        if "actions" in p:  # Discrete observations: the action in each state.
            return p["actions"][np.asarray(observations) - p["first_state"]]
        x = np.concatenate([self.features(str(name), observations) for name in p["inputs"]], axis=1)
        if "mean" in p:
            x = np.clip((x - p["mean"]) / p["std"], -p["clip"], p["clip"])
        for k in range(p["layers"]):
            x = x @ p[f"weight_{k}"] + p[f"bias_{k}"]
            if f"scale_{k}" in p:  # Layer normalization.
                x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + np.float32(1e-6))
                x = x * p[f"scale_{k}"] + p[f"shift_{k}"]
            x = ACTIVATIONS[str(p["activation"])](x) if k < p["layers"] - 1 else x
        if "numbers" in p:  # One choice or several.
            best = [part.argmax(axis=1) for part in np.split(x, np.cumsum(p["numbers"])[:-1], axis=1)]
            x = np.stack(best, axis=1).astype(p["first"].dtype) + p["first"]
        else:
            x = p["middle"] + p["half_range"] * (np.tanh(x) if p["squash"] else x)
            x = np.clip(x, p["low"], p["high"]).astype(p["low"].dtype)
        return x.reshape(-1, *p["shape"])

    def features(self, name, values):
        """The network's inputs from the part of the observations by this name; "" for all of them."""
        for key in filter(None, name.split("/")):
            values = values[key] if isinstance(values, dict) else values[int(key)]
        rows = np.asarray(values).reshape(len(values), -1)
        if f"one_hot:{name}" in self.arrays:
            choice, value = self.arrays[f"one_hot:{name}"]
            return (rows[:, choice] == value).astype(np.float32)
        return rows.astype(np.float32) / self.arrays[f"divisor:{name}"]
