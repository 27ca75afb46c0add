"""How many episodes does InvertedPendulum take until the pole is balanced for a while, and which settings change that?

    python studies/pendulum_start.py            # trains what is missing; hours on one core
    python studies/pendulum_start.py --report   # writes docs/results/pendulum_start.md

Trainings end as soon as episodes are long, so that a try is cheap. Seeds are those of searches, 0 to 7; what was chosen
is then run once on other seeds by benchmarks/learning/step_credit.py.
"""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import tyro
from markdown_page import provenance, table, wrap

import steadyrl

PLAN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
METHODS = {"PPO": steadyrl.PPO, "MG": steadyrl.MeanGini}
WINDOW = 48
"""Episodes over which lengths are averaged."""


@dataclass
class Args:
    """Episodes until the pole is balanced, by settings."""

    tries: tuple[str, ...] = tuple(PLAN["tries"])
    methods: tuple[str, ...] = tuple(METHODS)
    seeds: tuple[int, ...] = tuple(range(8))
    episodes: int = 2_500
    """After which a training is given up."""
    long: float = 200
    """Steps: the mean length at which a training ends."""
    report: bool = False
    """Write the page from what is there."""
    runs: Path = Path("docs/results/pendulum_start_runs.jsonl")
    page: Path = Path("docs/results/pendulum_start.md")


def options_of(name: str) -> dict[str, Any]:
    """Of the environment, in a try."""
    return {key: value for key, value in PLAN["tries"][name].items() if key == "noise_scale"}


def settings_of(name: str, method: str) -> dict[str, Any]:
    """Of a try; those of risk are MG's alone."""
    given = {"episodes_per_update": 16, **PLAN["tries"][name]}
    given = {key: value for key, value in given.items() if key not in options_of(name)}
    if method == "MG":
        return {"risk_aversion": 0.5, **given}
    return {key: value for key, value in given.items() if not key.startswith("risk_")}


def run(name: str, method: str, seed: int, episodes: int, long: float) -> dict[str, Any]:
    """Train until episodes are long, at most `episodes`."""
    settings = settings_of(name, method)
    agent = METHODS[method](gym.make("steadyrl/InvertedPendulum-v0", **options_of(name)), seed=seed, **settings)
    rounds = max(1, WINDOW // agent.settings.n)
    started = time.process_time()

    def recent(metric: str) -> float:
        return float(np.mean([record[metric] for record in agent.history[-rounds:]]))

    def callback(_: dict[str, Any], __: dict[str, Any]) -> bool:
        return len(agent.history) < rounds or recent("length") <= long

    agent.learn(total_episodes=episodes, callback=callback, progress_bar=False)
    return {
        "try": name,
        "method": method,
        "seed": seed,
        "settings": settings,
        "learned_after": agent.episodes if recent("length") > long else None,
        "timesteps": agent.timesteps,
        "length": recent("length"),
        "visiting_rate": recent("visiting_rate"),
        "seconds": round(time.process_time() - started, 1),
    }


def row(runs: Sequence[dict[str, Any]], name: str, method: str) -> list[str]:
    """How many seeds learned, and after how many episodes; seeds that did not count as the most."""
    some = sorted((one for one in runs if (one["try"], one["method"]) == (name, method)), key=lambda one: one["seed"])
    after = [one["learned_after"] or np.inf for one in some]
    each = ", ".join("-" if np.isinf(x) else f"{x:.0f}" for x in after)
    middle = np.median(after)
    cells = [f"{np.isfinite(after).sum()} of {len(after)}", f"{middle:.0f}" if np.isfinite(middle) else "-", each]
    return [name, method, *cells]


def page(runs: Sequence[dict[str, Any]], args: Args) -> str:
    """The page about all tries."""
    pairs = [(name, method) for name in PLAN["tries"] for method in METHODS]
    rows = [row(runs, *pair) for pair in pairs if any((one["try"], one["method"]) == pair for one in runs)]
    settings = [[name, ", ".join(f"{k}={v}" for k, v in kept.items())] for name, kept in PLAN["tries"].items() if kept]
    made = provenance()
    return wrap(f"""# InvertedPendulum: why some seeds are slow

{PLAN["found"].strip()}

{table(["try", "method", "seeds that learned", "median episodes", "episodes of each seed"], rows, left=2)}

Counted are the episodes until the mean length of {WINDOW} episodes in training is above {args.long:g} steps; "-" is a
seed that had not got there after {args.episodes:,}. All tries are here, also those that were not run on every seed.

{PLAN["why"].strip()}

## Settings

All: episodes_per_update=16 unless the try has another; MG: risk_aversion=0.5. The others are the defaults, but for

{table(["try", "settings"], settings)}

## Method

    python studies/pendulum_start.py
    python studies/pendulum_start.py --report

Seeds {args.seeds[0]} to {args.seeds[-1]}; the runs are in [pendulum_start_runs.jsonl](pendulum_start_runs.jsonl).
{made["date"]}; steadyrl {made["steadyrl"]}, jax {made["jax"]}, numpy {made["numpy"]}, Python {made["python"]}.
""")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is missing, or write the page."""
    args = tyro.cli(Args, args=arguments)
    runs = [json.loads(line) for line in args.runs.read_text().splitlines()] if args.runs.exists() else []
    if args.report:
        args.page.write_text(page(runs, args))
        return
    done = {(one["try"], one["method"], one["seed"]) for one in runs}
    for case in [(name, method, seed) for name in args.tries for method in args.methods for seed in args.seeds]:
        if case not in done:
            one = run(*case, args.episodes, args.long)
            with args.runs.open("a") as file:
                file.write(json.dumps(one) + "\n")
            print(*case, one["learned_after"], f"{one['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
