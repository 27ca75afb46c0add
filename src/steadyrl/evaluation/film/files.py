"""Film files: GIF and WebP with Pillow, MP4 with the ffmpeg of imageio-ffmpeg."""

from __future__ import annotations

import importlib.util
import io
import itertools
import subprocess
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from steadyrl.base.files import check_writable, name_write_errors, write_atomic

Frames = Callable[[], Iterator[tuple[Image.Image, float]]]
"""Makes the pictures of a film anew, each with the seconds for which it is shown."""
Colour = tuple[int, int, int]
ENDINGS = (".gif", ".webp", ".mp4")
_PALETTE_FRAMES = 12


class _Effort(NamedTuple):
    """How a file is made smaller."""

    stride: int
    colours: int
    scale: float


_EFFORTS = (
    _Effort(1, 128, 1.0),
    _Effort(1, 48, 1.0),
    _Effort(2, 48, 1.0),
    _Effort(3, 32, 1.0),
    _Effort(4, 32, 0.75),
    _Effort(6, 24, 0.6),
    _Effort(10, 16, 0.5),
)


def check_film_file(path: str | Path) -> Path:
    """The file that a film is written to; an error if that is not possible."""
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file, such as {file / 'film.gif'}.")
    if file.suffix.lower() not in ENDINGS:
        raise ValueError(f"{path}: a film ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.")
    if file.suffix.lower() == ".mp4" and importlib.util.find_spec("imageio_ffmpeg") is None:
        raise ModuleNotFoundError(f"{path}: MP4 needs ffmpeg: pip install 'steadyrl[film]'. Or write a .gif.")
    check_writable(file, "film")
    return file


def write_film(path: Path, frames: Frames, fps: float, max_bytes: int | None, kept: Sequence[Colour] = ()) -> Path:
    """Write the film as what its name ends in; GIF and WebP with fewer pictures and colours if they would be larger."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".mp4":
        _write_mp4(path, frames(), fps)
    else:
        content = encoded(path.suffix.lower(), frames, max_bytes, kept)
        if max_bytes is not None and len(content) > max_bytes:
            warnings.warn(
                f"{path} has {len(content) / 1000:,.0f} kB, above the limit of {max_bytes / 1000:,.0f} kB: it cannot "
                "be made smaller. Film fewer or shorter episodes, or write an .mp4.",
                UserWarning,
                stacklevel=3,
            )
        write_atomic(path, content)
    return path


def encoded(
    ending: str, frames: Frames, max_bytes: int | None, kept: Sequence[Colour] = (), comment: str = ""
) -> bytes:
    """The content of a .gif or .webp. A .gif has the `kept` colours as they are, and a comment that is not shown."""
    content = b""
    for effort in _EFFORTS:
        smaller = list(_thinned(frames(), effort))
        content = _gif(smaller, effort.colours, kept, comment) if ending == ".gif" else _webp(smaller, effort.colours)
        if max_bytes is None or len(content) <= max_bytes:
            break
    return content


def _thinned(frames: Iterable[tuple[Image.Image, float]], effort: _Effort) -> Iterator[tuple[Image.Image, float]]:
    """Every `stride`-th picture, shown for the time of those left out too; the last one, shown longer, is kept."""
    shown, seconds = None, 0.0
    usual: float | None = None
    for index, (picture, duration) in enumerate(frames):
        usual = duration if usual is None else usual
        if shown is None or index % effort.stride == 0 or duration > usual:
            if shown is not None:
                yield _scaled(shown, effort.scale), seconds
            shown, seconds = picture, 0.0
        seconds += duration
    if shown is not None:
        yield _scaled(shown, effort.scale), seconds


def _scaled(picture: Image.Image, scale: float) -> Image.Image:
    if scale == 1:
        return picture
    return picture.resize((round(picture.width * scale), round(picture.height * scale)), Image.Resampling.LANCZOS)


def _gif(frames: list[tuple[Image.Image, float]], colours: int, kept: Sequence[Colour], comment: str) -> bytes:
    pictures = [picture for picture, _ in frames]
    palette = _palette(pictures, colours, kept)
    # Without dithering: its dots change from picture to picture, and every change costs bytes.
    indexed = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    more: dict[str, Any] = {"comment": comment.encode()} if comment else {}
    return _saved("GIF", indexed, frames, optimize=True, **more)  # Unchanged pixels become transparent.


def _palette(pictures: list[Image.Image], colours: int, kept: Sequence[Colour]) -> Image.Image:
    """A palette for all pictures, from some of them, and what is to be kept: thin lines would lose their colour."""
    some = [pictures[i] for i in np.unique(np.linspace(0, len(pictures) - 1, _PALETTE_FRAMES).astype(int))]
    width, height = max(one.width for one in some), sum(one.height for one in some)
    sheet, top = Image.new("RGB", (width, height)), 0
    for one in some:
        sheet.paste(one, (0, top))
        top += one.height
    found = sheet.quantize(colours - len(kept), method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    palette = Image.new("P", (1, 1))
    palette.putpalette([*itertools.chain(*kept), *(found.getpalette() or [])[: 3 * (colours - len(kept))]])
    return palette


def _webp(frames: list[tuple[Image.Image, float]], colours: int) -> bytes:
    return _saved("WEBP", [picture for picture, _ in frames], frames, quality=min(80, 40 + colours // 2), method=4)


def _saved(kind: str, pictures: list[Image.Image], frames: list[tuple[Image.Image, float]], **options: Any) -> bytes:
    durations = [max(20, round(1000 * seconds)) for _, seconds in frames]
    content = io.BytesIO()
    pictures[0].save(content, kind, save_all=True, append_images=pictures[1:], duration=durations, loop=0, **options)
    return content.getvalue()


def _write_mp4(path: Path, frames: Iterable[tuple[Image.Image, float]], fps: float) -> None:
    """As H.264, which browsers play.

    The writer of imageio-ffmpeg forks in a way that JAX warns of, so only its ffmpeg is used.
    """
    import imageio_ffmpeg

    partial, pictures = path.with_name(f".{path.stem}.partial.mp4"), iter(frames)
    first = next(pictures)
    command = [
        *(imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-loglevel", "error"),
        *("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "{}x{}".format(*first[0].size), "-r", f"{fps:.6f}", "-i", "-"),
        *("-c:v", "libx264", "-crf", "21", "-pix_fmt", "yuv420p", "-movflags", "+faststart", str(partial)),
    ]
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stderr is not None
            with suppress(BrokenPipeError):  # Its message says why it ended.
                for picture, seconds in itertools.chain([first], pictures):
                    process.stdin.write(picture.tobytes() * max(1, round(seconds * fps)))
                process.stdin.close()
            message = process.stderr.read().decode(errors="replace")
        if process.returncode:
            raise OSError(f"{path} could not be written: ffmpeg: {' '.join(message.split()) or process.returncode}.")
        with name_write_errors(path):
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
