"""The environments of steadyrl; importing this package registers them with Gymnasium."""

from __future__ import annotations

import gymnasium as gym

_ENTRY_POINTS: dict[str, tuple[str, int | None]] = {
    "steadyrl/GuardedMaze-v0": ("steadyrl.envs.guarded_maze.environment:GuardedMazeEnv", None),
    "steadyrl/LunarLander-v0": ("steadyrl.envs.lunar_lander:LunarLanderEnv", 1000),
    "steadyrl/InvertedPendulum-v0": ("steadyrl.envs.inverted_pendulum:InvertedPendulumEnv", 500),
    "steadyrl/HalfCheetah-v0": ("steadyrl.envs.half_cheetah:HalfCheetahEnv", 500),
    "steadyrl/HalfCheetahDistance-v0": ("steadyrl.envs.half_cheetah:HalfCheetahDistanceEnv", 500),
    "steadyrl/Swimmer-v0": ("steadyrl.envs.swimmer:SwimmerEnv", 500),
    "steadyrl/SwimmerDistance-v0": ("steadyrl.envs.swimmer:SwimmerDistanceEnv", 500),
}
"""name -> where the class is, and the limit on an episode's steps if the class has none of its own."""

for _name, (_entry_point, _max_episode_steps) in _ENTRY_POINTS.items():
    # Gymnasium warns when a name is registered again, as a reload of this package would.
    if _name not in gym.registry:
        gym.register(_name, entry_point=_entry_point, max_episode_steps=_max_episode_steps)
