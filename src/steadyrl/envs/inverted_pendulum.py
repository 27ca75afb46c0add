"""InvertedPendulum with noisy rewards on one side: a steady balancer stays on the other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from steadyrl.envs.mujoco_env import MujocoTaskEnv
from steadyrl.envs.mujoco_task import Outcome, State, check_from_0_up


@dataclass(frozen=True)
class Balancing:
    """Balance a pole on a cart; see `MujocoTask`."""

    noise_scale: float = 10.0
    """What a draw from N(0, 1) is multiplied by in the noisy region."""
    noisy_beyond: float = 0.01
    """The noisy region is x > noisy_beyond, where x is the cart's position at the end of a step."""
    reset_noise_scale: float = 0.01
    """Positions start within this of upright in the middle, uniformly; the task's own value."""
    reset_velocity_scale: float = 0.0005
    """Velocities start within this of 0, uniformly."""
    angle_limit: float = 0.2
    """An episode ends when the pole leans over by more than this, in radians."""
    step_reward: float = 1.0
    """What a step is paid."""
    pay_failing_step: bool = True
    """Whether the step that ends the episode is paid too (deviation 28): in the paper's version, not in v5."""

    def __post_init__(self) -> None:
        check_from_0_up(self, "noise_scale", "reset_noise_scale", "reset_velocity_scale")
        if not self.angle_limit > 0:
            raise ValueError(f"angle_limit={self.angle_limit}: every episode would end with its first step.")
        if math.isnan(self.noisy_beyond) or not math.isfinite(self.step_reward):
            raise ValueError(f"noisy_beyond={self.noisy_beyond}, step_reward={self.step_reward}: give numbers.")

    def initial_offset(self, nq: int, nv: int, random: np.random.Generator) -> State:
        """Uniform around the model's own state, drawn in v5's order."""
        position, velocity = self.reset_noise_scale, self.reset_velocity_scale
        return State(random.uniform(-position, position, nq), random.uniform(-velocity, velocity, nv))

    def observe(self, state: State) -> Any:
        """[k, 4]: position of the cart, angle of the pole, and the speed of each."""
        return np.concatenate(state, axis=-1)

    def outcome(self, before: State, actions: Any, after: State, seconds: float) -> Outcome:
        """`step_reward`, until the pole leans over."""
        finite = np.isfinite(after.qpos).all(axis=-1) & np.isfinite(after.qvel).all(axis=-1)
        terminated = ~finite | (np.abs(after.qpos[:, 1]) > self.angle_limit)
        paid = self.pay_failing_step | ~terminated
        return Outcome(
            rewards=np.where(paid, self.step_reward, 0.0),
            terminated=terminated,
            in_noisy_region=after.qpos[:, 0] > self.noisy_beyond,
            noise_scale=self.noise_scale,
        )

    def facts(self, state: State, noisy_steps: Any, steps: Any) -> dict[str, Any]:
        """`visiting_rate`: the share of an episode's steps that ended in the noisy region."""
        return {"visiting_rate": noisy_steps / steps}


class InvertedPendulumEnv(MujocoTaskEnv):
    """Gymnasium's InvertedPendulum-v5 as `Balancing` describes it, with the paper's noise, start and pay.

    `info["in_noisy_region"]` says of each step whether it ended there, `info["facts"]["visiting_rate"]` what share of
    the episode's steps so far did.

    Args:
        xml_file: the model.
        frame_skip: how many times MuJoCo steps within a step.
        **options: the fields of `Balancing`, and the options of Gymnasium's MuJoCo environments, such as `render_mode`,
            `width`, `height` and `default_camera_config`.
    """

    TASK = Balancing
    OPTIONS: ClassVar[dict[str, Any]] = {"default_camera_config": {"trackbodyid": 0, "distance": 2.04}}

    def __init__(self, xml_file: str = "inverted_pendulum.xml", frame_skip: int = 2, **options: Any) -> None:
        super().__init__(xml_file, frame_skip, **options)
