"""The environments of steadyrl, registered with Gymnasium without importing it.

`import steadyrl` is enough for `gymnasium.make("steadyrl/...")`. Importing Gymnasium takes most of a second, and
`steadyrl --help` must not wait for it. So if Gymnasium is not loaded yet, the environments are registered as soon as it
is imported.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

_ENTRY_POINTS: dict[str, tuple[str, int | None]] = {
    "steadyrl/GuardedMaze-v0": ("steadyrl.envs.guarded_maze.environment:GuardedMazeEnv", None),
    "steadyrl/TwoSides-v0": ("steadyrl.envs.two_sides:TwoSidesEnv", 60),
    "steadyrl/LunarLander-v0": ("steadyrl.envs.lunar_lander.environment:LunarLanderEnv", 1000),
    "steadyrl/InvertedPendulum-v0": ("steadyrl.envs.mujoco.inverted_pendulum:InvertedPendulumEnv", 500),
    "steadyrl/HalfCheetah-v0": ("steadyrl.envs.mujoco.half_cheetah:HalfCheetahEnv", 500),
    "steadyrl/HalfCheetahDistance-v0": ("steadyrl.envs.mujoco.half_cheetah:HalfCheetahDistanceEnv", 500),
    "steadyrl/Swimmer-v0": ("steadyrl.envs.mujoco.swimmer:SwimmerEnv", 500),
    "steadyrl/SwimmerDistance-v0": ("steadyrl.envs.mujoco.swimmer:SwimmerDistanceEnv", 500),
}
"""id -> entry point, and the time limit in steps, or None where the class itself truncates episodes."""


def _register(gymnasium: ModuleType) -> None:
    for name, (entry_point, max_episode_steps) in _ENTRY_POINTS.items():
        # Gymnasium warns when an id is registered again, as a reload of this package would.
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=entry_point, max_episode_steps=max_episode_steps)


class _RegisterAfterImport(importlib.abc.MetaPathFinder):
    """Finds Gymnasium as usual, and extends its loader so that it registers our environments at the end."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                _register(module)

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


if "gymnasium" in sys.modules:
    _register(sys.modules["gymnasium"])
else:
    sys.meta_path.insert(0, _RegisterAfterImport())
