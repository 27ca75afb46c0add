"""Stand-ins for models of Stable-Baselines3: the same names of parameters and settings, with actions in NumPy.

`predict` is written from Stable-Baselines3's own order of operations, apart from what it shares with no code of ours:
weights are [out, in], PPO's actions are in the units of the space and clipped, TD3's are scaled from [-1, 1].
"""

from itertools import pairwise
from types import SimpleNamespace

import gymnasium as gym
import numpy as np

FUNCTIONS = {"Tanh": np.tanh, "ReLU": lambda x: np.maximum(x, 0)}


def dense(rng, prefix, sizes, numbers=None):
    """Parameters of dense layers by name; `numbers` are their places in a torch Sequential."""
    entries = {}
    for k, (inputs, outputs) in enumerate(pairwise(sizes)):
        name = prefix if numbers is None else f"{prefix}.{numbers[k]}"
        entries[f"{name}.weight"] = rng.normal(size=(outputs, inputs)).astype(np.float32) / 2
        entries[f"{name}.bias"] = rng.normal(size=outputs).astype(np.float32) / 2
    return entries


def forward(state, names, x, function):
    """The output of dense layers by name."""
    for k, name in enumerate(names):
        x = x @ state[f"{name}.weight"].T + state[f"{name}.bias"]
        x = function(x) if k < len(names) - 1 else x
    return x


class Model:
    """What `from_sb3` reads of a model; subclasses have the names of algorithms."""

    hidden = (8, 6)
    activation = "ReLU"
    num_timesteps = 0
    vec_normalize = None

    def __init__(self, env, seed=7, **changes):
        self.env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.inputs = gym.spaces.flatdim(self.observation_space)
        self.state = self.parameters(np.random.default_rng(seed))
        self.policy = SimpleNamespace(state_dict=lambda: self.state, activation_fn=type(self.activation, (), {}))
        vars(self).update(changes)

    def get_env(self):
        return SimpleNamespace(envs=[self.env])

    def get_vec_normalize_env(self):
        return self.vec_normalize

    def run(self, names, x):
        return forward(self.state, names, x, FUNCTIONS[self.activation])

    def outputs(self):
        space = self.action_space
        return int(space.n) if isinstance(space, gym.spaces.Discrete) else int(np.prod(space.shape))


class PPO(Model):
    activation = "Tanh"
    learning_rate, n_epochs, batch_size, gamma, gae_lambda = 1e-3, 3, 32, 0.97, 0.9
    ent_coef, vf_coef, max_grad_norm, normalize_advantage, target_kl = 0.02, 0.4, 0.7, True, None
    actor = ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net")
    critic = ("mlp_extractor.value_net.0", "mlp_extractor.value_net.2", "value_net")

    def clip_range(self, progress):
        return 0.3 * progress

    def parameters(self, rng):
        state = {}
        for part, head, outputs in (("policy", "action", self.outputs()), ("value", "value", 1)):
            state |= dense(rng, f"mlp_extractor.{part}_net", (self.inputs, *self.hidden), (0, 2))
            state |= dense(rng, f"{head}_net", (self.hidden[-1], outputs))
        if isinstance(self.action_space, gym.spaces.Box):
            state["log_std"] = rng.normal(size=self.outputs()).astype(np.float32)
        return state

    def predict(self, observations):
        outputs = self.run(self.actor, observations)
        if isinstance(self.action_space, gym.spaces.Discrete):
            return outputs.argmax(axis=1)
        return np.clip(outputs.reshape(-1, *self.action_space.shape), self.action_space.low, self.action_space.high)

    def values(self, observations):
        return self.run(self.critic, observations)[:, 0]


class A2C(PPO):
    pass


class MaskablePPO(Model):
    """That of sb3-contrib, which is no subclass of PPO."""

    activation, parameters, predict, values = PPO.activation, PPO.parameters, PPO.predict, PPO.values
    actor, critic = PPO.actor, PPO.critic


class DQN(Model):
    learning_rate, batch_size, buffer_size, learning_starts = 1e-3, 16, 500, 20
    gamma, tau, target_update_interval = 0.97, 0.5, 30
    exploration_final_eps, exploration_rate, gradient_steps, train_freq = 0.02, 0.1, 2, 8

    def parameters(self, rng):
        sizes = (self.inputs, *self.hidden, self.outputs())
        return dense(rng, "q_net.q_net", sizes, (0, 2, 4)) | dense(rng, "q_net_target.q_net", sizes, (0, 2, 4))

    def values(self, observations):
        return self.run([f"q_net.q_net.{k}" for k in (0, 2, 4)], observations)

    def predict(self, observations):
        return self.values(observations).argmax(axis=1)


class TD3(Model):
    learning_rate, batch_size, buffer_size, learning_starts = 1e-3, 16, 500, 20
    gamma, tau, policy_delay, target_policy_noise, target_noise_clip = 0.97, 0.01, 3, 0.3, 0.4
    gradient_steps, train_freq = -1, SimpleNamespace(frequency=4, unit=SimpleNamespace(value="step"))
    action_noise = SimpleNamespace(_sigma=np.array([0.25]))

    def parameters(self, rng):
        state, d = {}, self.outputs()
        for end in ("", "_target"):
            state |= dense(rng, f"actor{end}.mu", (self.inputs, *self.hidden, d), (0, 2, 4))
            for k in range(2):
                state |= dense(rng, f"critic{end}.qf{k}", (self.inputs + d, *self.hidden, 1), (0, 2, 4))
        return state

    def predict(self, observations):
        low, high = self.action_space.low, self.action_space.high
        scaled = np.tanh(self.run([f"actor.mu.{k}" for k in (0, 2, 4)], observations))
        return low + 0.5 * (scaled.reshape(-1, *self.action_space.shape) + 1) * (high - low)

    def values(self, observations, actions, critic=0):
        rows = np.concatenate([observations, actions], axis=1)
        return self.run([f"critic.qf{critic}.{k}" for k in (0, 2, 4)], rows)[:, 0]


def normalizer(inputs, seed=1, **changes):
    """A stand-in for VecNormalize that has seen something."""
    rng = np.random.default_rng(seed)
    found = SimpleNamespace(
        norm_obs=True,
        norm_reward=True,
        epsilon=1e-8,
        clip_obs=10.0,
        obs_rms=SimpleNamespace(count=99.0, mean=rng.normal(size=inputs), var=rng.uniform(0.3, 3, inputs)),
        ret_rms=SimpleNamespace(var=6.25),
    )
    found.normalize_obs = lambda x: np.clip(
        (x - found.obs_rms.mean) / np.sqrt(found.obs_rms.var + found.epsilon), -found.clip_obs, found.clip_obs
    )
    vars(found).update(changes)
    return found
