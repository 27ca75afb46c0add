"""Processes that this one starts, talks to through a pipe, and that end with it."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

GRACE_SECONDS = 5.0
"""How long a process whose parent has died may take to clean up."""
UNGUARDED = 97
"""Exit code of a process that started others while it was still importing the script of its parent."""


def spawn(target: Callable[..., None], *arguments: Any) -> tuple[SpawnProcess, Connection]:
    """A process that runs `target(pipe, *arguments)`, and this end of the pipe. Ctrl-C does not reach it."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        os._exit(UNGUARDED)  # A script that starts processes when it is imported; the parent says how to mend it.
    context = multiprocessing.get_context("spawn")  # A fork of a process that JAX runs in can hang.
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
    with _sigint_blocked():  # The child inherits this: its parent ends it.
        process.start()
    theirs.close()
    return process, ours


def exit_reason(exitcode: int | None) -> str:
    """Why a process ended that should not have, as the end of a sentence."""
    if exitcode is not None and exitcode < 0:
        return f"was killed ({signal.Signals(-exitcode).name}): is there enough memory?"
    return "ended: if this is a script, put the call under `if __name__ == '__main__':`."


def received(pipe: Connection, parent_ended: Callable[[], None]) -> queue.SimpleQueue[bytes]:
    """In a spawned process: what comes through the pipe, unpickled by whoever takes it.

    A thread receives it, so that a process that is busy notices too when its parent has ended.
    """
    messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def receive() -> None:
        while True:
            try:
                messages.put(pipe.recv_bytes())
            except (EOFError, OSError):
                parent_ended()
                return

    threading.Thread(target=receive, daemon=True).start()
    return messages


def end_at_once() -> None:
    """For `received`: end this process, whatever it is doing."""
    os._exit(1)


def end_after_cleanup() -> None:
    """For `received`: end this process as SIGTERM does, within `GRACE_SECONDS`."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(1)


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
