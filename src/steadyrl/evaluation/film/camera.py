"""Exact replays of episodes, with pictures."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from PIL import Image

from steadyrl.envs.reward_noise import noise_of
from steadyrl.evaluation.film.rendering_env import picture_of
from steadyrl.evaluation.film.selection import Selected
from steadyrl.evaluation.play import MAX_STEPS, Script
from steadyrl.rollouts.collector import Limits, iterate_steps
from steadyrl.rollouts.simulators.single import SingleEnvSimulator

CURVE = "#265ca8"
"""The colour of the curve of a policy that is no agent."""


class Recording(NamedTuple):
    """An episode with pictures of some of its steps."""

    label: str
    """The name of the policy; may be empty."""
    selected: Selected
    """Which episode it is."""
    episodes: int
    """The number of episodes it was chosen from."""
    returns: np.ndarray
    """[T + 1]: the return before the first step, which is 0, and after each step."""
    noise: dict[int, float]
    """Step, from 1 on -> the noise in its reward."""
    steps: tuple[int, ...]
    """The steps after which there is a picture; the first is 0, before the first step, and the last is T."""
    pictures: tuple[bytes, ...]
    """Compressed; see `picture`."""
    size: tuple[int, int]
    """Width and height of the pictures."""
    colour: str = CURVE
    """Of the curve of its return, as #rrggbb."""

    @property
    def episode_return(self) -> float:
        """The return of the whole episode."""
        return float(self.returns[-1])

    @property
    def length(self) -> int:
        """The number of steps of the episode."""
        return len(self.returns) - 1

    def picture(self, index: int) -> Image.Image:
        """Number `index` of the pictures."""
        return Image.frombytes("RGB", self.size, zlib.decompress(self.pictures[index]))


def record(
    env: gym.Env[Any, Any],
    script: Script,
    stride: int,
    scale: Callable[[Image.Image], Image.Image],
    advance: Callable[[int], None],
) -> tuple[Recording, float]:
    """Play the script, and take a picture of every `stride`-th step; an error if the episode is another one now.

    Returns the recording, without what it was chosen for, and its return.
    """
    camera = _Camera(env, script, stride, scale, advance)
    limits = Limits(str(env), MAX_STEPS)
    steps = iterate_steps(SingleEnvSimulator(camera), lambda: camera, None, [script.seed], limits)
    rewards = np.array([step.result.rewards[0] for step in steps])
    recording = Recording(
        label="",
        selected=Selected(0, 0, ""),
        episodes=0,
        returns=np.concatenate([[0.0], rewards.cumsum()]),
        noise=camera.noise,
        steps=tuple(camera.steps),
        pictures=tuple(camera.pictures),
        size=camera.size,
    )
    return recording, float(rewards.sum())


def check_replay(env: gym.Env[Any, Any], episode: int, first: float, replayed: float) -> None:
    """An error if a replay has another return than the episode had at first."""
    # The rounding of a sum depends on how it is added up; another episode differs by more.
    if not math.isclose(first, replayed, rel_tol=1e-9, abs_tol=1e-9):
        raise ValueError(
            f"{env}: episode {episode} had return {first:.6g}, and {replayed:.6g} when it was played again from the "
            "same seed with the same actions, so the film would show another episode. Draw all random numbers of the "
            "environment from self.np_random, and start from the same state in each reset."
        )


class _Camera(gym.Wrapper[Any, Any, Any, Any]):
    """The environment that is filmed, and the policy that plays the script in it."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        script: Script,
        stride: int,
        scale: Callable[[Image.Image], Image.Image],
        advance: Callable[[int], None],
    ) -> None:
        super().__init__(env)
        self._script, self._stride, self._scale, self._advance = script, stride, scale, advance
        self._step = 0
        self.steps: list[int] = []
        self.pictures: list[bytes] = []
        self.size = (0, 0)
        self.noise: dict[int, float] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        result = self.env.reset(seed=seed, options=self._script.options)
        self._take_picture()
        return result

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        self._step += 1
        _, _, terminated, truncated, info = result
        noise = noise_of(info)
        if noise is not None:
            self.noise[self._step] = noise
        if terminated or truncated or self._step % self._stride == 0:
            self._take_picture()
        return result

    def features(self, observations: Any) -> Any:
        """Unchanged; see `Acts`."""
        return observations

    def act(self, features: Any, noise: Any, masks: Any = None) -> Any:
        """[action]: that of the script."""
        if self._step == len(self._script.actions):
            raise ValueError(
                f"{self.env}: an episode of {self._step} steps did not end there when it was played again from the "
                "same seed with the same actions. Draw all random numbers of the environment from self.np_random."
            )
        return [self._script.actions[self._step]]

    def to_space(self, actions: Any) -> Any:
        """Unchanged; see `Acts`."""
        return actions

    def _take_picture(self) -> None:
        picture = self._scale(Image.fromarray(np.ascontiguousarray(picture_of(self.env))))
        self.size = picture.size
        self.steps.append(self._step)
        self.pictures.append(zlib.compress(picture.tobytes(), 1))
        self._advance(1)
