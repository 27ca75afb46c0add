"""The table of final policies: interquartile means over seeds, with 95 % bootstrap intervals."""

from __future__ import annotations

import numpy as np
import rich.box
from numpy.typing import NDArray
from rich.table import Table

from steadyrl.evaluation.risk_report import number_text
from steadyrl.reports.results.results import Cell, Results
from steadyrl.reports.seed_statistics import CONCLUSIVE_SEEDS, COVERAGE, MIN_SEEDS, iqm_over_seeds
from steadyrl.reports.terminal import plain, print_table

_RETURNS = {"mean": "return", "gini_deviation": "GD", "variance": "variance", "cvar_10": "CVaR 10 %"}
"""Measures of the returns, and their headings."""
GREEDY = "greedy return"


def final_values(cell: Cell) -> dict[str, NDArray[np.float64]]:
    """Heading -> the value of each seed whose final policy was evaluated: returns, then the environment's metrics."""
    policies = [policy for policy in cell.policies if policy is not None]
    if not policies:
        return {}
    values = {heading: [policy.returns[name] for policy in policies] for name, heading in _RETURNS.items()}
    values[GREEDY] = [policy.greedy_mean for policy in policies]
    for name in policies[0].episode_metrics:
        if all(name in policy.episode_metrics for policy in policies):
            values[name] = [policy.episode_metrics[name] for policy in policies]
    return {heading: np.array(numbers) for heading, numbers in values.items() if np.isfinite(numbers).all()}


def final_table(results: Results) -> list[list[str]]:
    """The heading and the rows; empty if no final policy was evaluated."""
    found = {key: values for key, cell in results.cells.items() if (values := final_values(cell))}
    headings = [*dict.fromkeys(heading for values in found.values() for heading in values)]
    if not headings:
        return []
    rows = [["", "method", "seeds", *(heading.removesuffix("_rate").replace("_", " ") for heading in headings)]]
    for key, values in found.items():
        cell = results.cells[key]
        count = len(next(iter(values.values())))
        texts = [over_seeds(heading, values[heading]) if heading in values else "" for heading in headings]
        rows.append([cell.variant.name, cell.method.title, str(count), *texts])
    return rows


def over_seeds(heading: str, values: NDArray[np.float64]) -> str:
    """For example 9.85 [9.61, 10.1], or 62 [60, 63] % for a rate; of few seeds the mean alone."""
    scale, unit = (100.0, " %") if heading.endswith("_rate") else (1.0, "")
    estimate = iqm_over_seeds(values * scale)
    if len(values) < MIN_SEEDS:
        return f"{number_text(estimate.value)}{unit}"
    return f"{estimate}{unit}"


def final_section(results: Results) -> str:
    """The table in Markdown, below its heading and a sentence on how it was made; empty if there is none."""
    rows = final_table(results)
    if not rows:
        return ""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n\n".join(
        ["## Final policies", _sentence(results), "\n".join(f"| {' | '.join(line)} |" for line in lines)]
    )


def _sentence(results: Results) -> str:
    few = f" Of fewer than {MIN_SEEDS} seeds: the mean, without an interval."
    least = f"with {MIN_SEEDS} seeds they cover the mean in about {COVERAGE[MIN_SEEDS]} % of samples"
    narrow = f"\nIntervals of fewer than {CONCLUSIVE_SEEDS} seeds are too narrow: {least}."
    counts = [sum(policy is not None for policy in cell.policies) for cell in results.cells.values()]
    return (
        f"{results.evaluation_episodes:,} episodes of each run's final policy (greedy: the most likely actions), "
        f"undiscounted. Interquartile means over seeds\nwith 95 % bootstrap intervals."
        + few * any(0 < count < MIN_SEEDS for count in counts)
        + narrow * any(MIN_SEEDS <= count < CONCLUSIVE_SEEDS for count in counts)
    )


def print_final_table(results: Results) -> None:
    """Print the return and the Gini deviation of the final policies; the file has all columns."""
    rows = final_table(results)
    if not rows:
        return
    title = f"Final policies, {results.evaluation_episodes:,} episodes each: IQM over seeds [95 %]"
    table = Table(title=title, title_justify="left", box=rich.box.SIMPLE, padding=(0, 1, 0, 0))
    for heading in ("", "seeds", *(_RETURNS[name] for name in ("mean", "gini_deviation"))):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for variant in dict.fromkeys(row[0] for row in rows[1:]):
        table.add_row(plain(variant))
        for row in (row for row in rows[1:] if row[0] == variant):
            table.add_row(f" {plain(row[1])}", *row[2:5])
        table.add_section()
    print_table(table)
