"""How training ends before its end: Ctrl-C and being asked to, at once or where nothing is lost, and errors."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class BrokenOffError(Exception):
    """Training ended early; the message says why, and what is left."""


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A signal waits until what is done within is done; a second one does not wait."""
    handlers = {number: signal.getsignal(number) for number in _SIGNALS} if _in_main_thread() else {}
    heeded: dict[int, Any] = {number: handler for number, handler in handlers.items() if callable(handler)}
    waiting: list[int] = []

    def note(number: int, frame: Any) -> None:
        if waiting:
            heeded[number](number, frame)
        waiting.append(number)

    for number in heeded:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in heeded.items():
            signal.signal(number, handler)
        if waiting:
            heeded[waiting[0]](waiting[0], None)


@contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """Within it, being asked to end (SIGTERM, as `kill` and batch systems send it) is what Ctrl-C is."""
    if not _in_main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _in_main_thread() -> bool:
    """Where alone Python heeds signals."""
    return threading.current_thread() is threading.main_thread()
