"""Shared by the examples: train MG and PPO, draw mean against risk, price half of the Gini deviation."""

from __future__ import annotations

import argparse
from pathlib import Path

import steadyrl

SMALL = {"hidden": [32, 32], "minibatch_size": 256}
"""Settings of both agents: problems this small need no larger networks, and train in minutes."""


def price_of_half(frontier: steadyrl.Frontier) -> str:
    """The highest mean at no more than half of PPO's Gini deviation, in a sentence."""
    (neutral,) = (point for point in frontier.points if point.agent == "ppo")
    half = neutral.gini_deviation.value / 2
    steady = [point for point in frontier.points if point.gini_deviation.value <= half]
    if not steady:
        return f"No policy here has half of PPO's Gini deviation ({half:.3g} or less): try larger lambdas."
    best = max(steady, key=lambda point: point.mean.value)
    lost = neutral.mean.value - best.mean.value
    return (
        f"To halve PPO's Gini deviation of {neutral.gini_deviation.value:.3g}, take lambda {best.risk_aversion:g} "
        f"(Gini deviation {best.gini_deviation.value:.3g}): it costs {lost:.3g} of a mean of {neutral.mean.value:.3g}, "
        f"{lost / abs(neutral.mean.value):.0%}. The worst tenth of the episodes changes from "
        f"{neutral.cvar_10.value:.3g} to {best.cvar_10.value:.3g} on average."
    )


def main(env: str, episodes: int, risk_aversion: str, **settings: float) -> None:
    """Train, print and draw; the options make it shorter or longer."""
    name = env.split(":")[0]
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=episodes, help="training episodes of each policy")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--risk-aversion", default=risk_aversion, help="the lambdas of MG: a list or low:high:count")
    parser.add_argument("--evaluation-episodes", type=int, default=2_000)
    parser.add_argument("--out", type=Path, default=Path("runs", name), help="folder of the runs and the picture")
    options = parser.parse_args()
    frontier = steadyrl.frontier(
        env,
        agents={"mg": {"mean": "ppo", **SMALL, **settings}, "ppo": {**SMALL, **settings}},
        risk_aversion=options.risk_aversion,
        seeds=options.seeds,
        episodes=options.episodes,
        evaluation_episodes=options.evaluation_episodes,
        out=options.out,
    )
    print(frontier)
    print()
    print(price_of_half(frontier))
    print(f"Picture: {frontier.plot(options.out / f'{name}.png')}")
