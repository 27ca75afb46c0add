"""The page of a folder whose runs are still in training: written again whenever one of them has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from steadyrl.reports.page.page import check_episodes, write_report
from steadyrl.runs import calibration
from steadyrl.runs import frontier as frontier_runs
from steadyrl.training.run_files import CHECKPOINT, CONFIG, ERROR, EVALUATIONS, METRICS

WATCHED = (CONFIG, METRICS, EVALUATIONS, CHECKPOINT, ERROR, "film.gif", "film.webp", "film.mp4")
Signature = frozenset[tuple[str, int, int]]


def signature(root: Path) -> Signature:
    """What changes when a page would: path, size and time of each file that it is made of."""
    folders = [path.parent for path in root.rglob(CONFIG)]
    paths = [folder / name for folder in folders for name in WATCHED]
    paths += [root / frontier_runs.FILE, root / calibration.FILE]
    found = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:  # Not there, or just being replaced.
            continue
        found.append((str(path), status.st_size, status.st_mtime_ns))
    return frozenset(found)


def watch(
    folder: Path,
    to: Path | None,
    episodes: int,
    envs: Sequence[str],
    seconds: int,
    written: Callable[[Path], None] = lambda page: None,
    wait: Callable[[float], None] = time.sleep,
    films: bool = True,
    failed: Callable[[str], None] = lambda reason: None,
) -> None:
    """Write the page, and again after each change, until Ctrl-C; then for the last time, without loading itself again.

    A folder without runs may get some, and a file that is being written may look damaged: what cannot be shown now is
    tried again after the next change.

    Args:
        folder: As in `write_report`, like `to`, `episodes` and `envs`.
        to: The file to write.
        episodes: Number of evaluation episodes.
        envs: Environments that may be created.
        seconds: How often to look, and how often the page loads itself again.
        written: Called with the page each time.
        wait: Waits that many seconds.
        films: Whether to make films, as in `write_report`.
        failed: Called with the reason each time the page cannot be written.
    """
    check_episodes(episodes)
    write = partial(write_report, folder, to, episodes=episodes, envs=envs, films=films)
    before: Signature | None = None
    try:
        while True:
            now = signature(Path(folder))
            if now != before:
                try:
                    written(write(refresh=seconds))
                except (ValueError, OSError) as error:
                    failed(str(error))
                before = now
            wait(seconds)
    except KeyboardInterrupt:
        with suppress(ValueError, OSError):
            write()
        raise
