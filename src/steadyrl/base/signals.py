"""Interrupts: Ctrl-C and SIGTERM stop a training between rounds, where nothing is lost.

Python's handler raises KeyboardInterrupt wherever the program happens to be. In a callback of the garbage collector,
such as JAX's, or in a destructor, that exception would be printed and forgotten. Within `interruptible` it is recorded
until somebody has caught it, and raised again if nobody could.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SECONDS_UNTIL_REPEATED = 0.02
_received: list[int] = []
"""Signals within `interruptible` whose KeyboardInterrupt has not arrived at its end."""
_active = False
"""Whether this is within `interruptible`."""
_handled = 0
"""How many times a handler of ours has run."""


class TrainingInterruptedError(Exception):
    """Training ended early; the message says why, and what was saved."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block, Ctrl-C and SIGTERM (sent by `kill` and batch systems) raise KeyboardInterrupt, reliably.

    One that is ignored where it is raised is raised again: soon if Python reports that, else by `check_interrupted` or
    at the end of the block, also in place of another error. Ctrl-C is left alone where it is ignored or has a handler
    of the user's. In threads other than the main one, where Python handles no signals, this does nothing.
    """
    global _active
    if _active or not _in_main_thread():
        yield
        return
    _active, report = True, sys.unraisablehook

    def report_or_repeat(unraisable: sys.UnraisableHookArgs) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _repeat_soon()
        else:
            report(unraisable)

    python_handles_ctrl_c = signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _interrupt)
    numbers = _SIGNALS if python_handles_ctrl_c else (signal.SIGTERM,)
    _received.clear()
    before = {number: signal.signal(number, _interrupt) for number in numbers}
    sys.unraisablehook = report_or_repeat
    try:
        yield
    except Exception as error:
        if _received:  # A library may have made it of the interrupt.
            raise KeyboardInterrupt(*error.args[:1]) from error
        raise
    else:
        check_interrupted()
    finally:
        _active = False
        _received.clear()
        sys.unraisablehook = report
        for number, handler in before.items():
            signal.signal(number, handler)


def check_interrupted() -> None:
    """Raise KeyboardInterrupt if there was a signal whose own was lost; see `interruptible`."""
    # While one is being handled, as when runs are saved, it is not lost.
    if _received and not isinstance(sys.exception(), KeyboardInterrupt):
        raise KeyboardInterrupt


def may_be_interrupt() -> bool:
    """Whether a KeyboardInterrupt may come from a signal; False if it is known that there was none."""
    return not _active or bool(_received)


@contextmanager
def defer_signals() -> Iterator[None]:
    """Delay signals until the block is done; a second signal is handled at once."""
    check_interrupted()
    handlers = {number: signal.getsignal(number) for number in _SIGNALS} if _in_main_thread() else {}
    deferrable: dict[int, Any] = {number: handler for number, handler in handlers.items() if callable(handler)}
    received: list[int] = []

    def record(number: int, frame: Any) -> None:
        _count_handled()
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


def _interrupt(number: int, frame: Any) -> None:
    _count_handled()
    _received.append(number)
    raise KeyboardInterrupt


def _count_handled() -> None:
    global _handled
    _handled += 1


def _repeat_soon() -> None:
    """Send the signal again, when the callback that ignored its KeyboardInterrupt has returned."""
    timer = threading.Timer(_SECONDS_UNTIL_REPEATED, _repeat)
    timer.daemon = True
    with suppress(RuntimeError):  # At the end of the program there are no more threads.
        timer.start()


def _repeat() -> None:
    """Send the signal until a handler has run; one that comes right before a system call does not end that."""
    before = _handled
    while _received and _handled == before:
        # To the main thread itself: it may be waiting, and another thread's signal would not wake it.
        signal.pthread_kill(threading.main_thread().ident or 0, _received[0])
        time.sleep(_SECONDS_UNTIL_REPEATED)


def _in_main_thread() -> bool:
    """Python runs signal handlers in the main thread only."""
    return threading.current_thread() is threading.main_thread()
