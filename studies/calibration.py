"""Which lambda suits each method of the paper? The same number of tries for each, with the same mean part.

    python -m studies.calibration inverted_pendulum     # trains what is missing; an hour on one core
    python -m studies.calibration                       # writes docs/results/calibration.md from what is there

The tries are a sweep, docs/results/calibration/DOMAIN.toml, on seeds that nothing else is reported on. A method gets
the lambda with the highest E - lambda D, where this lambda is that of MG's calibrated settings.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steadyrl import risk
from steadyrl.runs.experiment import load_experiment
from steadyrl.runs.final_evaluation import EPISODES, evaluate_all, read_evaluation
from steadyrl.runs.job import Job
from steadyrl.runs.scheduler import train_all
from steadyrl.runs.sweep_file import read_sweep
from steadyrl.training.run_folder import read_config
from studies.markdown_page import provenance, table, wrap

FOLDER = Path(__file__).parents[1] / "docs" / "results" / "calibration"
PAGE = FOLDER.with_suffix(".md")
TITLES = {"mg": "MG", "mvo": "MVO", "tamar": "Tamar", "mvp": "MVP"}
HEAD = ["method", "lambda", "return", "GD", "E - {:g} D", "by seed"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the sweep of a domain, or write the page."""
    parser = argparse.ArgumentParser(description="The same number of tries of lambda for each method.")
    parser.add_argument("domain", nargs="?", choices=[file.stem for file in sorted(FOLDER.glob("*.toml"))])
    parser.add_argument("--out", type=Path, default=Path("results/calibration"), help="folder of the runs")
    args = parser.parse_args(arguments)
    if args.domain:
        tries = run(args.domain, args.out.absolute() / args.domain)
        (FOLDER / f"{args.domain}.json").write_text(json.dumps(tries, indent=1) + "\n")
    PAGE.write_text(page())
    print(f"Written: {PAGE}")


def run(domain: str, out: Path) -> dict[str, Any]:
    """Train and evaluate what is missing; mean and Gini deviation of each run, and what they were made with."""
    cells = read_sweep(FOLDER / f"{domain}.toml").cells(out)
    failures = [*train_all(cells, out), *evaluate_all(cells, out)]
    if failures:
        raise SystemExit("\n".join(map(str, failures)))
    commits = {read_config(folder).get("commit") for cell in cells for folder in cell.folders}
    return {"tries": [_try(cell) for cell in cells], "commits": sorted(filter(None, commits)), **provenance()}


def _try(cell: Job) -> dict[str, Any]:
    """The final policies of one method with one lambda."""
    settings = cell.runs[0].settings
    evaluated = [read_evaluation(run.folder, EPISODES) for run in cell.runs]
    returns = [each.returns for each in evaluated if each is not None]
    return {
        "method": " by ".join([TITLES[cell.agent], *([settings["credit"]] if "credit" in settings else [])]),
        "risk_aversion": settings["risk_aversion"],
        "seeds": [run.seed for run in cell.runs],
        "E": [round(float(np.mean(each)), 3) for each in returns],
        "D": [round(float(risk.gini_deviation(each)), 3) for each in returns],
    }


def page() -> str:
    """The tables of all domains that have been run."""
    parts = [
        "# Choice of lambda",
        "The same number of tries for each method of the paper: four lambdas, with one and the same PPO for the mean, "
        "the one that was calibrated for MG ([credit by step](step_credit.md)). A method gets the lambda with the "
        "highest E - lambda D, where this lambda is that of MG's calibrated settings; it is in bold. E and D are the "
        f"mean and the Gini deviation of the undiscounted returns of {EPISODES} episodes of a final policy, averaged "
        "over seeds. The seeds are those of searches: what was chosen is reported on others ([claims](README.md)).",
    ]
    for file in sorted(FOLDER.glob("*.json")):
        parts += _section(file.stem, json.loads(file.read_text()))
    return wrap("\n\n".join(parts))


def _section(domain: str, found: dict[str, Any]) -> list[str]:
    experiment = load_experiment(domain)
    (weight,) = (m.settings["risk_aversion"] for m in experiment.methods if m.name == "mg_calibrated")
    best = chosen(found["tries"], weight)
    rows = [_row(each, weight, best[each["method"]] == each["risk_aversion"]) for each in found["tries"]]
    versions = ", ".join(f"{name} {found[name]}" for name in ("python", "steadyrl", "jax", "numpy"))
    return [
        f"## {experiment.title}",
        table([each.format(weight) for each in HEAD], rows, left=1),
        f"    python -m studies.calibration {domain}",
        f"Seeds {', '.join(map(str, found['tries'][0]['seeds']))}; all settings: "
        f"[{domain}.toml](calibration/{domain}.toml). {found['date']}; {versions}; "
        f"commit {', '.join(commit[:10] for commit in found['commits'])}.",
    ]


def chosen(tries: Sequence[dict[str, Any]], weight: float) -> dict[str, float]:
    """Method -> its lambda with the highest E - weight D, on average over seeds."""
    best: dict[str, dict[str, Any]] = {}
    for each in tries:
        so_far = best.setdefault(each["method"], each)
        if np.mean(_scores(each, weight)) > np.mean(_scores(so_far, weight)):
            best[each["method"]] = each
    return {method: each["risk_aversion"] for method, each in best.items()}


def _scores(tried: dict[str, Any], weight: float) -> list[float]:
    """E - weight D by seed."""
    return [e - weight * d for e, d in zip(tried["E"], tried["D"], strict=True)]


def _row(tried: dict[str, Any], weight: float, is_best: bool) -> list[str]:
    scores = _scores(tried, weight)
    mark = "**" * is_best
    cells = [f"{mark}{tried['risk_aversion']:g}{mark}", *(f"{np.mean(tried[name]):.4g}" for name in "ED")]
    return [
        tried["method"],
        *cells,
        f"{mark}{np.mean(scores):.4g}{mark}",
        ", ".join(f"{score:.4g}" for score in scores),
    ]


if __name__ == "__main__":
    main()
