"""The runs of a method: a run, a folder with runs in it, or a pattern that names several."""

from __future__ import annotations

import glob
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from steadyrl.base.shown import shown
from steadyrl.cli.stored_agent import StoredAgent


def run_paths(text: str) -> list[Path]:
    """The run folders, or files of `Agent.save`, that are named: one or several."""
    path = Path(text)
    if path.exists() or not glob.has_magic(text):
        return _within(path)
    found = [run for match in sorted(glob.glob(text, recursive=True)) for run in _within(Path(match))]
    if not found:
        raise FileNotFoundError(f"{shown(text, 80, quotes=False)}: no run folder or file matches this pattern.")
    return list(dict.fromkeys(found))


def _within(path: Path) -> list[Path]:
    """The path itself if it is a run or a file, or is not there; else all finished runs below it."""
    from steadyrl.training.run_files import CHECKPOINT, CONFIG

    if not path.is_dir() or (path / CONFIG).is_file() or (path / CHECKPOINT).is_file():
        return [path]
    below = sorted(found.parent for found in path.rglob(CHECKPOINT))
    return below or [path]


def read_method(text: str, risk_aversion: float | None) -> list[StoredAgent]:
    """The agents of a method; a line on stderr if its runs differ in more than the seed, or not even in that."""
    runs = [StoredAgent.read(path).at(risk_aversion) for path in run_paths(text)]
    for stored in runs:
        stored.warn_if_unfinished()
    if note := _mixture(runs):
        print(f"{text}: {note}", file=sys.stderr)
    return runs


def _mixture(runs: Sequence[StoredAgent]) -> str:
    """What makes the runs no sample of one method; "" if nothing does."""
    agents = [stored.agent for stored in runs]
    names = sorted({agent.name for agent in agents})
    if len(names) > 1:
        return f"its runs are of different agents ({', '.join(names)}), and are compared as one method."
    settings = [vars(agent.settings) for agent in agents]
    differ = [name for name in settings[0] if any(one.get(name) != settings[0][name] for one in settings)]
    if differ:
        return f"its runs differ in {', '.join(differ)}, and are compared as one method."
    twice = [seed for seed, count in Counter(agent.seed for agent in agents).items() if count > 1]
    if twice:
        return f"several of its runs have seed {twice[0]}: intervals take them for independent runs."
    return ""
