"""A Gymnasium `VectorEnv` passed by the user, as a simulator; supports all three autoreset modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from steadyrl.envs.simulator import SlotError, StepResult, row_of
from steadyrl.envs.spaces import choices, flat_rows, stackable
from steadyrl.rollouts.simulators.calls import (
    RESET,
    STEP,
    check_info,
    environment_errors,
    numbers,
    reported_metrics,
    unpacked,
)
from steadyrl.rollouts.simulators.masks import KEY, checked_mask, unexpected_mask


class VectorEnvSimulator:
    """Slots are the sub-environments of a `VectorEnv`.

    It can only be stepped as a whole. When an episode ends before the others of its batch, its sub-environment starts
    another one, which is ignored; the steps of that are counted in `idle_steps`. Some vector environments accept only
    one seed for all sub-environments; an episode then depends on the seeds of its whole batch.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        self.observation_space, self.action_space = env.single_observation_space, env.single_action_space
        self.size, self.idle_steps = env.num_envs, 0
        self._env = env
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._shape, self._dtype = stackable(self.observation_space)
        self._one_seed = False
        self._actions: Any = None
        self._done = np.zeros(self.size, bool)
        self._mask_length = sum(choices(self.action_space))
        self.action_masks: Any = None
        """See `Simulator`."""

    def reset(self, seeds: Sequence[int]) -> Any:
        """See `Simulator`; sub-environments without an episode are reset with seeds that follow the last one."""
        unused = [int(seeds[-1]) + 1 + i for i in range(self.size - len(seeds))]
        with environment_errors(None, "reset"):
            observations, info = unpacked(None, "reset", self._reset([*map(int, seeds), *unused]), RESET)
            check_info(None, info)
            self._actions = None
            self._done[:] = False
            masked = KEY in info and self._mask_length > 0
            self.action_masks = self._masks(info) if masked or self.action_masks is not None else None
            return self._rows(observations, np.arange(len(seeds)))

    def _reset(self, seeds: list[int]) -> Any:
        if not self._one_seed:
            try:
                return self._env.reset(seed=seeds)  # type: ignore[arg-type]
            except (TypeError, ValueError, gym.error.Error):
                self._one_seed = True  # The `VectorEnv` API requires only support for a single integer.
        return self._env.reset(seed=int(np.random.SeedSequence(seeds).generate_state(1)[0]))

    def step(self, slots: Any, actions: Any) -> StepResult:
        """See `Simulator`."""
        if self._actions is None:  # Slots without an episode repeat the first action.
            self._actions = np.repeat(actions[:1], self.size, axis=0)
        self._actions[slots] = actions
        with environment_errors(None, "step"):
            if self._mode == AutoresetMode.DISABLED and self._done.any():
                self._env.reset(options={"reset_mask": self._done.copy()})
            result = self._env.step(self._actions.copy())
            observations, rewards, terminated, truncated, info = unpacked(None, "step", result, STEP)
            check_info(None, info)
            terminated, truncated = (
                self._column("terminated", terminated, bool),
                self._column("truncated", truncated, bool),
            )
            rewards = self._column("rewards", rewards, np.float64)
            self.idle_steps += self.size - len(slots)
            self._done = terminated | truncated
            rows, ended = self._rows(observations, slots), {}
            if self.action_masks is not None:
                self.action_masks = self._masks(info)
            elif KEY in info and self._mask_length:
                raise unexpected_mask(self._reporting(slots, info))
            if self._done[slots].any():
                ended = self._final(rows, slots, info)
            return StepResult(rows, rewards[slots], terminated[slots], truncated[slots], ended)

    def _final(self, rows: Any, slots: Any, info: Any) -> dict[int, dict[str, float]]:
        """The metrics of the episodes that ended; their last observations are written into `rows`."""
        final_info = info
        if self._mode == AutoresetMode.SAME_STEP:
            final_info = info.get("final_info", {})
            check_info(None, final_info)
            for row in np.flatnonzero(self._done[slots]):
                slot = int(slots[row])
                final = info["final_obs"][slot]
                rows[row] = row_of(self.observation_space, self._shape, self._dtype, slot, final)
        metrics = reported_metrics(None, final_info)
        return {slot: _metrics_in_slot(metrics, slot) for slot in slots[self._done[slots]].tolist()}

    def _masks(self, info: Any) -> Any:
        """[size, A] bool: the action mask in each slot; where an episode has ended, that of its last observation."""
        if KEY not in info:
            raise SlotError(None, f"info without {KEY!r}, which the first had", "Report it in every reset and step.")
        masks = np.stack([checked_mask(slot, mask, self._mask_length) for slot, mask in enumerate(info[KEY])])
        final: Any = info.get("final_info", {}).get(KEY) if self._mode == AutoresetMode.SAME_STEP else None
        for slot in np.flatnonzero(self._done) if final is not None else ():
            masks[slot] = checked_mask(int(slot), final[slot], self._mask_length)
        return masks

    def _reporting(self, slots: Any, info: Any) -> int | None:
        """The first of the `slots` whose sub-environment reported a mask; None if that is not known."""
        reported = np.asarray(info.get(f"_{KEY}", False))  # Gymnasium's mask of the sub-environments with a value.
        known = reported.shape == (self.size,)
        return next((int(slot) for slot in slots if known and reported[slot]), None)

    def _column(self, what: str, values: Any, dtype: Any) -> Any:
        """[size]: one value for each sub-environment."""
        array = np.asarray(values, dtype)
        if array.shape != (self.size,):
            raise SlotError(None, f"{what} of shape {array.shape} for {self.size} environments")
        return array

    def _rows(self, observations: Any, slots: Any) -> Any:
        """The observations in some slots, as a new array."""
        rows = flat_rows(self.observation_space, observations)
        if rows.shape != (self.size, *self._shape):
            raise SlotError(None, f"observations of shape {rows.shape} for {self.size} of {self.observation_space}")
        return rows[slots].astype(self._dtype, copy=False)

    def close(self) -> None:
        """Does nothing: the environment belongs to the user."""


def _metrics_in_slot(metrics: dict[str, Any], slot: int) -> dict[str, float]:
    """The metrics of one episode; `_name` is Gymnasium's mask of the sub-environments that reported `name`."""
    own = {
        name: values[slot]
        for name, values in metrics.items()
        if not name.startswith("_") and (f"_{name}" not in metrics or metrics[f"_{name}"][slot])
    }
    return numbers(slot, own)
