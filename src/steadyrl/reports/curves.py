"""Reads the recorded curves of runs, as arrays with a leading axis of seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from steadyrl.reports.figures.curves import Curves, Recorded
from steadyrl.training.run_folder import EVALUATIONS, METRICS, read_metrics

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
    "critic_loss": "Critic loss",
    "mean_q": "Mean action value",
}
"""Metrics of the updates and their titles. A record without an update, such as before learning starts, has none."""


def read_recorded(folders: list[Path], over: str = "episodes") -> Recorded:
    """Read the training and evaluation curves of runs that differ in their seeds, over "episodes" or "timesteps"."""
    return Recorded(read_curves(folders, METRICS, over), read_curves(folders, EVALUATIONS, over))


def read_curves(folders: list[Path], file: str, over: str) -> Curves:
    """Read the curves in `file` of each folder: metric -> [seeds, records]."""
    runs = [read_metrics(folder, file) for folder in folders]
    # Skip incomplete records: one of a single episode, at the end of a budget, has no measures of dispersion.
    runs = [[record for record in run if run[0].keys() - UPDATE_METRICS.keys() <= record.keys()] for run in runs]
    names = [name for name in runs[0][0] if all(name in record for run in runs for record in run)]
    curves = [{name: np.array([record[name] for record in run]) for name in names} for run in runs]
    if over == "timesteps":
        # Seeds have records at different timesteps, so interpolate all of them at the same ones.
        steps = [curve["timesteps"] for curve in curves]
        first, last = max(x[0] for x in steps), min(x[-1] for x in steps)
        grid = np.linspace(min(first, last), last, min(max(map(len, steps)), MAX_POINTS))
        curves = [{name: np.interp(grid, curve["timesteps"], curve[name]) for name in names} for curve in curves]
    return {name: np.array([curve[name] for curve in curves]) for name in names}
