"""`steadyrl evaluate` and `steadyrl compare`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from steadyrl.base.shown import shown
from steadyrl.cli.arguments import Count, Flag, Pairs, named, options_of
from steadyrl.cli.stored_agent import StoredAgent

Environment = Annotated[str | None, named("ENV")]
Discount = Annotated[float | None, named("GAMMA")]
Measures = Annotated[str, named("NAMES")]
Lambda = Annotated[float | None, named("LAMBDA")]
Aversion = Annotated[float | None, named("LAMBDA", "--at")]


@dataclass(frozen=True)
class Evaluate:
    """Play whole episodes with a trained agent and report mean, dispersion and tail of its returns."""

    path: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A run folder, or a file written by agent.save."""
    episodes: Count = 200
    """How many episodes to play; more give narrower intervals."""
    env: Environment = None
    """The environment to play in, as an id or module:factory; by default the one that the agent was trained in."""
    env_set: Pairs = ()
    """An option of that environment; may be given many times."""
    gamma: Discount = None
    """Discount of the discounted measures; that of the agent by default."""
    deterministic: Flag = False
    """Take the agent's most likely action instead of drawing one."""
    risk_aversion: Aversion = None
    """The lambda to act for, of an agent that was trained for a range of them; --at is the same."""
    seed: int = 0
    """Seed of the episodes and of the intervals."""
    measures: Measures = ""
    """Further measures to report, separated by commas, such as semivariance,cvar:0.2 (docs/measures.md lists them)."""
    histogram: Annotated[Path | None, named("FILE")] = None
    """Write a picture of the returns to this file, such as returns.png; no picture by default."""
    json: Flag = False
    """Print JSON instead of a table."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.evaluation.evaluate import evaluate
        from steadyrl.evaluation.histogram import check_picture
        from steadyrl.evaluation.reported import requested

        names = tuple(requested(self.measures))
        # Absolute, because environments may change the folder.
        picture = None if self.histogram is None else check_picture(self.histogram).absolute()
        stored = StoredAgent.read(self.path).at(self.risk_aversion)
        stored.warn_if_unfinished()
        options = options_of(self.env_set)
        env = stored.environment(self.env, options)
        report = evaluate(stored.agent, env, self.episodes, self.gamma, self.deterministic, self.seed, names)
        env_id, env_options = stored.described(self.env, options)
        deterministic = self.deterministic or stored.agent.is_deterministic
        if self.json:
            fields = {"env": env_id, "env_options": env_options, "deterministic": deterministic}
            print(json.dumps({**stored.fields, **fields, **report.to_dict()}, indent=2))
        else:
            played = _played(env_id, env_options, f"{self.episodes:,} episodes", _actions(deterministic), self.seed)
            print(f"{stored} {played}\n\n{report}")
        if picture is not None:
            print(f"Picture: {report.histogram(picture)}", file=sys.stderr)


@dataclass(frozen=True)
class Compare:
    """Play whole episodes with two trained agents and report how their mean, dispersion and tail differ."""

    a: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_A")]
    """A run folder, or a file written by agent.save."""
    b: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_B")]
    """The same, of the agent to compare it with."""
    episodes: Count = 200
    """How many episodes to play with each; more give narrower intervals."""
    env: Environment = None
    """The environment to play in, as an id or module:factory; by default the one that both agents were trained in."""
    env_set: Pairs = ()
    """An option of that environment; may be given many times."""
    gamma: Discount = None
    """Discount of the discounted measures; that of the agents by default. If theirs differ, these are left out."""
    deterministic: Flag = False
    """Take the agents' most likely actions instead of drawing them."""
    at_a: Lambda = None
    """The lambda that the first agent is to act for, if it was trained for a range of them."""
    at_b: Lambda = None
    """The same, of the second agent."""
    seed: int = 0
    """Seed of the episodes and of the intervals."""
    measures: Measures = ""
    """Further measures to report, separated by commas, such as semivariance,cvar:0.2 (docs/measures.md lists them)."""
    json: Flag = False
    """Print JSON instead of a table."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.evaluation.compare import compare
        from steadyrl.evaluation.reported import requested

        names = tuple(requested(self.measures))
        a, b = StoredAgent.read(self.a).at(self.at_a), StoredAgent.read(self.b).at(self.at_b)
        for stored in (a, b):
            stored.warn_if_unfinished()
        if self.env is None and a.recorded != b.recorded:
            raise ValueError(
                f"{self.a} and {self.b} were not trained in the same environment: name the one to play with --env."
            )
        options = options_of(self.env_set)
        env = a.environment(self.env, options)
        compared = compare(a.agent, b.agent, env, self.episodes, self.gamma, self.deterministic, self.seed, names)
        env_id, env_options = a.described(self.env, options)
        deterministic = [self.deterministic or stored.agent.is_deterministic for stored in (a, b)]
        if self.json:
            data = compared.to_dict()
            for name, stored, is_deterministic in zip("ab", (a, b), deterministic, strict=True):
                data[name] = {**stored.fields, "deterministic": is_deterministic, **data[name]}
            print(json.dumps({"env": env_id, "env_options": env_options, **data}, indent=2))
        else:
            actions = list(map(_actions, deterministic))
            same = f"{actions[0]}" if actions[0] == actions[1] else f"{actions[0]} (a) and {actions[1]} (b)"
            played = _played(env_id, env_options, f"{self.episodes:,} episodes each", same, self.seed)
            print(f"a: {a}\nb: {b}\n{played}\n\n{compared.to_text('--gamma ')}")


def _played(env_id: str, options: dict[str, Any], episodes: str, actions: str, seed: int) -> str:
    """What was played, in a line."""
    set_to = ", ".join(f"{name}={shown(value, 40, quotes=False)}" for name, value in options.items())
    return f"in {env_id}{f' ({set_to})' if set_to else ''}, {episodes}, {actions}, seed {seed}"


def _actions(deterministic: bool) -> str:
    return "actions deterministic" if deterministic else "actions sampled"
