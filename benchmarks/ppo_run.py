"""One training of one library's PPO, in a process of its own: `ppo_learning.py` starts it in that library's Python.

    python benchmarks/ppo_run.py '{"library": "sb3", "env": "CartPole-v1", "seed": 0, "threads": 1, ...}'

Prints what came of it as a line of JSON.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from learning_run import main, train_ours, train_peer

SB3_NAMES = {
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
"""Our name of a setting -> that of Stable-Baselines3."""


def ours(run):
    """Train ours; see `train_ours`."""
    import steadyrl

    agent = steadyrl.PPO(
        run["env"], seed=run["seed"], episodes_per_update=run["episodes_per_update"], **run["settings"]
    )
    return train_ours(agent, run["timesteps"])


def sb3(run):
    """Train Stable-Baselines3's; see `train_peer`."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    torch.set_num_threads(run["threads"])
    settings = run["settings"]
    envs = make_vec_env(run["env"], n_envs=run["sb3_envs"], seed=run["seed"])
    normalise = settings["normalise_observations"]
    if normalise:
        envs = VecNormalize(envs, norm_obs=True, norm_reward=False, gamma=settings["gamma"])
    hidden = settings["hidden"]
    shape = {"net_arch": {"pi": hidden, "vf": hidden}, "activation_fn": torch.nn.ReLU}
    if isinstance(envs.action_space, gym.spaces.Box):
        half = float((envs.action_space.high - envs.action_space.low).mean() / 2)
        shape["log_std_init"] = settings["initial_log_std"] + np.log(half)  # Ours is in halves of the range.
    agent = PPO(
        "MlpPolicy",
        envs,
        n_steps=run["sb3_steps"],
        policy_kwargs=shape,
        seed=run["seed"],
        device="cpu",
        **{theirs: settings[name] for name, theirs in SB3_NAMES.items()},
    )
    act_on, *told = train_peer(agent, run["timesteps"])
    torch.manual_seed(run["seed"])

    def act(observations, deterministic):
        return act_on(envs.normalize_obs(observations) if normalise else observations, deterministic)

    return act, *told


if __name__ == "__main__":
    main({"ours": ours, "sb3": sb3}, kinds=("deterministic", "stochastic"))
