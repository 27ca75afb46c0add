"""The task of a robot that runs along x, where rewards are noisy in a stretch of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadyrl.envs.mujoco_task import Outcome, State, check_from_0_up

DISTANCE: dict[str, Any] = {"both_ways": False, "noisy_above": 0.0, "noisy_below": 20.0, "fades_over": 20.0}
"""The options of the paper's distance variants: only forward speed is paid, and the noise fades on the way."""


@dataclass(frozen=True)
class Running:
    """Run fast at little effort; see `MujocoTask`. x is the model's first position, at the end of a step.

    A step is paid `forward_reward_weight` times its speed along x, less `control_cost_weight` times the sum of the
    squared actions. If it ends in noisy_above < x < noisy_below, there is noise of
    noise_scale * (1 - x / fades_over) * N(0, 1) too.
    """

    noise_scale: float = 10.0
    """What a draw from N(0, 1) is multiplied by in the noisy region, at x = 0 if it fades."""
    noisy_above: float = -math.inf
    """Where the noisy region begins."""
    noisy_below: float = math.inf
    """Where the noisy region ends (deviation 38)."""
    fades_over: float = math.inf
    """The noise falls in proportion to x and is 0 here; infinite for noise that does not fade."""
    both_ways: bool = True
    """Whether speed is paid in either direction (deviation 36), or only forwards and charged backwards."""
    forward_reward_weight: float = 1.0
    """What a speed of 1 is paid; the task's own value."""
    control_cost_weight: float = 0.1
    """What the squared actions cost."""
    reset_noise_scale: float = 0.1
    """How far positions and velocities start from the model's own; the task's own value (deviation 37)."""
    normal_velocities: bool = False
    """Whether velocities start normally distributed, with that standard deviation; otherwise uniformly, within it."""

    def __post_init__(self) -> None:
        check_from_0_up(self, "noise_scale", "reset_noise_scale")
        for name in ("forward_reward_weight", "control_cost_weight"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name}={getattr(self, name)}: give a number.")
        if not self.noisy_above < self.noisy_below:
            raise ValueError(
                f"noisy_above={self.noisy_above}, noisy_below={self.noisy_below}: no x lies between. "
                "For no noise at all, set noise_scale=0."
            )
        if not self.fades_over > 0:
            raise ValueError(f"fades_over={self.fades_over}: give a distance above 0, or infinity.")

    def initial_offset(self, nq: int, nv: int, random: np.random.Generator) -> State:
        """Around the model's own state, drawn in v5's order."""
        scale = self.reset_noise_scale
        positions = random.uniform(-scale, scale, nq)
        velocities = scale * random.standard_normal(nv) if self.normal_velocities else random.uniform(-scale, scale, nv)
        return State(positions, velocities)

    def observe(self, state: State) -> Any:
        """[k, nq + nv]: all positions, x included, and all velocities (deviation 37)."""
        return np.concatenate(state, axis=-1)

    def outcome(self, before: State, actions: Any, after: State, seconds: float) -> Outcome:
        """Speed less effort; an episode has no end of its own."""
        x = after.qpos[:, 0]
        velocity = (x - before.qpos[:, 0]) / seconds
        speed = np.abs(velocity) if self.both_ways else velocity
        # In the actions' own precision, as Gymnasium reckons it.
        control_cost = self.control_cost_weight * np.square(actions).sum(axis=-1)
        return Outcome(
            rewards=self.forward_reward_weight * speed - control_cost,
            terminated=np.zeros(len(x), bool),
            in_noisy_region=(x > self.noisy_above) & (x < self.noisy_below),
            noise_scale=self.noise_scale * (1 - x / self.fades_over),
        )

    def facts(self, state: State, noisy_steps: Any, steps: Any) -> dict[str, Any]:
        """`visiting_rate`: the share of steps that ended in noise; `distance`: x at the end (deviation 39)."""
        return {"visiting_rate": noisy_steps / steps, "distance": state.qpos[:, 0]}
