"""The frontier: mean against risk of policies with different aversions to risk."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadyrl import exact
from steadyrl.base.files import write_atomic
from steadyrl.evaluation import frontier_figure, frontier_file
from steadyrl.evaluation.agent_looks import agent_title
from steadyrl.evaluation.risk_report import CONFIDENCE, Estimate, aligned
from steadyrl.evaluation.seed_bootstrap import risk_of_seeds
from steadyrl.exact.mdp import FiniteMDP
from steadyrl.risk.pareto import dominated, hull

RISKS = {"gini_deviation": "GD", "standard_deviation": "std", "cvar_10": "CVaR 10 %"}
"""What the mean is drawn against, and what tables call it."""
MEASURES = ("mean", *RISKS)
WIDTH = 80
"""Columns of the table."""


@dataclass(frozen=True)
class FrontierPoint:
    """Policies of one agent with one aversion to risk, one for each seed; measures are of undiscounted returns."""

    agent: str
    risk_aversion: float | None
    """Lambda; None for agents that have none."""
    mean: Estimate
    gini_deviation: Estimate
    standard_deviation: Estimate
    cvar_10: Estimate
    """The mean of the worst 10 % of the returns."""
    seeds: int
    episodes: int
    """Evaluation episodes of each seed."""
    runs: tuple[str, ...] = ()
    """Run folders, if there are any."""

    @classmethod
    def of(
        cls, agent: str, risk_aversion: float | None, returns: Sequence[NDArray[np.float64]], runs: Sequence[str] = ()
    ) -> FrontierPoint:
        """From the returns of each seed's evaluation episodes; intervals are over seeds and episodes."""
        risk: dict[str, Any] = risk_of_seeds(returns, MEASURES)
        return cls(agent, risk_aversion, **risk, seeds=len(returns), episodes=min(map(len, returns)), runs=tuple(runs))

    def risk(self, measure: str) -> float:
        """One of `RISKS`, where less is better: CVaR has a minus."""
        value: float = getattr(self, measure).value
        return -value if measure == "cvar_10" else value

    @property
    def label(self) -> str:
        """For example `mg 0.5`, as in files."""
        return self.agent if self.risk_aversion is None else f"{self.agent} {self.risk_aversion:.4g}"

    @property
    def title(self) -> str:
        """For example `MG, lambda 0.5`."""
        title = agent_title(self.agent)
        return title if self.risk_aversion is None else f"{title}, lambda {self.risk_aversion:.4g}"


class ExactPoint(NamedTuple):
    """A point of the exact frontier."""

    mean: float
    gini_deviation: float
    standard_deviation: float
    cvar_10: float


@dataclass(frozen=True)
class Frontier:
    """What less risk costs: the points, and those among them that are best for some aversion to risk.

    `str(frontier)` is a table.
    """

    points: tuple[FrontierPoint, ...]
    env: str
    env_options: dict[str, Any] = field(default_factory=dict)
    exact: tuple[ExactPoint, ...] = ()
    """The exact frontier, of environments where it is known."""
    details: dict[str, Any] = field(default_factory=dict)
    """How it was made: command, date, versions, settings."""

    @property
    def hull(self) -> list[FrontierPoint]:
        """The points that maximize mean - lambda GD for some lambda, from the least GD to the highest mean."""
        return self.hull_of("gini_deviation")

    def hull_of(self, measure: str) -> list[FrontierPoint]:
        """The same for any of gini_deviation, standard_deviation and cvar_10."""
        indices = hull([p.mean.value for p in self.points], [p.risk(measure) for p in self.points])
        return [self.points[i] for i in indices]

    def dominated(self, measure: str = "gini_deviation") -> list[FrontierPoint]:
        """The points of which another has at least the mean and no more risk, by their estimates."""
        marks = dominated([p.mean.value for p in self.points], [p.risk(measure) for p in self.points])
        return [point for point, mark in zip(self.points, marks, strict=True) if mark]

    def exact_hull(self, measure: str = "gini_deviation") -> list[ExactPoint]:
        """The vertices of the exact frontier, from the least risk to the highest mean."""
        sign = -1 if measure == "cvar_10" else 1
        indices = hull([p.mean for p in self.exact], [sign * getattr(p, measure) for p in self.exact])
        return [self.exact[i] for i in indices]

    def table(self) -> str:
        """A table of all points that fits 80 columns, best mean first."""
        on_hull, behind = self.hull, self.dominated()
        points = sorted(self.points, key=lambda point: -point.mean.value)
        marks = ["*" if any(p is h for h in on_hull) else "-" if any(p is d for d in behind) else "" for p in points]
        for left_out in ((), ("std",), ("std", "CVaR 10 %")):
            columns = {name: heading for name, heading in RISKS.items() if heading not in left_out}
            rows = [["", "agent", "lambda", "mean", *columns.values()]]
            rows += [[mark, *_cells(point, columns)] for mark, point in zip(marks, points, strict=True)]
            text = aligned(rows, gap=2)
            if max(map(len, text.splitlines())) <= WIDTH:
                break
        return "\n".join([text, "", *(line for note in self._notes() for line in textwrap.wrap(note, WIDTH))])

    def __str__(self) -> str:
        return self.table()

    def _notes(self) -> list[str]:
        seeds, episodes = {point.seeds for point in self.points}, {point.episodes for point in self.points}
        over = "seeds and episodes" if max(seeds) > 1 else "episodes; one seed says nothing about others"
        notes = [
            "* on the hull: the best of them for some lambda. - dominated: another has at least the mean and no more "
            f"Gini deviation (GD). {_span(seeds)} seed{'s' * (max(seeds) > 1)} each, {_span(episodes)} evaluation "
            f"episodes a seed, undiscounted; [low, high] at {CONFIDENCE:.0%} confidence over {over}."
        ]
        if self.exact:
            exact = "; ".join(f"mean {p.mean:.4g} with GD {p.gini_deviation:.4g}" for p in self.exact_hull())
            notes.append(f"Exact frontier: {exact}.")
        return notes

    def plot(self, path: str | Path) -> Path:
        """Draw mean against GD, standard deviation and CVaR to a file, such as frontier.png."""
        return frontier_figure.draw_frontier(self, path)

    def save(self, path: str | Path) -> Path:
        """Write everything as JSON; `Frontier.load` reads it."""
        write_atomic(Path(path), json.dumps(self.to_dict(), indent=1).encode())
        return Path(path)

    def to_dict(self) -> dict[str, Any]:
        """The content of frontier.json."""
        on_hull = {measure: [p.label for p in self.hull_of(measure)] for measure in RISKS}
        return {
            "env": self.env,
            "env_options": self.env_options,
            **self.details,
            "confidence": CONFIDENCE,
            "hull": on_hull,
            "points": [_point_dict(point) for point in self.points],
            "exact": [point._asdict() for point in self.exact],
        }

    @classmethod
    def load(cls, path: str | Path) -> Frontier:
        """From a frontier.json; a ValueError if it is none."""
        data = frontier_file.read(Path(path), MEASURES)
        points = [
            FrontierPoint(**{**p, **{name: Estimate(**p[name]) for name in MEASURES}, "runs": tuple(p["runs"])})
            for p in data.points
        ]
        exact = [ExactPoint(**point) for point in data.exact]
        return cls(tuple(points), data.env, data.env_options, tuple(exact), data.details)


def exact_points(mdp: FiniteMDP) -> tuple[ExactPoint, ...]:
    """The vertices of the exact frontiers by every risk; none where they are not known (see `exact.walks`)."""
    points: dict[ExactPoint, None] = {}
    try:
        for measure in RISKS:
            for walk in exact.frontier(mdp, measure):
                law = walk.distribution
                numbers = law.mean, law.gini_deviation, law.standard_deviation, law.cvar(0.1)
                points[ExactPoint(*(round(float(number), 9) for number in numbers))] = None
    except ValueError:
        return ()
    return tuple(points)


def _point_dict(point: FrontierPoint) -> dict[str, Any]:
    estimates = {name: getattr(point, name)._asdict() for name in MEASURES}
    return {**vars(point), **estimates, "runs": list(point.runs)}


def _cells(point: FrontierPoint, columns: Sequence[str] | dict[str, str]) -> list[str]:
    """The mean and GD with intervals; the others are in the file."""
    aversion = "" if point.risk_aversion is None else f"{point.risk_aversion:.4g}"
    values = [_with_interval(getattr(point, name)) for name in ("mean", "gini_deviation")]
    others = [short(getattr(point, name).value) for name in columns if name != "gini_deviation"]
    return [point.agent, aversion, *values, *others]


def _with_interval(estimate: Estimate) -> str:
    return f"{short(estimate.value)} [{short(estimate.low)}, {short(estimate.high)}]"


def short(value: float) -> str:
    """Three significant digits, and all before the point of numbers below a million."""
    if math.isfinite(value) and 1e3 <= abs(value) < 1e6:
        return f"{value:.0f}"
    text = f"{value + 0.0:.3g}"  # + 0.0 turns -0.0 into 0.0.
    return text.replace("e+0", "e").replace("e-0", "e-")


def _span(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"
