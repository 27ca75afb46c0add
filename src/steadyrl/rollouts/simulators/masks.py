"""Which actions an environment allows: `info["action_mask"]`, or a method `action_masks()` as in sb3-contrib."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from steadyrl.base.shown import shown
from steadyrl.envs.simulator import SlotError
from steadyrl.envs.spaces import choices
from steadyrl.rollouts.simulators.calls import environment_errors

KEY, METHOD = "action_mask", "action_masks"
ALWAYS_OR_NEVER = f"Report info[{KEY!r}] in every reset and step, or never."


class ActionMasks:
    """The masks of a simulator's environments: there is one after every reset and every step, or never one.

    A mask has a number for each action; for several choices at once, those of all of them one after the other.
    """

    def __init__(self, action_space: gym.Space[Any]) -> None:
        self._length = sum(choices(action_space))
        self._methods: dict[int, Callable[[], Any] | None] = {}
        self._exist: bool | None = None
        self.current: Any = None
        """[slots, length] bool: the mask in each slot; None if there are none."""

    def after_reset(self, slot: int, slots: int, env: gym.Env[Any, Any], info: Mapping[str, Any]) -> None:
        """Read the mask in the first state of an episode, of `slots` that are reset one after the other."""
        if not self._length:
            return
        if slot not in self._methods:  # A slot keeps its environment.
            self._methods[slot] = _method(env)
        exists = KEY in info or self._methods[slot] is not None
        self._exist = exists if self._exist is None else self._exist
        if exists != self._exist:
            which = "an action mask, which other episodes have not" if exists else "no action mask, which others have"
            raise SlotError(slot, which, ALWAYS_OR_NEVER)
        if exists:
            self.current = np.ones((slots, self._length), bool) if slot == 0 else self.current
            self.after_step(slot, info)

    def after_step(self, slot: int, info: Mapping[str, Any]) -> None:
        """Read the mask after a step, if there are masks; one that the reset did not have is an error."""
        if self.current is None:
            if KEY in info and self._length:
                raise unexpected_mask(slot)
            return
        method = self._methods[slot]
        if KEY in info:
            mask = info[KEY]
        elif method is not None:
            with environment_errors(slot, METHOD):
                mask = method()
        else:
            raise SlotError(slot, "no action mask", ALWAYS_OR_NEVER)
        self.current[slot] = checked_mask(slot, mask, self._length)


def unexpected_mask(slot: int | None) -> SlotError:
    """The error for a mask after a step of an episode that began without one."""
    return SlotError(slot, "an action mask in the info of step, but none in that of reset,", ALWAYS_OR_NEVER)


def _method(env: gym.Env[Any, Any]) -> Callable[[], Any] | None:
    """`action_masks` of the environment or of one of its wrappers."""
    if not env.has_wrapper_attr(METHOD):
        return None
    method = env.get_wrapper_attr(METHOD)
    return method if callable(method) else None


def checked_mask(slot: int | None, mask: Any, length: int) -> Any:
    """[length] bool: a mask that an environment reported."""
    try:
        array = np.asarray(mask)
    except Exception as error:
        raise SlotError(slot, f"{KEY} {shown(mask)} that is not an array") from error
    if array.size != length:
        raise SlotError(slot, f"{KEY} of shape {array.shape} for {length} actions", "Report a number for each of them.")
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise SlotError(slot, f"{KEY} {shown(mask)} whose values are not 0 or 1")
    return array.ravel() > 0
