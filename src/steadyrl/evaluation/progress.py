"""The progress bar of evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress


@contextmanager
def progress_bar(total: int, what: str = "evaluating") -> Iterator[Callable[[int], None]]:
    """A bar on stderr, if that is a terminal and the work takes more than two seconds."""
    console = Console(stderr=True)
    progress = Progress(console=console, transient=True, disable=not console.is_interactive)
    task = progress.add_task(what, total=total)
    start = time.monotonic()

    def advance(count: int) -> None:
        progress.advance(task, count)
        if time.monotonic() - start > 2:
            progress.start()  # Does nothing from the second time on.

    try:
        yield advance
    finally:
        progress.stop()
