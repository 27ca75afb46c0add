"""Histograms of returns, as text and as a Matplotlib figure."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steadyrl.base.files import check_writable

if TYPE_CHECKING:
    from steadyrl.evaluation.risk_report import RiskReport

MAX_BARS = 10
WIDTH = 78


def text_histogram(returns: NDArray[np.float64]) -> str:
    """At most ten lines, one per bin: its returns, the number of episodes, and a bar."""
    labels, counts = _bins(returns)
    label_width, count_width = max(map(len, labels)), len(str(counts.max()))
    bar_width = WIDTH - label_width - count_width - 4
    lengths = np.ceil(counts * min(1.0, bar_width / counts.max())).astype(int)
    rows = zip(labels, counts, lengths, strict=True)
    return "\n".join(f"{label:>{label_width}}  {n:>{count_width}}  {'#' * bar}".rstrip() for label, n, bar in rows)


def _bins(R: NDArray[np.float64]) -> tuple[list[str], NDArray[np.int64]]:
    """The label of each bin, and the number of returns in it."""
    values, counts = np.unique(R, return_counts=True)
    # Few distinct values, as with a single reward at the end of an episode, get one bin each.
    if len(values) <= MAX_BARS and len(values) <= len(R) / 2:
        return _format_distinct(values), counts
    # Halved, because the difference of the largest floats would overflow.
    edges = 2 * np.linspace(R.min() / 2, R.max() / 2, MAX_BARS + 1)
    edges[-1] = R.max()
    if len(np.unique(edges)) < len(edges):  # The returns are too close for ten distinct bins.
        return [f"{R.min():.17g}"], np.array([len(R)])
    counts, _ = np.histogram(R, edges)
    limits = _format_distinct(edges)
    width = max(map(len, limits))
    return [f"{low:>{width}} to {high:>{width}}" for low, high in pairwise(limits)], counts


def _format_distinct(values: NDArray[np.float64]) -> list[str]:
    """The values with the fewest significant digits, at least three, that keep them distinct."""
    for digits in range(3, 17):
        texts = [f"{value + 0.0:.{digits}g}" for value in values]
        if len(set(texts)) == len(texts):
            break
    return [f"{value:.0f}" if 1e3 <= abs(value) < 1e6 and "e" in text else text
            for value, text in zip(values, texts, strict=True)]  # fmt: skip


def check_picture(path: str | Path) -> Path:
    """The file that a histogram is saved to, .png if `path` has no suffix; an error if it cannot be written there."""
    # Imported here: printing a report does not need Matplotlib.
    from matplotlib.figure import Figure

    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file for the picture.")
    file = Path(path) if Path(path).suffix else Path(path).with_suffix(".png")
    formats = sorted(Figure().canvas.get_supported_filetypes())
    if file.suffix[1:].lower() not in formats:
        raise ValueError(f"{file}: pictures cannot be written as {file.suffix}. Use one of: {', '.join(formats)}.")
    check_writable(file, "picture")
    return file


def draw_histogram(report: RiskReport, path: str | Path) -> Path:
    """Save a histogram of the returns, with the mean, a band of one Gini deviation around it, and the CVaR."""
    from matplotlib.figure import Figure

    file = check_picture(path)
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.hist(report.returns, bins=min(40, max(10, report.episodes // 5)), color="#4c72b0", alpha=0.75)
    mean, gd, cvar = report.mean.value, report.gini_deviation.value, report.cvar_05.value
    if gd > 0:
        label = f"mean ± GD, Gini deviation {gd:.4g}"
        axes.axvspan(mean - gd, mean + gd, color="#55a868", alpha=0.2, zorder=0, label=label)
    axes.axvline(mean, color="#2d6a3e", linewidth=2, label=f"mean {mean:.4g}")
    axes.axvline(cvar, color="#c44e52", linewidth=2, linestyle="--", label=f"CVaR, mean of the worst 5 %, {cvar:.4g}")
    axes.set_xlabel("return of an episode")
    axes.set_ylabel("episodes")
    axes.set_title(f"{report.episodes} episodes, seed {report.seed}", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize="small")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    return file
