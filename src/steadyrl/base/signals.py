"""Interrupts: Ctrl-C and SIGTERM stop a training between rounds, where nothing is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class TrainingInterruptedError(Exception):
    """Training ended early; the message says why, and what was saved."""


@contextmanager
def defer_signals() -> Iterator[None]:
    """Delay signals until the block is done; a second signal is handled at once."""
    handlers = {number: signal.getsignal(number) for number in _SIGNALS} if _in_main_thread() else {}
    deferrable: dict[int, Any] = {number: handler for number, handler in handlers.items() if callable(handler)}
    received: list[int] = []

    def record(number: int, frame: Any) -> None:
        if received:
            deferrable[number](number, frame)
        received.append(number)

    for number in deferrable:
        signal.signal(number, record)
    try:
        yield
    finally:
        for number, handler in deferrable.items():
            signal.signal(number, handler)
        if received:
            deferrable[received[0]](received[0], None)


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Within the block, SIGTERM (sent by `kill` and batch systems) raises KeyboardInterrupt, as Ctrl-C does."""
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
    """Python runs signal handlers in the main thread only."""
    return threading.current_thread() is threading.main_thread()
