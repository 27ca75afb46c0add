"""How much of the risk part is left while a batch is reused: ratios of whole trajectories against those of steps.

    python studies/ppo_ratios.py   # a few minutes; writes docs/results/ppo_ratios.md

Algorithm 2 multiplies the risk part of trajectory i by rho_i, the product of the ratios of all its steps, clipped at
zeta, and makes M passes over each batch. MG-PPO is trained in HalfCheetah with the settings of the experiment; then
batches are collected, and the ratios are computed before each of the passes over them.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from markdown_page import table

from steadyrl import MeanGini, __version__
from steadyrl.rollouts.collector import Limits, collect
from steadyrl.rollouts.simulators.choose import simulator_for
from steadyrl.runs import experiment
from steadyrl.training.batch import EpisodeBatch, batch_from_episodes

SEED = 0
FIRST_SEED = 10_000
"""Of the episodes in the batches."""


@dataclass
class Args:
    """Ratios of whole trajectories while a batch is reused."""

    learned: tuple[int, ...] = (100, 500)
    """Training episodes after which batches are collected."""
    batches: int = 5
    """Batches at each of them."""
    out: Path = Path(__file__).resolve().parents[1] / "docs" / "results"
    """Where the page goes."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    args = tyro.cli(Args, args=arguments)
    agent, rows = make_agent(), list[list[str]]()
    for episodes in args.learned:
        agent.learn(total_episodes=episodes - agent.episodes)
        rows += measure(agent, args.batches)
    page = report(agent, args.batches, rows)
    print(page)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "ppo_ratios.md").write_text(page)


def make_agent() -> MeanGini:
    """The experiment's MG, with ratios of trajectories."""
    chosen = experiment.load_experiment("half_cheetah")
    (settings,) = (method.settings for method in chosen.methods if method.name == "mg_unbiased")
    return MeanGini(chosen.env, seed=SEED, engine=chosen.engine, **{**settings, "risk_ratios": "trajectory"})


def measure(agent: MeanGini, batches: int) -> Iterator[list[str]]:
    """For each pass: the spread of the steps' log ratios, quantiles of the trajectories', and the mean clipped rho."""
    n, simulator = agent.settings.n, simulator_for(agent.engine, agent.source, agent.settings.n)
    seeds = [range(FIRST_SEED + k * n, FIRST_SEED + (k + 1) * n) for k in range(batches)]
    steps = np.concatenate([log_ratios(agent, simulator, some) for some in seeds], axis=1)
    totals = steps.sum(axis=-1)
    rho = np.minimum(np.exp(np.minimum(totals, 50)), agent.settings.ratio_bound)
    for m, (each, total, clipped) in enumerate(zip(steps, totals, rho, strict=True), 1):
        quantiles = [f"{q:.1f}" for q in np.quantile(total, (0.1, 0.5, 0.9))]
        yield [str(agent.episodes), str(m), f"{each.std():.3f}", *quantiles, f"{clipped.mean():.3f}"]


def log_ratios(agent: MeanGini, simulator: Any, seeds: Sequence[int]) -> Any:
    """[M, n, T]: log pi_new(a|s) - log pi_old(a|s) of the steps of one batch, before each pass over it."""
    actor, limits = agent.actor(), Limits(agent.env_name, agent.settings.max_episode_steps)
    episodes = EpisodeBatch.of(collect(simulator, actor, list(seeds), limits), agent.gamma, actor.normalize)
    batch = batch_from_episodes(episodes, agent.gamma)
    old = agent.algorithm.log_prob(agent.learner.theta, batch)
    passes = [np.zeros(old.shape[:2])]
    for m in range(1, agent.settings.inner_updates):
        settings = dataclasses.replace(agent.settings, inner_updates=m)
        learner = update(dataclasses.replace(agent.algorithm, settings=settings), agent.learner, episodes)
        passes.append(np.asarray(agent.algorithm.log_prob(learner.theta, batch) - old)[..., 0])
    return np.stack(passes) * np.asarray(batch.state_visits)


@jax.jit
def update(algorithm: Any, learner: Any, episodes: EpisodeBatch) -> Any:
    """The learner after the passes over one batch."""
    return algorithm.update(learner, episodes)[0]


PAGE = """\
# The risk part while a batch is reused

With Algorithm 2's ratios of whole trajectories the risk part acts in the first pass over a batch,
at about a third of its weight in the second, and hardly at all in the others: the mean of
min(rho, zeta), by which it is multiplied, is in the last column. See deviation 47.

MG with PPO in HalfCheetah, seed {seed}, lambda {lam:g}, zeta {zeta:g}; {batches} batches of {n} episodes, after so many
training episodes.

    python studies/ppo_ratios.py

{date}; steadyrl {version}

{table}
"""


def report(agent: MeanGini, batches: int, rows: list[list[str]]) -> str:
    """The page."""
    head = ["episodes", "pass", "spread of steps' log ratios", "log rho, 10 %", "median", "90 %"]
    s = agent.settings
    return PAGE.format(
        seed=SEED,
        lam=s.risk_aversion,
        zeta=s.ratio_bound,
        batches=batches,
        n=s.n,
        date=datetime.date.today(),
        version=__version__,
        table=table([*head, "mean of min(rho, zeta)"], rows),
    )


if __name__ == "__main__":
    main()
