"""Reads the recorded curves of runs, as arrays with a leading axis of seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steadyrl.reports.figures.curves import Curves, Recorded
from steadyrl.reports.records import validated_records
from steadyrl.training.run_files import EVALUATIONS, METRICS

Run = list[dict[str, float]]
"""The complete records of a run."""

MAX_POINTS = 200
"""Maximum number of points of a curve over timesteps."""
UPDATE_METRICS = {
    "policy_loss": "Policy loss",
    "value_loss": "Value loss",
    "explained_variance": "Explained variance of the value function",
    "entropy": "Entropy of the policy",
    "approx_kl": "Approximate KL divergence",
    "clip_fraction": "Clip fraction",
    "gradient_norm": "Gradient norm",
    "risk_weight_mean": "Mean of the risk weights",
    "risk_weight_std": "Standard deviation of the risk weights",
    "risk_credit_std": "Size of the risk credit of a step",
    "risk_critic_loss": "Loss of the risk critic",
    "critic_loss": "Critic loss",
    "mean_q": "Mean action value",
}
"""Metrics of the updates and their titles. A record without an update, such as before learning starts, has none."""
_ALWAYS = ("return", "discounted_return", "length", "greedy_return")
"""Metrics that every seed has if one has them."""
_FINITE = (*_ALWAYS, "gini_deviation", "variance", "undiscounted_gini_deviation", "undiscounted_variance")
"""Metrics without which a run is left out; others may be undefined."""


def read_recorded(folders: list[Path], over: str = "episodes") -> Recorded:
    """Read the training and evaluation curves of runs that differ in their seeds, over "episodes" or "timesteps"."""
    notes: list[str] = []
    training, evaluations = (read_curves(folders, file, over, notes) for file in (METRICS, EVALUATIONS))
    return Recorded(training, evaluations, tuple(notes))


def readable_folders(folders: Sequence[Path], over: str = "episodes") -> tuple[list[Path], tuple[str, ...]]:
    """The folders of runs whose curves can be compared with each other, and a sentence for each of the others.

    Runs without evaluations are comparable if no run has any.
    """
    notes: list[str] = []
    kept = [*_readable(folders, METRICS, over, notes)]
    if any((folder / EVALUATIONS).exists() for folder in kept):
        kept = [*_readable(kept, EVALUATIONS, over, notes)]
    return kept, tuple(notes)


def read_curves(folders: Sequence[Path], file: str, over: str, notes: list[str]) -> Curves:
    """Read the curves in `file` of each folder: metric -> [seeds, records]; empty if there are none.

    A run whose file is damaged is left out, with a sentence in `notes`.
    """
    runs = list(_readable(folders, file, over, notes).values())
    if not runs:
        return {}
    names = [name for name in runs[0][0] if all(name in record for run in runs for record in run)]
    curves = [{name: np.array([record[name] for record in run]) for name in names} for run in runs]
    if over == "timesteps":
        # Seeds have records at different timesteps, so interpolate all of them at the same ones.
        steps = [curve["timesteps"] for curve in curves]
        first, last = max(x[0] for x in steps), min(x[-1] for x in steps)
        grid = np.linspace(min(first, last), last, min(max(map(len, steps)), MAX_POINTS))
        curves = [{name: np.interp(grid, curve["timesteps"], curve[name]) for name in names} for curve in curves]
    return {name: np.array([curve[name] for curve in curves]) for name in names}


def _readable(folders: Sequence[Path], file: str, over: str, notes: list[str]) -> dict[Path, Run]:
    """The runs that can be compared with each other."""
    runs: dict[Path, Run] = {}
    for folder in folders:
        try:
            runs[folder] = _complete_records(folder / file, over)
        except ValueError as error:
            notes.append(f"{folder} is left out: {error}")
    recorded = {name for run in runs.values() for name in run[0]}
    counts = Counter(map(len, runs.values()))
    usual_count = max(counts, key=lambda count: (counts[count], count), default=0)
    for folder, run in list(runs.items()):
        missing = [name for name in _ALWAYS if name in recorded and any(name not in record for record in run)]
        if missing:
            notes.append(f"{folder} is left out: {file} has no {missing[0]}, unlike that of other seeds.")
        elif over == "episodes" and len(run) != usual_count:
            notes.append(
                f"{folder} is left out: {file} has {len(run)} records, and those of other seeds {usual_count}."
            )
        else:
            continue
        del runs[folder]
    return runs


def _complete_records(path: Path, over: str) -> Run:
    """The records of a file that have all metrics; an error if it is damaged.

    One of a single episode, at the end of a budget, has no measures of dispersion.
    """
    records, not_finite = validated_records(path)
    if not records:
        raise ValueError(f"nothing is recorded in {path.name}.")
    counts = Counter(name for record in records for name in record)
    usual = {name for name, count in counts.items() if 2 * count >= len(records)} - UPDATE_METRICS.keys()
    for name in ("return", over):
        if name not in usual:
            raise ValueError(f"{path.name} has no {name}.")
    for name in _FINITE:
        if name in not_finite:
            raise ValueError(f"{name} is not a finite number in a record of {path.name}.")
    complete = [record for record in records if usual <= record.keys()]
    if not complete:
        raise ValueError(f"the records of {path.name} have different metrics.")
    return complete
