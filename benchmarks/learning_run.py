"""One training for a comparison of `learning.py`, in a process of its own and in its library's Python.

What every such script needs: to train and note a learning curve, to evaluate, and to print what came of it.
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
PACKAGES = {
    "ours": ("steadyrl", "jax"),
    "sb3": ("stable-baselines3", "torch"),
    "sbx": ("sbx-rl", "stable-baselines3", "jax", "flax"),
}


def train_ours(agent, timesteps):
    """Train an agent of ours; how it acts, its steps, seconds and learning curve."""
    start = time.perf_counter()
    agent.learn(total_timesteps=timesteps, progress_bar=False)
    seconds = time.perf_counter() - start
    episodes = np.diff([0, *(told["episodes"] for told in agent.history)]).tolist()
    curve = [[told["timesteps"], n, told["return"]] for n, told in zip(episodes, agent.history, strict=True) if n]
    return _acting(agent), agent.timesteps, seconds, curve


def train_peer(agent, timesteps):
    """Train an agent of Stable-Baselines3's or SBX's; how it acts, its steps, seconds and learning curve."""
    from stable_baselines3.common.callbacks import BaseCallback

    ended = []

    class Record(BaseCallback):
        def _on_step(self):
            ended.extend(
                (self.num_timesteps, info["episode"]["r"]) for info in self.locals["infos"] if "episode" in info
            )
            return True

    start = time.perf_counter()
    agent.learn(timesteps, callback=Record())
    seconds = time.perf_counter() - start
    return _acting(agent), agent.num_timesteps, seconds, windows(ended, timesteps)


def _acting(agent):
    def act(observations, deterministic):
        return agent.predict(observations, deterministic=deterministic)[0]

    return act


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


def main(libraries, kinds):
    """Do the one run that the argument asks for, with the function of its library; evaluate in these kinds of acting.

    Prints what came of it as a line of JSON.
    """
    run = json.loads(sys.argv[1])
    act, timesteps, seconds, curve = libraries[run["library"]](run)
    result = {
        "timesteps": timesteps,
        "seconds": round(seconds, 1),
        **{kind: evaluate(act, run["env"], deterministic=kind == "deterministic") for kind in kinds},
        "curve": curve,
        "versions": {name: version(name) for name in (*PACKAGES[run["library"]], "gymnasium", "mujoco", "numpy")},
        "python": platform.python_version(),
    }
    print(json.dumps(result))
