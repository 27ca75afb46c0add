"""Gradient ascent on E[G0] - lambda * risk[G0] in the Guarded Maze, with exact gradients and nothing sampled.

The logits of a tabular softmax policy start at 0 and follow d logits / d time = grad E - lambda * grad risk, with the
gradients of `steadyrl.exact`. A sampled agent that makes updates of step size a moves by a of this time with each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import softmax

from steadyrl import exact
from steadyrl.envs.guarded_maze.definition import MOVES, Maze

Floats = NDArray[np.float64]
RESOLUTION = 1.01
"""The edges of a window are searched until the lambdas on both sides of it differ by this factor."""
RED, SAFE, AWAY = "red", "safe", "away"


@dataclass(frozen=True)
class Ascent:
    """One ascent: its objective, and how it is computed."""

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
        return make_maze(self.goal_reward, self.draw_on_bump)


class Outcome(NamedTuple):
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


Sweep = dict[float, Outcome]
"""lambda -> where its ascent ended."""


@cache
def make_maze(goal_reward: float, draw_on_bump: bool) -> Maze:
    """The paper's maze; the same object each time, since it caches its tables."""
    return Maze(goal_reward=goal_reward, draw_on_bump=draw_on_bump)


def rates(maze: Maze, policy: Floats) -> tuple[float, float, float]:
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


def direction(ascent: Ascent) -> Callable[[float, Floats], Floats]:
    """(time, flat logits) -> grad E - lambda * grad risk, flat."""
    mdp, lam, gamma = ascent.maze.mdp, ascent.lam, ascent.gamma
    shape = (mdp.n_states, mdp.n_actions)

    @jax.jit
    def mean_gini(values: Any, probabilities: Any) -> Any:
        return exact.mean(values, probabilities) - lam * exact.gini_deviation(values, probabilities)

    def of_gini(_: float, logits: Floats) -> Floats:
        return exact.gradient(mean_gini, mdp, logits.reshape(shape), gamma, ascent.grid or 201).ravel()

    def of_variance(_: float, logits: Floats) -> Floats:
        # By name, one by one: so the gradient of the variance is exact on any grid.
        mean, variance = (
            exact.gradient(name, mdp, logits.reshape(shape), gamma, ascent.grid or 21) for name in ("mean", "variance")
        )
        return (mean - lam * variance).ravel()

    return of_gini if ascent.penalty == "gini_deviation" else of_variance


@cache
def climb(ascent: Ascent) -> Outcome:
    """Follow the gradient from the uniform policy."""
    maze, uphill = ascent.maze, direction(ascent)
    shape = (maze.mdp.n_states, maze.mdp.n_actions)
    logits, goal_time = np.zeros(shape).ravel(), np.nan

    def policy_of(logits: Floats) -> Floats:
        return np.asarray(softmax(logits.reshape(shape), axis=-1))

    def half_reach(_: float, logits: Floats) -> float:
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
    return Outcome(*rates(maze, policy_of(logits)), *map(float, measured), float(goal_time))


def refine(run: Callable[[float], Outcome], lambdas: Sequence[float]) -> Sweep:
    """The outcomes at `lambdas`, and at more of them where neighbours lead different ways."""
    outcomes = {lam: run(lam) for lam in lambdas}

    def bisect(low: float, high: float) -> None:
        if outcomes[low].way != outcomes[high].way and high > RESOLUTION * low:
            middle = (low + high) / 2
            outcomes[middle] = run(middle)
            bisect(low, middle)
            bisect(middle, high)

    for low, high in pairwise(sorted(lambdas)):
        bisect(low, high)
    return outcomes


def window(sweep: Sweep) -> tuple[float, float] | None:
    """The least and the largest lambda that led the safe way."""
    safe = [lam for lam, outcome in sweep.items() if outcome.way == SAFE]
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
