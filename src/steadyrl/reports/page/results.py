"""What the sections of the page are made of: groups of runs, their evaluation episodes, and their looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from steadyrl.evaluation.risk_report import Estimate
from steadyrl.reports.page.evaluation import AgentEpisodes, Array, marks_of
from steadyrl.reports.page.groups import Group
from steadyrl.reports.page.learning import measures_of
from steadyrl.reports.page.plots import PlotData
from steadyrl.reports.page.runs_found import FoundRun
from steadyrl.reports.palette import Palette, shown_first

EXTREMES = ("worst", "median", "best")


class Episode(NamedTuple):
    """An evaluation episode."""

    run: FoundRun
    number: int
    """Among those of its run, from 0 on."""
    value: float
    """Its return."""


@dataclass(frozen=True)
class GroupResults:
    """A group of runs, its number on the page, and the evaluation episodes of its agents."""

    index: int
    group: Group
    agents: dict[str, AgentEpisodes]
    """Run -> episodes, of those that could be evaluated."""
    marks: Mapping[str, Estimate] = field(default_factory=dict)
    """Mean, GD and CVaR of the returns of all its seeds; empty without evaluation episodes."""

    @property
    def returns(self) -> Array:
        """Of all seeds."""
        return np.concatenate([agent.returns for agent in self.agents.values()])

    @property
    def extremes(self) -> dict[str, Episode]:
        """The worst, median and best of all its evaluation episodes; the median is the lower one of two."""
        runs = {run.name: run for run in self.group.runs}
        episodes = [
            Episode(runs[name], number, float(value))
            for name, agent in self.agents.items()
            for number, value in enumerate(agent.returns)
        ]
        order = np.argsort([episode.value for episode in episodes], kind="stable")
        places = (0, (len(order) - 1) // 2, len(order) - 1)
        return {name: episodes[order[place]] for name, place in zip(EXTREMES, places, strict=True)}


class Results:
    """Everything that the page shows."""

    def __init__(self, groups: Sequence[Group], evaluated: Mapping[str, AgentEpisodes]) -> None:
        self.groups: list[GroupResults] = []
        for index, group in enumerate(groups):
            agents = {run.name: evaluated[run.name] for run in group.runs if run.name in evaluated}
            marks = marks_of([agent.returns for agent in agents.values()]) if agents else {}
            self.groups.append(GroupResults(index, group, agents, marks))
        self._run_index = {run.name: index for index, run in enumerate(self.runs)}
        self.data = PlotData()
        self.agents = {group.method: group.agent for group in groups}
        """Method -> agent."""
        self.palette = Palette(self.agents)
        metrics = dict.fromkeys(
            name for result in self.groups for agent in result.agents.values() for name in agent.episode_metrics
        )
        self.measures = measures_of(groups, metrics)
        """The measures of training that are shown."""

    def run_index(self, name: str) -> int:
        """The number of a run on the page."""
        return self._run_index[name]

    @property
    def runs(self) -> list[FoundRun]:
        """In the order of the page."""
        return [run for result in self.groups for run in result.group.runs]

    def by_variant(self) -> Iterator[tuple[str, list[GroupResults]]]:
        """The variants of the environment and their groups."""
        for variant in dict.fromkeys(result.group.variant for result in self.groups):
            yield variant, [result for result in self.groups if result.group.variant == variant]

    def shown_first(self) -> set[str]:
        """The methods that are shown at first, at most seven in each variant."""
        shown: set[str] = set()
        for _, results in self.by_variant():
            shown |= shown_first({result.group.method: result.group.agent for result in results})
        return shown
