"""`steadyrl.film`: films of the worst, median and best of many episodes."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
from PIL import Image

from steadyrl.agents.agent import Agent
from steadyrl.envs.resolve import EnvLike
from steadyrl.evaluation.evaluate import check, check_spaces
from steadyrl.evaluation.film.camera import Recording, check_replay, record
from steadyrl.evaluation.film.drawing import draw_frame, scale_to, signed, style_of
from steadyrl.evaluation.film.files import check_film_file, encoded, write_film
from steadyrl.evaluation.film.rendering_env import rendering_env
from steadyrl.evaluation.film.selection import Selected, Wanted, Which, parse_which, select
from steadyrl.evaluation.play import Script, play_policy
from steadyrl.evaluation.progress import progress_bar

LAYOUTS = ("side by side", "one by one")
MAX_BYTES = 1_000_000
"""Of GIF and WebP files, unless another limit is given."""
_HOLD, _FRESH = 1.5, 0.5
"""Seconds: for which the end of an episode, and noise, are shown."""
_USUAL_FPS = 30.0
"""Of environments that do not say."""


class Pace(NamedTuple):
    """How steps become pictures."""

    stride: int
    """Steps from one picture to the next."""
    seconds: float
    """For which a picture is shown."""
    speed: float
    """1 is that of the environment."""


@dataclass(frozen=True)
class Film:
    """Recorded episodes. `save` writes a file; notebooks show the film itself."""

    scenes: tuple[tuple[Recording, ...], ...]
    """One after the other, and the recordings of each side by side."""
    pace: Pace

    @property
    def recordings(self) -> list[Recording]:
        """All of them."""
        return [recording for scene in self.scenes for recording in scene]

    def frames(self) -> Iterator[tuple[Image.Image, float]]:
        """The pictures, each with the seconds for which it is shown."""
        stride, seconds, speed = self.pace
        fresh = max(stride, round(_FRESH / seconds * stride))
        style = style_of(self.recordings, fresh, f"{speed:g}x speed" if speed != 1 else "")
        for scene in self.scenes:
            longest = max(recording.length for recording in scene)
            for step in range(0, longest, stride):
                yield draw_frame(scene, step, style), seconds
            yield draw_frame(scene, longest, style), _HOLD

    def save(self, path: str | Path, max_bytes: int | None = MAX_BYTES) -> Path:
        """Write a .gif, .webp or .mp4; the first two smaller than `max_bytes`, if need be with fewer pictures."""
        return write_film(check_film_file(path), self.frames, 1 / self.pace.seconds, max_bytes)

    def __str__(self) -> str:
        """A line for each episode."""
        return "\n".join(map(_line, self.recordings))

    def _repr_html_(self) -> str:
        content = base64.b64encode(encoded(".gif", self.frames, MAX_BYTES)).decode()
        return f'<img alt="film of {len(self.recordings)} episodes" src="data:image/gif;base64,{content}">'


def film(
    policy: Any,
    env: EnvLike,
    out: str | Path | None = None,
    *,
    episodes: int = 200,
    which: Which = ("worst", "median", "best"),
    layout: str | None = None,
    deterministic: bool = False,
    seed: int = 0,
    width: int | None = None,
    fps: float = 15,
    seconds: float = 12,
    max_bytes: int | None = MAX_BYTES,
) -> Film:
    """Play many episodes, choose some by the rank of their return, and film exact replays of them.

    The episodes are those that `evaluate` plays with the same seed, except for agents trained in EnvPool: those are
    filmed in Gymnasium's simulator. Pictures show the return so far, the rank of the episode, and the noise in
    rewards where the environment reports it as `info["reward_noise"]`. An error is raised if a replay has another
    return.

    Example:
        >>> steadyrl.film(agent, "steadyrl/GuardedMaze-v0", "worst.gif", which="worst:5")
        >>> steadyrl.film({"REINFORCE": one, "MG": other}, env, "both.mp4", which=("worst", "median"))

    Args:
        policy: What `evaluate` takes; or a mapping from names to several of them, which are shown side by side.
        env: A Gymnasium id, an environment, or a function that makes one, with a render mode "rgb_array".
        out: The file to write: .gif, .webp, or, with steadyrl[film] installed, .mp4. None for no file.
        episodes: How many to play and rank.
        which: "worst", "median", "best", "worst:5", "best:5", the number of an episode, or several of these.
        layout: "side by side" or "one by one"; by default the first for three episodes or fewer. The episodes of
            several policies are always shown one by one, and the policies side by side.
        deterministic: Whether an agent or `predict` takes its most likely action.
        seed: Of the episodes, as in `evaluate`.
        width: Of the picture of an episode, in pixels; 400 for one, else 240. Captions need 200.
        fps: Pictures a second, at most; fewer if the environment has fewer steps a second.
        seconds: Longer episodes are shown faster, so that they take at most so long.
        max_bytes: The largest file to write as .gif or .webp.
    """
    label = policy.name if isinstance(policy, Agent) else ""
    policies = dict(policy) if isinstance(policy, Mapping) else {label: policy}
    wanted = _checked(policies, env, episodes, which, layout, seed, width, fps, seconds)
    file = None if out is None else check_film_file(out).absolute()  # Environments may change the folder.
    rendering = rendering_env(env)
    try:
        takes = [
            _choose(label, one, rendering, episodes, seed, deterministic, wanted) for label, one in policies.items()
        ]
        scenes = _arranged(takes, layout)
        pace = _pace(rendering, max(len(take.script.actions) for scene in scenes for take in scene), fps, seconds)
        made = _record(rendering, scenes, pace, width)
    finally:
        if rendering is not env:
            rendering.close()
    if file is not None:
        made.save(file, max_bytes)
    return made


class _Take(NamedTuple):
    """An episode that is to be recorded."""

    label: str
    selected: Selected
    episodes: int
    script: Script
    episode_return: float


def _checked(
    policies: Mapping[str, Any],
    env: EnvLike,
    episodes: int,
    which: Which,
    layout: str | None,
    seed: int,
    width: int | None,
    fps: float,
    seconds: float,
) -> list[Wanted]:
    """What is to be chosen; everything that is wrong is reported before anything is played."""
    if not policies:
        raise ValueError("policy is an empty mapping: name at least one policy.")
    for policy in policies.values():
        check(policy, env, episodes, seed)
    if layout not in (None, *LAYOUTS):
        raise ValueError(f"layout={layout!r}: use 'side by side' or 'one by one'.")
    if width is not None and not 16 <= width <= 4000:
        raise ValueError(f"width={width}: a number of pixels from 16 to 4000 is needed.")
    for name, value in (("fps", fps), ("seconds", seconds)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name}={value}: a number above 0 is needed.")
    return parse_which(which, episodes)


def _choose(
    label: str,
    policy: Any,
    env: gym.Env[Any, Any],
    episodes: int,
    seed: int,
    deterministic: bool,
    wanted: list[Wanted],
) -> list[_Take]:
    """Play the episodes of one policy, and choose from them."""
    check_spaces(policy, env)
    played = play_policy(policy, env, episodes, seed, deterministic, gamma=1.0, keep_scripts=True)
    return [
        _Take(label, one, episodes, played.scripts[one.episode], float(played.returns[one.episode]))
        for one in select(wanted, played.returns)
    ]


def _arranged(takes: list[list[_Take]], layout: str | None) -> list[tuple[_Take, ...]]:
    """Scenes: policies side by side; of a single policy, its episodes as the layout says."""
    if len(takes) > 1:
        return list(zip(*takes, strict=True))
    side_by_side = layout == LAYOUTS[0] or (layout is None and len(takes[0]) <= 3)
    return [tuple(takes[0])] if side_by_side else [(take,) for take in takes[0]]


def _pace(env: gym.Env[Any, Any], longest: int, fps: float, seconds: float) -> Pace:
    """As fast as the environment, or faster if its longest episode would take more than so many seconds."""
    given = (env.metadata or {}).get("render_fps")
    steps_a_second = float(given) if isinstance(given, int | float) and given > 0 else _USUAL_FPS
    speed = max(1.0, float(math.ceil(longest / steps_a_second / seconds)))
    stride = max(1, math.ceil(steps_a_second * speed / fps))
    return Pace(stride, stride / (steps_a_second * speed), speed)


def _record(env: gym.Env[Any, Any], scenes: list[tuple[_Take, ...]], pace: Pace, width: int | None) -> Film:
    columns = max(map(len, scenes))
    scale = partial(scale_to, width or (400 if columns == 1 else 240))
    pictures = sum(2 + len(take.script.actions) // pace.stride for scene in scenes for take in scene)
    with progress_bar(pictures, "rendering") as advance:

        def recorded(take: _Take) -> Recording:
            recording, replayed = record(env, take.script, pace.stride, scale, advance)
            check_replay(env, take.selected.episode, take.episode_return, replayed)
            return recording._replace(label=take.label, selected=take.selected, episodes=take.episodes)

        return Film(tuple(tuple(recorded(take) for take in scene) for scene in scenes), pace)


def _line(recording: Recording) -> str:
    selected = recording.selected
    name = f" ({selected.name})" if selected.name else ""
    noise = ""
    if recording.noise:
        steps = list(recording.noise)
        at = f"step {steps[0]}" if len(steps) == 1 else f"{len(steps)} steps, first {steps[0]}"
        noise = f", noise at {at}"
    label = f"{recording.label}: " if recording.label else ""
    return (
        f"{label}rank {selected.rank:,} of {recording.episodes:,}{name}, episode {selected.episode}: "
        f"return {signed(recording.episode_return, plus=False)}, {recording.length} steps{noise}"
    )
