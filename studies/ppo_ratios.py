"""How much of the risk part is left while a batch is reused: ratios of whole trajectories against those of steps.

    python studies/ppo_ratios.py

Algorithm 2 multiplies the risk part of trajectory i by rho_i, the product of the ratios of all its steps, clipped at
zeta, and goes through each batch M times. MG-PPO learns in HalfCheetah with the experiment's settings; then batches are
played and the ratios looked at before each of their passes. Written to docs/results/ppo_ratios.md.
"""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path

import numpy as np

from steadyrl import __version__, experiment
from steadyrl.agents import MeanGini
from steadyrl.batch import batch_of_steps
from steadyrl.engines import _padded, _update

PAGE = Path(__file__).parents[1] / "docs/results/ppo_ratios.md"
LEARNED = (100, 500)
"""Episodes after which batches are looked at."""
BATCHES = 5
SEED = 0


def trained():
    """The experiment's MG, with ratios of trajectories."""
    chosen = experiment.load("half_cheetah")
    (settings,) = (method.settings for method in chosen.methods if method.name == "mg_by_step")
    return MeanGini(chosen.env, seed=SEED, engine=chosen.engine, **{**settings, "risk_ratios": "trajectory"})


def log_ratios(agent, seeds):
    """[M, n, T]: log pi now over log pi then of the steps of one batch, before each pass over it."""
    episodes = _padded(agent.collect(agent.behaviour(exploring=True), seeds))
    batch = batch_of_steps(episodes, agent.gamma)
    sampled = agent.algorithm.log_prob(agent.learner.theta, batch)
    passes = [np.zeros(sampled.shape[:2])]
    for m in range(1, agent.settings.inner_updates):
        few = dataclasses.replace(agent.settings, inner_updates=m)
        moved, _ = _update(dataclasses.replace(agent.algorithm, settings=few), agent.learner, episodes)
        passes.append(np.asarray(agent.algorithm.log_prob(moved.theta, batch) - sampled)[..., 0])
    return np.stack(passes) * np.asarray(batch.state_visits)


def rows(agent):
    """Of each pass: the spread of the steps' log ratios, quantiles of the trajectories', and the mean clipped rho."""
    n = agent.settings.n
    batches = [log_ratios(agent, list(range(10_000 + k * n, 10_000 + (k + 1) * n))) for k in range(BATCHES)]
    steps = np.concatenate(batches, axis=1)
    totals = steps.sum(axis=-1)
    rho = np.minimum(np.exp(np.minimum(totals, 50)), agent.settings.ratio_bound)
    for m, (each, total, clipped) in enumerate(zip(steps, totals, rho, strict=True), 1):
        low, middle, high = np.quantile(total, (0.1, 0.5, 0.9))
        yield (
            f"| {agent.episodes} | {m} | {each.std():.3f} | {low:.1f} | {middle:.1f} | {high:.1f} "
            f"| {clipped.mean():.3f} |"
        )


def main() -> None:
    """Measure, print and write."""
    agent, table = trained(), []
    for episodes in LEARNED:
        agent.learn(total_episodes=episodes - agent.episodes)
        table += rows(agent)
    s = agent.settings
    lines = [
        "# What is left of the risk part while a batch is reused",
        "",
        f"MG with PPO in HalfCheetah, seed {SEED}, lambda {s.risk_aversion:g}, zeta {s.ratio_bound:g}, ratios of whole "
        f"trajectories; {BATCHES} batches of {s.n} episodes.",
        "",
        "    python studies/ppo_ratios.py",
        "",
        f"{datetime.date.today()}; steadyrl {__version__}",
        "",
        "| episodes | pass | spread of steps' log ratios | log rho, 10 % | median | 90 % | mean of min(rho, zeta) |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *table,
    ]
    print("\n".join(lines))
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
