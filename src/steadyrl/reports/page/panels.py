"""The plots of the report, as data and layout for plotly.js."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from steadyrl.evaluation.risk_report import Estimate
from steadyrl.reports.figures.curves import COLOURS
from steadyrl.reports.page import formatting
from steadyrl.reports.page.distributions import Array
from steadyrl.reports.page.learning import Curve
from steadyrl.reports.page.limits import robust_limits

Figure = dict[str, Any]
"""{"data": traces, "layout": ...}."""

PALETTE = tuple(dict.fromkeys((*COLOURS, "#da8bc3", "#8c8c8c", "#64b5cd", "#1b7a78", "#8a2846", "#9bb53c")))
"""The colours of the figures, then more; no duplicates."""
DASHES = {"solid": "solid", "dash": "dashed", "dot": "dotted"}
"""Line styles: plotly name -> CSS name."""
INK, FAINT = "#1f2933", "#e4e7eb"
CURVE_HEIGHT = 220
ROW_HEIGHT, ROW_TITLE, AXIS_HEIGHT = 78, 22, 40
"""Height in pixels of a distribution, of its title, and of the shared x axis."""
BINS = 120
"""Maximum number of bars per distribution."""
_MARK_OFFSET = 0.2
"""Distance of the marks for mean, GD and CVaR below the bars, as a fraction of the tallest bar."""


class Palette:
    """One colour and line style per method, used throughout the report."""

    def __init__(self, methods: list[str]) -> None:
        self._index = {method: index for index, method in enumerate(methods)}

    def colour(self, method: str) -> str:
        """The colour as #rrggbb."""
        return PALETTE[self._index[method] % len(PALETTE)]

    def dash(self, method: str) -> str:
        """The plotly line style; it changes when all colours are used."""
        return list(DASHES)[self._index[method] // len(PALETTE) % len(DASHES)]

    def border(self, method: str) -> str:
        """The CSS line style."""
        return DASHES[self.dash(method)]


def curve_panel(curves: Mapping[str, Curve], measure: str, palette: Palette) -> Figure:
    """One measure over training in one variant: a line per method, with a band of one standard error."""
    hover_format = ".1%" if formatting.is_rate(measure) else ",.4~g"
    traces: list[dict[str, Any]] = []
    for method, curve in curves.items():
        colour, x = palette.colour(method), _numbers(curve.episodes, 0)
        if curve.error is not None:
            edge = np.concatenate([curve.mean + curve.error, (curve.mean - curve.error)[::-1]])
            band = {"fill": "toself", "fillcolor": f"{colour}33", "line": {"width": 0}, "hoverinfo": "skip"}
            traces.append({"x": x + x[::-1], "y": _numbers(edge), "mode": "lines", "legendgroup": method, **band})
        traces.append(
            {
                "x": x,
                "y": _numbers(curve.mean),
                "mode": "lines" if len(x) > 1 else "markers",
                "name": plain(method),
                "legendgroup": method,
                "line": {"color": colour, "width": 1.8, "dash": palette.dash(method)},
                "marker": {"color": colour},
                "hovertemplate": f"{plain(method)}<br>%{{y:{hover_format}}} at %{{x:,.0f}} episodes<extra></extra>",
            }
        )
    y_axis = {"gridcolor": FAINT, "zeroline": False, "nticks": 5, "automargin": True, "linecolor": FAINT}
    if formatting.is_rate(measure):
        y_axis["tickformat"] = "~%"  # As many decimals as the ticks need, also after zooming.
        # The rate over all episodes so far grows slowly, so its axis is not fixed to [0, 1].
        y_axis |= {"rangemode": "tozero"} if measure == "optimal_rate" else {"range": [-0.03, 1.03]}
    elif (limits := robust_limits(curves.values())) is not None:
        y_axis["range"] = limits
    x_axis = {"title": {"text": "training episodes", "standoff": 6}, "gridcolor": FAINT, "zeroline": False, "nticks": 5}
    x_axis |= {"range": [0, max(float(curve.episodes[-1]) for curve in curves.values())]}
    layout = base_layout(CURVE_HEIGHT, xaxis={**x_axis, "tickformat": "~s"}, yaxis=y_axis)
    return {"data": traces, "layout": {**layout, "hovermode": "closest"}}


def distribution_panel(
    returns: Mapping[str, Array], marks: Mapping[str, Mapping[str, Estimate]], palette: Palette
) -> Figure:
    """The return distributions of all methods in one variant, stacked vertically on a shared x axis."""
    edges = _edges(np.concatenate(list(returns.values())))
    fractions = {method: np.histogram(R, edges)[0] / len(R) for method, R in returns.items()}
    # Square-root scale, so that rare bad episodes are visible.
    top = math.sqrt(max(float(fraction.max()) for fraction in fractions.values()))
    mark_y = -_MARK_OFFSET * top
    ticks = _ticks(top)
    height = len(returns) * (ROW_HEIGHT + ROW_TITLE) + AXIS_HEIGHT
    plot_height = height - AXIS_HEIGHT
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    titles: list[dict[str, Any]] = []
    for row, method in enumerate(returns):
        axis = f"y{row + 1 if row else ''}"
        upper = 1 - (row * (ROW_HEIGHT + ROW_TITLE) + ROW_TITLE) / plot_height
        axes[f"yaxis{axis[1:]}"] = {
            "domain": [max(0.0, upper - ROW_HEIGHT / plot_height), upper],
            "range": [2 * mark_y, 1.04 * top],
            "tickvals": [math.sqrt(tick) for tick in ticks],
            "ticktext": [f"{100 * tick:g}%" for tick in ticks],
            "gridcolor": FAINT,
            "zerolinecolor": "#9aa5b1",
            "tickfont": {"size": 10},
            "fixedrange": True,
        }
        titles.append(
            {
                "text": f"<b>{plain(formatting.setting(method))}</b>",
                "font": {"color": palette.colour(method), "size": 12},
                "xref": "paper",
                "yref": "paper",
                "x": 0,
                "y": upper,
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
            }
        )
        traces += _bars(edges, fractions[method], method, palette.colour(method), axis)
        traces += _marks(marks[method], method, mark_y, axis)
    bottom_axis = f"y{len(returns) if len(returns) > 1 else ''}"
    x_axis = {"title": {"text": "return of an episode", "standoff": 6}, "gridcolor": FAINT, "zeroline": False}
    layout = base_layout(
        height, xaxis={**x_axis, "anchor": bottom_axis, "nticks": 8}, **axes, annotations=titles, bargap=0
    )
    layout["margin"] = {"l": 40, "r": 10, "t": 0, "b": AXIS_HEIGHT}
    return {"data": traces, "layout": {**layout, "hovermode": "closest"}}


def _bars(edges: Array, fractions: Array, method: str, colour: str, axis: str) -> list[dict[str, Any]]:
    nonempty = fractions > 0
    limits = zip(edges, edges[1:], fractions, strict=False)
    labels = [f"{low:g} to {high:g}: {formatting.percent(fraction)}" for low, high, fraction in limits]
    return [
        {
            "type": "bar",
            "x": _numbers(((edges[1:] + edges[:-1]) / 2)[nonempty]),
            "y": _numbers(np.sqrt(fractions[nonempty])),
            # Limited, so that bars stay narrow if there are only a few bins.
            "width": float(min(edges[1] - edges[0], (edges[-1] - edges[0]) / 30)),
            "name": plain(method),
            "marker": {"color": colour, "line": {"width": 0}},
            "hovertext": [label for label, keep in zip(labels, nonempty, strict=True) if keep],
            "hoverinfo": "text",
            "yaxis": axis,
        }
    ]


def _marks(marks: Mapping[str, Estimate], method: str, y: float, axis: str) -> list[dict[str, Any]]:
    """A line from mean - GD to mean + GD, a diamond at the mean and a triangle at the CVaR."""
    mean, gd, cvar = (marks[name].value for name in ("mean", "gini_deviation", "cvar_10"))
    shared = {"name": plain(method), "yaxis": axis, "hoverinfo": "text"}
    line = {
        "x": _numbers(np.array([mean - gd, mean + gd])),
        "y": [y, y],
        "mode": "lines+markers",
        "line": {"color": INK, "width": 2},
        "marker": {"color": INK, "symbol": "line-ns-open", "size": 7},
        "hovertext": _hover_text("Gini deviation", marks["gini_deviation"]),
    }
    points = {
        "x": _numbers(np.array([mean, cvar])),
        "y": [y, y],
        "mode": "markers",
        "marker": {
            "symbol": ["diamond", "triangle-up"],
            "size": [10, 11],
            "opacity": 1,
            "color": [INK, "#ffffff"],
            "line": {"color": INK, "width": 1.5},
        },
        "hovertext": [
            _hover_text("mean", marks["mean"]),
            _hover_text("CVaR 10 %", marks["cvar_10"]),
        ],
    }
    return [{**line, **shared}, {**points, **shared}]


def _hover_text(name: str, estimate: Estimate) -> str:
    return f"{name} {formatting.number(estimate.value)} {formatting.interval(estimate)}"


def _ticks(top: float) -> list[float]:
    """Tick values for a square-root axis that ends at `top`, without overlapping labels."""
    ticks: list[float] = []
    for tick in (1.0, 0.5, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01):
        height = math.sqrt(tick)
        if height <= 1.02 * top and height > 0.25 * top and all(math.sqrt(t) - height > 0.25 * top for t in ticks):
            ticks.append(tick)
    return ticks


def _edges(returns: Array) -> Array:
    """Edges of at most `BINS` bins of width 1, 2 or 5 times a power of ten, centred on multiples of the width."""
    low, high = float(returns.min()), float(returns.max())
    if high - low <= max(1e-100, 1e-12 * max(abs(low), abs(high))):
        margin = max(1.0, 1e-6 * abs(low))
        low, high = low - margin, high + margin
    # Integer returns, as in the maze, get one bar each if they fit.
    integer_width = 1.0 if np.array_equal(returns, np.round(returns)) else 0.0
    min_width = max((high - low) / (BINS - 2), integer_width)
    power = 10.0 ** math.floor(math.log10(min_width))
    width = next(step * power for step in (1, 2, 5, 10) if step * power >= min_width * (1 - 1e-9))
    first, last = math.floor(low / width - 0.5), math.ceil(high / width + 0.5)
    return np.arange(first + 0.5, last + 1) * width


def base_layout(height: int, **more: Any) -> dict[str, Any]:
    """What the layouts of all plots have in common."""
    font = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
    return {
        "height": height,
        "autosize": True,
        "showlegend": False,
        "margin": {"l": 44, "r": 16, "t": 6, "b": 36},
        "font": {"family": font, "size": 11, "color": INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"font": {"size": 11}},
        **more,
    }


def _numbers(values: Array, digits: int = 5) -> list[float | None]:
    """Values for JSON, rounded to `digits` significant digits (0: to integers); non-finite values become None."""
    return [(float(f"{v:.{digits}g}") if digits else round(v)) if math.isfinite(v) else None for v in values.tolist()]


def plain(text: str) -> str:
    """Escape HTML, which plotly would otherwise interpret."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
