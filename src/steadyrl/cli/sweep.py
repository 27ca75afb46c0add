"""`steadyrl sweep`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from steadyrl.cli.arguments import (
    Flag,
    Pairs,
    PerhapsCount,
    Progress,
    confirm_budget,
    logger_names,
    named,
    names_in,
    pairs_of,
    value_of,
)
from steadyrl.cli.failures import exit_with_failures, explain_resuming, paths_as_typed
from steadyrl.cli.page import Page, evaluate_many, write_page


@dataclass(frozen=True)
class SweepCommand:
    """Train every combination of environments, agents, settings and seeds, many at a time: here, or on a cluster.

    Finished runs are kept and interrupted ones resumed when the same command is given again.

    Example: steadyrl sweep CartPole-v1 --agents mg,mvo --set risk_aversion=0.3,0.6,1.2 --seeds 10 --episodes 5000

    From a file, on a cluster: steadyrl sweep my_sweep.toml --on ray --address auto
    """

    what: Annotated[tuple[str, ...], tyro.conf.Positional, named("ENV ... | FILE.toml")]
    """Environments, as Gymnasium ids or module:factory; or one file that describes the sweep."""
    agents: Annotated[str | None, named("NAMES", "--agent")] = None
    """The methods, separated by commas, such as mg,mvo; mg by default."""
    set: Pairs = ()
    """A setting and the values to try, as name=value,value; may be given many times. Agents without it ignore it."""
    env_set: Pairs = ()
    """An option of the environments and the values to try, in the same way."""
    seeds: PerhapsCount = None
    """How many seeds, from 0 on; 1 by default."""
    episodes: PerhapsCount = None
    """How many episodes each run learns from; 20,000 if neither this nor --timesteps is given."""
    timesteps: PerhapsCount = None
    """How many environment steps each run learns from, in place of --episodes."""
    engine: Annotated[str | None, named("NAME")] = None
    """Where episodes come from, as for `steadyrl train`; auto by default."""
    on: Annotated[str, tyro.conf.arg(metavar="PLACE")] = "local"
    """Where to train: local, a process for each core here, or ray, a cluster."""
    address: Annotated[str | None, named("ADDRESS")] = None
    """With --on ray: where the cluster is, such as auto for the one that this machine belongs to."""
    log: Annotated[str, named("NAMES")] = ""
    """Loggers of every run, separated by commas: tensorboard, wandb, mlflow or jsonl."""
    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("runs/sweep")
    """Folder of the runs, each in a folder that is named by what it is."""
    checkpoint_every: Annotated[float, tyro.conf.arg(metavar="SECONDS")] = 60.0
    """Seconds between checkpoints; they come less often where they would take more than 1 % of the time."""
    progress: Progress = True
    """Whether to show progress on standard error: a table in a terminal, else a line now and then; shown by default."""
    page: Page = True
    """Whether to evaluate the trained policies and write a page about all runs; written by default."""
    yes: Flag = False
    """Train without asking, also if each run is of more than 1e8 episodes or 1e9 timesteps."""

    def __call__(self) -> None:
        """Run the command; status 1 if a run failed."""
        from steadyrl.reports.sweep_table import print_cells
        from steadyrl.runs.scheduler import train_all

        out = self.out.absolute()  # An environment may change the current folder.
        sweep = self._sweep()
        cells = sweep.cells(out, self.checkpoint_every)
        confirm_budget(sweep.budget, self.yes)
        with explain_resuming(), paths_as_typed(out, self.out):
            failures = train_all(cells, out, self.on, self.address, self.progress)
        print_cells(cells)
        if self.page:
            evaluate_many(cells, out, self.progress)
            write_page(out, self.out, sweep.envs, failures=failures)
        print(f"Saved in {self.out}.")
        exit_with_failures(failures)

    def _sweep(self) -> Any:
        """The sweep that the file describes, changed by the options of the command."""
        from steadyrl.agents import agent_class
        from steadyrl.runs import sweep
        from steadyrl.runs.sweep_file import read_sweep

        file = [Path(name) for name in self.what if name.endswith(".toml")]
        if file and len(self.what) > 1:
            raise ValueError(f"{file[0]}: name one file, or environments.")
        agents = None if self.agents is None else [agent_class(name).name for name in names_in(self.agents)]
        pairs, options = pairs_of("--set", self.set), pairs_of("--env-set", self.env_set)
        if file:
            described = read_sweep(file[0])
        else:
            described = sweep.Sweep(tuple(self.what), {agent: {} for agent in agents or ["mg"]})
        given: dict[str, Any] = {}
        if agents is not None:
            given["agents"] = {agent: described.agents.get(agent, {}) for agent in agents}
        if pairs:
            before = given.get("agents", described.agents)
            values = sweep.choices_of_text(before, pairs)
            given["agents"] = {agent: {**choices, **values[agent]} for agent, choices in before.items()}
        if options:
            values_of = {
                name: [value_of(part, f"--env-set {name}") for part in sweep.split(text)]
                for name, text in options.items()
            }
            given["env_settings"] = {**described.env_settings, **_checked(values_of, described.envs)}
        if self.seeds is not None:
            given["seeds"] = sweep.seeds_of(self.seeds)
        if self.episodes is not None or self.timesteps is not None:
            given["budget"] = sweep.budget_of(self.episodes, self.timesteps)
        if self.engine is not None:
            given["engine"] = self.engine
        if self.log:
            given["loggers"] = logger_names(self.log)
        return dataclasses.replace(described, **given)


def _checked(choices: dict[str, list[Any]], envs: tuple[str, ...]) -> dict[str, list[Any]]:
    """Values of options that fit the defaults of every environment."""
    from steadyrl.envs.options import checked_options

    for env in envs:
        choices = {
            name: [checked_options(env, {name: value})[name] for value in values] for name, values in choices.items()
        }
    return choices
