"""Calls of environments that may do anything: whatever they raise or return that is wrong becomes a `SlotError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from steadyrl.base.shown import shown
from steadyrl.base.signals import may_be_interrupt
from steadyrl.envs.episode_metrics import metrics_of
from steadyrl.envs.simulator import SlotError

RESET, STEP = "(observation, info)", "(observation, reward, terminated, truncated, info)"


class environment_errors:  # noqa: N801 (a context manager, like contextlib.suppress)
    """A context whose exceptions are the environment's, `sys.exit()` included; Ctrl-C passes."""

    __slots__ = ("_call", "_slot")

    def __init__(self, slot: int | None, call: str) -> None:
        """`call` is "reset" or "step"."""
        self._slot, self._call = slot, call

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, SlotError):
            return
        if isinstance(error, KeyboardInterrupt) and may_be_interrupt():
            return
        try:
            text = " ".join(str(error).split())
        except Exception:
            text = ""
        name = type(error).__name__
        raise SlotError(self._slot, f"{self._call} raised {name}: {text}".removesuffix(": ")) from error


class EnvStep(NamedTuple):
    """What `step` of one environment returned, checked and converted."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    metrics: dict[str, float]
    """Of the episode, if it ended with this step."""
    info: Mapping[str, Any]


def reset_env(
    env: gym.Env[Any, Any], slot: int, seed: int, convert: Callable[[int, Any], Any]
) -> tuple[Any, Mapping[str, Any]]:
    """Start an episode; returns `convert(slot, observation)` and the info."""
    with environment_errors(slot, "reset"):
        result = env.reset(seed=int(seed))
        observation, info = unpacked(slot, "reset", result, RESET)
        check_info(slot, info)
        return convert(slot, observation), info


def step_env(env: gym.Env[Any, Any], slot: int, action: Any, convert: Callable[[int, Any], Any]) -> EnvStep:
    """One step of an environment, with `convert(slot, observation)`."""
    with environment_errors(slot, "step"):
        result = env.step(action)
        observation, reward, terminated, truncated, info = unpacked(slot, "step", result, STEP)
        check_info(slot, info)
        terminated, truncated = as_flag(slot, "terminated", terminated), as_flag(slot, "truncated", truncated)
        metrics = numbers(slot, reported_metrics(slot, info)) if terminated or truncated else {}
        reward = as_number(slot, "reward", reward)
        return EnvStep(convert(slot, observation), reward, terminated, truncated, metrics, info)


def unpacked(slot: int | None, call: str, result: Any, expected: str) -> Any:
    """What an environment returned, as a tuple of as many values as `expected` names."""
    count = expected.count(",") + 1
    if not isinstance(result, tuple | list) or len(result) != count:
        given = f"{len(result)} values" if isinstance(result, tuple | list) else shown(result)
        raise SlotError(slot, f"{call} returned {given} instead of {expected}", f"Return these {count}.")
    return result


def check_info(slot: int | None, info: Any) -> None:
    """Refuse an `info` that is no dictionary."""
    if not isinstance(info, Mapping):
        raise SlotError(slot, f"info {shown(info)} that is not a dictionary", "Return {} if there is nothing to say.")


def reported_metrics(slot: int | None, info: Mapping[str, Any]) -> dict[str, Any]:
    """The episode metrics in `info`, whose values are not checked."""
    try:
        return metrics_of(info)
    except ValueError as error:
        raise SlotError(slot, str(error), "Report a dictionary such as {'goal_rate': 1.0}.") from error


def numbers(slot: int | None, metrics: Mapping[str, Any]) -> dict[str, float]:
    """Metrics as floats."""
    return {name: as_number(slot, f"episode metric {name!r}:", value) for name, value in metrics.items()}


def as_number(slot: int | None, what: str, value: Any) -> float:
    """One number as a float, also if it is the only one of an array."""
    if type(value) is float:
        return value
    number = value.item() if isinstance(value, np.ndarray | np.generic) and value.size == 1 else value
    try:
        if isinstance(number, str | bytes | bytearray):
            raise TypeError("text is no number")
        return float(number)
    except OverflowError as error:
        raise SlotError(slot, f"{what} {shown(value)} that is too large for a float") from error
    except Exception as error:
        raise SlotError(slot, f"{what} {shown(value)} that is not a number") from error


def as_flag(slot: int | None, what: str, value: Any) -> bool:
    """True or False; numbers count as such."""
    if value is True or value is False:
        return value
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf":
        raise SlotError(slot, f"{what} {shown(value)} that is not True or False")
    return bool(array.item())
