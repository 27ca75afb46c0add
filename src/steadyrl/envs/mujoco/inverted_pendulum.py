"""InvertedPendulum with noisy rewards on one side, so that a risk-averse agent stays on the other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from steadyrl.envs.mujoco.environment import MujocoTaskEnv
from steadyrl.envs.mujoco.task import State, StepOutcome, check_non_negative


@dataclass(frozen=True)
class Balancing:
    """Balance a pole on a cart; see `MujocoTask`."""

    noise_scale: float = 10.0
    """The standard deviation of the reward noise in the noisy region."""
    noisy_beyond: float = 0.01
    """The noisy region is x > noisy_beyond, where x is the cart's position at the end of a step."""
    reset_noise_scale: float = 0.01
    """Initial positions are uniform within this distance of the upright centre; the value of InvertedPendulum-v5."""
    reset_velocity_scale: float = 0.0005
    """Initial velocities are uniform within this distance of 0."""
    angle_limit: float = 0.2
    """An episode terminates when the angle of the pole exceeds this, in radians."""
    step_reward: float = 1.0
    """The reward of a step."""
    pay_failing_step: bool = True
    """Whether the terminating step has the reward as well (deviation 28): as in the paper, but not in v5."""

    def __post_init__(self) -> None:
        check_non_negative(self, "noise_scale", "reset_noise_scale", "reset_velocity_scale")
        if not self.angle_limit > 0:
            raise ValueError(
                f"angle_limit={self.angle_limit}: every episode would end with its first step. Set it above 0."
            )
        if math.isnan(self.noisy_beyond) or not math.isfinite(self.step_reward):
            raise ValueError(f"noisy_beyond={self.noisy_beyond}, step_reward={self.step_reward}: numbers are needed.")

    def initial_offset(self, nq: int, nv: int, random: np.random.Generator) -> State:
        """Uniform around the initial state of the model, drawn in the same order as in v5."""
        position, velocity = self.reset_noise_scale, self.reset_velocity_scale
        return State(random.uniform(-position, position, nq), random.uniform(-velocity, velocity, nv))

    def observe(self, state: State) -> Any:
        """[k, 4]: position of the cart, angle of the pole, and the velocity of each."""
        return np.concatenate(state, axis=-1)

    def outcome(self, before: State, actions: Any, after: State, seconds: float) -> StepOutcome:
        """Reward `step_reward` until the pole falls."""
        finite = np.isfinite(after.qpos).all(axis=-1) & np.isfinite(after.qvel).all(axis=-1)
        terminated = ~finite | (np.abs(after.qpos[:, 1]) > self.angle_limit)
        rewarded = self.pay_failing_step | ~terminated
        return StepOutcome(
            rewards=np.where(rewarded, self.step_reward, 0.0),
            terminated=terminated,
            in_noisy_region=after.qpos[:, 0] > self.noisy_beyond,
            noise_scale=self.noise_scale,
        )

    def episode_metrics(self, state: State, noisy_steps: Any, steps: Any) -> dict[str, Any]:
        """`visiting_rate`: the fraction of an episode's steps that ended in the noisy region."""
        return {"visiting_rate": noisy_steps / steps}


class InvertedPendulumEnv(MujocoTaskEnv):
    """Gymnasium's InvertedPendulum-v5 as a `Balancing` task, with the paper's noise, initial states and rewards.

    `info["in_noisy_region"]` reports whether a step ended in the noisy region, and
    `info["episode_metrics"]["visiting_rate"]` the fraction of the episode's steps so far that did.

    Args:
        xml_file: The MuJoCo model.
        frame_skip: Number of simulation steps per environment step.
        **options: The fields of `Balancing`, and the options of Gymnasium's MuJoCo environments, such as `render_mode`,
            `width`, `height` and `default_camera_config`.
    """

    TASK = Balancing
    OPTIONS: ClassVar[dict[str, Any]] = {"default_camera_config": {"trackbodyid": 0, "distance": 2.04}}

    def __init__(self, xml_file: str = "inverted_pendulum.xml", frame_skip: int = 2, **options: Any) -> None:
        super().__init__(xml_file, frame_skip, **options)
