"""How much less noisy is the risk gradient if a critic credits each step, and which critic is the best?

    python studies/risk_credit.py   # several minutes on one core; writes docs/results/risk_credit.md

MG is trained in two worlds. At three moments its policy and its critic are frozen, and so are critics of two other
designs that have learned from the same episodes (`risk_critics.py`). Then -grad D is estimated from many fresh batches.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import tyro
from bars import make_bar
from markdown_page import provenance, table, wrap
from risk_critics import (
    DECAYS,
    DESIGNS,
    ESTIMATORS,
    LAWS,
    LEAVE_ONE_OUT,
    Critics,
    Estimator,
    compare,
    gradient_estimates,
)

from steadyrl import MeanGini, exact, learn_together
from steadyrl.base.seeding import Stream, stream_key, training_episode_seed
from steadyrl.envs.finite import finite_model
from steadyrl.risk import gini_deviation
from steadyrl.rollouts.collector import Limits, collect
from steadyrl.rollouts.compiled import sample_episodes
from steadyrl.rollouts.episodes import Episodes
from steadyrl.rollouts.simulators.choose import simulator_for
from steadyrl.training.batch import Steps

MOMENTS = {"early": 0.02, "midway": 0.2, "late": 1.0}
"""Shares of the training."""
SIZES = (10, 50)
"""n: episodes in a batch."""
FRESH_SEED = 1_000
MAZE = {"env": "steadyrl/GuardedMaze-v0", "risk_aversion": 1.4, "risk_gamma": 1.0}
TWO_SIDES = {
    "env": "steadyrl/TwoSides-v0", "mean": "ppo", "risk_aversion": 1.0, "risk_gamma": 1.0, "risk_gae_lambda": 0.9405,
    "episodes_per_update": 16, "inner_updates": 4,
}  # fmt: skip
"""As in benchmarks/learning/step_credit.toml."""


@dataclass
class Args:
    """Variance and bias of the risk gradient, by trajectory and step by step."""

    seeds: int = 2
    """Trainings in each world."""
    maze_training: int = 50_000
    """Episodes of a training in the maze."""
    maze_episodes: int = 20_000
    """Fresh episodes at each moment: a multiple of 50."""
    two_sides_training: int = 1_600
    two_sides_episodes: int = 5_000
    out: Path = Path(__file__).resolve().parents[1] / "docs" / "results"
    """Where the page and its figure go."""


class World(NamedTuple):
    """Where MG is trained, and for how long."""

    name: str
    settings: dict[str, Any]
    training: int
    fresh: int  # Episodes at each moment.

    def make(self, seed: int) -> MeanGini:
        """An untrained agent."""
        settings = {"returns_remembered": 100, **self.settings}
        return MeanGini(settings.pop("env"), seed=seed, **settings)


class Moment(NamedTuple):
    """A policy, and what was measured of it."""

    episodes: int
    mean: float
    gini: float
    norm: float  # Of grad D.
    measured: dict[int, dict[Estimator, Any]]  # For each size of batches; see `risk_critics.Measured`.


Results = dict[str, dict[str, list[Moment]]]
"""World, moment, seed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page."""
    args = tyro.cli(Args, args=arguments)
    started = time.monotonic()
    worlds = [
        World("maze", MAZE, args.maze_training, args.maze_episodes),
        World("TwoSides", TWO_SIDES, args.two_sides_training, args.two_sides_episodes),
    ]
    results: Results = {world.name: {moment: [] for moment in MOMENTS} for world in worlds}
    with make_bar() as progress:
        task = progress.add_task("moments", total=len(worlds) * args.seeds * len(MOMENTS), unit="", note="")
        for world in worlds:
            for seed in range(args.seeds):
                run(world, seed, results[world.name], lambda note: progress.update(task, advance=1, note=note))
    args.out.mkdir(parents=True, exist_ok=True)
    draw(results, args.out / "risk_credit.png")
    seconds = time.monotonic() - started
    (args.out / "risk_credit.md").write_text(report(results, args, seconds))
    print(f"wrote {args.out / 'risk_credit.md'} and its figure in {seconds:.0f} seconds")


def run(world: World, seed: int, moments: dict[str, list[Moment]], advance: Callable[[str], Any]) -> None:
    """One training: critics of the other designs learn from each of its batches, and three moments are measured."""
    agent = world.make(seed)
    n, simulator = agent.settings.n, None
    critics = Critics.untrained(agent.algorithm.critic, agent.learner.risk, agent.settings.gamma, jax.random.key(seed))
    if agent.engine != "compiled":
        simulator = simulator_for(agent.engine, agent.source, n)
    stops = {max(1, round(share * world.training / n)): name for name, share in MOMENTS.items()}
    for k in range(1, max(stops) + 1):
        episodes = next_round(agent, simulator)
        critics = critics.fit(steps_of(agent, episodes))
        learn_together([agent], total_episodes=n, progress_bar=False)
        critics = critics._replace(b_state=agent.learner.risk)
        assert np.allclose(critics.b_state.returns[:n], episodes.rewards.sum(axis=-1), atol=1e-3), "the same episodes"
        if k in stops:
            moments[stops[k]].append(measure(agent, critics, world.fresh))
            advance(f"{world.name}, seed {seed}, {stops[k]}")
    if simulator is not None:
        simulator.close()


def next_round(agent: MeanGini, simulator: Any) -> Episodes:
    """The episodes that the agent is going to learn from next."""
    n, first, model = agent.settings.n, agent.episodes, finite_model(agent.env)
    if simulator is None:
        assert model is not None
        policy = agent.algorithm.exploring_table(agent.learner)
        return sample_episodes(model, policy, n, stream_key(agent.seed, Stream.EPISODES), first)
    seeds = [training_episode_seed(agent.seed, first + i) for i in range(n)]
    limits = Limits(agent.env_name, agent.settings.max_episode_steps)
    return collect(simulator, agent.actor(exploring_at=0), seeds, limits)


def steps_of(agent: MeanGini, episodes: Episodes) -> Steps:
    """As the agent's critic sees them."""
    observations = agent.actor().normalize(episodes.observations)
    return Steps(*map(jax.numpy.asarray, (observations, episodes.rewards, episodes.mask)))


def measure(agent: MeanGini, critics: Critics, fresh: int) -> Moment:
    """All estimators on the same fresh episodes, which are divided into batches of either size."""
    episodes = agent.play(fresh, seed=FRESH_SEED + agent.seed)
    length = -(-int(episodes.mask.sum(axis=-1).max()) // 20) * 20  # Few lengths, so that little is compiled.
    episodes = Episodes(*(x[:, :length] for x in episodes[:4]), *episodes[4:])
    returns, theta, model = episodes.rewards.sum(axis=-1), agent.learner.theta, finite_model(agent.env)
    truth = None
    if model is not None:
        truth = -exact.gradient("gini_deviation", model.mdp, np.asarray(theta, np.float64), 1.0).ravel()
    log_prob = jax.tree_util.Partial(agent.algorithm.policy.log_prob)
    played = steps_of(agent, episodes), jax.numpy.asarray(episodes.actions)
    measured, norm = {}, 0.0
    for n in SIZES:
        batches = jax.tree.map(lambda x, n=n: x.reshape(-1, n, *x.shape[1:]), played)
        norm, measured[n] = compare(np.asarray(gradient_estimates(critics, log_prob, theta, *batches)), truth)
    return Moment(agent.episodes, float(returns.mean()), float(gini_deviation(returns)), norm, measured)


def draw(results: Results, path: Path) -> None:
    """For each world and moment, lines of the ratios by GAE's lambda; a dot for each seed."""
    kinds = {"ratio": "variance", "error_ratio": "mean squared error"}
    figure, rows = plt.subplots(2 * len(results), len(MOMENTS), figsize=(11, 13), sharex=True, sharey="row")
    for (world, kind), row in zip([(world, kind) for world in results for kind in kinds], rows, strict=True):
        for moment, axes in zip(MOMENTS, row, strict=True):
            for law, line in zip(LAWS, ("-", "--"), strict=True):
                for design, color in zip(DESIGNS, ("tab:orange", "tab:blue", "tab:green"), strict=True):
                    each = np.array([values(results, world, moment, (design, law, d), kind) for d in DECAYS])
                    axes.plot(each.mean(axis=1), line, color=color, label=f"{design}, {law}")
                    axes.plot(each, ".", color=color)
            axes.axhline(1, color="gray", linewidth=0.8)
            axes.set(title=f"{world}, {moment}", yscale="log", xticks=range(len(DECAYS)), xticklabels=DECAYS)
        row[0].set_ylabel(f"{kinds[kind]}:\nleave one out / estimator")
    rows[0, 0].legend(fontsize=8)
    figure.supxlabel("lambda of GAE; n = 10")
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    plt.close(figure)


def values(results: Results, world: str, moment: str, which: tuple[Any, ...], kind: str, n: int = 10) -> list[float]:
    """What was measured of an estimator, for each seed."""
    return [getattr(seed.measured[n][Estimator(*which)], kind) for seed in results[world][moment]]


def shown(numbers: Sequence[float], form: str = ".3g") -> str:
    """The mean over the seeds, and the range."""
    mean, low, high = (f"{x:{form}}" for x in (np.mean(numbers), min(numbers), max(numbers)))
    return mean if low == high else f"{mean} ({low} to {high})"


def estimator_table(results: Results, world: str) -> str:
    """All that was measured in a world."""
    columns = {
        "variance, n = 10": ("ratio", 10, ".3g"), "variance, n = 50": ("ratio", 50, ".3g"),
        "error, n = 10": ("error_ratio", 10, ".3g"), "bias / norm": ("bias", 10, ".2f"),
        "bias / s.e.": ("bias_in_errors", 10, ".1f"), "cosine": ("cosine", 10, ".2f"),
        "of a batch": ("batch_cosine", 10, ".2f"),
    }  # fmt: skip
    rows = []
    for moment in MOMENTS:
        for which in ESTIMATORS:
            cells = [shown(values(results, world, moment, which, kind, n), f) for kind, n, f in columns.values()]
            name = ["leave one out", "batch", ""] if which == LEAVE_ONE_OUT else [*which[:2], f"{which.decay:g}"]
            rows.append([moment, *name, *cells])
    return table(["moment", "critic", "law", "lambda", *columns], rows, left=3)


def findings(results: Results) -> dict[str, str]:
    """Means over the seeds at the three moments, such as `b_batch_95_bias_maze`: of b, with lambda 0.95."""
    found = {}
    for (world, moments), n in itertools.product(results.items(), SIZES):
        each = [
            [m.ratio_error / m.ratio for seed in seeds for m in seed.measured[n].values()] for seeds in moments.values()
        ]
        found[f"precision_{n}_{world}"] = "{:.0%}, {:.0%} and {:.0%}".format(*map(max, each))
    for (design, law, decay), world in itertools.product(ESTIMATORS[1:], results):
        for kind, form in (("ratio", ".3g"), ("bias", ".0%"), ("cosine", ".2f")):
            means = [f"{np.mean(values(results, world, m, (design, law, decay), kind)):{form}}" for m in MOMENTS]
            found[f"{design}_{law}_{100 * decay:.0f}_{kind}_{world}"] = f"{', '.join(means[:-1])} and {means[-1]}"
    return found


def best_table(results: Results) -> str:
    """The lambda with the least error at n = 10, by critic and law."""
    kinds, by_what, rows = [(design, law) for law in LAWS for design in DESIGNS], ("error_ratio", "batch_cosine"), []
    for world, moments in results.items():
        for moment, seeds in moments.items():
            what = [shown([getattr(seed, name) for seed in seeds]) for name in ("mean", "gini", "norm")]
            best = []
            for kind in kinds:
                tried = {d: [np.mean(values(results, world, moment, (*kind, d), by)) for by in by_what] for d in DECAYS}
                by_error, by_cosine = (max(DECAYS, key=lambda d, i=i, tried=tried: tried[d][i]) for i in range(2))
                best.append(f"{by_error:g} ({tried[by_error][0]:.3g}), {by_cosine:g} ({tried[by_cosine][1]:.2f})")
            # Of an estimate that is always 0 the error is norm^2; of the others error - variance = bias^2 norm^2.
            biased = [max(seed.measured[10].values(), key=lambda m: m.bias) for seed in seeds]
            zero = shown([m.bias**2 / max(1 / m.error_ratio - 1 / m.ratio, 1e-30) for m in biased])
            rows.append([world, moment, f"{seeds[0].episodes:,}", *what, zero, *best])
    kinds_shown = [f"{design}, {law}" for design, law in kinds]
    head = ["world", "moment", "episodes", "E[R]", "D", "norm of grad D", "estimate 0", *kinds_shown]
    return table(head, rows, left=2)


def report(results: Results, args: Args, seconds: float) -> str:
    """The page."""
    tables = {name: estimator_table(results, world) for name, world in zip(("maze", "sides"), results, strict=True)}
    numbers = {"last": args.seeds - 1, "seconds": seconds, "args": args, **findings(results)}
    page = Path(__file__).with_name("risk_credit_page.md").read_text()
    return wrap(page.format(**provenance(), **numbers, **tables, best=best_table(results)))


if __name__ == "__main__":
    main()
