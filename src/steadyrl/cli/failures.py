"""How commands end that train: interrupted, or with runs that failed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steadyrl.runs.scheduler import Failure


@contextmanager
def explain_resuming() -> Iterator[None]:
    """Add to an interrupt what the same command will do."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("The same command keeps finished runs and resumes the others.") from None


@contextmanager
def paths_as_typed(path: Path, typed: Path) -> Iterator[None]:
    """Name a path in errors as the user did."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        error.args = tuple(
            text.replace(str(path), str(typed)) if isinstance(text, str) else text for text in error.args
        )
        raise


def exit_with_failures(failures: Sequence[Failure]) -> None:
    """Print which runs failed, and exit with status 1 if some did."""
    if failures:
        print(f"steadyrl: {len(failures)} failed; the same command tries them again:", file=sys.stderr)
        for failure in failures:
            print(f"  {failure}", file=sys.stderr)
        sys.exit(1)
