"""Conditions on measures, such as --fail-if "cvar_10 < 20": a command that meets one of them ends with status 3."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import tyro

from steadyrl.base.names import nearest
from steadyrl.base.shown import shown
from steadyrl.cli.arguments import named

if TYPE_CHECKING:
    from steadyrl.evaluation.risk_report import Risk, RiskReport

FAILED = 3
"""Exit status if a condition is met: not that of a mistake (2), of a failed run (1), or of a stop (130)."""
FACTS = "facts."
"""Episode metrics are named like this, as in JSON; which of them there are is known once episodes were played."""
_COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_ENDS = (".low", ".high")
_PREFIXES = ("a.", "b.", "discounted.", "probability_of_improvement.")
_NO_FACTS = " The environment has no episode metrics."
_CONDITION = re.compile(r"\s*(?P<name>[^<>=!]+?)\s*(?P<sign><=|>=|==|!=|<|>)\s*(?P<number>[^<>=!]+?)\s*")

Conditions = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, named("CONDITION")]


class Condition(NamedTuple):
    """NAME SIGN NUMBER."""

    text: str
    name: str
    sign: str
    number: float

    def met(self, value: float) -> bool:
        """Whether it holds of a value; of one that is not a number, always, so that nothing passes by accident."""
        return math.isnan(value) or bool(_COMPARISONS[self.sign](value, self.number))


def conditions_of(texts: Iterable[str], known: Collection[str]) -> list[Condition]:
    """Conditions as they are typed, on `known` names or episode metrics; an error in one line for anything else."""
    conditions = [_parsed(text) for text in texts]
    for condition in conditions:
        if FACTS not in condition.name and condition.name not in known:
            raise ValueError(_unknown(condition, known))
    return conditions


def failures(conditions: Sequence[Condition], values: Mapping[str, float]) -> list[str]:
    """The conditions that are met, with the values that meet them."""
    for condition in conditions:
        if condition.name not in values:
            raise ValueError(_unknown(condition, [name for name in values if FACTS in name]))
    met = [condition for condition in conditions if condition.met(values[condition.name])]
    return [f"{condition.text.strip()} ({condition.name} is {values[condition.name]:.6g})" for condition in met]


def exit_if_failed(failed: Sequence[str]) -> None:
    """Print what failed, and end with its status."""
    for line in failed:
        print(f"steadyrl: failed: {line}", file=sys.stderr)
    if failed:
        sys.exit(FAILED)


def risk_names(measures: Iterable[str], prefix: str = "") -> Iterator[str]:
    """What can be named of a `Risk` with these further measures."""
    from steadyrl.evaluation.reported import REPORTED

    for name in (*REPORTED, *measures):
        yield from (f"{prefix}{name}{end}" for end in ("", *_ENDS))
    yield from (f"{prefix}minimum", f"{prefix}maximum")


def risk_values(risk: Risk, prefix: str = "") -> dict[str, float]:
    """The values behind `risk_names`."""
    values = {f"{prefix}minimum": risk.minimum, f"{prefix}maximum": risk.maximum}
    for name, estimate in risk.estimates.items():
        values |= estimate_values(name, estimate, prefix)
    return values


def estimate_values(name: str, estimate: Any, prefix: str = "") -> dict[str, float]:
    """An estimate and both ends of its interval."""
    full = f"{prefix}{name}"
    return {full: estimate.value, f"{full}.low": estimate.low, f"{full}.high": estimate.high}


def report_values(report: RiskReport, prefix: str = "") -> dict[str, float]:
    """All values of a report: of undiscounted and discounted returns, and episode metrics."""
    discounted = risk_values(report.discounted, f"{prefix}discounted.")
    facts = {f"{prefix}{FACTS}{name}": value for name, value in report.facts.items()}
    return risk_values(report, prefix) | discounted | facts


def _parsed(text: str) -> Condition:
    found = _CONDITION.fullmatch(text)
    try:
        number = float(found["number"]) if found else math.nan
    except ValueError:
        number = math.nan
    if found is None or math.isnan(number):
        signs = " ".join(_COMPARISONS)
        raise ValueError(
            f"--fail-if {shown(text, 60)}: write a name, one of {signs}, and a number, such as 'cvar_10 < 20'."
        )
    return Condition(text, found["name"], found["sign"], number)


def _unknown(condition: Condition, known: Collection[str]) -> str:
    """One line with the names that there are: measures, and what may stand before and after them."""
    near = nearest(condition.name, known, cutoff=0.6)
    hint = f" Did you mean {near!r}?" if near else ""
    plain = [name for name in known if not name.endswith(_ENDS)]
    listed = [name for name in plain if not name.startswith(_PREFIXES)] or plain
    prefixes = [prefix for prefix in _PREFIXES if any(name.startswith(prefix) for name in plain) and listed != plain]
    more = [f"{' or '.join(prefixes)} before it"] * bool(prefixes)
    more += [f"{' or '.join(_ENDS)} behind it"] * (len(plain) < len(known))
    also = f"; also with {' and '.join(more)}" if more else ""
    names = f" Known: {', '.join(listed)}{also}." if listed else _NO_FACTS
    return f"--fail-if {shown(condition.text, 60)}: unknown name {condition.name!r}.{hint}{names}"
