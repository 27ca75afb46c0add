"""The distribution of a sample of returns, as bars of text and as a picture."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from steadyrl.risk_report import RiskReport

MOST_BARS = 10
WIDTH = 78


def text_histogram(returns: NDArray[np.float64]) -> str:
    """A line for each of at most ten bars: which returns, how many episodes, and as many marks."""
    labels, counts = _bars(returns)
    label_width, count_width = max(map(len, labels)), len(str(counts.max()))
    room = WIDTH - label_width - count_width - 4
    lengths = np.ceil(counts * min(1.0, room / counts.max())).astype(int)
    rows = zip(labels, counts, lengths, strict=True)
    return "\n".join(f"{label:>{label_width}}  {n:>{count_width}}  {'#' * bar}".rstrip() for label, n, bar in rows)


def _bars(R: NDArray[np.float64]) -> tuple[list[str], NDArray[np.int64]]:
    """What each bar stands for, and the number of returns in it."""
    values, counts = np.unique(R, return_counts=True)
    # Few values, as of an environment that pays at the end alone, are told one by one.
    if len(values) <= MOST_BARS and len(values) <= len(R) / 2:
        return _numbers(values), counts
    # Halved: the distance of the largest floats is not a float.
    edges = 2 * np.linspace(R.min() / 2, R.max() / 2, MOST_BARS + 1)
    edges[-1] = R.max()
    if len(np.unique(edges)) < len(edges):  # Too close to each other to tell ten bars apart.
        return [f"{R.min():.17g}"], np.array([len(R)])
    counts, _ = np.histogram(R, edges)
    ends = _numbers(edges)
    width = max(map(len, ends))
    return [f"{low:>{width}} to {high:>{width}}" for low, high in pairwise(ends)], counts


def _numbers(values: NDArray[np.float64]) -> list[str]:
    """As few significant digits, but at least three, as tell the values apart."""
    for digits in range(3, 17):
        texts = [f"{value + 0.0:.{digits}g}" for value in values]
        if len(set(texts)) == len(texts):
            break
    return [f"{value:.0f}" if 1e3 <= abs(value) < 1e6 and "e" in text else text
            for value, text in zip(values, texts, strict=True)]  # fmt: skip


def draw_histogram(report: RiskReport, path: str | Path) -> Path:
    """Write a picture of the report's returns, with the mean, the Gini deviation around it and the tail's mean."""
    # Imported here: whoever only prints a report need not wait for it.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.hist(report.returns, bins=min(40, max(10, report.episodes // 5)), color="#4c72b0", alpha=0.75)
    mean, spread, tail = report.mean.value, report.gini_deviation.value, report.cvar_05.value
    if spread > 0:
        label = f"mean ± GD, Gini deviation {spread:.4g}"
        axes.axvspan(mean - spread, mean + spread, color="#55a868", alpha=0.2, zorder=0, label=label)
    axes.axvline(mean, color="#2d6a3e", linewidth=2, label=f"mean {mean:.4g}")
    axes.axvline(tail, color="#c44e52", linewidth=2, linestyle="--", label=f"CVaR, mean of the worst 5 %, {tail:.4g}")
    axes.set_xlabel("return of an episode")
    axes.set_ylabel("episodes")
    axes.set_title(f"{report.episodes} episodes, seed {report.seed}", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize="small")
    to = Path(path) if Path(path).suffix else Path(path).with_suffix(".png")
    to.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(to, dpi=150)
    return to
