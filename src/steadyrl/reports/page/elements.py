"""HTML elements that the sections of the report share."""

from __future__ import annotations

import html

from steadyrl.reports.page.panels import Figure


def figure_element(caption: str, content: str) -> str:
    """A figure element; caption and content are HTML."""
    return f"<figure><figcaption>{caption}</figcaption>{content}</figure>\n"


def plot_placeholder(figure: Figure, label: str, figures: list[Figure]) -> str:
    """The placeholder of a plot; adds the plot to `figures`."""
    figures.append(figure)
    return (
        f'<div class="plot" data-figure="{len(figures) - 1}" role="img" aria-label="{html.escape(label)}" '
        f'style="height:{figure["layout"]["height"]}px"></div>'
    )
