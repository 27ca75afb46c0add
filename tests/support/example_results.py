"""Results of an experiment without training: random curves and returns of the right shapes."""

import dataclasses

import numpy as np

from steadyrl.reports.figures.curves import Recorded
from steadyrl.reports.results.compact import downsample
from steadyrl.reports.results.results import Cell, FinalPolicy, Provenance, Results
from steadyrl.reports.tables import columns_of
from steadyrl.runs.experiment import load_experiment
from steadyrl.runs.final_evaluation import Evaluated

MADE = Provenance("steadyrl reproduce example", "2026-11-18", {"python": "3.11"}, "0123abc")
RATES = ("visiting_rate", "distance", "landed_rate", "landed_left_rate", "goal_rate", "white_path_rate")


def policy(rng, mean=100.0, episodes=1000, **metrics):
    """A final policy with normal returns; `metrics` are the means of episode metrics."""
    returns = rng.normal(mean, 10.0, episodes)
    columns = {name: np.full(episodes, value) for name, value in metrics.items()}
    evaluated = Evaluated(returns, returns / 2, columns, 0.99, 0)
    return FinalPolicy.of(evaluated, dataclasses.replace(evaluated, returns=returns[:100] + 5))


def full_curves(experiment, seeds, rng, records=600, every=10):
    """Curves of as many records as training writes: returns that rise, with noise."""
    level = np.linspace(0, 300, records) + rng.normal(0, 20, (seeds, records))
    rows = [row for rows in experiment.figures.values() for row in rows]
    training, evaluations = ({row.metric for row in rows if row.of == kind} for kind in ("training", "evaluations"))
    counters = {"episodes": np.tile(np.arange(1, records + 1) * every, (seeds, 1))}
    counters["timesteps"] = counters["episodes"] * 500 + rng.integers(100, size=(seeds, 1))

    def curves(names):
        rates = {name: rng.uniform(size=(seeds, records)) for name in names if name.endswith("_rate")}
        return counters | {name: level + rng.normal(0, 9, level.shape) for name in sorted(names)} | rates

    return Recorded(
        curves(training | {"return", "gini_deviation", "visiting_rate"}),
        {name: values[:, ::20] for name, values in curves(evaluations | {"return", "greedy_return"}).items()},
    )


def example_results(name="half_cheetah", seeds=3, few=None, rng=None, evaluated=True, study=None):
    """Results of an experiment, or of one of its studies; `few` maps methods to smaller numbers of seeds."""
    rng = rng or np.random.default_rng(0)
    experiment = load_experiment(name).study_experiments()[study] if study else load_experiment(name)
    by_name = {method.name: method for method in experiment.methods}
    cells = {}
    for variant in experiment.variants:
        for method in by_name.values():
            count = (few or {}).get(method.name, seeds)
            policies = tuple(policy(rng, visiting_rate=0.25, distance=12.0) for _ in range(count)) if evaluated else ()
            recorded = full_curves(experiment, count, rng)
            cells[variant.name, method.name] = Cell(variant, method, recorded, tuple(range(count)), policies)
    columns = columns_of(experiment, cells.values())
    for key, cell in cells.items():
        unit = next(iter(experiment.scale_of(cell.method).budget))
        rows = [row for rows in experiment.figures.values() for row in rows]
        small = [
            downsample(getattr(cell.recorded, kind), sorted({r.metric for r in rows if r.of == kind}), unit)
            for kind in ("training", "evaluations")
        ]
        finals = {column.key: column.values(cell.recorded) for column in columns}
        cells[key] = cell._replace(recorded=Recorded(*small, (), finals))
    return Results(experiment, cells, MADE, 1000 if evaluated else 0)
