"""Swimmer with noisy rewards on the right, or with noise that fades on the way there."""

from __future__ import annotations

from typing import Any, ClassVar

from steadyrl.envs.mujoco_env import MujocoTaskEnv
from steadyrl.envs.running import DISTANCE, Running

_ROBOT: dict[str, Any] = {"control_cost_weight": 1e-4}


class SwimmerEnv(MujocoTaskEnv):
    """Gymnasium's Swimmer-v5 as `Running` describes it: paid both ways, and noisy at x > 0.5.

    `info["in_noisy_region"]` says of each step whether it ended there, `info["facts"]` what share of the episode's
    steps so far did (`visiting_rate`) and where it is (`distance`).

    Args:
        xml_file: the model.
        frame_skip: how many times MuJoCo steps within a step.
        **options: the fields of `Running`, and the options of Gymnasium's MuJoCo environments, such as `render_mode`,
            `width`, `height` and `default_camera_config`.
    """

    TASK = Running
    OPTIONS: ClassVar[dict[str, Any]] = {**_ROBOT, "noisy_above": 0.5}

    def __init__(self, xml_file: str = "swimmer.xml", frame_skip: int = 4, **options: Any) -> None:
        super().__init__(xml_file, frame_skip, **options)


class SwimmerDistanceEnv(SwimmerEnv):
    """The same robot, paid for swimming forwards alone, in noise that fades from x = 0 to 20."""

    OPTIONS: ClassVar[dict[str, Any]] = {**_ROBOT, **DISTANCE}
