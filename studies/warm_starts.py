"""Runs that begin with a trained policy: do they find what runs from scratch find?

    python studies/warm_starts.py   # a few minutes; prints a table for docs/frontier.md

MG in the Guarded Maze (goal 20). From scratch, and beginning with the policies for a smaller and for a larger lambda.
Means and Gini deviations are exact, of the policies at the end of training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import tyro
from markdown_page import provenance, table

from steadyrl import MeanGini, exact, learn_together
from steadyrl.envs.guarded_maze import Maze
from steadyrl.training.warm_start import apply_start, place_start

ENV = "steadyrl/GuardedMaze-v0"


@dataclass
class Args:
    """What runs that begin with a trained policy find."""

    low: float = 0.0
    """The smaller lambda of a bracket."""
    high: float = 2.0
    """The larger one."""
    between: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)
    """Lambdas between them."""
    episodes: int = 20_000
    """From scratch; half of it for runs that begin with a trained policy."""
    seeds: int = 5


def train(aversion: float, episodes: int, seeds: int, starts: Sequence[MeanGini] = ()) -> list[MeanGini]:
    """Agents with seeds from 0 on, which begin with the policies of `starts`."""
    agents = [MeanGini(ENV, risk_aversion=aversion, seed=seed) for seed in range(seeds)]
    for agent, start in zip(agents, starts, strict=False):
        with TemporaryDirectory() as name:
            start.save(Path(name) / "agent.steady")
            place_start(Path(name), Path(name) / "agent.steady")
            apply_start(agent, Path(name))
    learn_together(agents, total_episodes=episodes, progress_bar=False)
    return agents


def row(aversion: float, name: str, agents: Sequence[MeanGini]) -> list[str]:
    """Mean, Gini deviations and the objective of trained agents."""
    laws = [exact.return_distribution(Maze().mdp, agent.probabilities(), 1.0) for agent in agents]
    mean = sum(law.mean for law in laws) / len(laws)
    objective = sum(law.mean - aversion * law.gini_deviation for law in laws) / len(laws)
    deviations = ", ".join(f"{law.gini_deviation:.2f}" for law in laws)
    return [f"{aversion:g}", name, f"{mean:.2f}", deviations, f"{objective:.2f}"]


def main(args: Args) -> None:
    """Train, and print the table."""
    ends = {aversion: train(aversion, args.episodes, args.seeds) for aversion in (args.low, args.high)}
    rows = [row(aversion, "scratch", agents) for aversion, agents in ends.items()]
    for aversion in args.between:
        rows.append(row(aversion, "scratch", train(aversion, args.episodes, args.seeds)))
        for end, starts in ends.items():
            agents = train(aversion, args.episodes // 2, args.seeds, starts)
            rows.append(row(aversion, f"lambda {end:g}, half the episodes", agents))
    print(table(["lambda", "begins with", "mean", "GD of each seed", "E - lambda D"], rows))
    print("; ".join(f"{name} {value}" for name, value in provenance().items()))


if __name__ == "__main__":
    main(tyro.cli(Args))
