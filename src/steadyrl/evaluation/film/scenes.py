"""Films as objects: scenes of recorded episodes, at a pace."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
from PIL import Image, ImageColor

from steadyrl.evaluation.film.camera import CURVE, Recording, check_replay, record
from steadyrl.evaluation.film.drawing import INK, PAPER, STRUCK, draw_frame, scale_to, signed, style_of
from steadyrl.evaluation.film.files import Colour, check_film_file, encoded, write_film
from steadyrl.evaluation.film.selection import Selected
from steadyrl.evaluation.play import Script
from steadyrl.evaluation.progress import progress_bar

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
        return write_film(check_film_file(path), self.frames, 1 / self.pace.seconds, max_bytes, self._kept)

    def gif(self, max_bytes: int, comment: str = "") -> bytes:
        """The content of a .gif file, for short films: all pictures are in memory while it is made smaller."""
        frames = list(self.frames())
        return encoded(".gif", lambda: iter(frames), max_bytes, self._kept, comment)

    @property
    def _kept(self) -> list[Colour]:
        """The colours of text and lines."""
        curves = dict.fromkeys(recording.colour for recording in self.recordings)
        return [PAPER, INK, STRUCK, *(_rgb(colour) for colour in curves)]

    def __str__(self) -> str:
        """A line for each episode."""
        return "\n".join(map(_line, self.recordings))

    def _repr_html_(self) -> str:
        content = base64.b64encode(encoded(".gif", self.frames, MAX_BYTES, self._kept)).decode()
        return f'<img alt="film of {len(self.recordings)} episodes" src="data:image/gif;base64,{content}">'


class Take(NamedTuple):
    """An episode that is to be recorded."""

    label: str
    """The name of the policy, or what else stands above the pictures."""
    selected: Selected
    episodes: int
    """The number of episodes that it was chosen from."""
    script: Script
    episode_return: float
    colour: str = CURVE
    """Of the curve of its return."""


def record_scenes(
    env: gym.Env[Any, Any], scenes: Sequence[Sequence[Take]], fps: float, seconds: float, width: int | None
) -> Film:
    """Play all takes again in `env`, which renders into arrays; see `steadyrl.film` for the other arguments."""
    pace = _pace(env, max(len(take.script.actions) for scene in scenes for take in scene), fps, seconds)
    columns = max(map(len, scenes))
    scale = partial(scale_to, width or (400 if columns == 1 else 240))
    pictures = sum(2 + len(take.script.actions) // pace.stride for scene in scenes for take in scene)
    with progress_bar(pictures, "rendering") as advance:

        def recorded(take: Take) -> Recording:
            recording, replayed = record(env, take.script, pace.stride, scale, advance)
            check_replay(env, take.selected.episode, take.episode_return, replayed)
            return recording._replace(
                label=take.label, selected=take.selected, episodes=take.episodes, colour=take.colour
            )

        return Film(tuple(tuple(recorded(take) for take in scene) for scene in scenes), pace)


def _pace(env: gym.Env[Any, Any], longest: int, fps: float, seconds: float) -> Pace:
    """As fast as the environment, or faster if its longest episode would take more than so many seconds."""
    given = (env.metadata or {}).get("render_fps")
    steps_a_second = float(given) if isinstance(given, int | float) and given > 0 else _USUAL_FPS
    speed = max(1.0, float(math.ceil(longest / steps_a_second / seconds)))
    stride = max(1, math.ceil(steps_a_second * speed / fps))
    return Pace(stride, stride / (steps_a_second * speed), speed)


def _rgb(colour: str) -> Colour:
    red, green, blue, *_ = ImageColor.getrgb(colour)
    return red, green, blue


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
