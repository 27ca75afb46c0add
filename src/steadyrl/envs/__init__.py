"""The environments of steadyrl; importing this package registers them with Gymnasium."""

from __future__ import annotations

import gymnasium as gym

_ENTRY_POINTS = {
    "steadyrl/GuardedMaze-v0": "steadyrl.envs.guarded_maze.environment:GuardedMazeEnv",
}

for _name, _entry_point in _ENTRY_POINTS.items():
    # Gymnasium warns when a name is registered again, as a reload of this package would.
    if _name not in gym.registry:
        gym.register(_name, entry_point=_entry_point)
