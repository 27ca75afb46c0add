"""The page about one policy for a range of lambdas, from its runs; see `dial.py`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from steadyrl import exact
from steadyrl.envs.finite import finite_model
from studies.markdown_page import fill

Runs = Sequence[dict[str, Any]]
WIDTH, MOST_LOST = 110, 0.1
"""Of the range between the risk-neutral and the safest policy, at any lambda: what a dial should not exceed."""


class Point(NamedTuple):
    """A policy: E and D of its undiscounted return."""

    mean: float
    deviation: float

    def value(self, risk_aversion: Any) -> Any:
        """E - lambda D."""
        return self.mean - risk_aversion * self.deviation


class Results(NamedTuple):
    """The runs of a domain."""

    lambdas: Any
    """[m]."""
    values: dict[str, Any]
    """Method -> [seeds, m]: E - lambda D of the policy for each lambda."""
    neutral: Point
    safest: Point
    are_pure_paths: bool
    """Whether they are the exact optima of a maze, rather than agents that were trained with the extreme lambdas."""

    @property
    def best(self) -> Any:
        """[m]: of these two."""
        return np.maximum(*(point.value(self.lambdas) for point in (self.neutral, self.safest)))

    @property
    def worth(self) -> Any:
        """[m]: what it is worth to choose the right one of the two."""
        return np.abs(self.neutral.value(self.lambdas) - self.safest.value(self.lambdas))


def results(plan: dict[str, Any], domain: str, runs: Runs) -> Results:
    """Of the runs of a domain."""
    own = {m: [r for r in runs if (r["domain"], r["method"]) == (domain, m)] for m in plan["methods"]}
    points = {
        m: np.array([[(p["mean"], p["gini_deviation"]) for p in r["points"]] for r in some])
        for m, some in own.items()
        if some
    }
    lambdas = np.array([p["lambda"] for some in own.values() for r in some[:1] for p in r["points"]][: plan["lambdas"]])
    values = {method: some[..., 0] - lambdas * some[..., 1] for method, some in points.items()}
    paths = pure_paths(plan["env"])
    if paths is not None:
        return Results(lambdas, values, *paths, True)
    trained = points["one lambda each"].mean(axis=0)
    return Results(lambdas, values, Point(*trained[0]), Point(*trained[-1]), False)


def pure_paths(env: str) -> tuple[Point, Point] | None:
    """The shortest path of a maze and its white one; None elsewhere.

    D is concave in the distribution of the return, so that E - lambda D is highest for a policy that is not random, and
    among those that reach the goal the shortest in each class is best.
    """
    maze: Any = finite_model(gym.make(env).unwrapped)
    if maze is None:
        return None
    policies = []
    for path in (maze._shortest_paths(avoid="#").path, maze.white_path):
        table = np.full(maze.destination.shape, 0.25)
        for cell, following in itertools.pairwise(path):
            table[cell] = maze.destination[cell] == following
        policies.append(table / table.sum(axis=-1, keepdims=True))
    law = exact.return_distribution(maze.mdp, np.stack(policies), 1.0)
    neutral, safest = (Point(float(E), float(D)) for E, D in zip(law.mean, law.gini_deviation, strict=True))
    return neutral, safest


def table(of: Results) -> str:
    """For each lambda what there is to lose, and what each method loses: mean over seeds, and the most."""
    heads = ["lambda", "best", "at stake", *(f"{method}: lost" for method in of.values)]
    lines = [f"| {' | '.join(heads)} |", "| ---: " * len(heads) + "|"]
    for k, risk_aversion in enumerate(of.lambdas):
        cells = [f"{risk_aversion:.2f}", f"{of.best[k]:.2f}", f"{of.worth[k]:.2f}"]
        for values in of.values.values():
            lost = of.best[k] - values[:, k]
            cells.append(f"{lost.mean():.2f} ({lost.max():.2f})")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def verdict(of: Results) -> str:
    """Where a method loses more than a tenth of what is at stake, on average over seeds."""
    sentences = []
    for method, values in of.values.items():
        lost = (of.best - values).mean(axis=0)
        over = [
            f"{x:.2f} ({share:.0%})" for x, share in zip(of.lambdas, lost / of.worth, strict=True) if share > MOST_LOST
        ]
        where = f"at lambda {', '.join(over)}" if over else "nowhere"
        most, stake = lost.max(), of.worth.max()
        sentences.append(f"{method} {where}; its largest loss is {most:.2f}, {most / stake:.1%} of the largest stake")
    return fill(f"More than {MOST_LOST:.0%} of what is at stake is lost by {', by '.join(sentences)}.", WIDTH)


def difference(of: Results) -> str:
    """Of a dial from agents with one lambda, if both were run."""
    if not {"dial", "one lambda each"} <= of.values.keys():
        return ""
    gained = of.values["dial"].mean(axis=0) - of.values["one lambda each"].mean(axis=0)
    numbers = ", ".join(f"{x:+.2f}" for x in gained)
    return fill(f"E - lambda D of the dial less that of agents with one lambda, by lambda: {numbers}.", WIDTH)


def section(plan: dict[str, Any], domain: str, runs: Runs) -> str:
    """One domain."""
    own, of = plan["domains"][domain], results(plan["domains"][domain], domain, runs)
    counts = ", ".join(f"{method} {len(values)}" for method, values in of.values.items())
    settings = {name: {**own["shared"], **more} for name, more in own["methods"].items()}
    changed = "; ".join(f"{m}: {', '.join(f'{k}={v}' for k, v in s.items())}" for m, s in settings.items() if s)
    budget = (
        f"{own['episodes']:,} episodes for each lambda, {plan['dial_times'] * own['episodes']:,} for the dial. "
        f"Seeds: {counts}. Settings are the defaults{f', but {changed}' if changed else ''}."
    )
    ends = [f"E {point.mean:.2f}, D {point.deviation:.2f}" for point in (of.neutral, of.safest)]
    names = (
        ("the shortest path", "the white path")
        if of.are_pure_paths
        else ("trained with the lowest lambda", "with the highest")
    )
    compared = f"Risk-neutral: {ends[0]} ({names[0]}); safest: {ends[1]} ({names[1]})."
    parts = [own.get("note", ""), f"{compared} {budget}"]
    text = "\n\n".join(fill(part, WIDTH) for part in parts if part)
    return "\n\n".join(part for part in (f"## {own['title']}", text, table(of), verdict(of), difference(of)) if part)


def outcome(plan: dict[str, Any], domains: Sequence[str], runs: Runs) -> str:
    """The largest loss of the dial and of agents with one lambda, in each domain that has both, as a list."""
    items = []
    for domain in domains:
        of = results(plan["domains"][domain], domain, runs)
        if {"dial", "one lambda each"} <= of.values.keys():
            losses = [(of.best - of.values[method]).mean(axis=0).max() for method in ("dial", "one lambda each")]
            dial, others = (f"{lost:.2f} ({lost / of.worth.max():.1%})" if lost > 0 else "nothing" for lost in losses)
            title = plan["domains"][domain]["title"]
            items.append(fill(f"- {title}: the dial {dial}, agents with one lambda {others}.", WIDTH, "  "))
    first = (
        f"The most that is lost of E - lambda D at any lambda, by one agent for a range of lambdas (the dial, with "
        f"{plan['dial_times']} times the episodes of a single agent) and by agents with one lambda each. In brackets: "
        "the share of the largest stake, as explained below."
    )
    return "\n\n".join([fill(first, WIDTH), "\n".join(items)])


def page(plan: dict[str, Any], runs: Runs) -> str:
    """The page about all runs."""
    domains = [domain for domain in plan["domains"] if any(one["domain"] == domain for one in runs)]
    missing = [own["title"] for domain, own in plan["domains"].items() if domain not in domains]
    not_run = fill(f"Not run: {'; '.join(missing)}. The plan has their settings.", WIDTH) + "\n\n" if missing else ""
    low, high = plan["range"]
    sections = "\n\n".join(section(plan, domain, runs) for domain in domains)
    installed = fill(", ".join(f"{name} {version}" for name, version in runs[-1]["versions"].items()), WIDTH)
    days = sorted({one["date"] for one in runs})
    intro = (
        f"`MeanGini(env, risk_aversion=({low:g}, {high:g}))` beside agents that are trained for one lambda each, "
        "compared by E - lambda D of the undiscounted return at lambdas that are even in log(1 + lambda). The dial has "
        f"{plan['dial_times']} times the episodes of ONE of the others, all lambdas together. "
        "**Best** is the higher one of the risk-neutral and the safest policy at that lambda, **at stake** what it is "
        "worth to choose the right one of the two; **lost** is what policies fall short of the best, on average over "
        "seeds (and on the worst seed). Where little is at stake, near the lambda at which both are as good, small "
        "losses are large shares. E and D are exact in the maze, elsewhere those of "
        f"{plan['evaluation_episodes']} episodes with sampled actions."
    )
    before = (
        f"The aim was to lose at most {MOST_LOST:.0%} of what is at stake at any lambda; each section says where that "
        "is missed. Dials of 2, 3, 4 and 6 tables, and of 4 tables apart, had run on one or two of the maze's seeds "
        "0 and 1 before, and 4 were chosen; 3 did about as well. Nothing else was searched."
    )
    command = f"`python -m benchmarks.learning.dial`; seeds from {plan['first_seed']} on"
    dates = " to ".join(sorted({days[0], days[-1]}))
    return f"""# One policy for every lambda

{outcome(plan, domains, runs)}

{fill(intro, WIDTH)}

{fill(before, WIDTH)}

{not_run}{sections}

## Runs

Command: {command}; the runs are in
[dial_runs.jsonl](dial_runs.jsonl); {dates};
{installed}.
"""
