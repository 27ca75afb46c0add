"""The return distributions of the final policies, with tables of their risk."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from steadyrl.reports.page import formatting, tables
from steadyrl.reports.page.histograms import bin_edges, counts_of
from steadyrl.reports.page.plots import bars_plot, figure_element, numbers
from steadyrl.reports.page.results import GroupResults, Results

_ICONS = {
    "share of episodes": '<path d="M3 12V4h4v8zM8 12V1h4v11zM13 12V7h4v5z" class="grey"/>',
    "mean": '<path d="M11 1l5 5-5 5-5-5z" class="ink"/>',
    "mean ± GD": '<path d="M2 6h18M2 2v8M20 2v8" class="stroke"/>',
    "CVaR 10 %: mean of the worst tenth": '<path d="M11 1l5 9H6z" class="hollow"/>',
}
_KEY = "".join(
    f'<li><svg viewBox="0 0 22 12" aria-hidden="true">{icon}</svg>{text}</li>' for text, icon in _ICONS.items()
)


def return_section(results: Results, distributions: list[dict[str, object]]) -> str:
    """The section, as HTML; the bins of each variant and the counts of each run are added to `distributions`."""
    blocks = []
    for variant, members in results.by_variant():
        evaluated = [result for result in members if result.agents]
        if evaluated:
            rows = _rows(results, evaluated, distributions)
            table = tables.marks_table(evaluated, results.palette)
            blocks.append(figure_element(html.escape(variant), f'<div class="rows">{rows}</div>{table}', "wide-figure"))
    if not blocks:
        return ""
    numbers_of = sorted({len(a.returns) for result in results.groups for a in result.agents.values()})
    text = (
        f"{formatting.span(numbers_of)} evaluation episodes of each trained agent, pooled over the seeds of a method. "
        "Heights are on a square-root scale, so that rare episodes are visible. Intervals have 95 % confidence; the "
        "bootstrap resamples seeds, and episodes within each seed. Returns are undiscounted, and so is the Gini "
        "deviation (GD)."
    )
    return (
        f'<section id="returns"><h2>Return distributions</h2>\n<p class="soft">{text}</p>\n'
        f'<ul class="key">{_KEY}</ul>\n<div class="wide">{"".join(blocks)}</div></section>'
    )


def _rows(results: Results, evaluated: Sequence[GroupResults], distributions: list[dict[str, object]]) -> str:
    """A row for each method, on the bins that the variant's methods share."""
    edges = bin_edges(np.concatenate([result.returns for result in evaluated]))
    counts = {
        results.run_index(name): {"n": len(agent.returns), "counts": counts_of(agent.returns, edges)}
        for result in evaluated
        for name, agent in result.agents.items()
    }
    distributions.append({"edges": numbers(edges, 12), "runs": counts})
    rows = []
    for result in evaluated:
        method = results.palette.index(result.group.method)
        plot = bars_plot(result.index, method, len(distributions) - 1, result.marks)
        element = results.data.placeholder(plot, f"Distribution of returns, {result.group.method}")
        name = tables.method_link(result, results.palette)
        rows.append(f'<div class="row" data-method="{method}"><p class="name">{name}</p>{element}</div>')
    return "".join(rows)
