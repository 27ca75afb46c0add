"""Where does gradient ascent on E[G0] - lambda * risk[G0] lead in the Guarded Maze, if nothing is sampled?

    python studies/exact_ascent.py           # about 11 minutes on one core; writes docs/results/exact_ascent.md
    python studies/exact_ascent.py --quick   # a minute or two; writes to a temporary directory

Each ascent follows the exact gradient from the uniform policy (`ascent.py`); the study sweeps lambda for two penalties,
three goal rewards and two readings of a bump on the red cell (`ascent_study.py`). The rates are computed, not sampled,
so neither an estimator nor noise can explain where an ascent leads.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import tyro
from ascent import RED, Ascent, Outcome, Sweep, first_step_limit, make_maze, mixture_limit, rates, window
from ascent_study import LAMBDAS, QUICK, SYMBOL, Check, Study, describe, reading, run_study
from markdown_page import provenance, table, wrap

EPISODES_PER_TIME = 50_000
"""MG as printed: 50 episodes for 10 updates of step size 1e-4, if none of the updates is cut short."""


@dataclass
class Args:
    """Exact ascent in the Guarded Maze, over lambdas, goal rewards and both readings of a bump on red."""

    quick: bool = False
    """A few lambdas only, and no search for the windows."""
    out: Path | None = None
    """Where the page and its figure go; docs/results, or with --quick a temporary directory."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page."""
    args = tyro.cli(Args, args=arguments)
    results = Path(__file__).resolve().parents[1] / "docs" / "results"
    out = args.out or (Path(tempfile.mkdtemp(prefix="exact_ascent_")) if args.quick else results)
    study = run_study(args.quick)
    write(study, out, args.quick)
    print(f"wrote {out / 'exact_ascent.md'} and its figure in {study.minutes:.1f} minutes")


def write(study: Study, out: Path, quick: bool) -> None:
    """Write the page and its figure."""
    out.mkdir(parents=True, exist_ok=True)
    draw(study.sweeps, out / "exact_ascent.png")
    (out / "exact_ascent.md").write_text(report(study, quick))


def report(study: Study, quick: bool) -> str:
    """The page. The sentences of the findings are about the numbers of a full run."""
    command = "python studies/exact_ascent.py" + (" --quick" if quick else "")
    method = METHOD.format(command=command, minutes=study.minutes, **provenance())
    parts = [INTRODUCTION, method]
    if not quick:
        parts = [INTRODUCTION, findings(study), method, WINDOWS + window_table(study.sweeps)]
    for setting, sweep in study.sweeps.items():
        if setting.goal_reward < 80:
            title = (
                f"## E - lambda {SYMBOL[setting.penalty]}, goal reward {setting.goal_reward:g}, bump {reading(setting)}"
            )
            parts.append(f"{title}\n\n{sweep_table(setting, sweep)}")
    parts.append(CHECKS + check_table(study.checks))
    return wrap("\n\n".join(parts))


def format_lambda(lam: float) -> str:
    """A lambda from a search, with the digits that the search settles."""
    return f"{lam:.2f}" if lam > 0.1 else f"{lam:.4f}"


def sweep_table(setting: Ascent, sweep: Sweep) -> str:
    """The outcomes at the lambdas of the grid."""
    head = ["lambda", "way", "goal", "red visit", "white path", "E", "D", "V", "goal > 0.5 after"]
    rows = []
    for lam, end in sweep.items():
        if lam in (*LAMBDAS[setting.penalty], *QUICK[setting.penalty]):
            after = "never" if np.isnan(end.goal_time) else f"{end.goal_time * EPISODES_PER_TIME:,.0f}"
            measures = [f"{end.mean:.2f}", f"{end.gini_deviation:.2f}", f"{end.variance:.1f}"]
            rows.append([f"{lam:g}", *way_and_rates(end), *measures, after])
    return table(head, rows, left=0)


def window_table(sweeps: dict[Ascent, Sweep]) -> str:
    """The windows, beside the two numbers that need no ascent."""
    head = ["penalty", "bump on red", "goal reward", "safe from", "safe to", "first step", "mixture"]
    rows = []
    for s, sweep in sweeps.items():
        edges = [format_lambda(edge) for edge in window(sweep) or ()] or ["none", "none"]
        limits = [format_lambda(first_step_limit(s)), format_lambda(mixture_limit(s.maze, s.penalty, s.gamma))]
        rows.append([SYMBOL[s.penalty], reading(s), f"{s.goal_reward:g}", *edges, *limits])
    return table(head, rows, left=0)


def check_table(checks: Sequence[Check]) -> str:
    """Each changed ascent beside the unchanged one."""
    names = ["goal", "red visit", "white path"]
    head = ["changed", "ascent", "lambda", "way", *names, "unchanged: way", *names]
    rows = [
        [c.name, describe(c.ascent), f"{c.ascent.lam:g}", *way_and_rates(c.changed), *way_and_rates(c.unchanged)]
        for c in checks
    ]
    return table(head, rows, left=0)


def way_and_rates(end: Outcome) -> list[str]:
    """Four cells of a table."""
    return [end.way, *(f"{rate:.4f}" for rate in (end.goal_rate, end.red_visit_rate, end.white_path_rate))]


def draw(sweeps: dict[Ascent, Sweep], path: Path) -> None:
    """Goal rate and red-visit rate against lambda; the Gini deviation left, the variance right."""
    colours = {20.0: "#0072b2", 40.0: "#d55e00"}
    titles = {"goal_rate": "goal rate", "red_visit_rate": "red-visit rate"}
    figure, axes = plt.subplots(2, 2, figsize=(10, 6), sharex="col", sharey=True, layout="constrained")
    for (row, (name, title)), (column, penalty) in product(enumerate(titles.items()), enumerate(SYMBOL)):
        ax = axes[row, column]
        for s, sweep in sweeps.items():
            if s.penalty != penalty or s.goal_reward not in colours:
                continue
            lambdas = sorted(sweep)
            label = f"goal reward {s.goal_reward:g}" + (f", bump {reading(s)}" if column == 0 else "")
            line = {"color": colours[s.goal_reward], "linestyle": "-" if s.draw_on_bump else "--"}
            marker = {"marker": "o" if s.draw_on_bump else "s", "markersize": 4}
            if not s.draw_on_bump:
                marker["markerfacecolor"] = "white"
            ax.plot(lambdas, [getattr(sweep[lam], name) for lam in lambdas], label=label, **line, **marker)
        if column == 0:
            ax.axvline(1.2, color="grey", linewidth=1, linestyle=":", label="printed for MG: 1.2")
            ax.set_xlim(0.5, 1.85)
        else:
            ax.axvspan(0.6, 1.2, color="grey", alpha=0.25, linewidth=0, label="printed for MVO: 0.6 to 1.2")
            ax.set_xscale("log")
        ax.set_ylabel(title if column == 0 else "")
        ax.grid(alpha=0.3)
    for ax, penalty in zip(axes[0], SYMBOL, strict=True):
        name = penalty.replace("_", " ").replace("gini", "Gini")
        ax.set_title(f"ascent on E - lambda {SYMBOL[penalty]} ({name})")
        ax.legend(fontsize=8, loc="lower left")
    for ax in axes[1]:
        ax.set_xlabel("lambda")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def common_window(sweeps: dict[Ascent, Sweep], penalty: str, readings: Sequence[bool]) -> str:
    """The lambdas that lead the safe way at goal rewards 20 and 40, in words."""
    edges = [
        window(sweep)
        for s, sweep in sweeps.items()
        if s.penalty == penalty and s.draw_on_bump in readings and s.goal_reward < 80
    ]
    low, high = max(e[0] if e else np.inf for e in edges), min(e[1] if e else -np.inf for e in edges)
    return f"{format_lambda(low)} to {format_lambda(high)}" if low <= high else "none"


def findings(study: Study) -> str:
    """What the numbers say. The sentences were written for the numbers of a full run; the numbers are filled in."""
    sweeps = study.sweeps
    at_printed = {(s.goal_reward, s.draw_on_bump): f[1.2] for s, f in sweeps.items() if 1.2 in f}
    long = {
        (c.ascent.goal_reward, c.ascent.draw_on_bump): c.changed
        for c in study.checks
        if c.name.startswith("20 times") and c.ascent.penalty == "gini_deviation" and c.ascent.lam == 1.2
    }
    windows = {
        f"{SYMBOL[s.penalty]}{s.goal_reward:g}": " to ".join(map(format_lambda, window(f) or ()))
        for s, f in sweeps.items()
        if s.draw_on_bump
    }
    coarse = next(c.changed for c in study.checks if c.name.endswith("0.005") and c.ascent.goal_reward == 40)
    variance_end = max(max(window(f) or (0.0,)) for s, f in sweeps.items() if s.penalty == "variance")
    p = rates(make_maze(20.0, True), np.full((36, 4), 0.25))[0]
    return FINDINGS.format(
        printed=table(
            ["bump on red", "goal 20", "goal 40"],
            [
                [name, *(f"{at_printed[g, bump].way} ({at_printed[g, bump].red_visit_rate:.2f})" for g in (20.0, 40.0))]
                for name, bump in (("draws again", True), ("costs 1", False))
            ],
            left=0,
        ),
        long_red=min(f.red_visit_rate for f in long.values() if f.way == RED),
        long_white=long[20.0, True].white_path_rate,
        short_white=at_printed[20.0, True].white_path_rate,
        draws=common_window(sweeps, "gini_deviation", (True,)),
        costs=common_window(sweeps, "gini_deviation", (False,)),
        both=common_window(sweeps, "gini_deviation", (True, False)),
        mixture=[mixture_limit(make_maze(g, True), "gini_deviation", 0.999) for g in (20.0, 40.0)],
        p=p,
        turn=1 / (1 - 2 * p),
        **windows,
        coarse=coarse.red_visit_rate,
        variance=common_window(sweeps, "variance", (True,)),
        below=0.6 / variance_end,
    )


FINDINGS = """\
## Findings

**At its printed lambda = 1.2, what MG learns depends on a detail on which the paper is silent**: the reward for bumping
into the wall or the border while on the red cell. The way that ascent takes at 1.2, with the red-visit rate in
brackets:

{printed}

More episodes do not change this: after 20 times as many, the ascents that took the red path enter red in
{long_red:.4f} of their episodes or more.

**The lambdas that lead to the safe path at both goal rewards** are {draws} if a bump on red draws again and {costs} if
it costs 1, so {both} under either reading. The paper's grid (0.8, 1.0, 1.2) ends below all three.

**Why.** Among mixtures of the two pure paths, the short one is no local optimum above lambda = {mixture[0]:.3f} (goal
20) and {mixture[1]:.3f} (goal 40), and 1.2 would do. But this presupposes a policy that knows the white path when it
leaves the short one. The uniform policy knows neither, and whichever path it learns first, it stops visiting the other:
the early phase decides. The red cell has a wall above and the border below, so that at first half of all moves made on
it are bumps. If each of them draws again, a visit is two draws on average instead of one, and a smaller lambda is
enough to avoid the cell.

At the upper end of the window, let p be the probability of reaching the goal and d the difference in return between
reaching it and not. Raising p changes E by d, D by about (1 - 2p) d and V by about (1 - 2p) d^2. The uniform policy has
p = {p:.3f}, so that for lambda above about 1 / (1 - 2p) = {turn:.2f} the objective rises as p falls; and the smaller p
is, the more so.

**The variance has such a window too**: {V20} at goal 20, {V40} at goal 40, so {variance} at both. The ratio of its ends
is no smaller than for D. But the position of the window depends on the unit of reward: the argument above gives an
upper end of about 1 / ((1 - 2p) d), which falls as the goal reward rises. At goal 80 the window is {V80}; lambda = 0.02
leads to the safe path at goal 20 and away from the goal at 40. If all rewards are multiplied by c, lambda for V has to
be divided by c, while lambda for D stays the same. MVO's printed grid (0.6 to 1.2) starts {below:.0f} times above the
window: there the exact ascent turns away from the goal as well, so sampling noise is not the reason why MVO fails.

**Neither penalty is free of tuning.** For D, too, the window depends on the goal reward: {D20}, {D40} and {D80} at 20,
40 and 80 (a bump draws). Its upper end stays near 1.6, its lower end rises.

**What this does not show.** Agents that sample differ from exact ascent in noise, the bias of the paper's estimator of
grad D, sample reuse and its early stops, and rewards to go without gamma^t. Near the edge of a window they may take
either path, and 1.2 is near an edge: at goal 40, plain steps of 0.005 are coarse enough to leave the ascent undecided
(red-visit rate {coarse:.2f}; see the last table). And the safe path is not yet the white path: its 11 moves exactly are
{short_white:.0%} of the episodes at goal 20 and lambda 1.2 after 100,000 episodes, and {long_white:.0%} after 20 times
as many."""

INTRODUCTION = """\
# Exact ascent in the Guarded Maze

Gradient ascent from the uniform policy, with exact gradients and nothing sampled, leads to the safe path only within a
window of lambdas, on E[G0] - lambda D[G0] (Gini deviation) and on E[G0] - lambda V[G0] (variance) alike. MG's printed
lambda is inside it in one of four cases; MVO's printed grid lies above it.

Each ascent ends in one of three ways: **away** if less than half of the episodes reach the goal; otherwise **red** or
**safe**, if more or less than half of them enter the red cell.

![Goal rate and red-visit rate against lambda](exact_ascent.png)"""

METHOD = """\
## Method

    {command}

{date}; steadyrl {steadyrl}, jax {jax}, numpy {numpy}, scipy {scipy}, Python {python}.
It took {minutes:.0f} minutes of processor time on one core.

The ascent is d logits / d time = grad E - lambda grad D or V, with gamma = 0.999 and horizon 100, integrated to time 2
by an adaptive Runge-Kutta method. MG with its printed settings (50 episodes for up to 10 updates of step size 1e-4)
covers 1 of this time in 50,000 episodes, and the tables count in such episodes; MVO's printed step size of 1e-5 needs
ten times as many. The rates are exact too. "Bump draws" and "bump costs 1" are the two readings of the reward for
bumping into a wall on the red cell: another draw of the red reward, which is the library's default
(`Maze(draw_on_bump=True)`), or -1."""

WINDOWS = """\
## Windows

The lambdas that lead to the safe path, each edge found to 1 % by bisection. Beside them are two numbers that need no
ascent and are guides, not edges: the lambda above which the very first step lowers the goal rate ("first step"), and
the one above which the short path is no local optimum among mixtures with the white path ("mixture").

"""

CHECKS = """\
## Sensitivity to the method of computation

The same ascents with one thing changed, beside the unchanged ones. It matters only close to the edge of a window.

"""


if __name__ == "__main__":
    main()
