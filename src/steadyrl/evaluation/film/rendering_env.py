"""Environments that render into arrays, without a screen."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np

from steadyrl.envs.description import describe_env
from steadyrl.envs.resolve import EnvLike, resolve

MODE = "rgb_array"
_INSTALL_GL = "Install EGL or OSMesa (Debian and Ubuntu: apt install libegl1, or libosmesa6)"
_TRY_BACKEND = "from mujoco.{0} import GLContext; context = GLContext(16, 16); context.make_current(); context.free()"
_TRY_SECONDS = 60


def rendering_env(env: EnvLike) -> gym.Env[Any, Any]:
    """`env` if it renders into arrays, or else the same environment made again so that it does; an error if it cannot.

    A picture is taken to be sure. What is made here and not returned is closed.
    """
    if not has_display():
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # Or pygame looks for a screen, and complains.
    made = resolve(env)
    if _is_mujoco(made):
        choose_mujoco_backend()
    rendering = made if made.render_mode == MODE else _made_again(made)
    if rendering is not made and made is not env:
        made.close()
    try:
        rendering.reset(seed=0)
        picture_of(rendering)
    except Exception:
        if rendering is not env:
            rendering.close()
        raise
    return rendering


def picture_of(env: gym.Env[Any, Any]) -> np.ndarray:
    """[height, width, 3]: what the environment renders now; an error in one line if that is no picture."""
    try:
        picture: Any = env.render()
    except Exception as error:
        hint = f" {_INSTALL_GL}, or set MUJOCO_GL to one that works." if _is_mujoco(env) else ""
        text = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{_name(env)} cannot be filmed: render() failed: {text.rstrip('.')}.{hint}") from error
    array = np.asarray(picture) if not isinstance(picture, list) else np.empty(0)
    if array.ndim != 3 or array.shape[-1] != 3 or array.dtype != np.uint8:
        what = "None" if picture is None else f"a {type(picture).__name__} of shape {array.shape}"
        raise ValueError(
            f"{_name(env)} cannot be filmed: render() returned {what}, not an array [height, width, 3] of uint8."
        )
    return array


def _made_again(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    modes = list((env.metadata or {}).get("render_modes") or [])
    if MODE not in modes:
        has = f"only {', '.join(map(str, modes))}" if modes else "none at all"
        raise ValueError(
            f"{_name(env)} cannot be filmed: of the render modes it has {has}, and {MODE!r} is needed. "
            "Implement that mode in its render()."
        )
    described = describe_env(env)
    if described is None:
        raise ValueError(
            f"{_name(env)} does not render, and how to make it again is not known. "
            f"Pass it made with render_mode={MODE!r}."
        )
    return resolve(described["id"], **{**(described["options"] or {}), "render_mode": MODE})


def choose_mujoco_backend() -> None:
    """Set MUJOCO_GL to "egl" or "osmesa" if there is no display to draw with; an error in one line if neither works.

    Gymnasium reads it when the first picture is drawn, and would otherwise try to open a window.
    """
    if os.environ.get("MUJOCO_GL") or has_display():
        return
    for backend in ("egl", "osmesa"):
        if _works(backend):
            os.environ["MUJOCO_GL"] = backend
            return
    raise ImportError(f"MuJoCo cannot draw here: there is no display, and neither EGL nor OSMesa works. {_INSTALL_GL}.")


def has_display() -> bool:
    """Whether windows can be opened."""
    if sys.platform != "linux":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _works(backend: str) -> bool:
    """Tried in a process of its own: a failed attempt would keep this one from trying another."""
    command = [sys.executable, "-c", _TRY_BACKEND.format(backend)]
    try:
        return subprocess.run(command, capture_output=True, timeout=_TRY_SECONDS, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _is_mujoco(env: gym.Env[Any, Any]) -> bool:
    return any(cls.__module__.startswith("gymnasium.envs.mujoco") for cls in type(env.unwrapped).__mro__)


def _name(env: gym.Env[Any, Any]) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__
