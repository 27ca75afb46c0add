"""How many episodes does return capping save, against the plain estimator of CVaR's gradient?

    python studies/return_capping.py   # a few minutes on one core; writes docs/results/return_capping.md

Both maximize the mean of the worst tenth of the returns, in a world with a table and in one with a network, each with
the default step size of the policy and a larger one.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import tyro
from bars import make_bar
from markdown_page import provenance, table, wrap
from numpy.typing import NDArray

from steadyrl import CVaR, exact, learn_together
from steadyrl.envs.finite import finite_model
from steadyrl.risk import cvar

ALPHA = 0.1
ESTIMATORS = ("capping", "plain")
EVALUATIONS = 10
"""In each training, after equal numbers of episodes."""
PLAYED = 300
"""Episodes of an evaluation, where the distribution of returns is not known exactly."""
EVALUATION_SEED = 1


@dataclass
class Args:
    """Return capping and the plain estimator of CVaR's gradient."""

    seeds: int = 5
    """Trainings with each estimator and step size."""
    maze: int = 16_000
    """Episodes of a training in the maze."""
    two_sides: int = 960
    """Episodes of a training in TwoSides."""
    out: Path = Path(__file__).resolve().parents[1] / "docs" / "results"
    """Where the page and its figure go."""


class World(NamedTuple):
    """Where agents are trained."""

    name: str
    env: str
    episodes: int
    rates: tuple[float, float]  # Step sizes of the policy, the default first.
    goal: float  # The CVaR that counts as learned.


Results = dict[tuple[str, str, float], NDArray[np.float64]]
"""World, estimator and step size -> CVaR [seeds, EVALUATIONS]."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page."""
    args = tyro.cli(Args, args=arguments)
    started = time.monotonic()
    worlds = [
        World("Guarded Maze", "steadyrl/GuardedMaze-v0", args.maze, (0.0015, 0.005), 0.0),
        World("TwoSides", "steadyrl/TwoSides-v0", args.two_sides, (3e-4, 1e-3), 90.0),
    ]
    cases = [(world, *case) for world in worlds for case in itertools.product(ESTIMATORS, world.rates)]
    results: Results = {}
    with make_bar() as progress:
        task = progress.add_task("trainings", total=len(cases) * EVALUATIONS, unit="", note="")
        for world, estimator, rate in cases:
            note = f"{world.name}, {estimator}"
            results[world.name, estimator, rate] = train(
                world, estimator, rate, args.seeds, lambda note=note: progress.update(task, advance=1, note=note)
            )
    args.out.mkdir(parents=True, exist_ok=True)
    draw(worlds, results, args.out / "return_capping.png")
    seconds = time.monotonic() - started
    (args.out / "return_capping.md").write_text(report(worlds, results, args, seconds))
    print(f"wrote {args.out / 'return_capping.md'} and its figure in {seconds:.0f} seconds")


def train(world: World, estimator: str, rate: float, seeds: int, advance: Callable[[], object]) -> NDArray[np.float64]:
    """[seeds, EVALUATIONS]: CVaR along the training."""
    agents = [
        CVaR(world.env, alpha=ALPHA, estimator=estimator, policy_learning_rate=rate, seed=seed)  # type: ignore[arg-type]
        for seed in range(seeds)
    ]
    found = []
    for k in range(1, EVALUATIONS + 1):
        due = round(world.episodes * k / EVALUATIONS) - agents[0].episodes
        together = [agents] if agents[0].engine == "compiled" else [[agent] for agent in agents]
        for group in together if due > 0 else []:  # Rounds are whole: one may have reached this far already.
            learn_together(group, total_episodes=due, progress_bar=False)
        found.append([measured(agent) for agent in agents])
        advance()
    return np.array(found).T


def measured(agent: CVaR) -> float:
    """CVaR of what was learned: exactly in a finite MDP, else of episodes that no training has seen."""
    if (model := finite_model(agent.env)) is not None:
        return float(exact.return_distribution(model.mdp, agent.probabilities(), 1.0).cvar(ALPHA))
    return float(cvar(agent.play(PLAYED, seed=EVALUATION_SEED).rewards.sum(axis=-1), ALPHA))


def episodes_at(world: World) -> NDArray[np.float64]:
    """When there are evaluations."""
    return world.episodes * np.arange(1, EVALUATIONS + 1) / EVALUATIONS


def learned_after(world: World, curves: NDArray[np.float64]) -> list[float]:
    """For each seed the episodes until CVaR reaches the goal for good; infinite if it does not."""
    late = [np.append(np.flatnonzero(curve < world.goal), -1).max() + 1 for curve in curves]
    at = np.append(episodes_at(world), np.inf)
    return [float(at[place]) for place in late]


def draw(worlds: Sequence[World], results: Results, path: Path) -> None:
    """A line for each seed."""
    figure, axes = plt.subplots(1, len(worlds), figsize=(11, 4))
    for world, one in zip(worlds, axes, strict=True):
        for (estimator, color), (rate, style) in itertools.product(
            zip(ESTIMATORS, ("tab:blue", "tab:orange"), strict=True), zip(world.rates, ("-", ":"), strict=True)
        ):
            for seed, curve in enumerate(results[world.name, estimator, rate]):
                label = f"{estimator}, step size {rate:g}" if seed == 0 else None
                one.plot(episodes_at(world), curve, style, color=color, label=label, linewidth=1)
        one.axhline(world.goal, color="gray", linewidth=0.8)
        one.set(title=world.name, xlabel="training episodes", ylabel="CVaR of the worst tenth")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    plt.close(figure)


def shown(numbers: Sequence[float], form: str) -> str:
    """Median and range over the seeds."""
    low, middle, high = (format(x, form) for x in (min(numbers), float(np.median(numbers)), max(numbers)))
    return (middle if low == high else f"{middle} ({low} to {high})").replace("inf", "never")


PAGE = """# Return capping

{outcome} `steadyrl.CVaR` maximizes the mean of the worst tenth of the returns by either.

![CVaR during training](return_capping.png)

{table}

Medians over {args.seeds} seeds, and ranges. "Learned" is the number of training episodes until CVaR reaches {goals} for
good; never, if it does not within the training. "Halfway" is CVaR after half of the training.

{findings}

## How it was measured

    python studies/return_capping.py

- Both estimators have the same policy, optimizer, batches ({batches}) and number of returns from which the quantile is
estimated; step sizes of the policy are the default and a larger one. All else is the default of `steadyrl.CVaR`.
- In the Guarded Maze ({maze_episodes:,} episodes) a policy is a table and CVaR is exact (`steadyrl.exact`). In TwoSides
({sides_episodes:,} episodes) it is a network with PPO, and CVaR is that of {played:,} episodes that are played for it.
- Seeds 0 to {last}; the seed of evaluations is {evaluation_seed}. Nothing was selected: these are all trainings of one
run. Default settings had been tried before: on seeds 0 to 2 for 20,000 episodes in the maze, and on seeds 0 and 1 for
800 in TwoSides, with smaller networks.
- {date}, {seconds:.0f} seconds of wall-clock time on one core, steadyrl {steadyrl}, Python {python}, JAX {jax}, NumPy
{numpy}.
"""


def report(worlds: Sequence[World], results: Results, args: Args, seconds: float) -> str:
    """The page."""
    rows = []
    for (name, estimator, rate), curves in results.items():
        world = next(one for one in worlds if one.name == name)
        halfway, last = (shown(curves[:, k].tolist(), ".1f") for k in (EVALUATIONS // 2 - 1, -1))
        rows.append([name, estimator, f"{rate:g}", shown(learned_after(world, curves), ",.0f"), halfway, last])
    maze, sides = worlds
    return wrap(
        PAGE.format(
            table=table(["world", "estimator", "step size", "learned", "halfway", "at the end"], rows, left=2),
            goals=" and ".join(f"{world.goal:g} in {world.name}" for world in worlds),
            outcome=outcome(worlds, results),
            findings=findings(worlds, results),
            batches=" and ".join(f"{CVaR(w.env).settings.n} episodes in {w.name}" for w in worlds),
            args=args,
            maze_episodes=maze.episodes,
            sides_episodes=sides.episodes,
            played=PLAYED,
            last=args.seeds - 1,
            evaluation_seed=EVALUATION_SEED,
            seconds=seconds,
            **provenance(),
        )
    )


def outcome(worlds: Sequence[World], results: Results) -> str:
    """A sentence for each world, with the larger step size."""
    sentences = []
    for world in worlds:
        rate = world.rates[-1]
        capping, plain = (np.median(learned_after(world, results[world.name, e, rate])) for e in ESTIMATORS)
        after = [
            f"not within {world.episodes:,} episodes" if np.isinf(n) else f"after {n:,.0f} episodes"
            for n in (capping, plain)
        ]
        sentences.append(
            f"In {world.name} with step size {rate:g}, CVaR reaches {world.goal:g} {after[0]} with return capping, and "
            f"{after[1]} with the plain estimator of its gradient."
        )
    return " ".join([*sentences, "These are medians over seeds."])


def findings(worlds: Sequence[World], results: Results) -> str:
    """A sentence for each world and step size."""
    sentences = []
    for world in worlds:
        for rate in world.rates:
            capping, plain = (np.median(learned_after(world, results[world.name, e, rate])) for e in ESTIMATORS)
            if np.isinf(capping):
                ratio = "capping has not learned it at the end either"
            elif np.isinf(plain):
                ratio = f"plain would need more than {world.episodes / capping:.1f} times the episodes of capping"
            else:
                ratio = f"plain needs {plain / capping:.1f} times the episodes of capping"
            sentences.append(f"- {world.name}, step size {rate:g}: at the median, {ratio}.")
    return "\n".join(sentences)


if __name__ == "__main__":
    main()
