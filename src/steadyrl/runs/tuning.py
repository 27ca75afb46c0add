"""Search for good settings: trials of an agent with settings that Optuna proposes, each with several seeds.

A trial is trained seed by seed in run folders and evaluated after each, so that bad ones can be pruned after the first
seeds. The study is in an SQLite file. When its process is killed, the trials that were running still have their
settings there and their checkpoints on disk, and the same call continues them.
"""

from __future__ import annotations

import io
import json
import math
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyrl.agents import agent_class
from steadyrl.base.files import lock_folder
from steadyrl.base.machine import usable_cores
from steadyrl.evaluation.reported import REPORTED
from steadyrl.runs.final_evaluation import EPISODES, EvaluationJob, evaluate_all, evaluate_job, read_evaluation
from steadyrl.runs.frontier import Place
from steadyrl.runs.frontier_plan import default_out
from steadyrl.runs.job import Job
from steadyrl.runs.risk_aversions import rounded
from steadyrl.runs.scheduler import train_all
from steadyrl.runs.search_space import Space, dimension_of
from steadyrl.runs.sweep import budget_of, seeds_of
from steadyrl.runs.tuning_plan import SAMPLER_SEEDS, SEEDS, TRIALS, TunePlan, plan_of
from steadyrl.runs.tuning_results import Trial, Tuning
from steadyrl.training.progress import print_line
from steadyrl.training.run_folder import is_complete

STUDY, DATABASE = "study", "study.db"
PARALLEL_ON_RAY = 8
"""Trials at a time on a cluster, by default."""
IN_PROCESS = 8
"""More policies than this are evaluated in several processes."""
STARTUP, PRUNING_STARTUP = 10, 4
"""Trials with random settings before the search learns from them, and trials before any is pruned."""


def import_optuna() -> Any:
    """Optuna, or an error that says how to install it."""
    try:
        import optuna
    except ModuleNotFoundError:
        raise ModuleNotFoundError("tune needs Optuna, which is not installed: pip install 'steadyrl[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def run_tuning(plan: TunePlan, place: Place, trials: int, parallel: int | None = None) -> Tuning:
    """Run trials until there are so many, from earlier calls too; returns all of them."""
    optuna = import_optuna()
    check_arguments(place, trials, parallel)
    at_a_time = parallel or (PARALLEL_ON_RAY if place.on == "ray" else usable_cores())
    with lock_folder(place.out / STUDY), _opened(optuna, plan, place.out) as study:
        _Search(optuna, study, plan, place, trials).run(at_a_time)
        return Tuning(plan, tuple(_trial(trial, plan) for trial in study.get_trials(deepcopy=False)))


def check_arguments(place: Place, trials: int, parallel: int | None) -> None:
    """An error for what `run_tuning` cannot run with, before there is a study in the folder."""
    if trials < 1:
        raise ValueError(f"trials {trials}: at least 1 is needed.")
    if parallel is not None and parallel < 1:
        raise ValueError(f"parallel {parallel}: at least 1 trial at a time is needed.")
    train_all((), place.out, place.on, place.address)  # There is nothing to train: it checks the place.


@contextmanager
def _opened(optuna: Any, plan: TunePlan, out: Path) -> Iterator[Any]:
    """The study in a folder, which is new or has the same plan."""
    storage = optuna.storages.RDBStorage(f"sqlite:///{(out / STUDY / DATABASE).absolute()}")
    try:
        lower = [name in plan.lower_is_better for name in plan.objectives] or [False]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # What Optuna calls experimental.
            study = optuna.create_study(
                study_name="tune",
                storage=storage,
                directions=["minimize" if less else "maximize" for less in lower],
                load_if_exists=True,
                pruner=optuna.pruners.MedianPruner(n_startup_trials=PRUNING_STARTUP),
            )
            # A study that is continued must not draw the numbers of its first trials again.
            seed = (plan.sampler_seed + len(study.get_trials(deepcopy=False))) % SAMPLER_SEEDS
            study.sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP)
        _check_same(study, plan, out)
        yield study
    finally:
        storage.engine.dispose()


def _check_same(study: Any, plan: TunePlan, out: Path) -> None:
    record = json.loads(json.dumps(plan.record()))
    found = study.user_attrs.get("plan")
    if found is None:
        study.set_user_attr("plan", record)
        return
    if differing := sorted(name for name in record if found.get(name) != record[name]):
        raise FileExistsError(
            f"{out} already holds a study with other {', '.join(differing)}. Choose another --out, or remove it."
        )


class _Search:
    """Proposes settings, trains them and reports what came out."""

    def __init__(self, optuna: Any, study: Any, plan: TunePlan, place: Place, trials: int) -> None:
        self._optuna, self._study, self._plan, self._place, self._trials = optuna, study, plan, place, trials
        self._state = optuna.trial.TrialState
        self._started, self._finished_before = time.monotonic(), self._finished()

    def run(self, at_a_time: int) -> None:
        """Run all trials."""
        if not self._study.get_trials(deepcopy=False):
            self._enqueue_defaults()
        running = self._study.get_trials(deepcopy=False, states=(self._state.RUNNING,))
        batch = [self._optuna.trial.Trial(self._study, trial._trial_id) for trial in running]
        while True:
            missing = self._trials - self._finished() - len(batch)
            for _ in range(min(max(at_a_time - len(batch), 0), max(missing, 0))):
                batch.append(self._study.ask(self._distributions()))
            if not batch:
                return
            self._run_together(batch)
            self._show_progress()
            batch = []

    def _enqueue_defaults(self) -> None:
        """The first trial has the default settings, as far as they are in range."""
        defaults = vars(self._plan.cell(self._place.out, 0, {}, [0]).make_agents()[0].settings)
        found = {name: defaults[name] for name, one in self._plan.space.items() if one.contains(defaults[name])}
        chosen = {name: _encoded(value, self._plan.space[name].kind) for name, value in found.items()}
        self._study.enqueue_trial(chosen)

    def _distributions(self) -> dict[str, Any]:
        kinds = self._optuna.distributions
        made = {}
        for name, one in self._plan.space.items():
            if one.kind == "choice":
                made[name] = kinds.CategoricalDistribution([json.dumps(choice) for choice in one.choices])
            elif one.kind == "int":
                made[name] = kinds.IntDistribution(int(one.low), int(one.high), log=one.log)
            else:
                made[name] = kinds.FloatDistribution(one.low, one.high, log=one.log)
        return made

    def _run_together(self, batch: Sequence[Any]) -> None:
        """Train and evaluate trials seed by seed; those that fail or are pruned are left out from then on."""
        returns: dict[int, list[NDArray[np.float64]]] = {trial.number: [] for trial in batch}
        alive = list(batch)
        for step, seed in enumerate(self._plan.seeds, start=1):
            alive = self._with_seed(alive, seed, returns)
            if step < len(self._plan.seeds) and not self._plan.objectives:
                alive = [trial for trial in alive if not self._pruned(trial, step, returns[trial.number])]
        for trial in alive:
            self._record(trial, returns[trial.number])
            self._study.tell(trial, list(self._plan.values(returns[trial.number])))

    def _with_seed(self, alive: Sequence[Any], seed: int, returns: dict[int, list[NDArray[np.float64]]]) -> list[Any]:
        """Train and evaluate one seed of each trial; returns those that did not fail."""
        cells: dict[int, Job] = {}
        for trial in alive:
            settings = settings_of(trial.params, self._plan.space)
            cell = self._plan.cell(self._place.out, trial.number, settings, [seed])
            try:
                cell.make_agents()  # Settings may be fine on their own, and not together.
            except ValueError as error:
                self._fail(trial, str(error))
                continue
            cells[trial.number] = cell
        reasons = self._train(list(cells.values()))
        survivors = []
        for trial in alive:
            if trial.number not in cells:
                continue
            folder = cells[trial.number].folders[0]
            found = read_evaluation(folder, self._plan.episodes) if is_complete(folder) else None
            if found is None:
                self._fail(trial, reasons.get(folder, "its run is not complete."))
                continue
            returns[trial.number].append(found.returns)
            survivors.append(trial)
        return survivors

    def _train(self, cells: Sequence[Job]) -> dict[Path, str]:
        """Train and evaluate what is missing; run folder -> why it failed."""
        if not cells:
            return {}
        place = self._place
        with redirect_stdout(io.StringIO()):  # Messages about each part; there is a line about all trials.
            failures = train_all(cells, place.out, place.on, place.address, place.progress)
            failed = {folder: failure.reason for failure in failures for folder in failure.job.folders}
            done = [cell for cell in cells if cell.folders[0] not in failed]
            if len(done) > IN_PROCESS:
                failures = evaluate_all(done, place.out, self._plan.episodes, progress=place.progress)
                return failed | {folder: one.reason for one in failures for folder in one.job.folders}
            for cell in done:
                if read_evaluation(cell.folders[0], self._plan.episodes) is None:
                    try:
                        evaluate_job(EvaluationJob(cell, cell.runs, self._plan.episodes))
                    except ValueError as error:
                        failed[cell.folders[0]] = str(error)
        return failed

    def _pruned(self, trial: Any, step: int, returns: list[NDArray[np.float64]]) -> bool:
        """Whether a trial is worse than the median of earlier ones after as many seeds; then it ends."""
        if step not in self._study.trials[trial.number].intermediate_values:  # It may have been, before it was resumed.
            trial.report(self._plan.values(returns)[0], step)
        if not trial.should_prune():
            return False
        self._record(trial, returns)
        self._study.tell(trial, state=self._state.PRUNED)
        return True

    def _record(self, trial: Any, returns: Sequence[NDArray[np.float64]]) -> None:
        pooled = np.concatenate(returns)
        measures = {name: float(measure(pooled)) for name, measure in REPORTED.items()}
        trial.set_user_attr("measures", {name: value for name, value in measures.items() if math.isfinite(value)})
        trial.set_user_attr("seeds", len(returns))

    def _fail(self, trial: Any, reason: str) -> None:
        trial.set_user_attr("reason", reason)
        self._study.tell(trial, state=self._state.FAIL)
        if self._place.progress:
            print_line(f"trial {trial.number} failed: {reason}")

    def _finished(self) -> int:
        states = (self._state.COMPLETE, self._state.PRUNED, self._state.FAIL)
        return len(self._study.get_trials(deepcopy=False, states=states))

    def _show_progress(self) -> None:
        if not self._place.progress:
            return
        finished = self._finished()
        here, left = finished - self._finished_before, self._trials - finished
        minutes = (time.monotonic() - self._started) / max(here, 1) * left / 60
        remaining = f", about {minutes:.0f} min left" if left and minutes >= 1 else ""
        best = ""
        complete = self._study.get_trials(deepcopy=False, states=(self._state.COMPLETE,))
        if complete and not self._plan.objectives:
            first = max(complete, key=lambda trial: trial.value)
            best = f", best {first.value:.4g} (trial {first.number})"
        print_line(f"tune: {finished} of {self._trials} trials{best}{remaining}")
        sys.stderr.flush()


def _encoded(value: Any, kind: str) -> Any:
    return json.dumps(value) if kind == "choice" else value


def settings_of(params: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """The settings of a trial; numbers have four digits, so that they can be read and written."""
    settings: dict[str, Any] = {}
    for name, value in params.items():
        one = space[name]
        if one.kind == "choice":
            settings[name] = json.loads(value)
        elif one.kind == "int":
            settings[name] = int(value)
        else:
            settings[name] = min(max(rounded(value), one.low), one.high)
    return settings


def _trial(trial: Any, plan: TunePlan) -> Trial:
    """A trial as the results have it."""
    attributes = trial.user_attrs
    return Trial(
        number=trial.number,
        state=trial.state.name.lower(),
        settings=settings_of(trial.params, plan.space),
        values=tuple(trial.values or ()),
        measures=dict(attributes.get("measures", {})),
        seeds=int(attributes.get("seeds", 0)),
        reason=str(attributes.get("reason", "")),
    )


def tune(
    env: str,
    agent: str = "mg",
    *,
    trials: int = TRIALS,
    seeds: int | list[int] = SEEDS,
    episodes: int | None = None,
    timesteps: int | None = None,
    settings: Mapping[str, Any] | None = None,
    search: Mapping[str, Any] | None = None,
    only: bool = False,
    measure: str | None = None,
    risk_aversion: float | None = None,
    objectives: Sequence[str] = (),
    env_options: Mapping[str, Any] | None = None,
    evaluation_episodes: int = EPISODES,
    parallel: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    on: str = "local",
    address: str | None = None,
    engine: str = "auto",
    progress: bool = True,
) -> Tuning:
    """Search for good settings of an agent with Optuna; needs `steadyrl[tune]`.

    Example:
        >>> found = tune("CartPole-v1", "mg", trials=20, seeds=2, timesteps=50_000)
        >>> print(found); found.save("best.toml")
        >>> agent = MeanGini("CartPole-v1", **found.best.settings)

    What is maximized is a lower confidence bound of mean(R) - risk_aversion * measure(R), R the returns of all seeds'
    evaluation episodes: the 10 % quantile over resamples of seeds and of episodes within them. After each seed, trials
    below the median of the earlier ones are pruned. The same call continues a study that was interrupted.

    Args:
        env: A Gymnasium id or module:factory.
        agent: The name of an agent.
        trials: How many, those of earlier calls included.
        seeds: How many for each trial, or which ones.
        episodes: How long each run is trained; or
        timesteps: the same in environment steps.
        settings: Settings that are not searched.
        search: Further or other ranges: name -> (low, high), {"low": ..., "high": ..., "log": True}, or a list of
            values.
        only: Whether to search these alone, without the defaults of the agent.
        measure: The risk, such as "gini", "std", "cvar:0.2"; by default what the agent penalizes.
        risk_aversion: Its weight in the objective; by default that of the agent, 0 for agents that have none.
        objectives: Several measures, such as ["mean", "gini"], each an objective: the result is their Pareto set, and
            the agent's risk_aversion is searched too. Nothing is pruned.
        env_options: Options of the environment.
        evaluation_episodes: Episodes that each trained policy is evaluated in.
        parallel: Trials at a time; by default one for each core.
        seed: Of the search.
        out: Folder, by default runs/tune-ENV-AGENT.
        on: "local" or "ray".
        address: Of a Ray cluster.
        engine: See `Agent`.
        progress: Whether to show progress.
    """
    name = agent_class(agent).name
    lines = {
        key: dict(zip(("low", "high"), line, strict=True)) if _is_pair(line) else line
        for key, line in (search or {}).items()
    }
    plan = plan_of(
        env,
        name,
        dict(settings or {}),
        {one.name: one for one in (dimension_of(name, key, line) for key, line in lines.items())},
        only=only,
        measure=measure,
        risk_aversion=risk_aversion,
        objectives=objectives,
        env_options=env_options,
        engine=engine,
        seeds=seeds_of(seeds),
        budget=budget_of(episodes, timesteps),
        episodes=evaluation_episodes,
        sampler_seed=seed,
    )
    folder = Path(out) if out is not None else tuning_out(plan)
    return run_tuning(plan, Place(folder, on, address, progress), trials, parallel)


def _is_pair(line: Any) -> bool:
    return isinstance(line, tuple) and len(line) == 2 and all(isinstance(end, int | float) for end in line)


def tuning_out(plan: TunePlan) -> Path:
    """Where a study is by default."""
    return Path(f"{default_out('tune', plan.env, plan.env_options)}-{plan.agent}")
