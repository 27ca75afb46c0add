"""DQN and TD3 of ours, of Stable-Baselines3 and of SBX from one description.

A description `run` has the "library", "algorithm" (DQN or TD3), "env", "seed", "timesteps" that are to come, and the
"settings" under our names, which are Stable-Baselines3's where it has the setting. Each library is imported only when
it is asked for: ours and theirs live in different virtual environments.
"""

from __future__ import annotations

import importlib

MODULES = {"sb3": "stable_baselines3", "sbx": "sbx"}


def our_agent(run):
    """The agent of ours."""
    import steadyrl

    return getattr(steadyrl, run["algorithm"])(run["env"], seed=run["seed"], **run["settings"])


def peer_agent(run):
    """The agent of Stable-Baselines3 or SBX, in one environment, with the ReLU that both have by default."""
    from stable_baselines3.common.env_util import make_vec_env

    envs = make_vec_env(run["env"], n_envs=1, seed=run["seed"])
    settings = {"DQN": _dqn, "TD3": _td3}[run["algorithm"]](run, envs.action_space)
    hidden = settings.pop("hidden")
    Agent = getattr(importlib.import_module(MODULES[run["library"]]), run["algorithm"])
    return Agent(
        "MlpPolicy", envs, seed=run["seed"], device="cpu", policy_kwargs={"net_arch": hidden}, verbose=0, **settings
    )


def _dqn(run, actions):
    settings = dict(run["settings"])
    if settings.pop("double") or not settings.pop("huber"):
        raise ValueError("double=True or huber=False: theirs knows only the plain target and the Huber loss.")
    settings["exploration_fraction"] = settings.pop("exploration_steps") / run["timesteps"]
    return settings


def _td3(run, actions):
    import numpy as np
    from stable_baselines3.common.noise import NormalActionNoise

    settings = dict(run["settings"])
    scale = np.full(actions.shape, settings.pop("exploration_noise"))
    return settings | {"action_noise": NormalActionNoise(np.zeros(actions.shape), scale)}
