"""The runs of an experiment in a folder: which of them are complete, and of the experiment's methods."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from steadyrl.base.shown import shown
from steadyrl.reports.configs import validated_config
from steadyrl.runs.experiment import Experiment, Method
from steadyrl.runs.job import Job, RunSpec
from steadyrl.training.run_folder import is_complete

Jobs = dict[tuple[str, str], Job]
"""(variant, method) -> its runs."""


def found_jobs(experiment: Experiment, folder: Path) -> Jobs:
    """The cells of an experiment with all seeds that have a folder, rather than those of its scale."""
    return with_found_seeds(experiment.cells(folder))


def with_found_seeds(cells: Mapping[tuple[str, str], Job]) -> Jobs:
    """Cells with all seeds that have a folder beside that of the first one."""
    jobs = {}
    for key, job in cells.items():
        first = job.runs[0]
        seeds = sorted(
            int(path.name[4:]) for path in first.folder.parent.glob("seed*") if re.fullmatch(r"seed\d+", path.name)
        )
        if seeds:
            runs = (RunSpec(seed, first.folder.with_name(f"seed{seed}"), first.settings, first.title) for seed in seeds)
            jobs[key] = dataclasses.replace(job, runs=tuple(runs))
    return jobs


class _Trained(NamedTuple):
    """How a run was trained."""

    settings: dict[str, Any]
    """All of them, also those that the experiment leaves at their defaults, which may have changed."""
    budget: str

    @property
    def key(self) -> str:
        return json.dumps(self, sort_keys=True)

    def difference(self, usual: _Trained) -> str:
        """What is unlike the runs of other seeds."""
        if self.budget != usual.budget:
            return f"it was trained for {self.budget}, and other seeds for {usual.budget}"
        names = sorted(self.settings.keys() | usual.settings.keys())
        name = next(name for name in names if self.settings.get(name) != usual.settings.get(name))
        own, other = (shown(one.settings.get(name), 40) for one in (self, usual))
        return f"its {name} is {own}, and that of other seeds {other}"


def complete_jobs(experiment: Experiment, jobs: Mapping[tuple[str, str], Job]) -> tuple[Jobs, list[str]]:
    """The complete runs with the settings of the experiment, and a sentence for each complete run that has others.

    Runs of one method have the same settings and budget; the budget need not be that of the experiment.
    """
    methods = {method.name: method for method in experiment.methods}
    kept: Jobs = {}
    notes: list[str] = []
    for key, job in jobs.items():
        found: dict[Path, _Trained] = {}
        for run in job.runs:
            try:
                if is_complete(run.folder):
                    found[run.folder] = _checked(run.folder, methods[key[1]], job)
            except (ValueError, OSError) as error:
                notes.append(f"{run.folder} is left out: {str(error).rstrip('.')}.")
        if not found:
            continue
        ((most, _),) = Counter(one.key for one in found.values()).most_common(1)
        usual = next(one for one in found.values() if one.key == most)
        notes += [f"{f} is left out: {one.difference(usual)}." for f, one in found.items() if one.key != most]
        runs = tuple(run for run in job.runs if run.folder in found and found[run.folder].key == most)
        kept[key] = dataclasses.replace(job, runs=runs)
    return kept, notes


def budget_of(folder: Path) -> dict[str, int]:
    """For how long the run in a folder was trained: {"episodes": n} or {"timesteps": n}."""
    budget = validated_config(folder).get("budget") or {}
    if len(budget) != 1 or not all(type(total) is int for total in budget.values()):
        raise ValueError("its config.json has no budget")
    return budget


def _checked(folder: Path, method: Method, job: Job) -> _Trained:
    """The settings and the budget of a run, if it is of that method in that environment."""
    config = validated_config(folder)
    found = {**config["settings"], "agent": config["agent"], "env": config["env"]["id"]}
    wanted = {**method.settings, "agent": method.agent, "env": job.env}
    found["options of env"], wanted["options of env"] = config["env"].get("options") or {}, job.env_options
    for name, value in wanted.items():
        if plain(found.get(name)) != plain(value):
            other = f"{shown(found.get(name), 40)}, and in the experiment {shown(value, 40)}"
            raise ValueError(f"it is another run than {method.name}: {name} is {other}")
    ((unit, total),) = budget_of(folder).items()
    return _Trained(config["settings"], f"{total:,} {unit}")


def plain(value: Any) -> Any:
    """As JSON has it: lists for tuples."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value
