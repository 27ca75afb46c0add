"""Agents of steadyrl, Stable-Baselines3 and SBX from one description.

A description is a dict that can be sent to another process as JSON:

    library      "ours", "sb3" or "sbx"
    algorithm    "PPO", "DQN" or "TD3"
    env, seed    the environment's id; `env_options`, of their environment alone, are passed to `gymnasium.make`
    timesteps    the budget, on which their exploration schedule depends
    threads      PyTorch's
    settings     under our names, which for DQN and TD3 are Stable-Baselines3's where it has the setting
    episodes_per_update, ...           of our PPO: see `OWN`
    sb3_envs, sb3_steps, vec_env       of their PPO: environments, steps in each, and the kind of vector environment

Each library is imported only when it is needed: ours and theirs are in different virtual environments.
"""

from __future__ import annotations

import importlib

MODULES = {"sb3": "stable_baselines3", "sbx": "sbx"}
OWN = (
    "episodes_per_update", "value_learning_rate", "value_targets", "normalise_values", "target_kl",
    "initial_output_scale",
)  # fmt: skip
"""Settings of our PPO that theirs lacks."""
PPO_NAMES = {
    "gamma": "gamma",
    "gae_lambda": "gae_lambda",
    "policy_learning_rate": "learning_rate",
    "inner_updates": "n_epochs",
    "minibatch_size": "batch_size",
    "clip_range": "clip_range",
    "entropy_coefficient": "ent_coef",
    "value_coefficient": "vf_coef",
    "max_gradient_norm": "max_grad_norm",
    "normalise_advantages": "normalize_advantage",
}
"""Our name of a setting of PPO -> that of Stable-Baselines3."""


def make_ours(run):
    """Our agent."""
    import steadyrl

    settings = {name: run[name] for name in OWN if name in run} | run["settings"]
    return getattr(steadyrl, run["algorithm"])(run["env"], seed=run["seed"], **settings)


def make_peer(run):
    """The agent of Stable-Baselines3 or SBX, with ReLU."""
    import torch
    from stable_baselines3.common import vec_env
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(run["threads"])  # SBX's replay buffer returns PyTorch's tensors.
    kind = getattr(vec_env, run.get("vec_env", "DummyVecEnv"))
    options = {"n_envs": run.get("sb3_envs", 1), "env_kwargs": run.get("env_options")}
    envs = make_vec_env(run["env"], seed=run["seed"], vec_env_cls=kind, **options)
    if run["settings"].get("normalise_observations"):
        envs = vec_env.VecNormalize(envs, norm_obs=True, norm_reward=False, gamma=run["settings"]["gamma"])
    arguments = {"PPO": _ppo, "DQN": _dqn, "TD3": _td3}[run["algorithm"]](run, envs.action_space)
    Agent = getattr(importlib.import_module(MODULES[run["library"]]), run["algorithm"])
    return Agent("MlpPolicy", envs, seed=run["seed"], device="cpu", **arguments)


def _ppo(run, actions):
    import gymnasium as gym
    import numpy as np

    settings = run["settings"]
    shape = {"net_arch": {"pi": settings["hidden"], "vf": settings["hidden"]}, "activation_fn": _relu(run["library"])}
    if isinstance(actions, gym.spaces.Box) and "initial_log_std" in settings:
        half = float((actions.high - actions.low).mean() / 2)
        shape["log_std_init"] = settings["initial_log_std"] + np.log(half)  # Ours is in halves of the range.
    arguments = {theirs: settings[name] for name, theirs in PPO_NAMES.items() if name in settings}
    return arguments | {"n_steps": run["sb3_steps"], "policy_kwargs": shape}


def _relu(library):
    """Not PPO's default, unlike that of DQN and TD3."""
    if library == "sbx":
        import flax.linen

        return flax.linen.relu
    import torch

    return torch.nn.ReLU


def _dqn(run, actions):
    settings = dict(run["settings"])
    if settings.pop("double") or not settings.pop("huber"):
        raise ValueError("double=True or huber=False: their DQN has only the plain target and the Huber loss.")
    settings["exploration_fraction"] = settings.pop("exploration_steps") / run["timesteps"]
    settings["policy_kwargs"] = {"net_arch": settings.pop("hidden")}
    return settings


def _td3(run, actions):
    import numpy as np
    from stable_baselines3.common.noise import NormalActionNoise

    settings = dict(run["settings"])
    scale = np.full(actions.shape, settings.pop("exploration_noise"))
    settings["action_noise"] = NormalActionNoise(np.zeros(actions.shape), scale)
    settings["policy_kwargs"] = {"net_arch": settings.pop("hidden")}
    return settings
