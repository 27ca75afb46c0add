"""Reads claims.toml: domains, claims, and templates of claims about several domains."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steadyrl.evaluation.agent_looks import agent_title
from steadyrl.runs.experiment import load_experiment
from studies.paper_claims.rules import Claim, Condition

CLAIMS = Path(__file__).with_name("claims.toml")


@dataclass(frozen=True)
class Domain:
    """An experiment of the paper, and which of its methods the claims are about."""

    name: str
    title: str
    neutral: str
    """The risk-neutral method."""
    look: str
    """The measure, besides return and Gini deviation, that shows whether risk is avoided."""
    printed: dict[str, str]
    """Role -> method with the printed settings, where they have different names."""
    other: tuple[dict[str, str], ...]
    """The same with other settings."""

    @property
    def choices(self) -> tuple[Mapping[str, str], ...]:
        """Roles -> methods: printed first."""
        return (self.printed, *({**self.printed, **other} for other in self.other))

    @property
    def methods(self) -> set[str]:
        """All methods that are named."""
        return {self.neutral, *(method for choice in self.choices for method in choice.values())}


def read_claims(path: Path = CLAIMS) -> tuple[dict[str, Domain], list[Claim]]:
    """The domains by name, and all claims in the order of domains."""
    data = tomllib.loads(path.read_text())
    domains = {
        name: Domain(name, load_experiment(name).title, **{**table, "other": tuple(table["other"])})
        for name, table in data["domains"].items()
    }
    claims = [_claim(table) for table in data["claims"]]
    for table in data["templates"]:
        claims += [_filled(table, domains[name]) for name in table["domains"]]
    return domains, sorted(claims, key=lambda claim: [*domains].index(claim.domain))


def _claim(table: dict[str, Any]) -> Claim:
    conditions = tuple(Condition(**{**one, "than": tuple(one.get("than", ()))}) for one in table["conditions"])
    return Claim(**{**table, "conditions": conditions})


def _filled(template: dict[str, Any], domain: Domain) -> Claim:
    """The claim of a template about one domain."""
    agent = next(method.agent for method in load_experiment(domain.name).methods if method.name == domain.neutral)
    words = {"domain": domain.name, "neutral": domain.neutral, "title": agent_title(agent)}
    table = {name: value for name, value in template.items() if name != "domains"}
    claim = _claim({**table, "domain": domain.name})
    conditions = tuple(replace(one, than=tuple(role.format(**words) for role in one.than)) for one in claim.conditions)
    return replace(claim, text=claim.text.format(**words), figure=claim.figure.format(**words), conditions=conditions)
