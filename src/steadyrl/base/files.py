"""Files that are written whole or not at all, and folders that one process owns at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows has no flock: two processes in one folder are not detected there.
    fcntl = None

PARTIAL = ".partial"
"""Suffix of files that are still being written."""


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file so that readers find the old content or the new one, never a part of it."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent} to write to.")
    partial = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        with name_write_errors(path):
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def check_writable(file: Path, what: str) -> None:
    """An error if the file cannot be written; missing folders are no error. `what` is what it is for."""
    folder = next(parent for parent in file.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise NotADirectoryError(f"{file}: {folder} is not a folder. Name another file for the {what}.")
    if not os.access(file if file.exists() else folder, os.W_OK):
        raise PermissionError(f"{file} cannot be written: permission denied. Name another file for the {what}.")


def append_atomic(path: Path, text: str) -> None:
    """Append all of `text`; if that fails, for example on a full disk, leave the file as it was."""
    size = path.stat().st_size if path.exists() else 0
    with name_write_errors(path):
        try:
            with path.open("a") as file:
                file.write(text)
        except OSError:
            with suppress(OSError):
                os.truncate(path, size)
            raise


def synced_size(path: Path) -> int:
    """The size of a file after an fsync, so that it survives a crash of the machine; 0 if there is no such file."""
    if not path.exists():
        return 0
    with name_write_errors(path), path.open("rb") as file:
        os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size


@contextmanager
def name_write_errors(path: Path) -> Iterator[None]:
    """Turn an `OSError` raised within, such as a full disk, into one that names the file."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{path} could not be written: {error.strerror or error}.") from error


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create the folder if needed and keep other processes out; the lock ends with the process at the latest."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"{folder} cannot be created: {error.strerror}. Choose another --out.") from None
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(
                f"{folder}: another process is at work in it. Wait until it ends, or choose another --out."
            ) from None
        yield
    finally:
        os.close(descriptor)
