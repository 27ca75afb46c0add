"""The data of the page's plots, as JSON that page.js draws."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyrl.evaluation.risk_report import Estimate
from steadyrl.reports.page import formatting
from steadyrl.reports.page.learning import Curve, Measure
from steadyrl.reports.page.limits import robust_limits

Plot = dict[str, Any]
HEIGHTS = {"lines": 220, "bars": 84, "points": 330}
"""Height in pixels of each kind of plot, reserved before it is drawn."""
RATE_RANGE = (-0.03, 1.03)


class PlotData:
    """The plots of a page, in the order of their placeholders, and the arrays that several of them share."""

    def __init__(self) -> None:
        self.plots: list[Plot] = []
        self._arrays: dict[str, int] = {}

    def array(self, values: Sequence[float] | NDArray[np.float64]) -> int:
        """The number of an array of whole numbers, such as the x values of several curves."""
        text = json.dumps([round(float(value)) for value in values], separators=(",", ":"))
        return self._arrays.setdefault(text, len(self._arrays))

    def placeholder(self, plot: Plot, label: str) -> str:
        """Add a plot; returns the HTML element that it is drawn into. `label` says what it shows."""
        self.plots.append({**plot, "label": label})
        return (
            f'<div class="plot" data-plot="{len(self.plots) - 1}" role="img" aria-label="{html.escape(label)}" '
            f'style="min-height:{HEIGHTS[plot["kind"]]}px"></div>'
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"arrays": [json.loads(text) for text in self._arrays], "plots": self.plots}


def figure_element(caption: str, content: str, kind: str = "") -> str:
    """A figure element; caption and content are HTML."""
    name = f' class="{kind}"' if kind else ""
    return f"<figure{name}><figcaption>{caption}</figcaption>{content}</figure>\n"


def curve_plot(curves: Mapping[int, tuple[int, Curve]], measure: Measure, data: PlotData) -> Plot:
    """One measure over training in one variant: group -> (method, its curve).

    Each line has its group g and method m, the arrays of its episodes x and timesteps t, and for each seed the values y
    and the place r of its run among those of the group.
    """
    lines = [
        {
            "g": group,
            "m": method,
            "x": data.array(curve.episodes),
            "t": None if curve.timesteps is None else data.array(curve.timesteps),
            "y": [numbers(row, 4) for row in curve.values],
            "r": list(curve.members),
        }
        for group, (method, curve) in curves.items()
    ]
    plot: Plot = {"kind": "lines", "title": measure.title, "measure": measure.name, "source": measure.source}
    plot |= {"rate": formatting.is_rate(measure.name), "lines": lines}
    if formatting.is_rate(measure.name):
        # The rate over all episodes so far grows slowly, so its axis is not fixed to [0, 1].
        return plot | ({"zero": True} if measure.name == "optimal_rate" else {"range": RATE_RANGE})
    limits = robust_limits(curve for _, curve in curves.values())
    return plot if limits is None else plot | {"range": numbers(np.array(limits), 4), "cut": True}


def bars_plot(group: int, method: int, distribution: int, marks: Mapping[str, Estimate]) -> Plot:
    """The returns of one method on the bins of its variant, with the mean, the mean ± GD and CVaR marked."""
    shown = {
        name: {"value": estimate.value, "text": f"{formatting.number(estimate.value)} {formatting.interval(estimate)}"}
        for name, estimate in marks.items()
    }
    return {"kind": "bars", "g": group, "m": method, "distribution": distribution, "marks": shown}


def numbers(values: NDArray[np.float64], digits: int = 5) -> list[float | None]:
    """Values for JSON, rounded to `digits` significant digits; those that are not finite become None."""
    return [_short(float(f"{v:.{digits}g}")) if math.isfinite(v) else None for v in values.tolist()]


def _short(value: float) -> float:
    """Whole numbers without a decimal point."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def as_script(content: Any) -> str:
    """JSON with `<` escaped, so that it cannot close the script element that contains it."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
