"""The exact frontier of a finite MDP whose transitions are certain: what mean and risk its policies can have at best.

Where an action always leads to the same state, and only rewards are random, a policy that looks at the state and the
time is a lottery over walks: sequences of states from the start to the end of the episode or to the time limit. Its law
of returns is a mixture of theirs. Mixing never helps: E - lambda D is convex in the law of returns (D is the integral
of F (1 - F), concave in F), as it is with the standard deviation in place of D, and as E + lambda CVaR is. So single
walks span the hull, and no policy lies beyond it.

An undiscounted return is a sum of rewards in any order, so the law of a walk depends only on how often it draws each
kind of reward. These counts are enumerated for all walks up to the horizon: through loops, and those that never end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadyrl.exact.distribution import ReturnDistribution
from steadyrl.exact.mdp import FiniteMDP
from steadyrl.risk.pareto import hull

MAX_COUNTS = 20_000
"""Of ways to count the random rewards of a walk, at any step."""
MAX_ATOMS = 100_000
"""Of returns that a walk may have."""
MEASURES = ("gini_deviation", "standard_deviation", "cvar_10")
_DIGITS = 9
"""Decimals to which returns are equal: the same rewards may be summed in another order. Smaller rewards are lost."""

Law = tuple[tuple[float, float], ...]
"""(reward, probability), ascending."""
Counts = tuple[int, ...]
"""How often a walk has drawn each random law."""


class Walk(NamedTuple):
    """The best of the walks that draw the same random rewards: the others have the same law, shifted down."""

    steps: int
    ends: bool
    """Whether it ends before the time limit."""
    distribution: ReturnDistribution
    """The law of its undiscounted return."""

    @property
    def mean(self) -> float:
        """E[R]."""
        return float(self.distribution.mean)

    def risk(self, measure: str) -> float:
        """One of `MEASURES`; less is better, so CVaR has a minus."""
        if measure == "cvar_10":
            return -float(self.distribution.cvar(0.1))
        return float(getattr(self.distribution, measure))


def frontier(mdp: FiniteMDP, measure: str = "gini_deviation") -> tuple[Walk, ...]:
    """The walks that span the hull of mean against risk, from the least risk to the highest mean.

    Policies may look at the state and the time, and may be random; they do not react to rewards already received.

    Example: in the Guarded Maze, the path around the red cell and the one through it.

    Args:
        mdp: A finite MDP with one start and certain transitions; a ValueError for others, and for those with too many
            different returns.
        measure: "gini_deviation", "standard_deviation", or "cvar_10", the mean of the worst 10 % (more is better).
    """
    if measure not in MEASURES:
        raise ValueError(f"measure={measure!r}: it is one of {', '.join(MEASURES)}.")
    walks = best_walks(mdp)
    # Rounded: errors in the last bits would make vertices of equal means.
    mean, risk = (np.round(values, _DIGITS) for values in zip(*((w.mean, w.risk(measure)) for w in walks), strict=True))
    return tuple(walks[i] for i in hull(mean, risk))


def best_walks(mdp: FiniteMDP) -> list[Walk]:
    """For each way to count random rewards, the walk with the highest certain part of the return."""
    laws = _laws(mdp)
    random = sorted({law for law, _ in laws if len(law) > 1})
    found: dict[Counts, tuple[float, int, bool]] = {}
    for counts, certain, steps, ends in _ends_of_walks(mdp, laws, random):
        if counts not in found or certain > found[counts][0]:
            found[counts] = certain, steps, ends
    sums = _Sums(random)
    return [Walk(steps, ends, _shifted(sums.of(counts), certain)) for counts, (certain, steps, ends) in found.items()]


def _laws(mdp: FiniteMDP) -> dict[tuple[Law, bool], NDArray[np.bool_]]:
    """(law of the reward, whether the episode ends) -> [S, S]: the transitions with it."""
    S, A = mdp.n_states, mdp.n_actions
    laws: dict[tuple[Law, bool], NDArray[np.bool_]] = {}
    for s in range(S):
        for a in range(A):
            possible = mdp.probability[s, a] > 0
            targets, ends = set(mdp.next_state[s, a][possible].tolist()), set(mdp.ends[s, a][possible].tolist())
            if len(targets) > 1 or len(ends) > 1:
                raise ValueError(
                    f"action {a} in state {s} has several next states: policies reduce to walks only where "
                    "transitions are certain."
                )
            rewards, index = np.unique(mdp.reward[s, a][possible], return_inverse=True)
            law = tuple(
                zip(rewards.tolist(), np.bincount(index, mdp.probability[s, a][possible]).tolist(), strict=True)
            )
            matrix = laws.setdefault((law, ends.pop()), np.zeros((S, S), bool))
            matrix[s, targets.pop()] = True
    return laws


def _ends_of_walks(
    mdp: FiniteMDP, laws: dict[tuple[Law, bool], NDArray[np.bool_]], random: list[Law]
) -> Iterator[tuple[Counts, float, int, bool]]:
    """(counts, sum of the certain rewards, steps, whether the episode ended), for all walks."""
    if np.count_nonzero(mdp.initial) != 1:
        raise ValueError(f"{np.count_nonzero(mdp.initial)} states are possible at the start: walks need a single one.")
    reached = {((0,) * len(random), 0.0): mdp.initial > 0}  # (counts, certain part) -> [S]
    for step in range(1, mdp.horizon + 1):
        following: dict[tuple[Counts, float], NDArray[np.bool_]] = {}
        for (counts, certain), states in reached.items():
            for (law, ends), transitions in laws.items():
                targets = transitions[states].any(axis=0)
                if not targets.any():
                    continue
                key = _added(counts, certain, law, random)
                if ends:
                    yield *key, step, True
                else:
                    following[key] = np.logical_or(targets, following.get(key, False))
        if len(following) > MAX_COUNTS:
            raise ValueError(f"after {step} steps there are more than {MAX_COUNTS:,} different returns: too many.")
        reached = following
    for key in reached:
        yield *key, mdp.horizon, False


def _added(counts: Counts, certain: float, law: Law, random: list[Law]) -> tuple[Counts, float]:
    if len(law) == 1:
        return counts, round(certain + law[0][0], _DIGITS)
    number = random.index(law)
    return (*counts[:number], counts[number] + 1, *counts[number + 1 :]), certain


class _Sums:
    """The laws of sums of independent draws."""

    def __init__(self, laws: list[Law]) -> None:
        self._laws = laws
        self._known: dict[Counts, tuple[NDArray[np.float64], NDArray[np.float64]]] = {
            (0,) * len(laws): (np.zeros(1), np.ones(1))
        }

    def of(self, counts: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values, ascending, and their probabilities."""
        missing = []
        while counts not in self._known:
            number = next(i for i, count in enumerate(counts) if count)
            missing.append((counts, number))
            counts = (*counts[:number], counts[number] - 1, *counts[number + 1 :])
        for larger, number in reversed(missing):
            self._known[larger] = self._plus_one(*self._known[counts], self._laws[number])
            counts = larger
        return self._known[counts]

    def _plus_one(
        self, values: NDArray[np.float64], probabilities: NDArray[np.float64], law: Law
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        draws, chances = np.array(law).T
        sums = np.round(np.add.outer(values, draws).ravel(), _DIGITS)
        distinct, index = np.unique(sums, return_inverse=True)
        if len(distinct) > MAX_ATOMS:
            raise ValueError(f"a walk may have more than {MAX_ATOMS:,} different returns: too many.")
        return distinct, np.bincount(index, np.outer(probabilities, chances).ravel()).astype(np.float64)


def _shifted(law: tuple[NDArray[np.float64], NDArray[np.float64]], certain: float) -> ReturnDistribution:
    values, probabilities = law
    return ReturnDistribution(values + certain, probabilities / probabilities.sum(), 0.0, 0.0)
