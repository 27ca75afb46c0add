"""What a search for settings found: the trials as a table, the best settings as a file, a picture."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadyrl.base.files import write_atomic
from steadyrl.evaluation.frontier import Frontier, FrontierPoint, short
from steadyrl.evaluation.risk_report import aligned
from steadyrl.runs.final_evaluation import read_evaluation
from steadyrl.runs.tuning_plan import TunePlan

WIDTH = 100
"""Columns of the table."""
SHOWN = 10
"""Trials in the table."""


@dataclass(frozen=True)
class Trial:
    """Settings that were tried, and what came out."""

    number: int
    state: str
    """complete, pruned, failed or running."""
    settings: dict[str, Any]
    """Those that were searched."""
    values: tuple[float, ...] = ()
    """The objectives, of complete trials."""
    measures: dict[str, float] = field(default_factory=dict)
    """Of the returns of all its seeds together."""
    seeds: int = 0
    """How many were trained."""
    reason: str = ""
    """Why it failed."""


@dataclass(frozen=True)
class Tuning:
    """All trials of a search; `str()` is a table of the best."""

    plan: TunePlan
    trials: tuple[Trial, ...]

    @property
    def complete(self) -> list[Trial]:
        """Trials that were trained with all seeds, the best first; with several objectives by the first one."""
        found = [trial for trial in self.trials if trial.state == "complete"]
        first = self.plan.objectives[:1]
        sign = 1 if first and first[0] in self.plan.lower_is_better else -1
        return sorted(found, key=lambda trial: sign * trial.values[0])

    @property
    def best(self) -> Trial:
        """The trial with the highest objective; an error if none is complete or if there are several objectives."""
        if self.plan.objectives:
            raise ValueError("several objectives have no best trial: choose one of `pareto`.")
        if not self.complete:
            raise ValueError(f"no trial could be trained: {self.failed[0].reason if self.failed else 'none was run.'}")
        return self.complete[0]

    @property
    def pareto(self) -> list[Trial]:
        """The complete trials that no other one matches or exceeds in all objectives."""
        signs = [-1 if name in self.plan.lower_is_better else 1 for name in self.plan.objectives or ("",)]
        points = {trial.number: [s * v for s, v in zip(signs, trial.values, strict=True)] for trial in self.complete}

        def is_dominated(mine: list[float]) -> bool:
            return any(
                other != mine and all(o >= m for o, m in zip(other, mine, strict=True)) for other in points.values()
            )

        return [trial for trial in self.complete if not is_dominated(points[trial.number])]

    @property
    def failed(self) -> list[Trial]:
        """Trials that could not be trained; each has a reason."""
        return [trial for trial in self.trials if trial.state == "fail"]

    def settings_of(self, trial: Trial) -> dict[str, Any]:
        """All settings of a trial that differ from the defaults, or were searched."""
        return {**self.plan.settings, **trial.settings}

    def __str__(self) -> str:
        chosen = {trial.number for trial in (self.pareto if self.plan.objectives else self.complete[:1])}
        text = self._table(chosen, list(self.plan.space))
        if max(map(len, text.splitlines())) > WIDTH:
            text = self._table(chosen, [name for name in self.plan.space if name == "risk_aversion"])
        notes = textwrap.wrap(self._note(), WIDTH)
        best = [] if self.plan.objectives or not self.complete else ["", *self._lines(self.best)]
        return "\n".join([text, "", *notes, *best])

    def _table(self, chosen: set[int], settings: list[str]) -> str:
        """The best trials, with some of their settings."""
        objectives = self.plan.objectives or ("objective", "mean", self.plan.measure)
        rows = [["", "trial", *objectives, *settings]]
        several = sorted(self.complete, key=lambda trial: trial.number not in chosen)
        for trial in several[: max(SHOWN, len(chosen))]:
            values = list(trial.values)
            if not self.plan.objectives:
                values += [trial.measures.get(name, float("nan")) for name in objectives[1:]]
            cells = [_text(trial.settings.get(name)) for name in settings]
            rows.append(["*" * (trial.number in chosen), str(trial.number), *map(short, values), *cells])
        return aligned(rows, gap=2)

    def _lines(self, trial: Trial) -> list[str]:
        """The settings of a trial as lines of TOML."""
        return [f"{name} = {_toml(value)}" for name, value in self.settings_of(trial).items()]

    def _note(self) -> str:
        counts = {state: sum(trial.state == state for trial in self.trials) for state in ("complete", "pruned", "fail")}
        marked = "* not dominated" if self.plan.objectives else "* best"
        return (
            f"{marked}: {self.plan.objective_text()}; {len(self.plan.seeds)} seeds, {self.plan.episodes} evaluation "
            f"episodes each. {counts['complete']} trials complete, {counts['pruned']} pruned, {counts['fail']} failed."
        )

    def save(self, path: str | Path, trial: Trial | None = None) -> Path:
        """Write the settings of a trial, by default the best one, as a TOML file that `steadyrl train` takes."""
        trial = trial or self.best
        values = ", ".join(f"{short(value)}" for value in trial.values)
        lines = [
            f"# Trial {trial.number} of {len(self.trials)}: {self.plan.objective_text()} = {values}.",
            f"# steadyrl train {self.plan.env} --settings {Path(path).name}",
            f'agent = "{self.plan.agent}"',
            "",
            "[settings]",
            *self._lines(trial),
        ]
        write_atomic(Path(path), ("\n".join(lines) + "\n").encode())
        return Path(path)

    def frontier(self, out: Path) -> Frontier:
        """The complete trials as points of mean against risk, from the evaluations in their run folders."""
        points = []
        for trial in self.complete:
            cell = self.plan.cell(out.absolute(), trial.number, trial.settings, self.plan.seeds)
            found = [read_evaluation(folder, self.plan.episodes) for folder in cell.folders]
            folders = [folder.relative_to(out.absolute()).as_posix() for folder in cell.folders]
            returns = [one.returns for one in found if one is not None]
            aversion = self.settings_of(trial).get("risk_aversion")
            points += [FrontierPoint.of(self.plan.agent, aversion, returns, folders)] if returns else []
        return Frontier(tuple(points), self.plan.env, self.plan.env_options)

    def to_dict(self) -> dict[str, Any]:
        """The content of tuning.json."""
        return {**self.plan.record(), "trials": [vars(trial) for trial in self.trials]}


def _text(value: Any) -> str:
    return "" if value is None else short(value) if isinstance(value, float) else str(value)


def _toml(value: Any) -> str:
    """A number, text, true or false, or a list of them: TOML writes them as JSON does."""
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def settings_in(data: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The agent, if one is named, and the settings of a settings file; an error for anything else in it."""
    for key in data:
        if key not in ("agent", "settings"):
            raise ValueError(f"{key}: a file of settings has agent = NAME and a table [settings], and nothing else.")
    agent, settings = data.get("agent"), data.get("settings", {})
    if agent is not None and not isinstance(agent, str):
        raise ValueError("agent: the name of an agent is needed.")
    if not isinstance(settings, dict) or any(isinstance(value, dict) for value in settings.values()):
        raise ValueError("settings: a table [settings] with a value for each name is needed.")
    return agent, settings
