"""The learning curves: training and evaluation side by side, and the diagnostics of the updates, folded away."""

from __future__ import annotations

import html
from collections.abc import Sequence

from steadyrl.reports.page import tables
from steadyrl.reports.page.glossary import explained_measures, explained_methods
from steadyrl.reports.page.learning import MIN_POINTS, POINTS, Measure, curve_of, panels_of, update_metrics_of
from steadyrl.reports.page.plots import curve_plot, figure_element
from steadyrl.reports.page.results import Results

MAX_NUMBERS = 400_000
"""Maximum number of values of all curves of a page: about 3 MB. With many runs, curves have fewer points."""
_CUT = (
    '<p class="outside">Some values lie outside this range. '
    '<button type="button" class="all" aria-pressed="false">Show all</button></p>'
)


def curve_section(results: Results) -> str:
    """The section, as HTML; empty if nothing is recorded."""
    groups = [result.group for result in results.groups]
    panels = panels_of(groups, results.measures)
    updates = [Measure(name) for name in update_metrics_of(groups)]
    points = _points(len(results.runs), len(panels) + len(updates))
    blocks, details = _blocks(results, panels, points), _diagnostics(_blocks(results, updates, points))
    if not blocks and not details:
        return ""
    text = (
        "Training episodes include exploration; evaluations during training are played apart from them. "
        "Each line is a method over its seeds, as chosen above."
    )
    return (
        f'<section id="curves" class="curves"><h2>Learning curves</h2>\n<p class="soft">{text}</p>\n'
        f"<details><summary>Meaning of the measures and methods</summary>"
        f"{explained_measures(groups, results.measures)}{explained_methods(groups)}</details>\n"
        f"{blocks}{details}{_finals(results)}</section>"
    )


def _points(runs: int, panels: int) -> int:
    return max(MIN_POINTS, min(POINTS, MAX_NUMBERS // max(1, runs * panels)))


def _blocks(results: Results, panels: Sequence[Measure], points: int) -> str:
    """A grid of panels for each variant, one panel per measure."""
    blocks = []
    for variant, members in results.by_variant():
        figures = []
        for measure in panels:
            curves = {
                result.index: (results.palette.index(result.group.method), curve)
                for result in members
                if (curve := curve_of(result.group, measure, points)) is not None
            }
            if curves:
                plot = curve_plot(curves, measure, results.data)
                element = results.data.placeholder(plot, f"{measure.title}, {variant}")
                figures.append(figure_element(html.escape(measure.title), element + _CUT * plot.get("cut", False)))
        if figures:
            blocks.append(f'<h3>{html.escape(variant)}</h3>\n<div class="grid">{"".join(figures)}</div>')
    return "\n".join(blocks)


def _diagnostics(blocks: str) -> str:
    """Curves of KL divergence, entropy, losses and other metrics of the updates, folded away."""
    if not blocks:
        return ""
    text = "Metrics of the updates, averaged over those of a record. Methods that have no such metric are left out."
    return f'<details><summary>Update diagnostics</summary>\n<p class="soft">{text}</p>\n{blocks}</details>'


def _finals(results: Results) -> str:
    """The table of the last tenth of training."""
    text = (
        "Means over seeds in the last tenth of training, ± one standard error. Gini deviation (GD) is that of "
        "undiscounted returns, discounted GD that of discounted ones."
    )
    return (
        f'<h3 id="finals">End of training</h3>\n<p class="soft">{text}</p>\n'
        f'<div class="runs finals">{tables.finals_table(results)}</div>'
    )
