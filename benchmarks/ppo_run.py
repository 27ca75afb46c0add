"""One training of one library's PPO, in a process of its own: `ppo_learning.py` starts it in that library's Python.

    python benchmarks/ppo_run.py '{"library": "sb3", "env": "CartPole-v1", "seed": 0, "threads": 1, ...}'

Prints what came of it as a line of JSON.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from importlib.metadata import version

import gymnasium as gym
import numpy as np

EVALUATION_EPISODES = 20
EVALUATION_SEED = 10_000
WINDOWS = 20
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
    """Train ours; how it acts, its steps, seconds and learning curve."""
    import steadyrl

    agent = steadyrl.PPO(
        run["env"], seed=run["seed"], episodes_per_update=run["episodes_per_update"], **run["settings"]
    )
    start = time.perf_counter()
    agent.learn(total_timesteps=run["timesteps"], progress_bar=False)
    seconds = time.perf_counter() - start
    episodes = np.diff([0, *(told["episodes"] for told in agent.history)]).tolist()
    curve = [[told["timesteps"], n, told["return"]] for n, told in zip(episodes, agent.history, strict=True)]

    def act(observations, deterministic):
        return agent.predict(observations, deterministic=deterministic)[0]

    return act, agent.timesteps, seconds, curve


def sb3(run):
    """Train Stable-Baselines3's; how it acts, its steps, seconds and learning curve."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    torch.set_num_threads(run["threads"])
    settings, ended = run["settings"], []

    class Record(BaseCallback):
        def _on_step(self):
            ended.extend(
                (self.num_timesteps, info["episode"]["r"]) for info in self.locals["infos"] if "episode" in info
            )
            return True

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
    start = time.perf_counter()
    agent.learn(run["timesteps"], callback=Record())
    seconds = time.perf_counter() - start
    torch.manual_seed(run["seed"])

    def act(observations, deterministic):
        seen = envs.normalize_obs(observations) if normalise else observations
        return agent.predict(seen, deterministic=deterministic)[0]

    return act, agent.num_timesteps, seconds, windows(ended, run["timesteps"])


def windows(ended, timesteps):
    """The learning curve: end of a window, episodes that ended in it, and their mean return."""
    steps, returns = np.array(ended).T
    window = np.minimum((steps - 1) * WINDOWS // timesteps, WINDOWS - 1)
    chosen = [returns[window == w] for w in range(WINDOWS)]
    return [
        [(w + 1) * timesteps // WINDOWS, len(some), float(some.mean())] for w, some in enumerate(chosen) if len(some)
    ]


def evaluate(act, name, deterministic):
    """Undiscounted returns of episodes from fixed seeds, the same for every library, played side by side."""
    envs = [gym.make(name) for _ in range(EVALUATION_EPISODES)]
    seen = np.stack([env.reset(seed=EVALUATION_SEED + k)[0] for k, env in enumerate(envs)])
    returns, going = np.zeros(len(envs)), list(range(len(envs)))
    while going:
        actions, left = act(seen[going], deterministic), []
        for k, action in zip(going, actions, strict=True):
            seen[k], reward, terminated, truncated, _ = envs[k].step(action)
            returns[k] += reward
            if not (terminated or truncated):
                left.append(k)
        going = left
    return returns.tolist()


def main() -> None:
    """Do the one run that the argument asks for."""
    run = json.loads(sys.argv[1])
    packages = {"ours": ("steadyrl", "jax"), "sb3": ("stable-baselines3", "torch")}[run["library"]]
    act, timesteps, seconds, curve = {"ours": ours, "sb3": sb3}[run["library"]](run)
    result = {
        "timesteps": timesteps,
        "seconds": round(seconds, 1),
        "deterministic": evaluate(act, run["env"], deterministic=True),
        "stochastic": evaluate(act, run["env"], deterministic=False),
        "curve": curve,
        "versions": {name: version(name) for name in (*packages, "gymnasium", "mujoco", "numpy")},
        "python": platform.python_version(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
