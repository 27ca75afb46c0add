"""Trained agents to share: of each method the policy of its median seed, in a file small enough for a repository."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from steadyrl.agents import load
from steadyrl.base.files import write_atomic
from steadyrl.evaluation.risk_report import number_text
from steadyrl.reports.results.results import Cell, FinalPolicy, Results
from steadyrl.runs.job import Job, RunSpec

MAX_BYTES = 300_000
"""Of a file; larger policies are not shared."""
README = "README.md"


class Shared(NamedTuple):
    """One agent that was written."""

    cell: Cell
    file: Path
    seed: int
    policy: FinalPolicy


def score(cell: Cell, policy: FinalPolicy) -> float:
    """What seeds are ordered by: E - lambda D of MG's policies, and E of others, of undiscounted returns."""
    aversion = cell.method.settings.get("risk_aversion", 0.0) if cell.method.agent == "mg" else 0.0
    return policy.returns["mean"] - aversion * policy.returns["gini_deviation"]


def median_seed(cell: Cell) -> int | None:
    """The seed with the median score, of two the lower one; None if no final policy was evaluated."""
    pairs = zip(cell.seeds, cell.policies, strict=False)
    scores = {seed: score(cell, policy) for seed, policy in pairs if policy is not None}
    if not scores:
        return None
    return sorted(scores, key=lambda seed: (scores[seed], seed))[(len(scores) - 1) // 2]


def share_agents(results: Results, jobs: Mapping[tuple[str, str], Job], folder: Path) -> list[Path]:
    """Write an agent of each variant and method, and a page about them, into a folder of the experiment's name.

    If the run of the median seed is not among `jobs`, because it was made elsewhere, a file that is there stays.
    """
    out, several = folder / results.experiment.name, len(results.experiment.variants) > 1
    shared = []
    for key, cell in results.cells.items():
        place = out / cell.variant.folder if several else out
        file = place / f"{cell.method.name}.steady"
        run = _run_to_share(cell, jobs.get(key), file)
        if run is not None:
            place.mkdir(parents=True, exist_ok=True)
            load(run.folder).save(file, policy_only=True)
        if file.is_file() and (size := file.stat().st_size) > MAX_BYTES:
            print(f"{file} is not kept: it has {size:,} bytes, and at most {MAX_BYTES:,} are shared.")
            file.unlink()
        if file.is_file():
            seed = load(file).seed
            policy = dict(zip(cell.seeds, cell.policies, strict=False)).get(seed)
            shared += [Shared(cell, file, seed, policy)] if policy is not None else []
    if shared:
        write_atomic(out / README, _page(results, shared, out).encode())
    return [one.file for one in shared]


def _run_to_share(cell: Cell, job: Job | None, file: Path) -> RunSpec | None:
    """The run of the median seed; if that is not here and there is no file yet, of the median of those that are."""
    runs = {run.seed: run for run in job.runs} if job is not None else {}
    seed = median_seed(cell)
    if seed not in runs and not file.is_file():
        here = [(one, policy) for one, policy in zip(cell.seeds, cell.policies, strict=False) if one in runs]
        seed = median_seed(cell._replace(seeds=tuple(s for s, _ in here), policies=tuple(p for _, p in here)))
    return runs.get(seed) if seed is not None else None


def _page(results: Results, shared: list[Shared], out: Path) -> str:
    rows = [["file", "variant", "method", "seed", "of seeds", "return", "GD"], ["---"] * 7]
    for one in shared:
        numbers = [number_text(one.policy.returns[name]) for name in ("mean", "gini_deviation")]
        count = sum(policy is not None for policy in one.cell.policies)
        path = one.file.relative_to(out).as_posix()
        names = [f"[{path}]({path})", one.cell.variant.name, one.cell.method.title]
        rows.append([*names, str(one.seed), str(count), *numbers])
    first = shared[0].file.relative_to(out).as_posix()
    return "\n\n".join(
        [
            f"# Agents of {results.experiment.title}",
            "Of each method the policy of the median seed among those that were complete when it was written: by\n"
            "return, and with MG by return - lambda GD. A file has the policy alone: it can be evaluated, filmed and\n"
            "exported, not trained further.",
            f"    steadyrl evaluate {first} --episodes 100\n    steadyrl watch {first}",
            "\n".join(f"| {' | '.join(row)} |" for row in rows),
            f"Return and GD are of {results.evaluation_episodes:,} episodes. Settings and all seeds: the results file "
            f"of {results.experiment.name}.\n",
        ]
    )
