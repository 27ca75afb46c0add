"""Where does gradient ascent on E[G0] - lambda * risk[G0] lead in the Guarded Maze, if nothing is sampled?

    python studies/exact_ascent.py           # about 11 minutes on one core; writes docs/results/exact_ascent.md
    python studies/exact_ascent.py --quick   # a minute or two; writes to a temporary directory

The logits of a tabular softmax policy start at 0 and follow d logits / d time = grad E - lambda * grad risk, with
the gradients of `steadyrl.exact`: no estimator and no noise can be blamed for where this leads. A sampled agent
that makes updates of step size a moves by a of this time with each of them. The rates are computed, not sampled.
"""

from __future__ import annotations

import platform
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import tyro
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import softmax

from steadyrl import exact
from steadyrl.envs.guarded_maze.definition import MOVES, Maze
from steadyrl.progress import bar

EPISODES_PER_TIME = 50_000
"""MG as printed: 50 episodes for 10 updates of step size 1e-4, if none of the updates is cut short."""
LAMBDAS = {
    "gini_deviation": (0.0, 0.6, 0.8, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8),
    "variance": (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.0125, 0.015, 0.0175, 0.02, 0.025, 0.03, 0.1, 0.3, 1.0),
}
ENDS = {"gini_deviation": (1.0, 1.8), "variance": (0.003, 0.03)}
"""Where the search for the window starts at goal reward 80, for which there is no table."""
QUICK = {"gini_deviation": (0.6, 1.2, 1.4, 1.8), "variance": (0.001, 0.015, 0.1)}
SYMBOL = {"gini_deviation": "D", "variance": "V"}
RESOLUTION = 1.01
"""The edges of a window are searched until the lambdas on both sides of it differ by this factor."""
RED, SAFE, AWAY = "red", "safe", "away"


@dataclass(frozen=True)
class Ascent:
    """One ascent: what is climbed, and how it is computed."""

    penalty: str
    """ "gini_deviation" or "variance"."""
    goal_reward: float
    draw_on_bump: bool
    """Whether bumping into a wall on the red cell draws another red reward."""
    lam: float
    """The weight of the penalty."""
    gamma: float = 0.999
    time: float = 2.0
    """When to stop; 2 is 100,000 episodes of MG as printed."""
    tolerance: float = 1e-4
    """Absolute and relative, of each step of the Runge-Kutta method."""
    step: float | None = None
    """If given, plain steps logits += step * gradient instead of Runge-Kutta."""
    grid: int | None = None
    """The grid of `steadyrl.exact`. If None, 21 for the variance, exact on any grid, and 201 for the Gini deviation."""

    @property
    def maze(self) -> Maze:
        """The maze it takes place in."""
        return maze_with(self.goal_reward, self.draw_on_bump)


class Found(NamedTuple):
    """The policy at the end of an ascent, in numbers."""

    goal_rate: float
    red_visit_rate: float
    white_path_rate: float
    mean: float
    gini_deviation: float
    variance: float
    goal_time: float
    """When the goal rate first rose above 1/2; NaN if it never did."""

    @property
    def way(self) -> str:
        """Where most episodes go: to the goal past the red cell or not, or not to the goal."""
        if self.goal_rate < 0.5:
            return AWAY
        return RED if self.red_visit_rate > 0.5 else SAFE


@cache
def maze_with(goal_reward: float, draw_on_bump: bool) -> Maze:
    """The paper's maze; the same object each time, since it keeps what it has worked out."""
    return Maze(goal_reward=goal_reward, draw_on_bump=draw_on_bump)


def rates(maze: Maze, policy: NDArray[np.float64]) -> tuple[float, float, float]:
    """The goal rate, red-visit rate and white-path rate of `policy` [S, A], by recursion over (red seen, cell)."""
    goal = np.flatnonzero(maze.grid.ravel() == "G")
    into = np.eye(maze.live.size)[maze.destination]
    clear = np.einsum("sa,sat->st", policy * ~maze.enters_red, into)
    enter = np.einsum("sa,sat->st", policy * maze.enters_red, into)
    unseen, seen = np.eye(maze.live.size)[maze.start], np.zeros(maze.live.size)
    reached, white = np.zeros(2), 0.0
    for t in range(1, maze.horizon + 1):
        unseen, seen = unseen @ clear, seen @ (clear + enter) + unseen @ enter
        arrived = np.array([unseen[goal].sum(), seen[goal].sum()])
        unseen[goal], seen[goal] = 0, 0
        reached += arrived
        if t == maze.white_path_length:
            white = arrived[0]
    return float(reached.sum()), float(reached[1] + seen.sum()), float(white)


def direction(ascent: Ascent) -> Callable[[float, NDArray[np.float64]], NDArray[np.float64]]:
    """(time, flat logits) -> grad E - lambda * grad risk, flat."""
    mdp, lam, gamma = ascent.maze.mdp, ascent.lam, ascent.gamma
    shape = (mdp.n_states, mdp.n_actions)

    @jax.jit
    def mean_gini(values: Any, probabilities: Any) -> Any:
        return exact.mean(values, probabilities) - lam * exact.gini_deviation(values, probabilities)

    def of_gini(_: float, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        return exact.gradient(mean_gini, mdp, logits.reshape(shape), gamma, ascent.grid or 201).ravel()

    def of_variance(_: float, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        # By name, one by one: so the gradient of the variance is exact on any grid.
        mean, variance = (
            exact.gradient(name, mdp, logits.reshape(shape), gamma, ascent.grid or 21) for name in ("mean", "variance")
        )
        return (mean - lam * variance).ravel()

    return of_gini if ascent.penalty == "gini_deviation" else of_variance


@cache
def climb(ascent: Ascent) -> Found:
    """Follow the gradient from the uniform policy."""
    maze, uphill = ascent.maze, direction(ascent)
    shape = (maze.mdp.n_states, maze.mdp.n_actions)
    logits, goal_time = np.zeros(shape).ravel(), np.nan

    def policy_of(logits: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(softmax(logits.reshape(shape), axis=-1))

    def half_reach(_: float, logits: NDArray[np.float64]) -> float:
        return rates(maze, policy_of(logits))[0] - 0.5

    if ascent.step is None:
        half_reach.direction = 1  # type: ignore[attr-defined]
        accuracy = {"rtol": ascent.tolerance, "atol": ascent.tolerance}
        solution = solve_ivp(uphill, (0, ascent.time), logits, events=half_reach, **accuracy)
        logits, goal_time = solution.y[:, -1], next(iter(solution.t_events[0]), np.nan)
    else:
        for k in range(round(ascent.time / ascent.step)):
            logits = logits + ascent.step * uphill(0.0, logits)
            if np.isnan(goal_time) and half_reach(0.0, logits) > 0:
                goal_time = (k + 1) * ascent.step
    distribution = exact.return_distribution(maze.mdp, policy_of(logits), ascent.gamma, ascent.grid or 501)
    measured = (distribution.mean, distribution.gini_deviation, distribution.variance)
    return Found(*rates(maze, policy_of(logits)), *map(float, measured), float(goal_time))


def refine(run: Callable[[float], Found], lambdas: Sequence[float]) -> dict[float, Found]:
    """What `run` finds at `lambdas`, and at more of them where neighbours lead different ways."""
    found = {lam: run(lam) for lam in lambdas}

    def bisect(low: float, high: float) -> None:
        if found[low].way != found[high].way and high > RESOLUTION * low:
            middle = (low + high) / 2
            found[middle] = run(middle)
            bisect(low, middle)
            bisect(middle, high)

    for low, high in pairwise(sorted(lambdas)):
        bisect(low, high)
    return found


def window(found: dict[float, Found]) -> tuple[float, float] | None:
    """The least and the largest lambda that led the safe way."""
    safe = [lam for lam, f in found.items() if f.way == SAFE]
    return (min(safe), max(safe)) if safe else None


def first_step_limit(ascent: Ascent) -> float:
    """The lambda above which the very first step lowers the goal rate, whatever its size."""
    maze, small = ascent.maze, 1e-4
    shape = (maze.mdp.n_states, maze.mdp.n_actions)

    def rise(measure: str) -> float:
        step = small * exact.gradient(measure, maze.mdp, np.zeros(shape), ascent.gamma, 501)
        up, down = (rates(maze, np.asarray(softmax(sign * step, axis=-1)))[0] for sign in (1, -1))
        return (up - down) / (2 * small)

    # As long as few episodes reach the goal, more of them raise the mean and the penalty: here both weigh the same.
    return rise("mean") / rise(ascent.penalty)


def mixture_limit(maze: Maze, penalty: str, gamma: float) -> float:
    """The lambda above which always taking the short path is no local optimum among mixtures with the white path.

    With q the probability of the white path, E is linear in q and D and V are quadratic, so that three q are enough
    for the derivative of E - lambda * risk at q = 0.
    """
    up, down, _, right = range(len(MOVES))
    height, width = maze.grid.shape
    action = np.full((height, width), up)
    action[0, :], action[-1, :-1], action[0, -1] = right, right, down

    def measured(q: float) -> tuple[float, float]:
        policy = np.eye(len(MOVES))[action.ravel()]
        policy[maze.start] = q * np.eye(len(MOVES))[up] + (1 - q) * np.eye(len(MOVES))[right]
        distribution = exact.return_distribution(maze.mdp, policy, gamma, 2001)
        return distribution.mean, getattr(distribution, penalty)

    (mean_short, risk_short), (_, risk_half), (mean_white, risk_white) = map(measured, (0.0, 0.5, 1.0))
    return float((mean_white - mean_short) / (4 * risk_half - 3 * risk_short - risk_white))


# ------------------------------------------------------------------------------------------------ the study


class Study(NamedTuple):
    """All that the report is written from."""

    sweeps: dict[Ascent, dict[float, Found]]
    """For each setting (an `Ascent` with lam = 0) what was found at each lambda."""
    checks: list[tuple[str, Ascent, Found, Found]]
    """What was changed, the changed ascent, what it found, and what the unchanged one found."""
    minutes: float
    """Of processor time."""


def settings(quick: bool) -> list[Ascent]:
    """The settings whose lambdas are swept."""
    goals = (20.0, 40.0) if quick else (20.0, 40.0, 80.0)
    gini = [Ascent("gini_deviation", g, bump, 0.0) for bump, g in product((True, False), goals)]
    return gini + [Ascent("variance", g, True, 0.0) for g in goals]


def swept(setting: Ascent, quick: bool) -> tuple[float, ...]:
    """The lambdas at which a sweep begins."""
    if quick:
        return QUICK[setting.penalty]
    return (ENDS if setting.goal_reward == 80 else LAMBDAS)[setting.penalty]


def variations(quick: bool) -> list[tuple[str, Ascent, dict[str, Any]]]:
    """(what it is called, the ascent, what is changed in it): does the way of computing matter?"""
    gini = {(g, bump): Ascent("gini_deviation", g, bump, 1.2) for g, bump in product((20.0, 40.0), (True, False))}
    variance = Ascent("variance", 40.0, True, 0.0175)
    if quick:
        return [("gamma = 1", gini[20.0, True], {"gamma": 1.0})]
    chosen: list[tuple[str, Ascent, dict[str, Any]]] = []
    for ascent in (gini[20.0, True], gini[40.0, True], variance):
        chosen.append(("tolerance 1e-6", ascent, {"tolerance": 1e-6}))
        chosen.append(("plain steps of 0.005", ascent, {"step": 0.005}))
    chosen.append(("plain steps of 0.001", gini[40.0, True], {"step": 0.001}))
    chosen += [("grid of 801", gini[g, True], {"grid": 801}) for g in (20.0, 40.0)]
    for lam in (1.2, 1.4, 1.6):
        chosen += [("gamma = 1", replace(ascent, lam=lam), {"gamma": 1.0}) for ascent in gini.values()]
    chosen += [("20 times as long", ascent, {"time": 40.0}) for ascent in (*gini.values(), variance)]
    chosen += [("20 times as long", replace(gini[20.0, True], lam=1.6), {"time": 40.0})]
    return chosen


def study(quick: bool) -> Study:
    """Run everything, one ascent after another, and show how far it is."""
    started = time.process_time()
    sweeps: dict[Ascent, dict[float, Found]] = {}
    checks = []
    with bar() as progress:
        # 10: about as many more as the search for the edges of a window takes.
        total = sum(len(swept(setting, quick)) + (0 if quick else 10) for setting in settings(quick))
        task = progress.add_task("sweeps", total=total, unit="ascents", note="")
        for setting in settings(quick):

            def run(lam: float, setting: Ascent = setting) -> Found:
                found = climb(replace(setting, lam=lam))
                progress.update(task, advance=1, note=f"{described(setting)}, lambda {lam:.4g}: {found.way}")
                return found

            chosen = swept(setting, quick)
            sweeps[setting] = {lam: run(lam) for lam in chosen} if quick else refine(run, chosen)
        progress.update(task, total=sum(map(len, sweeps.values())), note="")
        task = progress.add_task("checks", total=len(variations(quick)), unit="ascents", note="")
        for name, ascent, change in variations(quick):
            checks.append((name, ascent, climb(replace(ascent, **change)), climb(ascent)))
            progress.update(task, advance=1, note=f"{name}, {described(ascent)}")
    return Study(sweeps, checks, (time.process_time() - started) / 60)


def described(setting: Ascent) -> str:
    """A setting in words."""
    return f"{SYMBOL[setting.penalty]}, goal {setting.goal_reward:g}, bump {reading(setting)}"


def reading(setting: Ascent) -> str:
    """What bumping into a wall on the red cell pays."""
    return "draws" if setting.draw_on_bump else "costs 1"


# ----------------------------------------------------------------------------------------------- the report


def shown(lam: float) -> str:
    """A lambda that was searched for, as accurate as it was found."""
    return f"{lam:.2f}" if lam > 0.1 else f"{lam:.4f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    lines = [head, ["---:"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def sweep_table(setting: Ascent, found: dict[float, Found]) -> str:
    """What was found at the lambdas of the grid."""
    head = ["lambda", "way", "goal", "red visit", "white path", "E", "D", "V", "goal > 0.5 after"]
    rows = []
    for lam in (lam for lam in found if lam in (*LAMBDAS[setting.penalty], *QUICK[setting.penalty])):
        f = found[lam]
        after = "never" if np.isnan(f.goal_time) else f"{f.goal_time * EPISODES_PER_TIME:,.0f}"
        shares = [f"{rate:.4f}" for rate in (f.goal_rate, f.red_visit_rate, f.white_path_rate)]
        measures = [f"{f.mean:.2f}", f"{f.gini_deviation:.2f}", f"{f.variance:.1f}"]
        rows.append([f"{lam:g}", f.way, *shares, *measures, after])
    return table(head, rows)


def window_table(sweeps: dict[Ascent, dict[float, Found]]) -> str:
    """The windows, beside the two numbers that can be had without an ascent."""
    head = ["penalty", "bump on red", "goal reward", "safe from", "safe to", "first step", "mixture"]
    rows = []
    for s, found in sweeps.items():
        edges = [shown(edge) for edge in window(found) or ()] or ["none", "none"]
        limits = [shown(first_step_limit(s)), shown(mixture_limit(s.maze, s.penalty, s.gamma))]
        rows.append([SYMBOL[s.penalty], reading(s), f"{s.goal_reward:g}", *edges, *limits])
    return table(head, rows)


def check_table(checks: Sequence[tuple[str, Ascent, Found, Found]]) -> str:
    """Each changed ascent beside the unchanged one."""
    names = ["goal", "red visit", "white path"]
    head = ["changed", "ascent", "lambda", "way", *names, "unchanged: way", *names]
    rows = []
    for name, ascent, new, old in checks:
        numbers = [
            [f.way, *(f"{r:.4f}" for r in (f.goal_rate, f.red_visit_rate, f.white_path_rate))] for f in (new, old)
        ]
        rows.append([name, described(ascent), f"{ascent.lam:g}", *numbers[0], *numbers[1]])
    return table(head, rows)


def draw(sweeps: dict[Ascent, dict[float, Found]], path: Path) -> None:
    """Goal rate and red-visit rate against lambda; the Gini deviation left, the variance right."""
    colours = {20.0: "#0072b2", 40.0: "#d55e00"}
    titles = {"goal_rate": "goal rate", "red_visit_rate": "red-visit rate"}
    figure, axes = plt.subplots(2, 2, figsize=(10, 6), sharex="col", sharey=True, layout="constrained")
    for (row, (name, title)), (column, penalty) in product(enumerate(titles.items()), enumerate(SYMBOL)):
        ax = axes[row, column]
        for s, found in sweeps.items():
            if s.penalty != penalty or s.goal_reward not in colours:
                continue
            lambdas = sorted(found)
            label = f"goal reward {s.goal_reward:g}" + (f", bump {reading(s)}" if column == 0 else "")
            line = {"color": colours[s.goal_reward], "linestyle": "-" if s.draw_on_bump else "--"}
            marker = {"marker": "o" if s.draw_on_bump else "s", "markersize": 4}
            if not s.draw_on_bump:
                marker["markerfacecolor"] = "white"
            ax.plot(lambdas, [getattr(found[lam], name) for lam in lambdas], label=label, **line, **marker)
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


def common(sweeps: dict[Ascent, dict[float, Found]], penalty: str, readings: Sequence[bool]) -> str:
    """The lambdas that lead the safe way at goal rewards 20 and 40, in words."""
    edges = [
        window(found)
        for s, found in sweeps.items()
        if s.penalty == penalty and s.draw_on_bump in readings and s.goal_reward < 80
    ]
    low, high = max(e[0] if e else np.inf for e in edges), min(e[1] if e else -np.inf for e in edges)
    return f"{shown(low)} to {shown(high)}" if low <= high else "none"


def meaning(result: Study) -> str:
    """What the numbers say. The sentences were written for the numbers of a full run; the numbers are filled in."""
    sweeps = result.sweeps
    at_printed = {(s.goal_reward, s.draw_on_bump): f[1.2] for s, f in sweeps.items() if 1.2 in f}
    long = {
        (a.goal_reward, a.draw_on_bump): new
        for name, a, new, _ in result.checks
        if name.startswith("20 times") and a.penalty == "gini_deviation" and a.lam == 1.2
    }
    windows = {
        f"{SYMBOL[s.penalty]}{s.goal_reward:g}": " to ".join(map(shown, window(f) or ()))
        for s, f in sweeps.items()
        if s.draw_on_bump
    }
    coarse = next(new for name, a, new, _ in result.checks if name.endswith("0.005") and a.goal_reward == 40)
    variance_end = max(max(window(f) or (0.0,)) for s, f in sweeps.items() if s.penalty == "variance")
    p = rates(maze_with(20.0, True), np.full((36, 4), 0.25))[0]
    return MEANING.format(
        printed=table(
            ["bump on red", "goal 20", "goal 40"],
            [
                [name, *(f"{at_printed[g, bump].way} ({at_printed[g, bump].red_visit_rate:.2f})" for g in (20.0, 40.0))]
                for name, bump in (("draws again", True), ("costs 1", False))
            ],
        ),
        long_red=min(f.red_visit_rate for f in long.values() if f.way == RED),
        long_white=long[20.0, True].white_path_rate,
        short_white=at_printed[20.0, True].white_path_rate,
        draws=common(sweeps, "gini_deviation", (True,)),
        costs=common(sweeps, "gini_deviation", (False,)),
        both=common(sweeps, "gini_deviation", (True, False)),
        mixture=[mixture_limit(maze_with(g, True), "gini_deviation", 0.999) for g in (20.0, 40.0)],
        p=p,
        turn=1 / (1 - 2 * p),
        **windows,
        coarse=coarse.red_visit_rate,
        variance=common(sweeps, "variance", (True,)),
        below=0.6 / variance_end,
    )


MEANING = """\
## What it means

**What MG does at its printed lambda = 1.2 hangs on a detail that the paper leaves silent**: what it pays to bump into
the wall or the border while on the red cell. The way that ascent takes at 1.2, with the red-visit rate in brackets:

{printed}

More episodes do not change this: after 20 times as many, the ascents that took the red way enter red in
{long_red:.4f} of their episodes or more.

**The lambdas that lead to the safe way at both goal rewards** are {draws} if a bump on red draws again, {costs} if it
costs 1, so {both} whatever a bump does. The paper's grid (0.8, 1.0, 1.2) ends below all three.

**Why.** Among mixtures of the two pure paths, the short one is no local optimum above lambda = {mixture[0]:.3f} (goal
20) and {mixture[1]:.3f} (goal 40), and 1.2 would do. But that takes for granted that who leaves the short path knows
the white one. The uniform policy knows neither, and whichever way it learns first, it stops visiting the other: the
early phase decides. The red cell has a wall above and the border below, so that at first half of all moves made on it
are bumps; if each of them draws again, a visit is two draws on average instead of one, and a smaller lambda is enough
to keep away. At the upper end, let p be the probability of reaching the goal and d the difference in return between
reaching it or not. Raising p changes E by d, D by about (1 - 2p) d and V by about (1 - 2p) d^2. The uniform policy has
p = {p:.3f}, so that for lambda above about 1 / (1 - 2p) = {turn:.2f} not reaching the goal at all is the way up, and
as p falls this becomes only more so.

**The variance has such a window too**: {V20} at goal 20, {V40} at goal 40, so {variance} at both. The ratio of its ends
is no smaller than for D. But the window lies where the unit of reward puts it: the argument above gives an upper end of
about 1 / ((1 - 2p) d), which falls as the goal reward rises. At goal 80 the window is {V80}; lambda = 0.02 leads to the
safe way at goal 20 and away from the goal at 40. Multiply all rewards by c, and lambda for V has to be divided by c;
lambda for D stays. MVO's printed grid (0.6 to 1.2) starts {below:.0f} times above the window: there the exact ascent
turns away from the goal as well, so that sampling noise is not what makes it fail.

**Neither penalty is free of tuning.** For D, too, the window depends on the goal reward: {D20}, {D40} and {D80} at 20,
40 and 80 (a bump draws). Its upper end stays near 1.6, its lower end rises.

**What this does not show.** Agents that sample differ: noise, the bias of the paper's estimator of grad D, sample reuse
and its early stops, rewards to go without gamma^t. Near the edge of a window they may go either way, and 1.2 is near an
edge: at goal 40, plain steps of 0.005 are coarse enough to leave the ascent undecided (red-visit rate {coarse:.2f}; see
the last table). And the safe way is not yet the white path: its 11 moves exactly are {short_white:.0%} of the episodes
at goal 20 and lambda 1.2 after 100,000 episodes, and {long_white:.0%} after 20 times as many."""

INTRODUCTION = """\
# Exact ascent in the Guarded Maze

    {command}

{date}; steadyrl {steadyrl}, jax {jax}, numpy {numpy}, scipy {scipy}, Python {python}.
It took {minutes:.0f} minutes of processor time on one core.

Ascent on E[G0] - lambda D[G0] (Gini deviation) and on E[G0] - lambda V[G0] (variance) from the uniform policy, with
exact gradients: d logits / d time = grad E - lambda grad D or V, gamma = 0.999, horizon 100, integrated to time 2 by an
adaptive Runge-Kutta method. MG with its printed settings (50 episodes for up to 10 updates of step size 1e-4) makes
1 of this time in 50,000 episodes, and the tables count in such episodes; MVO's printed step size of 1e-5 needs ten
times as many. The rates are exact too. "Bump draws" and "bump costs 1" are the two readings of what bumping into a
wall on the red cell pays: another draw of the red reward, which is the library's default (`Maze(draw_on_bump=True)`),
or -1.

Way: **away** if less than half of the episodes reach the goal; else **red** or **safe**, as more or less than half of
them enter the red cell.

![Goal rate and red-visit rate against lambda](exact_ascent.png)"""

WINDOWS = """\
## Windows

The lambdas that lead the safe way, each edge found to 1 % by bisection. Beside them two numbers that need no ascent and
are guides, not edges: the lambda above which the very first step lowers the goal rate, and the one above which the
short path is no local optimum among mixtures with the white path.

"""

CHECKS = """\
## Does the way of computing matter?

The same ascents with one thing changed, beside the unchanged ones. It matters only close to the edge of a window.

"""


def report(result: Study, quick: bool) -> str:
    """The page."""
    libraries = {name: version(name) for name in ("steadyrl", "jax", "numpy", "scipy")}
    command = "python studies/exact_ascent.py" + (" --quick" if quick else "")
    date, python = datetime.now(UTC).strftime("%Y-%m-%d"), platform.python_version()
    parts = [INTRODUCTION.format(command=command, date=date, python=python, minutes=result.minutes, **libraries)]
    if not quick:
        parts += [meaning(result), WINDOWS + window_table(result.sweeps)]
    for setting, found in result.sweeps.items():
        if setting.goal_reward < 80:
            title = (
                f"## E - lambda {SYMBOL[setting.penalty]}, goal reward {setting.goal_reward:g}, bump {reading(setting)}"
            )
            parts.append(f"{title}\n\n{sweep_table(setting, found)}")
    parts.append(CHECKS + check_table(result.checks))
    paragraphs = "\n\n".join(parts).split("\n\n")
    filled = [p if p[0] in "|#! " else textwrap.fill(p, 120, break_on_hyphens=False) for p in paragraphs]
    return "\n\n".join(filled) + "\n"


@dataclass
class Args:
    """Exact ascent in the Guarded Maze, over lambdas, goal rewards and both readings of a bump on red."""

    quick: bool = False
    """A few lambdas only, and no search for the windows."""
    out: Path | None = None
    """Where the page and its figure go; docs/results, or with --quick a temporary directory."""


def main() -> None:
    """Run the study and write its page."""
    args = tyro.cli(Args)
    results = Path(__file__).resolve().parents[1] / "docs" / "results"
    out = args.out or (Path(tempfile.mkdtemp(prefix="exact_ascent_")) if args.quick else results)
    out.mkdir(parents=True, exist_ok=True)
    result = study(args.quick)
    draw(result.sweeps, out / "exact_ascent.png")
    (out / "exact_ascent.md").write_text(report(result, args.quick))
    print(f"wrote {out / 'exact_ascent.md'} and its figure in {result.minutes:.1f} minutes")


if __name__ == "__main__":
    main()
