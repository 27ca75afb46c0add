"""The environments that a Stable-Baselines3 model was trained in, if they are in this process."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from steadyrl.envs import spaces
from steadyrl.envs.description import describe_env, source_from
from steadyrl.envs.source import Source


def own_source(model: Any) -> Source:
    """The model's environment, made anew from its id if it has one; none if there is none, or one with other spaces."""
    env: Any = next(iter(_single_envs(model)), None)
    while type(env).__name__ == "Monitor":  # It only records.
        env = env.env
    if not isinstance(env, gym.Env):
        return Source(None, None)
    own = model.observation_space, model.action_space
    if not all(map(spaces.same_spaces, (env.observation_space, env.action_space), own)):
        return Source(None, None)  # What a wrapper of vector environments makes of it, such as a stack of frames.
    made = source_from(describe_env(env))
    return Source.of(env) if made.env is None else made


def episodes_of(model: Any) -> int:
    """Episodes that it was trained for, as far as it knows."""
    monitors = [env for env in _single_envs(model) if hasattr(env, "get_episode_rewards")]
    return max(int(getattr(model, "_episode_num", 0)), sum(len(env.get_episode_rewards()) for env in monitors))


def _single_envs(model: Any) -> list[Any]:
    vector: Any = model.get_env() if hasattr(model, "get_env") else None
    while hasattr(vector, "venv"):
        vector = vector.venv
    return list(getattr(vector, "envs", ()))
