"""What runs recorded, as arrays with an axis of seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from steadyrl.figures.curves import Curves, Recorded
from steadyrl.runs import EVALUATIONS, METRICS, read_metrics

MOST_POINTS = 200
"""Of a curve over steps."""


def read_recorded(folders: list[Path], over: str = "episodes") -> Recorded:
    """What the runs of all seeds recorded, "episodes" or "timesteps" being what they have in common."""
    return Recorded(read_curves(folders, METRICS, over), read_curves(folders, EVALUATIONS, over))


def read_curves(folders: list[Path], file: str, over: str) -> Curves:
    """The same of one of the files in their folders."""
    runs = [read_metrics(folder, file) for folder in folders]
    # A record of a single episode, at the end of a budget, knows no spread: it is left out.
    runs = [[record for record in run if run[0].keys() <= record.keys()] for run in runs]
    names = [name for name in runs[0][0] if all(name in run[0] for run in runs)]
    curves = [{name: np.array([record[name] for record in run]) for name in names} for run in runs]
    if over == "timesteps":
        # Seeds play different numbers of episodes: each is read at the same steps, between its records.
        steps = [curve["timesteps"] for curve in curves]
        first, last = max(some[0] for some in steps), min(some[-1] for some in steps)
        at = np.linspace(min(first, last), last, min(max(map(len, steps)), MOST_POINTS))
        curves = [{name: np.interp(at, of["timesteps"], of[name]) for name in names} for of in curves]
    return {name: np.array([curve[name] for curve in curves]) for name in names}
