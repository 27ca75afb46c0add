"""How good are the two estimators of grad D, the paper's eta (Eq. 16) and the unbiased leave-one-out form?

    python studies/gini_estimators.py   # about a minute on one core; writes docs/results/gini_estimators.md

Both turn a batch of n returns R_i, with their scores d log p(trajectory i) / d theta, into an estimate of dD/dtheta.
Here they are given many batches whose true dD/dtheta is known, and their means and spreads are measured.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import tyro
from numpy.typing import NDArray
from scipy.stats import norm

from steadyrl import exact
from steadyrl.batch import batch_of_pairs
from steadyrl.envs.guarded_maze.definition import Maze
from steadyrl.progress import bar
from steadyrl.risk import gini_weights, gini_weights_unbiased
from steadyrl.rollout import Tables, play

Floats = NDArray[np.float64]
SIZES = (10, 30, 50)
"""n: episodes in a batch."""
BATCHES = 100_000
"""Batches drawn for each n, in all cases but the maze."""
MAZE_EPISODES, CHUNK = 450_000, 30_000
"""Episodes played in the maze, and how many at once."""
SEED = 0
GAMMA = 0.999
ESTIMATORS: dict[str, Callable[[Floats], Floats]] = {
    "paper": lambda R: -gini_weights(R) / (R.shape[-1] - 1),
    "unbiased": lambda R: -gini_weights_unbiased(R) / (R.shape[-1] - 2),
}
"""What multiplies the scores in an estimate of grad D; the library's weights are those of -grad D."""


# ------------------------------------------------------------------------------------------------ the cases


class Truth(NamedTuple):
    """What can be known without sampling."""

    gini: float
    """Grad D."""
    lead: dict[int, float]
    """n -> d/dtheta E[max of n returns - their mean]."""

    def paper_bias(self, n: int) -> float:
        """How far the mean of the paper's estimator is from grad D."""
        return -self.lead[n] / (n - 1)


def integrated(width: Floats, F: Floats, dF: Floats) -> Truth:
    """From F and dF/dtheta on pieces of the line of the given widths: D = int F (1 - F), lead = int F - F^n."""
    return Truth(
        gini=float(np.sum(width * (1 - 2 * F) * dF)),
        lead={n: float(np.sum(width * (1 - n * F ** (n - 1)) * dF)) for n in SIZES},
    )


@dataclass(frozen=True, eq=False)
class Case:
    """Returns and scores whose grad D is known."""

    name: str
    setting: str
    """What it is, in a sentence."""
    draw: Callable[[np.random.Generator, int], tuple[Floats, Floats]]
    """(generator, n) -> returns and scores, [batches, n] each."""
    truth: Truth


def gaussian() -> Case:
    """The scale of a normal distribution."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        z = rng.normal(size=(BATCHES, n))
        return z, z**2 - 1

    width = 1e-3
    x = np.arange(-10, 10, width) + width / 2
    return Case(
        "Gaussian, scale",
        "R is normal with standard deviation s; theta = log s, at s = 1. The score is z^2 - 1, and D = s / sqrt(pi).",
        draw,
        integrated(np.full_like(x, width), norm.cdf(x), -x * norm.pdf(x)),
    )


def reach(noise: float, related: bool = True) -> Case:
    """The goal is reached or not, and perhaps the score has nothing to do with it."""
    p, gap = 0.2, 60.0

    def draw(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        reached = rng.random((BATCHES, n)) < p
        R = gap * reached + noise * rng.normal(size=(BATCHES, n))
        return R, reached - p if related else rng.normal(size=(BATCHES, n))

    if noise:
        width = 0.01
        x = np.arange(-10 * noise, gap + 10 * noise, width) + width / 2
        not_reached, reached = norm.cdf(x / noise), norm.cdf((x - gap) / noise)
        pieces = np.full_like(x, width), (1 - p) * not_reached + p * reached, p * (1 - p) * (reached - not_reached)
    else:
        pieces = np.array([gap]), np.array([1 - p]), np.array([-p * (1 - p)])
    if not related:
        setting = "Returns as in the case before, scores drawn from N(0, 1) on their own: grad D = 0."
        return Case("unrelated score", setting, draw, integrated(pieces[0], pieces[1], 0 * pieces[2]))
    around = f", plus normal noise of standard deviation {noise:g}" if noise else ""
    return Case(
        f"reach or not, noise {noise:g}" if noise else "reach or not",
        f"R is 60 with probability p = 0.2, else 0{around}; theta = logit p. The score is 1 - p or -p.",
        draw,
        integrated(*pieces),
    )


def white_or_short() -> Case:
    """The two pure paths of the maze."""
    q = 0.5
    maze = Maze()
    white = -np.sum(GAMMA ** np.arange(10)) + maze.goal_reward * GAMMA**10
    # The fourth move enters the red cell, the ninth the goal.
    others = -np.sum(np.delete(GAMMA ** np.arange(8), 3)) + maze.goal_reward * GAMMA**8
    short = others + GAMMA**3 * np.array(maze.red_rewards)

    def draw(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        took_white = rng.random((BATCHES, n)) < q
        R = np.where(took_white, white, rng.choice(short, p=maze.red_probabilities, size=(BATCHES, n)))
        return R, took_white - q

    values = np.sort([white, *short])
    F_short = np.array([np.sum(np.array(maze.red_probabilities)[short <= x]) for x in values])[:-1]
    F_white = (white <= values)[:-1].astype(float)
    return Case(
        "white or short path",
        f"The maze's white path (R = {white:.3f}) with probability q = 0.5, else its short path through red "
        f"(R = {short[0]:.3f}, {short[1]:.3f} or {short[2]:.3f}); theta = logit q.",
        draw,
        integrated(np.diff(values), q * F_white + (1 - q) * F_short, q * (1 - q) * (F_white - F_short)),
    )


class MazePool:
    """Episodes of the uniform policy in the maze, and their scores along the exact gradient of D."""

    def __init__(self, advance: Callable[[int], Any]) -> None:
        self.mdp, self.advance = Maze().mdp, advance
        self.logits = np.zeros((self.mdp.n_states, self.mdp.n_actions))
        self.policy = np.full_like(self.logits, 1 / self.mdp.n_actions)

    @cached_property
    def gradient(self) -> Floats:
        """Grad D, [S, A]."""
        return exact.gradient("gini_deviation", self.mdp, self.logits, GAMMA)

    @property
    def direction(self) -> Floats:
        """Theta runs along this unit vector."""
        return self.gradient / np.linalg.norm(self.gradient)

    def truth(self) -> Truth:
        """By the exact distribution of the return; P(max <= x) = F(x)^n."""

        def lead(n: int, values: Any, probabilities: Any) -> Any:
            F = probabilities.cumsum()[:-1]
            return (F - F**n) @ (values[1:] - values[:-1])

        leads = {n: exact.gradient(partial(lead, n), self.mdp, self.logits, GAMMA) for n in SIZES}
        return Truth(
            gini=float(np.linalg.norm(self.gradient)),
            lead={n: float(np.sum(self.direction * of)) for n, of in leads.items()},
        )

    @cached_property
    def episodes(self) -> tuple[Floats, Floats]:
        """Returns and scores of all episodes."""
        tables = Tables.of(self.mdp)
        policy = jnp.asarray(self.policy, jnp.float32)
        centred = self.direction - (self.policy * self.direction).sum(axis=-1, keepdims=True)
        R, scores = [], []
        for chunk in range(MAZE_EPISODES // CHUNK):
            keys = jax.random.split(jax.random.fold_in(jax.random.key(SEED), chunk), CHUNK)
            returns, visits = _returns_and_visits(tables, policy, keys, self.mdp.horizon)
            R.append(np.asarray(returns, np.float64))
            scores.append(np.asarray(visits, np.float64).reshape(CHUNK, -1) @ centred.ravel())
            self.advance(1)
        return np.concatenate(R), np.concatenate(scores)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        """The same episodes for every n, in batches."""
        R, scores = self.episodes
        return R.reshape(-1, n), scores.reshape(-1, n)

    def case(self) -> Case:
        """As the other cases."""
        error = exact.return_distribution(self.mdp, self.policy, GAMMA).error
        return Case(
            "maze, uniform policy",
            f"Episodes of the uniform policy in the Guarded Maze (goal reward 20, gamma = {GAMMA}); theta runs along "
            f"the direction of the exact grad D. The exact distribution of R is within {error:.1g} (Wasserstein-1) "
            "of the truth.",
            self.draw,
            self.truth(),
        )


@partial(jax.jit, static_argnames="horizon")
def _returns_and_visits(
    tables: Tables, policy: jax.Array, keys: jax.Array, horizon: int
) -> tuple[jax.Array, jax.Array]:
    batch = batch_of_pairs(tables, play(tables, policy[None], keys[None], horizon), GAMMA)
    return batch.returns[0], batch.visits[0]


# ------------------------------------------------------------------------------------------------ the study


class Measured(NamedTuple):
    """One estimator on many batches of one size."""

    mean: float
    spread: float
    """Standard deviation over the batches: the standard error of one batch's estimate."""
    batches: int

    @property
    def standard_error(self) -> float:
        """Of `mean`."""
        return self.spread / np.sqrt(self.batches)

    def rms_error(self, bias: float) -> float:
        """Of one batch's estimate: root of bias squared plus spread squared."""
        return float(np.hypot(bias, self.spread))


Results = dict[Case, dict[int, dict[str, Measured]]]


def measure(case: Case, n: int, number: int) -> dict[str, Measured]:
    """Both estimators on the same batches."""
    R, scores = case.draw(np.random.default_rng([SEED, number, n]), n)
    measured = {}
    for name, weights in ESTIMATORS.items():
        estimates = (weights(R) * scores).sum(axis=-1)
        measured[name] = Measured(float(estimates.mean()), float(estimates.std(ddof=1)), len(estimates))
    return measured


def study() -> Results:
    """All cases, with progress."""
    with bar() as progress:
        playing = progress.add_task("maze", total=MAZE_EPISODES // CHUNK, unit="chunks", note="exact gradients first")
        pool = MazePool(lambda k: progress.update(playing, advance=k, note="episodes"))
        cases = [gaussian(), white_or_short(), reach(0), reach(5), reach(5, related=False), pool.case()]
        _ = pool.episodes
        task = progress.add_task("estimates", total=len(cases) * len(SIZES), unit="sizes", note="")
        results: Results = {}
        for number, case in enumerate(cases):
            results[case] = {}
            for n in SIZES:
                results[case][n] = measure(case, n, number)
                progress.update(task, advance=1, note=f"{case.name}, n = {n}")
    return results


# ----------------------------------------------------------------------------------------------- the report


def expected(case: Case, estimator: str, n: int) -> float:
    """The mean that theory gives an estimator."""
    return case.truth.gini + (case.truth.paper_bias(n) if estimator == "paper" else 0.0)


def percent(case: Case, n: int) -> str:
    """The paper's bias, relative to grad D."""
    return f"{case.truth.paper_bias(n) / case.truth.gini:+.1%}" if case.truth.gini else "none"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def bias_table(results: Results) -> str:
    """Means, expected and measured."""
    head = ["case", "n", "grad D", "paper: bias", "paper: expected", "paper: measured", "unbiased: measured"]
    rows = []
    for case, by_size in results.items():
        for n, measured in by_size.items():
            means = [f"{m.mean:.3f} ± {m.standard_error:.3f}" for m in measured.values()]
            known = [f"{case.truth.gini:.3f}", percent(case, n), f"{expected(case, 'paper', n):.3f}"]
            rows.append([case.name, str(n), *known, *means])
    return table(head, rows)


def spread_table(results: Results) -> str:
    """Spreads, and errors with the bias in."""
    head = ["case", "n", "paper: spread", "unbiased: spread", "ratio", "paper: error", "unbiased: error"]
    rows = []
    for case, by_size in results.items():
        for n, m in by_size.items():
            spreads = [f"{m['paper'].spread:.3g}", f"{m['unbiased'].spread:.3g}"]
            ratio = f"{m['paper'].spread / m['unbiased'].spread:.2f}"
            errors = [m["paper"].rms_error(case.truth.paper_bias(n)), m["unbiased"].rms_error(0)]
            rows.append([case.name, str(n), *spreads, ratio, *(f"{error:.3g}" for error in errors)])
    return table(head, rows)


def draw(results: Results, path: Path) -> None:
    """For each case and n: the truth, the mean of each estimator, and the spread of one batch."""
    colours = {"paper": "#d55e00", "unbiased": "#0072b2"}
    labels = {"paper": "paper's eta", "unbiased": "unbiased (leave one out)"}
    figure, axes = plt.subplots(2, 3, figsize=(11, 6.2), layout="constrained")
    for ax, (case, by_size) in zip(axes.flat, results.items(), strict=True):
        ax.axhline(case.truth.gini, color="black", linewidth=1, label="grad D")
        for shift, (name, colour) in zip((-0.13, 0.13), colours.items(), strict=True):
            x = np.arange(len(SIZES)) + shift
            mean, spread = (np.array([getattr(by_size[n][name], k) for n in SIZES]) for k in ("mean", "spread"))
            ax.errorbar(x, mean, spread, fmt="o", color=colour, capsize=4, label=f"{labels[name]}: mean, ± spread")
        at = np.arange(len(SIZES)) - 0.13
        theory = [expected(case, "paper", n) for n in SIZES]
        ax.scatter(at, theory, marker="_", s=300, color="black", zorder=3, label="mean of the paper's, by theory")
        ax.set_xticks(range(len(SIZES)), [str(n) for n in SIZES])
        ax.set_xlim(-0.5, len(SIZES) - 0.5)
        ax.set_title(case.name, fontsize=10)
        ax.grid(axis="y", alpha=0.3)
    for ax in axes[1]:
        ax.set_xlabel("n, episodes in a batch")
    for ax in axes[:, 0]:
        ax.set_ylabel("estimate of grad D")
    handles, names = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)


PAGE = """\
# Two estimators of the gradient of the Gini deviation

    python studies/gini_estimators.py

{date}; seed {seed}; steadyrl {steadyrl}, jax {jax}, numpy {numpy}, scipy {scipy}, Python {python}.
It took {seconds:.0f} seconds on one core.

From the returns R_i and the scores of n episodes, the paper's Eq. 16 (`risk.gini_weights`) and the leave-one-out form
(`risk.gini_weights_unbiased`, the default of `MeanGini`) estimate grad D. Here both see the same batches: {batches:,}
of each size n, and in the maze {maze_episodes:,} episodes divided into batches. **Spread** is the standard deviation
of one batch's estimate; **error** is its root mean squared error, bias included.

![Means and spreads](gini_estimators.png)

## What it means

**The bias is as derived.** Of {comparisons} measured means, {within} lie within 2 standard errors of the mean that
theory gives them (about {normal:.0f} should), and the farthest is {farthest:.1f} away. The leave-one-out form has none.
This run has five times the batches of the first one, which used the same seed and had 31 of 36 within 2 standard errors
and the farthest 3.1 away; more batches were drawn because of that. Checks on other seeds (600,000 batches at n = 10,
200,000 at n = 30) had the farthest 2.4 away.

**The paper's form is off by {gauss}** at n = {sizes} for the scale of a Gaussian, and by
{maze} in the maze. At n = 10 it gives too little in every case. At 30 and 50 it gives too
much where the returns are of a few kinds (reach or not: {two}). For once the best kind is almost
sure to be in a batch, max R is constant and the bias is grad E[R] / (n - 1). An agent that subtracts lambda times the
estimate from grad E then climbs (1 - lambda / (n - 1)) E - lambda D.

**The paper's form is noisier in all cases but one.** In the maze its spread is {ratio} times
that of the leave-one-out form, so that it needs {more} times as many batches for the same
precision, bias aside. The reason is that its weights are not centred. Their average is (max R - mean R) - 2D, with D of
the batch, and it multiplies the sum of all scores: 0 on average, but not in a batch. So the unrelated score shows the
same difference, where there is nothing to find.

**The exception is the scale of a Gaussian.** There the paper's spread is {exception} of the other's, and
its error is smaller, too. A batch that by chance is widely spread gives too large an estimate, and its scores sum to
more than 0; the paper's form subtracts (max R - mean R) times that sum. This is shrinkage: less noise, paid for with
bias. Where returns are close to normal and their scale is what the policy changes, it may be the better choice.

## Why the paper's form is biased

For ascending returns Eq. 16 is eta_i = B - (1/n) sum_j |R_i - R_j|, where B = max R - mean R; the estimate of grad D is
-(1/(n-1)) sum_i eta_i score_i. D = E|X1 - X2| / 2, so grad D = E[|X1 - X2| score(X1)]. The second part of eta therefore
contributes (1/(n-1)) (1/n) n (n-1) grad D = grad D, exactly. The first part would be a baseline if B did not depend on
trajectory i. It does, and since the scores of a batch sum to the score of the batch, E[B sum_i score_i] = grad E[B]:

    E[estimate] = grad D - grad E[max R - mean R] / (n - 1).

With F the distribution function of R, E[max R - mean R] is the integral of F - F^n and D that of F (1 - F). The exact
numbers below are derivatives of these. For a Gaussian E[max R - mean R] is 1.539 s, 2.043 s and 2.249 s at n = 10, 30
and 50, and D is 0.564 s.

The leave-one-out form gives each trajectory a baseline made from the others alone. With w_i = sum_j |R_i - R_j| / (n-1)
it is (1/(n-2)) sum_i (w_i - mean w) score_i, for n >= 3.

## Cases

{cases}

## Bias

Means over all batches, with their standard errors.

{bias}

## Spread

{spread}
"""


def listed(numbers: Sequence[str]) -> str:
    """Three numbers in a sentence."""
    return f"{', '.join(numbers[:-1])} and {numbers[-1]}"


def report(results: Results, seconds: float) -> str:
    """The page."""
    by_name = {case.name: (case, by_size) for case, by_size in results.items()}
    scale, two, maze = (by_name[name] for name in ("Gaussian, scale", "reach or not", "maze, uniform policy"))
    z = [
        abs(m.mean - expected(case, name, n)) / m.standard_error
        for case, by_size in results.items()
        for n, measured in by_size.items()
        for name, m in measured.items()
    ]

    def ratios(by_size: dict[int, dict[str, Measured]]) -> list[float]:
        return [by_size[n]["paper"].spread / by_size[n]["unbiased"].spread for n in SIZES]

    return PAGE.format(
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        python=platform.python_version(),
        **{name: version(name) for name in ("steadyrl", "jax", "numpy", "scipy")},
        seed=SEED,
        seconds=seconds,
        batches=BATCHES,
        maze_episodes=MAZE_EPISODES,
        comparisons=len(z),
        within=sum(x < 2 for x in z),
        normal=len(z) * (2 * norm.cdf(2) - 1),
        farthest=max(z),
        sizes=listed([str(n) for n in SIZES]),
        gauss=listed([percent(scale[0], n) for n in SIZES]),
        two=listed([percent(two[0], n) for n in SIZES]),
        maze=listed([percent(maze[0], n) for n in SIZES]),
        ratio=listed([f"{ratio:.1f}" for ratio in ratios(maze[1])]),
        more=listed([f"{ratio**2:.1f}" for ratio in ratios(maze[1])]),
        exception=listed([f"{ratio:.2f}" for ratio in ratios(scale[1])]),
        cases="\n".join(fill(f"- **{case.name}**: {case.setting}", 118, subsequent_indent="  ") for case in results),
        bias=bias_table(results),
        spread=spread_table(results),
    )


@dataclass
class Args:
    """Bias and spread of the paper's estimator of grad D, and of the unbiased one."""

    out: Path = Path(__file__).resolve().parents[1] / "docs" / "results"
    """Where the page and its figure go."""


def main() -> None:
    """Run the study and write its page."""
    args = tyro.cli(Args)
    started = time.monotonic()
    results = study()
    args.out.mkdir(parents=True, exist_ok=True)
    draw(results, args.out / "gini_estimators.png")
    seconds = time.monotonic() - started
    (args.out / "gini_estimators.md").write_text(report(results, seconds))
    print(f"wrote {args.out / 'gini_estimators.md'} and its figure in {seconds:.0f} seconds")


if __name__ == "__main__":
    main()
