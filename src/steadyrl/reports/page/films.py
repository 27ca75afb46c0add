"""Films in run folders, as parts of the page: `film.gif`, `film.webp` or `film.mp4`, and `film-worst.gif` and so on."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from steadyrl.reports.page.runs_found import FoundRun

MAX_FILM = 1_500_000
"""Bytes of a film that is part of the page; to larger ones there is a link."""
MAX_ALL = 1_800_000
"""Bytes of all films that are part of the page."""
_KINDS: dict[str, tuple[str, Callable[[bytes], bool]]] = {
    "mp4": ("video/mp4", lambda head: head[4:8] == b"ftyp"),
    "webp": ("image/webp", lambda head: head[:4] == b"RIFF" and head[8:12] == b"WEBP"),
    "gif": ("image/gif", lambda head: head[:6] in (b"GIF87a", b"GIF89a")),
}
"""Suffix -> media type, and whether the first bytes of a file are those of one."""


class Film(NamedTuple):
    """A film in a run folder."""

    path: Path
    mime: str
    size: int


class FilmReel:
    """The films of a page, as long as there is room for them."""

    def __init__(self, page: Path) -> None:
        self._page, self._room = page, MAX_ALL
        self.linked: list[str] = []
        """The runs whose films are not part of the page."""

    def element(self, run: FoundRun, title: str, episode: str = "") -> str:
        """The film of a run, or of one of `EXTREMES`, as HTML; empty if there is none."""
        film = find_film(run.folder, f"film-{episode}" if episode else "film")
        if film is None:
            return ""
        label = html.escape(f"Film: {title}")
        if film.size > min(MAX_FILM, self._room):
            self.linked.append(run.name)
            return f'<p class="film"><a href="{self._address(film.path)}">{label}, {film.size / 1e6:.1f} MB</a></p>'
        self._room -= film.size
        return film_element(film.path.read_bytes(), film.mime, label)

    def _address(self, path: Path) -> str:
        """Relative to the page, if it is below it."""
        folder = self._page.resolve().parent
        path = path.resolve()
        return html.escape(quote(path.relative_to(folder).as_posix()) if path.is_relative_to(folder) else path.as_uri())


def film_element(content: bytes, mime: str, label: str) -> str:
    """A film that is part of the page; `label` is HTML."""
    source = f"data:{mime};base64,{base64.b64encode(content).decode()}"
    if mime.startswith("video"):
        return f'<video class="film" controls loop muted playsinline aria-label="{label}" src="{source}"></video>'
    return f'<img class="film" alt="{label}" src="{source}">'


def find_film(folder: Path, stem: str) -> Film | None:
    """A file of a known kind, by its first bytes; links are not followed."""
    for suffix, (mime, is_film) in _KINDS.items():
        path = folder / f"{stem}.{suffix}"
        if path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            if is_film(file.read(12)):
                return Film(path, mime, path.stat().st_size)
    return None


def run_with_film(runs: Sequence[FoundRun]) -> FoundRun | None:
    """The first run with a film."""
    return next((run for run in runs if find_film(run.folder, "film") is not None), None)
