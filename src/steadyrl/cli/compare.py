"""`steadyrl compare`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from steadyrl.cli.arguments import Count, Flag, Pairs, named, options_of
from steadyrl.cli.conditions import (
    Conditions,
    conditions_of,
    estimate_values,
    exit_if_failed,
    failures,
    report_values,
    risk_names,
    risk_values,
)
from steadyrl.cli.methods import read_method
from steadyrl.cli.played import actions_text, played
from steadyrl.cli.stored_agent import StoredAgent

if TYPE_CHECKING:
    from steadyrl.evaluation.compare import Comparison
    from steadyrl.evaluation.compare_methods import MethodComparison

Lambda = Annotated[float | None, named("LAMBDA")]


@dataclass(frozen=True)
class Compare:
    """Play whole episodes with two trained agents and report how their mean, dispersion and tail differ.

    With several runs of each method, intervals are over runs and episodes.
    """

    a: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_A")]
    """A run folder or a file of agent.save; or several seeds of a method: their folder, or a pattern in quotes."""
    b: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_B")]
    """The same, of the agent or method to compare it with."""
    episodes: Count = 200
    """How many episodes to play with each; more give narrower intervals."""
    env: Annotated[str | None, named("ENV")] = None
    """The environment to play in, as an id or module:factory; by default the one that all agents were trained in."""
    env_set: Pairs = ()
    """An option of that environment; may be given many times."""
    gamma: Annotated[float | None, named("GAMMA")] = None
    """Discount of the discounted measures; that of the agents by default. If theirs differ, these are left out."""
    deterministic: Flag = False
    """Take the agents' most likely actions instead of drawing them."""
    at_a: Lambda = None
    """The lambda that the first agent is to act for, if it was trained for a range of them."""
    at_b: Lambda = None
    """The same, of the second agent."""
    seed: int = 0
    """Seed of the episodes and of the intervals."""
    measures: Annotated[str, named("NAMES")] = ""
    """Further measures to report, separated by commas, such as semivariance,cvar:0.2 (docs/measures.md lists them)."""
    fail_if: Conditions = ()
    """End with status 3 if this holds, such as "mean < 0" for a - b, or "a.cvar_10 < 20"; may be given many times."""
    json: Flag = False
    """Print JSON instead of a table."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.evaluation.compare import compare
        from steadyrl.evaluation.reported import requested

        names = tuple(requested(self.measures))
        every = dict.fromkeys([*_names(names, several=True), *_names(names, several=False)])
        syntax = conditions_of(self.fail_if, every)
        a, b = read_method(self.a, self.at_a), read_method(self.b, self.at_b)
        several = len(a) > 1 or len(b) > 1
        conditions = conditions_of((condition.text for condition in syntax), list(_names(names, several)))
        self._check_environments([*a, *b])
        options = options_of(self.env_set)
        env = a[0].environment(self.env, options)
        policies = [[stored.agent for stored in runs] for runs in (a, b)]
        of_a, of_b = policies if several else (runs[0] for runs in policies)
        compared: Any = compare(of_a, of_b, env, self.episodes, self.gamma, self.deterministic, self.seed, names)
        failed = failures(conditions, _method_values(compared) if several else _values(compared))
        where = a[0].described(self.env, options)
        if self.json:
            data = {"env": where[0], "env_options": where[1], **self._data(compared, a, b, several)}
            print(json.dumps({**data, **({"failed_conditions": failed} if self.fail_if else {})}, indent=2))
        else:
            print(f"{self._head(a, b, where)}\n\n{compared if several else compared.to_text('--gamma ')}")
        exit_if_failed(failed)

    def _check_environments(self, runs: Sequence[StoredAgent]) -> None:
        other = next((stored for stored in runs if stored.recorded != runs[0].recorded), None)
        if self.env is None and other is not None:
            raise ValueError(
                f"{runs[0].path} and {other.path} were not trained in the same environment: name the one to play with "
                "--env."
            )

    def _deterministic(self, stored: StoredAgent) -> bool:
        return self.deterministic or stored.agent.is_deterministic

    def _data(self, compared: Any, a: list[StoredAgent], b: list[StoredAgent], several: bool) -> dict[str, Any]:
        data: dict[str, Any] = compared.to_dict()
        reports = data["run_reports"] if several else {name: [data[name]] for name in "ab"}
        for name, runs in zip("ab", (a, b), strict=True):
            reports[name] = [
                {**stored.fields, "deterministic": self._deterministic(stored), **report}
                for stored, report in zip(runs, reports[name], strict=True)
            ]
        return data if several else {**data, **{name: reports[name][0] for name in "ab"}}

    def _head(self, a: list[StoredAgent], b: list[StoredAgent], where: tuple[str, dict[str, Any]]) -> str:
        """Which agents were compared, and in what they were played."""
        actions = [actions_text(self._deterministic(runs[0])) for runs in (a, b)]
        same = actions[0] if actions[0] == actions[1] else f"{actions[0]} (a) and {actions[1]} (b)"
        shown = [_method(text, runs) for text, runs in ((self.a, a), (self.b, b))]
        line = played(*where, f"{self.episodes:,} episodes each", same, self.seed)
        return f"a: {shown[0]}\nb: {shown[1]}\n{line}"


def _method(text: str, runs: Sequence[StoredAgent]) -> str:
    if len(runs) == 1:
        return str(runs[0])
    names, seeds = sorted({stored.agent.name for stored in runs}), sorted(stored.agent.seed for stored in runs)
    return f"{' and '.join(names)} of {text} ({len(runs)} runs, seeds {', '.join(map(str, seeds))})"


def _names(measures: Sequence[str], several: bool) -> Iterator[str]:
    """What conditions may name: of several runs, there are no discounted measures and no extremes."""
    from steadyrl.evaluation.reported import REPORTED

    if not several:
        for prefix in ("", "discounted.", "a.", "a.discounted.", "b.", "b.discounted."):
            yield from risk_names(measures, prefix)
        return
    for prefix in ("", "a.", "b.", "probability_of_improvement."):
        own = (*REPORTED, *measures, *(() if prefix.startswith("prob") else ("iqm",)))
        yield from (f"{prefix}{name}{end}" for name in own for end in ("", ".low", ".high"))


def _values(compared: Comparison) -> dict[str, float]:
    values = risk_values(compared) | report_values(compared.a, "a.") | report_values(compared.b, "b.")
    values |= {f"facts.{name}": value for name, value in compared.facts.items()}
    # Where discounts differ there is no difference of discounted returns: no number meets its condition.
    names = [name for name in values if name.startswith("a.discounted.")]
    absent = {name.removeprefix("a."): float("nan") for name in names}
    return values | (absent if compared.discounted is None else risk_values(compared.discounted, "discounted."))


def _method_values(compared: MethodComparison) -> dict[str, float]:
    parts = {"": compared.difference, "a.": compared.a, "b.": compared.b}
    parts["probability_of_improvement."] = compared.probability_of_improvement
    values: dict[str, float] = {}
    for prefix, estimates in parts.items():
        for name, estimate in estimates.items():
            values |= estimate_values(name, estimate, prefix)
    for prefix, which in (("", "difference"), ("a.", "a"), ("b.", "b")):
        values |= estimate_values("iqm", compared.iqm[which], prefix)
    for name, (of_a, of_b) in compared.facts.items():
        values |= {f"a.facts.{name}": of_a, f"b.facts.{name}": of_b, f"facts.{name}": of_a - of_b}
    return values
