"""Swimmer with noisy rewards on the right, or with noise that decreases to the right."""

from __future__ import annotations

from typing import Any, ClassVar

from steadyrl.envs.mujoco.environment import MujocoTaskEnv
from steadyrl.envs.mujoco.running import DISTANCE, Running

_ROBOT: dict[str, Any] = {"control_cost_weight": 1e-4}


class SwimmerEnv(MujocoTaskEnv):
    """Gymnasium's Swimmer-v5 as a `Running` task: rewarded for speed in both directions, with noise at x > 0.5.

    `info["in_noisy_region"]` reports whether a step ended there, and `info["episode_metrics"]` the fraction of the
    episode's steps so far that did (`visiting_rate`) and the current x (`distance`).

    Args:
        xml_file: The MuJoCo model.
        frame_skip: Number of simulation steps per environment step.
        **options: The fields of `Running`, and the options of Gymnasium's MuJoCo environments, such as `render_mode`,
            `width`, `height` and `default_camera_config`.
    """

    TASK = Running
    CAMERA = "track"
    OPTIONS: ClassVar[dict[str, Any]] = {**_ROBOT, "noisy_above": 0.5}

    def __init__(self, xml_file: str = "swimmer.xml", frame_skip: int = 4, **options: Any) -> None:
        super().__init__(xml_file, frame_skip, **options)


class SwimmerDistanceEnv(SwimmerEnv):
    """The same robot, rewarded only for forward speed, with noise that decreases from x = 0 to 20."""

    OPTIONS: ClassVar[dict[str, Any]] = {**_ROBOT, **DISTANCE}
