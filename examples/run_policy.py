"""Run a policy that `agent.export("policy.npz")` wrote. It needs NumPy and this file, nothing of steadyrl."""

import numpy as np

ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh}


class Policy:
    """The policy in a file: `actions = Policy("policy.npz")(observations)`."""

    def __init__(self, path):
        with np.load(path) as file:
            self.arrays = dict(file)

    def __call__(self, observations):
        """The most likely action for each of a batch of observations [k, ...], or of a dict of such."""
        p = self.arrays
        if "actions" in p:  # Discrete observations: the action in each state.
            return p["actions"][np.asarray(observations) - p["first_state"]]
        x = np.concatenate([self.features(str(name), observations) for name in p["inputs"]], axis=1)
        if "mean" in p:
            x = np.clip((x - p["mean"]) / p["std"], -p["clip"], p["clip"])
        for k in range(p["layers"]):
            x = x if k == 0 else ACTIVATIONS[str(p["activation"])](x)
            x = x @ p[f"weight_{k}"] + p[f"bias_{k}"]
        if "first_action" in p:
            return x.argmax(axis=1) + p["first_action"]
        x = p["middle"] + p["half_range"] * (np.tanh(x) if p["squash"] else x)
        return np.clip(x, p["low"], p["high"]).reshape(-1, *p["shape"]).astype(p["low"].dtype)

    def features(self, name, values):
        """The network's inputs from the part of the observations by this name, in Dict observations; "" for all."""
        for key in filter(None, name.split("/")):
            values = values[key]
        if f"states:{name}" in self.arrays:  # One-hot.
            return (np.asarray(values)[:, None] == self.arrays[f"states:{name}"]).astype(np.float32)
        return np.asarray(values, np.float32).reshape(len(values), -1) / self.arrays[f"divisor:{name}"]
