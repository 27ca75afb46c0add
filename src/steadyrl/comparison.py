"""Two policies side by side: the difference of every measure of risk, with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyrl.envs.resolve import EnvLike
from steadyrl.evaluation import check, discount_of, evaluate
from steadyrl.risk_report import (
    CONFIDENCE,
    MEASURES,
    Estimate,
    Risk,
    RiskReport,
    aligned,
    bootstrap_intervals,
    fact_text,
    json_number,
    measures,
    number_text,
    risk_dict,
)

LOWER_IS_BETTER = ("standard_deviation", "variance", "gini_deviation")


def compare(
    policy_a: Any,
    policy_b: Any,
    env: EnvLike,
    episodes: int = 100,
    gamma: float | None = None,
    deterministic: bool = False,
    seed: int = 0,
) -> Comparison:
    """Play both policies in the same environment and report a - b of every measure, with confidence intervals.

    Example:
        >>> comparison = compare(mean_gini, reinforce, "steadyrl/GuardedMaze-v0", episodes=200)
        >>> print(comparison)  # or comparison.better["gini_deviation"]

    Episode i of both starts from the same seed, so where chance treats both alike it cancels out of the difference.
    Intervals are bootstrapped from pairs of episodes. That is right also where the pairs have nothing in common,
    because the policies draw numbers of their own or part ways after a step: pairs differ from each other by chance
    alone, whatever ties their two halves. Drawing the halves apart would be right only if nothing tied them.

    Args:
        policy_a: An agent, an object with `predict`, or a function of the observation, as in `evaluate`.
        policy_b: The same.
        env: A Gymnasium id, an environment, or a function that makes one.
        episodes: How many to play with each, at least 2.
        gamma: Discount of `comparison.discounted`; if not given, that of the policies that have one, or else 1.
        deterministic: Whether an agent or `predict` takes its most likely action.
        seed: Of the episodes, of an agent's actions and of the intervals.
    """
    for policy in (policy_a, policy_b):
        check(policy, env, episodes, seed)
    discount = _common_discount(policy_a, policy_b, gamma)
    a, b = (evaluate(policy, env, episodes, discount, deterministic, seed) for policy in (policy_a, policy_b))
    return Comparison.of(a, b)


@dataclass(frozen=True)
class Comparison(Risk):
    """The difference a - b of two policies' risk: every field is a difference. Each interval holds by itself."""

    discounted: Risk
    """The same differences of discounted returns."""
    facts: dict[str, float]
    """The differences of what the environment says of both, without intervals."""
    a: RiskReport = field(repr=False)
    b: RiskReport = field(repr=False)

    @classmethod
    def of(cls, a: RiskReport, b: RiskReport) -> Comparison:
        """The comparison of two reports of as many episodes, played from the same seed with the same discount."""
        for name in ("episodes", "gamma", "seed"):
            if getattr(a, name) != getattr(b, name):
                raise ValueError(
                    f"{name} is {getattr(a, name)} in one report and {getattr(b, name)} in the other: "
                    f"their episodes make no pairs. Evaluate both with the same {name}."
                )
        return cls(
            **vars(_difference(a, b, a.returns, b.returns, a.seed)),
            discounted=_difference(a.discounted, b.discounted, a.discounted_returns, b.discounted_returns, a.seed),
            facts={name: a.facts[name] - b.facts[name] for name in a.facts if name in b.facts},
            a=a,
            b=b,
        )

    @property
    def better(self) -> dict[str, str | None]:
        """For each measure of undiscounted returns the better policy, "a" or "b"; None if that is not settled.

        It is settled where the interval of the difference leaves out 0. A high mean and CVaR and a low dispersion
        are good.
        """
        return _better(self)

    def to_dict(self) -> dict[str, Any]:
        """The comparison under its attributes' names, for `json.dumps`; None where a number is not finite."""
        return {
            "confidence": CONFIDENCE,
            **risk_dict(self),
            "better": self.better,
            "discounted": {**risk_dict(self.discounted), "better": _better(self.discounted)},
            "facts": {name: json_number(value) for name, value in self.facts.items()},
            "a": self.a.to_dict(),
            "b": self.b.to_dict(),
        }

    def __str__(self) -> str:
        """A table of both policies and their differences, and in words which is better."""
        a, b = self.a, self.b
        title = f"{a.episodes} episodes each, seed {a.seed}; a - b with [low, high] at {CONFIDENCE:.0%} confidence"
        blocks = [title, _table("undiscounted", a, b, self)]
        if a.gamma < 1:
            blocks.append(_table(f"discounted by {a.gamma:g}", a.discounted, b.discounted, self.discounted))
        if self.facts:
            rows = [["fact", "a", "b"]]
            rows += [[name, fact_text(name, a.facts[name]), fact_text(name, b.facts[name])] for name in self.facts]
            blocks.append(aligned(rows))
        blocks.append(_verdict(self))
        return "\n\n".join(blocks)


def _common_discount(policy_a: Any, policy_b: Any, gamma: float | None) -> float:
    own = [discount_of(policy, gamma) for policy in (policy_a, policy_b) if gamma is not None or _discounts(policy)]
    if len(set(own)) > 1:
        raise ValueError(
            f"policy_a discounts by {own[0]:g} and policy_b by {own[1]:g}: their discounted returns are different "
            "things. Pass gamma, such as gamma=1."
        )
    return own[0] if own else 1.0


def _discounts(policy: Any) -> bool:
    return getattr(policy, "gamma", None) is not None


def _difference(a: Risk, b: Risk, A: NDArray[np.float64], B: NDArray[np.float64], seed: int) -> Risk:
    """Every measure of `A` minus that of `B`, whose episodes are pairs, [n] both."""
    extremes: dict[str, Any] = {"minimum": a.minimum - b.minimum, "maximum": a.maximum - b.maximum}
    values = {name: getattr(a, name).value - getattr(b, name).value for name in MEASURES}
    if a.minimum == a.maximum and b.minimum == b.maximum:
        certain: dict[str, Any] = {name: Estimate(value, value, value) for name, value in values.items()}
        return Risk(**certain, **extremes)

    def statistic(R_a: NDArray[np.float64], R_b: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        return measures(R_a) - measures(R_b)

    # Returns near the largest float have infinite variances, whose difference is no number.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        low, high = bootstrap_intervals((A, B), statistic, seed).tolist()
    ends = zip(MEASURES, low, high, strict=True)
    estimates: dict[str, Any] = {name: Estimate(values[name], lower, upper) for name, lower, upper in ends}
    return Risk(**estimates, **extremes)


def _better(difference: Risk) -> dict[str, str | None]:
    winners: dict[str, str | None] = {}
    for name in MEASURES:
        _, low, high = getattr(difference, name)
        a_is_higher = True if low > 0 else False if high < 0 else None
        a_is_better = a_is_higher if a_is_higher is None else a_is_higher != (name in LOWER_IS_BETTER)
        winners[name] = None if a_is_better is None else "a" if a_is_better else "b"
    return winners


def _table(title: str, a: Risk, b: Risk, difference: Risk) -> str:
    winners = _better(difference)
    rows = [[title, "a", "b", "a - b", "better"]]
    for measure in fields(Risk):
        values = [getattr(risk, measure.name) for risk in (a, b, difference)]
        *both, apart = (str(x) if isinstance(x, Estimate) else number_text(x) for x in values)
        if measure.name in MEASURES:
            both = [number_text(x.value) for x in values[:2]]
        rows.append([measure.name, *both, apart, winners.get(measure.name) or ""])
    return aligned(rows)


def _verdict(comparison: Comparison) -> str:
    """Which policy is better, in words, where the intervals settle it."""

    def winner(measure: str) -> str:
        if getattr(comparison, measure) == (0, 0, 0):
            return "no difference"
        return comparison.better[measure] or "not settled by so few episodes"

    return f"Higher mean: {winner('mean')}. Steadier, by Gini deviation: {winner('gini_deviation')}."
