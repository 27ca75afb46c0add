"""A folder with a frontier and its runs, made up."""

from report_runs import RECORDS, fake_run

from steadyrl.evaluation.frontier import Frontier, FrontierPoint
from steadyrl.evaluation.risk_report import Estimate


def write_frontier(folder):
    """MG with lambda 0 and 1, which have runs, and a dominated point whose runs are gone."""
    for aversion in (0, 1):
        run = folder / f"mg,risk_aversion={aversion}" / "seed0"
        fake_run(run, settings={"risk_aversion": aversion}, records=RECORDS, command="/bin/steadyrl frontier x")
    points = [_point("mg", a, 10.0 - a, 5.0 - a, [f"mg,risk_aversion={a}/seed0"]) for a in (0, 1)]
    gone = _point("gone", None, 1.0, 9.0, [])
    Frontier((*points, gone), "steadyrl/GuardedMaze-v0").save(folder / "frontier.json")


def _point(agent, aversion, mean, gini, runs):
    estimates = [Estimate(value, value - 1, value + 1) for value in (mean, gini, gini, -gini)]
    return FrontierPoint(agent, aversion, *estimates, seeds=1, episodes=20, runs=runs)
