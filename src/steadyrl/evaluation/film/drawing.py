"""The pictures of a film: episodes beside each other, each with captions and a curve of its return so far."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from steadyrl.evaluation.film.camera import Recording

MIN_PANEL, GAP = 200, 8
"""Pixels: narrower panels would cut their captions; the margin around panels."""
_HEADER, _LINE, _CURVE = 40, 18, 40
PAPER, INK, MUTED, RULE = (255, 255, 255), (28, 31, 36), (96, 102, 112), (222, 225, 230)
STRUCK, STRUCK_LIGHT = (200, 30, 30), (250, 205, 200)


class Style(NamedTuple):
    """What all pictures of a film have in common."""

    low: float
    """The lowest return of all curves."""
    high: float
    """The highest return of all curves."""
    reports_noise: bool
    """Whether there is a line about noise."""
    fresh_steps: int
    """For how many steps noise is shown as new."""
    note: str
    """At the top right, such as "4x speed"."""


def scale_to(width: int, picture: Image.Image) -> Image.Image:
    """Smaller to this width; or larger by a whole factor, so that pixels stay square, at most to this width."""
    if picture.width > width:
        return picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
    factor = width // picture.width
    return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)


def draw_frame(recordings: Sequence[Recording], step: int, style: Style) -> Image.Image:
    """All recordings after so many steps, side by side; those that ended before stay at their end."""
    panels = [_panel(recording, step, max(one.length for one in recordings), style) for recording in recordings]
    width = sum(panel.width for panel in panels) + GAP * (len(panels) + 1)
    height = max(panel.height for panel in panels) + 2 * GAP
    frame = Image.new("RGB", (width + width % 2, height + height % 2), PAPER)  # Even: videos need it.
    left = GAP
    for panel in panels:
        frame.paste(panel, (left, GAP))
        left += panel.width + GAP
    return frame


def _panel(recording: Recording, step: int, longest: int, style: Style) -> Image.Image:
    step = min(step, recording.length)
    index = bisect_right(recording.steps, step) - 1
    picture = recording.picture(index)
    width = max(picture.width, MIN_PANEL)
    footer = _HEADER + picture.height + 6
    height = footer + _LINE * (1 + style.reports_noise) + _CURVE
    panel = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(panel)
    _header(draw, recording, width, style)
    left = (width - picture.width) // 2
    panel.paste(picture, (left, _HEADER))
    struck = _last_noise(recording, step)
    fresh = struck is not None and step - struck < style.fresh_steps
    frame = (left, _HEADER, left + picture.width - 1, _HEADER + picture.height - 1)
    draw.rectangle(frame, outline=STRUCK if fresh else RULE, width=3 if fresh else 1)
    _numbers(draw, recording, step, footer, width)
    if style.reports_noise:
        _noise_line(draw, recording, step, struck, footer + _LINE, style)
    top = footer + _LINE * (1 + style.reports_noise)
    _draw_curve(draw, recording, step, longest, (0, top + 4, width - 1, top + _CURVE - 2), style)
    return panel


def _header(draw: ImageDraw.ImageDraw, recording: Recording, width: int, style: Style) -> None:
    """The policy, and below it the rank of the episode."""
    selected = recording.selected
    rank = f"rank {selected.rank:,} of {recording.episodes:,}"
    label = _shortened(recording.label or f"episode {selected.episode}", width - (65 if style.note else 0))
    draw.text((0, 0), label, INK, _font(15, bold=True))
    draw.text((0, 20), f"{rank} ({selected.name})" if selected.name else f"{rank} (1 is the worst)", MUTED, _font(12))
    if style.note:
        draw.text((width - 1, 2), style.note, MUTED, _font(11), anchor="ra")


def _numbers(draw: ImageDraw.ImageDraw, recording: Recording, step: int, top: int, width: int) -> None:
    draw.text((0, top), f"return {signed(recording.returns[step], plus=False)}", INK, _font(13, bold=True))
    end = " (end)" if step == recording.length else ""
    draw.text((width - 1, top + 1), f"step {step}{end}", MUTED, _font(12), anchor="ra")


def _noise_line(
    draw: ImageDraw.ImageDraw, recording: Recording, step: int, struck: int | None, top: int, style: Style
) -> None:
    if struck is None:
        draw.text((0, top), "no noise so far", MUTED, _font(12))
        return
    text = f"noise {signed(recording.noise[struck])} at step {struck}"
    so_far = sum(at <= step for at in recording.noise)
    text += f" ({so_far}x)" if so_far > 1 else ""
    fresh = step - struck < style.fresh_steps
    draw.text((0, top), text, STRUCK if fresh else MUTED, _font(12, bold=fresh))


def _draw_curve(
    draw: ImageDraw.ImageDraw,
    recording: Recording,
    step: int,
    longest: int,
    box: tuple[int, int, int, int],
    style: Style,
) -> None:
    """The return so far, with a red line at each step where noise struck."""
    left, top, right, bottom = box
    draw.rectangle(box, outline=RULE)
    across = (right - left) / max(longest, 1)
    up = (bottom - top - 4) / max(style.high - style.low, 1e-9)
    for at in recording.noise:
        if at <= step:
            x = left + at * across
            draw.line([(x, top + 1), (x, bottom - 1)], STRUCK_LIGHT if len(recording.noise) > 12 else STRUCK)
    points = [
        (left + at * across, bottom - 2 - (float(value) - style.low) * up)
        for at, value in enumerate(recording.returns[: step + 1])
    ]
    if len(points) > 1:
        draw.line(points, recording.colour, 2)
    x, y = points[-1]
    draw.ellipse((x - 2, y - 2, x + 2, y + 2), recording.colour)


def style_of(recordings: Sequence[Recording], fresh_steps: int, note: str) -> Style:
    """From all recordings of a film."""
    returns = np.concatenate([recording.returns for recording in recordings])
    noisy = any(recording.noise for recording in recordings)
    return Style(float(returns.min()), float(returns.max()), noisy, fresh_steps, note)


def signed(number: Any, plus: bool = True) -> str:
    """With one digit, or none from 1,000 on, and a real minus sign."""
    number = float(number)
    text = f"{abs(number):,.0f}" if abs(number) >= 1000 else f"{abs(number):.1f}"
    sign = "\N{MINUS SIGN}" if number < 0 and float(text.replace(",", "")) else "+" if plus else ""
    return sign + text


def _last_noise(recording: Recording, step: int) -> int | None:
    """The last step up to this one where noise struck."""
    return max((at for at in recording.noise if at <= step), default=None)


def _shortened(text: str, width: int) -> str:
    font = _font(15, bold=True)
    while len(text) > 1 and font.getlength(text) > width:
        text = text[:-2].rstrip() + "\N{HORIZONTAL ELLIPSIS}"
    return text


@cache
def _font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which Matplotlib brings along: the fonts of machines differ."""
    import matplotlib

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)
