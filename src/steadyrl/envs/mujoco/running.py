"""The task of a robot that moves along x, with noisy rewards in an interval of x."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadyrl.envs.mujoco.task import State, StepOutcome, check_non_negative

DISTANCE: dict[str, Any] = {"both_ways": False, "noisy_above": 0.0, "noisy_below": 20.0, "fades_over": 20.0}
"""The options of the paper's distance variants: only forward speed is rewarded, and the noise decreases with x."""


@dataclass(frozen=True)
class Running:
    """Move fast at a low control cost; see `MujocoTask`. x is the first position of the model, after the step.

    The reward of a step is `forward_reward_weight` times its speed along x, minus `control_cost_weight` times the sum
    of the squared actions. If the step ends in noisy_above < x < noisy_below, the noise
    noise_scale * (1 - x / fades_over) * N(0, 1) is added.
    """

    noise_scale: float = 10.0
    """The standard deviation of the noise in the noisy region; at x = 0 if it depends on x."""
    noisy_above: float = -math.inf
    """The lower limit of the noisy region."""
    noisy_below: float = math.inf
    """The upper limit of the noisy region (deviation 38)."""
    fades_over: float = math.inf
    """The x at which the linearly decreasing noise reaches 0; infinite for constant noise."""
    both_ways: bool = True
    """Whether speed is rewarded in both directions (deviation 36); if not, backward speed has a negative reward."""
    forward_reward_weight: float = 1.0
    """The reward for a speed of 1; the value of Gymnasium's tasks."""
    control_cost_weight: float = 0.1
    """The cost of squared actions."""
    reset_noise_scale: float = 0.1
    """The scale of the random offsets of the initial state; the value of Gymnasium's tasks (deviation 37)."""
    normal_velocities: bool = False
    """Whether the offsets of velocities are normal with that standard deviation, or else uniform within it."""

    def __post_init__(self) -> None:
        check_non_negative(self, "noise_scale", "reset_noise_scale")
        for name in ("forward_reward_weight", "control_cost_weight"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name}={getattr(self, name)}: a finite number is needed.")
        if not self.noisy_above < self.noisy_below:
            raise ValueError(
                f"noisy_above={self.noisy_above}, noisy_below={self.noisy_below}: the noisy region is empty. "
                "For no noise at all, set noise_scale=0."
            )
        if not self.fades_over > 0:
            raise ValueError(f"fades_over={self.fades_over}: a distance above 0 is needed, or infinity.")

    def initial_offset(self, nq: int, nv: int, random: np.random.Generator) -> State:
        """Around the initial state of the model, drawn in the same order as in v5."""
        scale = self.reset_noise_scale
        positions = random.uniform(-scale, scale, nq)
        velocities = scale * random.standard_normal(nv) if self.normal_velocities else random.uniform(-scale, scale, nv)
        return State(positions, velocities)

    def observe(self, state: State) -> Any:
        """[k, nq + nv]: all positions, including x, and all velocities (deviation 37)."""
        return np.concatenate(state, axis=-1)

    def outcome(self, before: State, actions: Any, after: State, seconds: float) -> StepOutcome:
        """Speed minus control cost; episodes never terminate."""
        x = after.qpos[:, 0]
        velocity = (x - before.qpos[:, 0]) / seconds
        speed = np.abs(velocity) if self.both_ways else velocity
        # In the precision of the actions, as in Gymnasium.
        control_cost = self.control_cost_weight * np.square(actions).sum(axis=-1)
        return StepOutcome(
            rewards=self.forward_reward_weight * speed - control_cost,
            terminated=np.zeros(len(x), bool),
            in_noisy_region=(x > self.noisy_above) & (x < self.noisy_below),
            noise_scale=self.noise_scale * (1 - x / self.fades_over),
        )

    def episode_metrics(self, state: State, noisy_steps: Any, steps: Any) -> dict[str, Any]:
        """`visiting_rate`: the fraction of steps in the noisy region; `distance`: the final x (deviation 39)."""
        return {"visiting_rate": noisy_steps / steps, "distance": state.qpos[:, 0]}
