"""One training run, in a process of its own and in the Python of its library; `compare.py` starts it.

    python -m benchmarks.learning.train_one '{"library": "sb3", "env": "CartPole-v1", ...}' deterministic stochastic

Trains the agent that is described (`peers/agents.py`), evaluates it in these ways of acting, and prints the result as
a line of JSON: steps, seconds, returns, learning curve and versions.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from importlib.metadata import version

import gymnasium as gym
import numpy as np

from benchmarks.peers.agents import make_ours, make_peer

EVALUATION_EPISODES = 20
EVALUATION_SEED = 10_000
WINDOWS = 20
PACKAGES = {
    "ours": ("steadyrl", "jax"),
    "sb3": ("stable-baselines3", "torch"),
    "sbx": ("sbx-rl", "stable-baselines3", "jax", "flax"),
}


def train_ours(run):
    """Train our agent; how it acts, its steps, seconds and learning curve."""
    agent = make_ours(run)
    start = time.perf_counter()
    agent.learn(total_timesteps=run["timesteps"], progress_bar=False)
    seconds = time.perf_counter() - start
    episodes = np.diff([0, *(record["episodes"] for record in agent.history)]).tolist()
    curve = [[record["timesteps"], n, record["return"]] for n, record in zip(episodes, agent.history, strict=True) if n]

    def act(observations, deterministic):
        return agent.predict(observations, deterministic=deterministic)[0]

    return act, agent.timesteps, seconds, curve


def train_peer(run):
    """Train an agent of Stable-Baselines3 or SBX; how it acts, its steps, seconds and learning curve."""
    import torch
    from stable_baselines3.common.callbacks import BaseCallback

    agent, ended = make_peer(run), []

    class Record(BaseCallback):
        def _on_step(self):
            ended.extend(
                (self.num_timesteps, info["episode"]["r"]) for info in self.locals["infos"] if "episode" in info
            )
            return True

    start = time.perf_counter()
    agent.learn(run["timesteps"], callback=Record())
    seconds = time.perf_counter() - start
    normalizer = agent.get_vec_normalize_env()
    torch.manual_seed(run["seed"])

    def act(observations, deterministic):
        seen = normalizer.normalize_obs(observations) if normalizer else observations
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
    observations = np.stack([env.reset(seed=EVALUATION_SEED + k)[0] for k, env in enumerate(envs)])
    returns, playing = np.zeros(len(envs)), list(range(len(envs)))
    while playing:
        actions, still_playing = act(observations[playing], deterministic), []
        for k, action in zip(playing, actions, strict=True):
            observations[k], reward, terminated, truncated, _ = envs[k].step(action)
            returns[k] += reward
            if not (terminated or truncated):
                still_playing.append(k)
        playing = still_playing
    return returns.tolist()


def train_one(run, kinds):
    """The result of a run that is described, evaluated in these kinds of acting: "deterministic" or "stochastic"."""
    act, timesteps, seconds, curve = (train_ours if run["library"] == "ours" else train_peer)(run)
    return {
        "timesteps": timesteps,
        "seconds": round(seconds, 1),
        **{kind: evaluate(act, run["env"], deterministic=kind == "deterministic") for kind in kinds},
        "curve": curve,
        "versions": {name: version(name) for name in (*PACKAGES[run["library"]], "gymnasium", "mujoco", "numpy")},
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    print(json.dumps(train_one(json.loads(sys.argv[1]), sys.argv[2:])))
