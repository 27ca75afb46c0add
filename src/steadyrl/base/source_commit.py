"""The commit of steadyrl's own source code, for the record of a run."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


@functools.cache
def source_commit(package: Path = _PACKAGE) -> str | None:
    """The commit that the package was checked out at, ending in "+changes" if files differ from it.

    None for an installed package, also where it lies within the repository of another project.
    """
    checkout = package.parents[1]
    if not (checkout / ".git").exists():
        return None
    commit = _git(checkout, "rev-parse", "HEAD")
    changed = _git(checkout, "status", "--porcelain", "--untracked-files=no", "--", str(package))
    return commit + "+changes" * bool(changed) if commit else None


def _git(folder: Path, *arguments: str) -> str | None:
    """What a git command prints, or None if it fails."""
    command = ["git", "--no-optional-locks", *arguments]  # Nothing is written: somebody may be committing.
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
