"""The plots of the page, as the data and layout that plotly.js takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from steadyrl.figures.curves import COLOURS
from steadyrl.report import numerals
from steadyrl.report.learning import Curve
from steadyrl.report.playing import Array
from steadyrl.risk_report import Estimate

Figure = dict[str, Any]
"""{"data": traces, "layout": ...}."""

PALETTE = tuple(dict.fromkeys((*COLOURS, "#da8bc3", "#8c8c8c", "#64b5cd", "#1b7a78", "#8a2846", "#9bb53c")))
"""The figures' colours first, then more; each once."""
DASHES = {"solid": "solid", "dash": "dashed", "dot": "dotted"}
"""Kinds of lines, as plotly and as CSS call them."""
INK, FAINT = "#1f2933", "#e4e7eb"
CURVE_HEIGHT = 220
ROW_HEIGHT, ROW_TITLE, AXIS_HEIGHT = 78, 22, 40
"""Pixels of a distribution, of the line above it with its name, and of the axis below all."""
BINS = 120
"""At most so many bars a distribution."""
_BELOW = 0.2
"""The strip under the bars in which mean, GD and CVaR are marked, in parts of the bars' height."""


class Palette:
    """One colour and one kind of line for each method, wherever it appears."""

    def __init__(self, methods: list[str]) -> None:
        self._index = {method: index for index, method in enumerate(methods)}

    def colour(self, method: str) -> str:
        """As #rrggbb."""
        return PALETTE[self._index[method] % len(PALETTE)]

    def dash(self, method: str) -> str:
        """Solid for as many methods as there are colours."""
        return list(DASHES)[self._index[method] // len(PALETTE) % len(DASHES)]

    def border(self, method: str) -> str:
        """The same kind of line, as CSS calls it."""
        return DASHES[self.dash(method)]


def curve_panel(curves: Mapping[str, Curve], measure: str, palette: Palette) -> Figure:
    """One measure over training in one variant: a line for each method, in a band of one standard error."""
    shown = ".1%" if numerals.is_rate(measure) else ",.4~g"
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
                "name": _plain(method),
                "legendgroup": method,
                "line": {"color": colour, "width": 1.8, "dash": palette.dash(method)},
                "marker": {"color": colour},
                "hovertemplate": f"{_plain(method)}<br>%{{y:{shown}}} at %{{x:,.0f}} episodes<extra></extra>",
            }
        )
    y_axis = {"gridcolor": FAINT, "zeroline": False, "nticks": 5, "automargin": True, "linecolor": FAINT}
    if numerals.is_rate(measure):
        y_axis["tickformat"] = ".0%"
        # The share over all episodes so far grows slowly: its axis ends where the curves do.
        y_axis |= {"rangemode": "tozero"} if measure == "optimal_rate" else {"range": [-0.03, 1.03]}
    x_axis = {"title": {"text": "training episodes", "standoff": 6}, "gridcolor": FAINT, "zeroline": False, "nticks": 5}
    x_axis |= {"range": [0, max(float(curve.episodes[-1]) for curve in curves.values())]}
    layout = _layout(CURVE_HEIGHT, xaxis={**x_axis, "tickformat": "~s"}, yaxis=y_axis)
    return {"data": traces, "layout": {**layout, "hovermode": "closest"}}


def distribution_panel(
    returns: Mapping[str, Array], marks: Mapping[str, Mapping[str, Estimate]], palette: Palette
) -> Figure:
    """The returns of each method in one variant, one above the other on the same axis, with their marks."""
    edges = _edges(np.concatenate(list(returns.values())))
    shares = {method: np.histogram(R, edges)[0] / len(R) for method, R in returns.items()}
    # Heights are square roots of shares, so that the few bad episodes that risk is about can be seen.
    top = math.sqrt(max(float(share.max()) for share in shares.values()))
    below = -_BELOW * top
    ticks = _ticks(top)
    height = len(returns) * (ROW_HEIGHT + ROW_TITLE) + AXIS_HEIGHT
    drawn = height - AXIS_HEIGHT
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    titles: list[dict[str, Any]] = []
    for row, method in enumerate(returns):
        axis = f"y{row + 1 if row else ''}"
        upper = 1 - (row * (ROW_HEIGHT + ROW_TITLE) + ROW_TITLE) / drawn
        axes[f"yaxis{axis[1:]}"] = {
            "domain": [max(0.0, upper - ROW_HEIGHT / drawn), upper],
            "range": [2 * below, 1.04 * top],
            "tickvals": [math.sqrt(tick) for tick in ticks],
            "ticktext": [f"{100 * tick:g}%" for tick in ticks],
            "gridcolor": FAINT,
            "zerolinecolor": "#9aa5b1",
            "tickfont": {"size": 10},
            "fixedrange": True,
        }
        titles.append(
            {
                "text": f"<b>{_plain(numerals.setting(method))}</b>",
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
        traces += _bars(edges, shares[method], method, palette.colour(method), axis)
        traces += _marks(marks[method], method, below, axis)
    bottom = f"y{len(returns) if len(returns) > 1 else ''}"
    x_axis = {"title": {"text": "return of an episode", "standoff": 6}, "gridcolor": FAINT, "zeroline": False}
    layout = _layout(height, xaxis={**x_axis, "anchor": bottom, "nticks": 8}, **axes, annotations=titles, bargap=0)
    layout["margin"] = {"l": 40, "r": 10, "t": 0, "b": AXIS_HEIGHT}
    return {"data": traces, "layout": {**layout, "hovermode": "closest"}}


def _bars(edges: Array, share: Array, method: str, colour: str, axis: str) -> list[dict[str, Any]]:
    seen = share > 0
    labels = [f"{a:g} to {b:g}: {numerals.share(s)}" for a, b, s in zip(edges, edges[1:], share, strict=False)]
    return [
        {
            "type": "bar",
            "x": _numbers(((edges[1:] + edges[:-1]) / 2)[seen]),
            "y": _numbers(np.sqrt(share[seen])),
            # No broader than that when there are few bins: two returns are two bars, not two blocks.
            "width": float(min(edges[1] - edges[0], (edges[-1] - edges[0]) / 30)),
            "name": _plain(method),
            "marker": {"color": colour, "line": {"width": 0}},
            "hovertext": [label for label, there in zip(labels, seen, strict=True) if there],
            "hoverinfo": "text",
            "yaxis": axis,
        }
    ]


def _marks(marks: Mapping[str, Estimate], method: str, y: float, axis: str) -> list[dict[str, Any]]:
    """A line from mean - GD to mean + GD, a diamond at the mean, a triangle at the CVaR."""
    mean, gd, cvar = (marks[name].value for name in ("mean", "gini_deviation", "cvar_10"))
    shared = {"name": _plain(method), "yaxis": axis, "hoverinfo": "text"}
    line = {
        "x": _numbers(np.array([mean - gd, mean + gd])),
        "y": [y, y],
        "mode": "lines+markers",
        "line": {"color": INK, "width": 2},
        "marker": {"color": INK, "symbol": "line-ns-open", "size": 7},
        "hovertext": _told("Gini deviation", marks["gini_deviation"]),
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
            _told("mean", marks["mean"]),
            _told("CVaR 10 %", marks["cvar_10"]),
        ],
    }
    return [{**line, **shared}, {**points, **shared}]


def _told(name: str, estimate: Estimate) -> str:
    return f"{name} {numerals.number(estimate.value)} {numerals.interval(estimate)}"


def _ticks(top: float) -> list[float]:
    """Shares to mark on an axis of square roots that ends at `top`, far enough from each other to be read."""
    ticks: list[float] = []
    for tick in (1.0, 0.5, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01):
        height = math.sqrt(tick)
        if height <= 1.02 * top and height > 0.25 * top and all(math.sqrt(t) - height > 0.25 * top for t in ticks):
            ticks.append(tick)
    return ticks


def _edges(returns: Array) -> Array:
    """Edges of equal bins around whole multiples of 1, 2 or 5 times a power of ten, at most `BINS` of them."""
    low, high = float(returns.min()), float(returns.max())
    if low == high:
        low, high = low - 1, high + 1
    # Whole returns, as of a maze, get a bar each if they fit.
    least = 1.0 if np.array_equal(returns, np.round(returns)) else 0.0
    finest = max((high - low) / (BINS - 2), least)
    power = 10.0 ** math.floor(math.log10(finest))
    width = next(step * power for step in (1, 2, 5, 10) if step * power >= finest * (1 - 1e-9))
    first, last = math.floor(low / width - 0.5), math.ceil(high / width + 0.5)
    return np.arange(first + 0.5, last + 1) * width


def _layout(height: int, **more: Any) -> dict[str, Any]:
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
    """For JSON: five significant digits are more than a plot shows, and NaN is None."""
    return [(float(f"{v:.{digits}g}") if digits else round(v)) if math.isfinite(v) else None for v in values.tolist()]


def _plain(text: str) -> str:
    """Plotly reads some HTML in texts: what a user wrote is no HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
