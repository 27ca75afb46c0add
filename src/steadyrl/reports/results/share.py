"""Trained agents to share: of each method the policy of its median seed, in a file small enough for a repository."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from steadyrl.agents import load
from steadyrl.base.files import write_atomic
from steadyrl.evaluation.risk_report import number_text
from steadyrl.reports.results.results import Cell, FinalPolicy, Results
from steadyrl.runs.job import Job

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
    """Write an agent of each variant and method, and a page about them, into a folder of the experiment's name."""
    out, several = folder / results.experiment.name, len(results.experiment.variants) > 1
    shared = []
    for key, cell in results.cells.items():
        seed = median_seed(cell)
        if seed is None:
            continue
        run = next(run for run in jobs[key].runs if run.seed == seed)
        place = out / cell.variant.folder if several else out
        place.mkdir(parents=True, exist_ok=True)
        file, policy = place / f"{cell.method.name}.steady", cell.policies[cell.seeds.index(seed)]
        load(run.folder).save(file, policy_only=True)
        if file.stat().st_size > MAX_BYTES:
            print(f"{file} is not kept: it has {file.stat().st_size:,} bytes, and at most {MAX_BYTES:,} are shared.")
            file.unlink()
        elif policy is not None:
            shared.append(Shared(cell, file, seed, policy))
    if shared:
        write_atomic(out / README, _page(results, shared, out).encode())
    return [one.file for one in shared]


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
            "Of each method the policy of the median seed: by return, and with MG by return - lambda GD. A file has\n"
            "the policy alone: it can be evaluated, filmed and exported, not trained further.",
            f"    steadyrl evaluate {first} --episodes 100\n    steadyrl watch {first}",
            "\n".join(f"| {' | '.join(row)} |" for row in rows),
            f"Return and GD are of {results.evaluation_episodes:,} episodes. Settings and all seeds: the results file "
            f"of {results.experiment.name}.\n",
        ]
    )
