"""The commands that train: train, sweep, reproduce."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from steadyrl.commands.arguments import Pairs, PerhapsCount, options_of, pairs_of, value_of

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent
    from steadyrl.runs import Run
    from steadyrl.scheduling import Failure
    from steadyrl.training import Listener


@dataclass(frozen=True)
class Train:
    """Train an agent and write a run folder: config, metrics, checkpoint.

    A run that was broken off goes on from its last checkpoint when the same command is given again.

    Example: steadyrl train steadyrl/GuardedMaze-v0 --agent mg --set risk_aversion=1.4 --episodes 50000
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    """A Gymnasium id, such as steadyrl/GuardedMaze-v0, or module:factory for an environment of your own."""
    agent: str = "mg"
    """The method, such as mg, mvo or reinforce; `steadyrl agents` tells about each of them."""
    set: Pairs = ()
    """A setting of the agent, as name=value; may be given many times. `steadyrl agents NAME` lists them."""
    env_set: Pairs = ()
    """An option of the environment, as name=value; may be given many times."""
    seed: int = 0
    """Seed of everything random in the run."""
    episodes: PerhapsCount = None
    """How many episodes to learn from; 20,000 if neither this nor --timesteps is given."""
    timesteps: PerhapsCount = None
    """How many environment steps to learn from, in place of --episodes."""
    engine: str = "auto"
    """Where episodes come from, such as compiled or gymnasium; auto takes what fits, and EnvPool only if asked."""
    out: Path | None = None
    """Run folder; by default runs/ENV-AGENT-seedN, with the settings that are given in its name."""
    tensorboard: bool = False
    """Whether to write TensorBoard events too, into the run folder."""
    progress: bool = True
    """Whether to show progress."""
    checkpoint_every: float = 60.0
    """Seconds between checkpoints; they come less often where they would take more than 1 % of the time."""

    def __call__(self) -> None:
        """Run the command."""
        from functools import partial

        from steadyrl.agents import agent_class
        from steadyrl.envs.resolve import resolve
        from steadyrl.envs.source import Source
        from steadyrl.job import Job, carry_out
        from steadyrl.progress import TrainingProgress
        from steadyrl.sweep import budget_of, folder_name, short_name
        from steadyrl.tensorboard import TensorBoard, tensorboard_x

        kind = agent_class(self.agent)
        pairs, options = pairs_of("--set", self.set), options_of(self.env_set)
        budget = budget_of(self.episodes, self.timesteps)
        chosen = kind.chosen(pairs, *Source.of(partial(resolve, self.env, **options)).spaces)
        if self.tensorboard:
            tensorboard_x()  # That it is missing is found before there is a folder.
        name = folder_name(f"{short_name(self.env)}-{kind.name}", {**options, **pairs})
        out = self.out or Path("runs") / f"{name}-seed{self.seed}"
        job = Job(
            env=self.env,
            env_options=options,
            agent=kind.name,
            settings=dataclasses.asdict(kind.settings_class(chosen).of_text(chosen)),
            seeds=(self.seed,),
            folders=(out,),
            budget=budget,
            title=kind.name,
            engine=self.engine,
            checkpoint_seconds=self.checkpoint_every,
        )
        with ExitStack() as stack:

            def listening(agents: Sequence[Agent], runs: Sequence[Run]) -> list[Listener]:
                (agent,), ((unit, total),) = agents, budget.items()
                done = getattr(agent, unit)
                if done:
                    print(f"Going on in {out} after {agent.episodes:,} episodes.", file=sys.stderr)
                listeners: list[Listener] = []
                if self.progress:
                    listeners.append(stack.enter_context(TrainingProgress(kind.name, unit, total, agents, done)))
                if self.tensorboard:
                    events = TensorBoard(out, agent)
                    stack.callback(events.close)
                    listeners.append(events)
                return listeners

            trained = carry_out(job, listening)
        print("\n".join(map(_summary, trained)) or "This run is complete already.")
        if self.tensorboard and trained:
            print(f"Events: tensorboard --logdir {TensorBoard(out, trained[0]).folder}")
        print(f"Saved in {out}. Its risk: steadyrl evaluate {out}")


@dataclass(frozen=True)
class Sweep:
    """Train every combination of environments, agents, settings and seeds, many at a time: here, or on a cluster.

    Finished runs are kept and broken ones go on when the same command is given again.

    Example: steadyrl sweep CartPole-v1 --agents mg,mvo --set risk_aversion=0.3,0.6,1.2 --seeds 10 --episodes 5000

    From a file, on a cluster: steadyrl sweep my_sweep.toml --on ray --address auto
    """

    what: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="ENV ... | FILE.toml")]
    """Environments, as Gymnasium ids or module:factory; or one file that describes the sweep."""
    agents: Annotated[str | None, tyro.conf.arg(aliases=["--agent"])] = None
    """The methods, separated by commas, such as mg,mvo; mg by default."""
    set: Pairs = ()
    """A setting and the values to try, as name=value,value; may be given many times. Agents without it go without."""
    env_set: Pairs = ()
    """An option of the environments and the values to try, in the same way."""
    seeds: PerhapsCount = None
    """How many seeds, from 0 on; 1 by default."""
    episodes: PerhapsCount = None
    """How many episodes each run learns from; 20,000 if neither this nor --timesteps is given."""
    timesteps: PerhapsCount = None
    """How many environment steps each run learns from, in place of --episodes."""
    engine: str | None = None
    """Where episodes come from, as for `steadyrl train`."""
    on: str = "local"
    """Where to train: local, a process for each core here, or ray, a cluster."""
    address: str | None = None
    """With --on ray: where the cluster is, such as auto for the one that this machine belongs to."""
    out: Path = Path("runs/sweep")
    """Folder of the runs, each in a folder that is named by what it is."""
    checkpoint_every: float = 60.0
    """Seconds between checkpoints; they come less often where they would take more than 1 % of the time."""

    def __call__(self) -> None:
        """Run the command; status 1 if a run failed."""
        from steadyrl.scheduling import train_all
        from steadyrl.sweep_summary import print_cells

        cells = self._sweep().cells(self.out, self.checkpoint_every)
        with _said_how_to_go_on():
            failures = train_all(cells, self.out, self.on, self.address)
        print_cells(cells)
        print(f"Saved in {self.out}. A page about it: steadyrl report {self.out}")
        _end(failures)

    def _sweep(self) -> Any:
        """What was asked for: the file's, and in place of it what the command says."""
        from steadyrl import sweep
        from steadyrl.agents import agent_class

        file = [Path(name) for name in self.what if name.endswith(".toml")]
        if file and len(self.what) > 1:
            raise ValueError(f"{file[0]}: name one file, or environments.")
        agents = None if self.agents is None else [agent_class(name).name for name in _names(self.agents)]
        pairs, options = pairs_of("--set", self.set), pairs_of("--env-set", self.env_set)
        if file:
            asked = sweep.read_sweep(file[0])
        else:
            asked = sweep.Sweep(tuple(self.what), {agent: {} for agent in agents or ["mg"]})
        given: dict[str, Any] = {}
        if agents is not None:
            given["agents"] = {agent: asked.agents.get(agent, {}) for agent in agents}
        if pairs:
            before = given.get("agents", asked.agents)
            values = sweep.choices_of_text(before, pairs)
            given["agents"] = {agent: {**choices, **values[agent]} for agent, choices in before.items()}
        if options:
            values_of = {name: [value_of(part) for part in sweep.split(text)] for name, text in options.items()}
            given["env_settings"] = {**asked.env_settings, **values_of}
        if self.seeds is not None:
            given["seeds"] = sweep.seeds_of(self.seeds)
        if self.episodes is not None or self.timesteps is not None:
            given["budget"] = sweep.budget_of(self.episodes, self.timesteps)
        if self.engine is not None:
            given["engine"] = self.engine
        return dataclasses.replace(asked, **given)


@dataclass(frozen=True)
class Reproduce:
    """Train every method of one of the paper's experiments, print its table and draw its figures."""

    experiment: tyro.conf.Positional[str]
    """Which one, such as maze."""
    quick: bool = False
    """A small scale that shows the shape of the result in a minute or two."""
    seeds: PerhapsCount = None
    """How many seeds; by default as many as the experiment's file says."""
    agents: str | None = None
    """Only these methods, separated by commas, such as mg,mvo."""
    episodes: PerhapsCount = None
    """Episodes for each seed; by default as many as the experiment's file says."""
    timesteps: PerhapsCount = None
    """Steps for each seed of the methods whose length the file gives in steps: DQN, TD3, and MVPI on them."""
    engine: str | None = None
    """Where episodes come from, such as gymnasium; by default as the experiment's file says."""
    out: Path | None = None
    """Folder of the results; by default results/EXPERIMENT, or results/EXPERIMENT-quick."""
    on: str = "local"
    """Where to train: local, a process for each core here, or ray, a cluster."""
    address: str | None = None
    """With --on ray: where the cluster is, such as auto for the one that this machine belongs to."""

    def __call__(self) -> None:
        """Run the command; status 1 if a run failed."""
        from steadyrl.experiment import load
        from steadyrl.reproduce import reproduce

        scale = {"seeds": self.seeds, "episodes": self.episodes, "timesteps": self.timesteps}
        experiment = load(self.experiment, quick=self.quick, **scale)
        methods = None if self.agents is None else _names(self.agents)
        out = self.out or Path("results") / (f"{self.experiment}-quick" if self.quick else self.experiment)
        if self.engine is not None:
            experiment = dataclasses.replace(experiment, engine=self.engine)
        with _said_how_to_go_on():
            _end(reproduce(experiment.only(methods) if methods else experiment, out, self.on, self.address))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


@contextmanager
def _said_how_to_go_on() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "The same command keeps what is finished, and goes on with what was saved of the rest."
        ) from None


def _end(failures: Sequence[Failure]) -> None:
    """Say which runs failed, and end with status 1 if some did."""
    if failures:
        print(f"steadyrl: {len(failures)} failed; the same command tries them again:", file=sys.stderr)
        for failure in failures:
            print(f"  {failure}", file=sys.stderr)
        sys.exit(1)


def _summary(agent: Agent) -> str:
    last = agent.history[-1] if agent.history else {}
    shown = ["return", "undiscounted_gini_deviation", *(name for name in last if name.endswith("_rate"))]
    told = ", ".join(f"{name} {last[name]:.3g}" for name in shown if name in last)
    return f"{agent.name} after {agent.episodes:,} episodes ({agent.timesteps:,} steps): {told}"
