"""Comparison of two policies, or of two methods: the difference in every risk measure, with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from steadyrl.envs.resolve import EnvLike
from steadyrl.evaluation.compare_methods import MethodComparison
from steadyrl.evaluation.evaluate import check, discount_of, evaluate
from steadyrl.evaluation.reported import Metric, Requested, higher_is_better, requested, stacked, statistics
from steadyrl.evaluation.risk_report import (
    CONFIDENCE,
    Estimate,
    Risk,
    RiskReport,
    aligned,
    bootstrap_intervals,
    json_number,
    metric_text,
    number_text,
    risk_dict,
    risk_of,
    row_names,
)


@overload
def compare(
    policy_a: Sequence[Any],
    policy_b: Sequence[Any],
    env: EnvLike,
    episodes: int = 100,
    gamma: float | None = None,
    deterministic: bool = False,
    seed: int = 0,
    measures: str | Iterable[str] = (),
    metrics: Mapping[str, Metric] | None = None,
) -> MethodComparison: ...


@overload
def compare(
    policy_a: Any,
    policy_b: Any,
    env: EnvLike,
    episodes: int = 100,
    gamma: float | None = None,
    deterministic: bool = False,
    seed: int = 0,
    measures: str | Iterable[str] = (),
    metrics: Mapping[str, Metric] | None = None,
) -> Comparison: ...


def compare(
    policy_a: Any,
    policy_b: Any,
    env: EnvLike,
    episodes: int = 100,
    gamma: float | None = None,
    deterministic: bool = False,
    seed: int = 0,
    measures: str | Iterable[str] = (),
    metrics: Mapping[str, Metric] | None = None,
) -> Comparison | MethodComparison:
    """Evaluate two policies in the same environment and report a - b for every measure, with confidence intervals.

    Example:
        >>> comparison = compare(mean_gini, reinforce, "steadyrl/GuardedMaze-v0", episodes=200)
        >>> print(comparison)  # or comparison.better["gini_deviation"]

    What holds for two policies need not hold for the methods that trained them. With a list of policies for each
    method, one from each seed of training, the result is a `MethodComparison`: intervals are over seeds and episodes,
    and it has the probability that a run of a is better than a run of b.

    Episode i of both policies starts from the same seed (common random numbers), so randomness that affects both in
    the same way cancels in the difference. Intervals are bootstrapped from pairs of episodes. They are valid however
    strongly the two episodes of a pair are correlated; resampling both policies independently would be valid only
    without correlation.

    Args:
        policy_a: An agent, an object with `predict`, or a function of the observation, as in `evaluate`; or a list of
            them, the runs of a method.
        policy_b: The same; a list if `policy_a` is one.
        env: A Gymnasium id, an environment, or a function that makes one.
        episodes: Number of episodes for each policy, at least 2.
        gamma: Discount factor of `comparison.discounted`; by default the `gamma` of the policies, or 1 if neither
            has one. If they differ, `comparison.discounted` is None: returns with different discounts are not
            comparable. Undiscounted returns, of which all of a `MethodComparison` is, do not depend on it.
        deterministic: Whether an agent or `predict` takes its most likely action.
        seed: Seed of the episodes, of an agent's actions and of the intervals.
        measures: Names of further measures, as in `evaluate`.
        metrics: Measures of your own, as in `evaluate`. Which policy is the better one by them is for you to say.
    """
    more = requested(measures, metrics)
    if isinstance(policy_a, list | tuple) or isinstance(policy_b, list | tuple):
        policies = _runs(policy_a, policy_b)
        for policy in (*policies[0], *policies[1]):
            check(policy, env, episodes, seed)
        of_a, of_b = (
            [evaluate(one, env, episodes, gamma, deterministic, seed, more) for one in runs] for runs in policies
        )
        return MethodComparison.of(of_a, of_b, more)
    for policy in (policy_a, policy_b):
        check(policy, env, episodes, seed)
    a, b = (
        evaluate(policy, env, episodes, discount, deterministic, seed, more)
        for policy, discount in zip((policy_a, policy_b), _discounts(policy_a, policy_b, gamma), strict=True)
    )
    return Comparison.of(a, b, more)


@dataclass(frozen=True)
class Comparison(Risk):
    """The difference a - b in the risk of two policies. Each interval has 95 % coverage on its own, not jointly."""

    discounted: Risk | None
    """The same differences for discounted returns; None if `a` and `b` have different discount factors."""
    facts: dict[str, float]
    """The differences in the episode metrics, without intervals."""
    a: RiskReport = field(repr=False)
    b: RiskReport = field(repr=False)

    @classmethod
    def of(cls, a: RiskReport, b: RiskReport, measures: Mapping[str, Requested] | None = None) -> Comparison:
        """Compare two reports with the same number of episodes and seed, in all measures that both have.

        See `discounted` about their discounts. `measures` are those that were asked for; without them, measures of
        your own are left out, because their functions are not known.
        """
        for name in ("episodes", "seed"):
            if getattr(a, name) != getattr(b, name):
                raise ValueError(
                    f"{name} is {getattr(a, name)} in one report and {getattr(b, name)} in the other: "
                    f"their episodes cannot be paired. Evaluate both with the same {name}."
                )
        discounted = None
        if measures is None:
            measures = requested(name for name in a.measures if higher_is_better(name) is not None)
        more = {name: one for name, one in measures.items() if name in a.measures and name in b.measures}
        if a.gamma == b.gamma:
            both = a.discounted_returns, b.discounted_returns
            discounted = _difference(a.discounted, b.discounted, *both, a.seed, more)
        return cls(
            **vars(_difference(a, b, a.returns, b.returns, a.seed, more)),
            discounted=discounted,
            facts={name: a.facts[name] - b.facts[name] for name in a.facts if name in b.facts},
            a=a,
            b=b,
        )

    @property
    def better(self) -> dict[str, str | None]:
        """For each measure of the undiscounted returns, the better policy, "a" or "b"; None if inconclusive.

        A difference is conclusive if its interval excludes 0. Higher is better for the mean and CVaR, lower for
        dispersion and entropic risk; for measures of your own it is not known.
        """
        return _better(self)

    def to_dict(self) -> dict[str, Any]:
        """The attributes by name, for `json.dumps`; non-finite numbers become None."""
        discounted = self.discounted
        return {
            "confidence": CONFIDENCE,
            **risk_dict(self),
            "better": self.better,
            "discounted": discounted and {**risk_dict(discounted), "better": _better(discounted)},
            "facts": {name: json_number(value) for name, value in self.facts.items()},
            "a": self.a.to_dict(),
            "b": self.b.to_dict(),
        }

    def __str__(self) -> str:
        """Tables of both policies and their differences, and a one-line conclusion."""
        return self.to_text()

    def to_text(self, gamma_option: str = "gamma=") -> str:
        """The same as `str`; `gamma_option` is how a discount factor is given, in the advice on different ones."""
        a, b = self.a, self.b
        title = f"{a.episodes} episodes each, seed {a.seed}; a - b with [low, high] at {CONFIDENCE:.0%} confidence"
        blocks = [title, _table("undiscounted", a, b, self)]
        if self.discounted is None:
            blocks.append(
                f"Discounted returns are not compared: a discounts by {a.gamma:g}, b by {b.gamma:g}. "
                f"To compare them, give one discount for both, such as {gamma_option}{max(a.gamma, b.gamma):g}."
            )
        elif a.gamma < 1:
            blocks.append(_table(f"discounted by {a.gamma:g}", a.discounted, b.discounted, self.discounted))
        if self.facts:
            rows = [["metric", "a", "b"]]
            rows += [[name, metric_text(name, a.facts[name]), metric_text(name, b.facts[name])] for name in self.facts]
            blocks.append(aligned(rows))
        blocks.append(_conclusion(self))
        return "\n\n".join(blocks)


def _runs(policy_a: Any, policy_b: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """The policies of both methods."""
    for name, given in (("policy_a", policy_a), ("policy_b", policy_b)):
        if not isinstance(given, list | tuple):
            raise TypeError(
                f"{name} is one policy and the other a list: pass a list of runs for both, such as [agent]."
            )
        if not given:
            raise ValueError(f"{name} is an empty list: pass at least one policy, and 5 or more for useful intervals.")
    return policy_a, policy_b


def _discounts(policy_a: Any, policy_b: Any, gamma: float | None) -> tuple[float, float]:
    """The discount of each policy; one without its own takes that of the other."""
    policies = (policy_a, policy_b)
    given = [discount_of(policy, gamma) for policy in policies if gamma is not None or _has_gamma(policy)]
    return (given[0], given[-1]) if given else (1.0, 1.0)


def _has_gamma(policy: Any) -> bool:
    return getattr(policy, "gamma", None) is not None


def _difference(
    a: Risk, b: Risk, A: NDArray[np.float64], B: NDArray[np.float64], seed: int, more: Mapping[str, Requested]
) -> Risk:
    """Every measure of the returns `A` [n] minus that of `B` [n], which are paired by episode."""
    extremes, functions = (a.minimum - b.minimum, a.maximum - b.maximum), statistics(more)
    values = {name: a.estimates[name].value - b.estimates[name].value for name in functions}
    if a.minimum == a.maximum and b.minimum == b.maximum:
        return risk_of({name: Estimate(value, value, value) for name, value in values.items()}, *extremes, more)
    measured = stacked(functions)

    def statistic(R_a: NDArray[np.float64], R_b: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        return measured(R_a) - measured(R_b)

    # Returns near the largest float have infinite variances, whose difference is NaN.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        low, high = bootstrap_intervals((A, B), statistic, seed).tolist()
    limits = zip(functions, low, high, strict=True)
    return risk_of({name: Estimate(values[name], lower, upper) for name, lower, upper in limits}, *extremes, more)


def _better(difference: Risk) -> dict[str, str | None]:
    winners: dict[str, str | None] = {}
    for name, (_, low, high) in difference.estimates.items():
        a_is_higher, higher = True if low > 0 else False if high < 0 else None, higher_is_better(name)
        known = a_is_higher is not None and higher is not None
        winners[name] = ("a" if a_is_higher == higher else "b") if known else None
    return winners


def _table(title: str, a: Risk, b: Risk, difference: Risk) -> str:
    winners = _better(difference)
    rows = [[title, "a", "b", "a - b", "better"]]
    for name in row_names(difference):
        values = [risk.estimates.get(name) or getattr(risk, name) for risk in (a, b, difference)]
        cells = [number_text(x.value if isinstance(x, Estimate) else x) for x in values[:2]]
        difference_text = str(values[2]) if isinstance(values[2], Estimate) else number_text(values[2])
        rows.append([name, *cells, difference_text, winners.get(name) or ""])
    return aligned(rows)


def _conclusion(comparison: Comparison) -> str:
    """Which policy is better in mean and Gini deviation."""

    def winner(measure: str) -> str:
        if getattr(comparison, measure) == (0, 0, 0):
            return "no difference"
        return comparison.better[measure] or "inconclusive with this many episodes"

    return f"Higher mean: {winner('mean')}. Steadier, by Gini deviation: {winner('gini_deviation')}."
