"""`steadyrl evaluate`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import tyro

from steadyrl.cli.arguments import Count, Flag, Pairs, named, options_of
from steadyrl.cli.conditions import Conditions, conditions_of, exit_if_failed, failures, report_values, risk_names
from steadyrl.cli.played import actions_text, played
from steadyrl.cli.stored_agent import StoredAgent

if TYPE_CHECKING:
    from steadyrl.evaluation.risk_report import RiskReport

Environment = Annotated[str | None, named("ENV")]
Discount = Annotated[float | None, named("GAMMA")]
Measures = Annotated[str, named("NAMES")]
Aversion = Annotated[float | None, named("LAMBDA", "--at")]


@dataclass(frozen=True)
class Evaluate:
    """Play whole episodes with a trained agent and report mean, dispersion and tail of its returns."""

    path: Annotated[Path | None, tyro.conf.Positional, named("RUN")] = None
    """A run folder, or a file written by agent.save; not needed with --returns."""
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
    returns: Annotated[Path | None, named("FILE")] = None
    """A CSV file with returns that were logged elsewhere, in place of a run: nothing is played."""
    column: Annotated[str | None, named("NAME")] = None
    """Its column with the returns; by default the only one."""
    fail_if: Conditions = ()
    """End with status 3 if this holds, such as "cvar_10 < 20" or "mean.low < 100"; may be given many times."""
    histogram: Annotated[Path | None, named("FILE")] = None
    """Write a picture of the returns to this file, such as returns.png; no picture by default."""
    json: Flag = False
    """Print JSON instead of a table."""

    def __call__(self) -> None:
        """Run the command."""
        from steadyrl.evaluation.histogram import check_picture
        from steadyrl.evaluation.reported import requested

        names = tuple(requested(self.measures))
        conditions = conditions_of(self.fail_if, [*risk_names(names), *risk_names(names, "discounted.")])
        # Absolute, because environments may change the folder.
        picture = None if self.histogram is None else check_picture(self.histogram).absolute()
        if self.returns is not None:
            title, fields, report = self._logged(self.returns, names)
        elif self.path is not None:
            title, fields, report = self._played(self.path, names)
        else:
            raise ValueError("evaluate: name a run folder or a file of agent.save, or logged returns with --returns.")
        failed = failures(conditions, report_values(report))
        if self.json:
            conclusion = {"failed_conditions": failed} if self.fail_if else {}
            print(json.dumps({**fields, **report.to_dict(), **conclusion}, indent=2))
        else:
            print(f"{title}\n\n{report}")
        if picture is not None:
            print(f"Picture: {report.histogram(picture)}", file=sys.stderr)
        exit_if_failed(failed)

    def _played(self, path: Path, names: tuple[str, ...]) -> Evaluated:
        """Of episodes that are played now."""
        from steadyrl.evaluation.evaluate import evaluate

        if self.column is not None:
            raise ValueError(f"--column {self.column}: it is a column of the file of --returns. Leave it out.")
        stored = StoredAgent.read(path).at(self.risk_aversion)
        stored.warn_if_unfinished()
        options = options_of(self.env_set)
        env = stored.environment(self.env, options)
        report = evaluate(stored.agent, env, self.episodes, self.gamma, self.deterministic, self.seed, names)
        env_id, env_options = stored.described(self.env, options)
        deterministic = self.deterministic or stored.agent.is_deterministic
        fields = {**stored.fields, "env": env_id, "env_options": env_options, "deterministic": deterministic}
        line = played(env_id, env_options, f"{self.episodes:,} episodes", actions_text(deterministic), self.seed)
        return Evaluated(f"{stored} {line}", fields, report)

    def _logged(self, file: Path, names: tuple[str, ...]) -> Evaluated:
        """Of returns that were logged elsewhere."""
        from steadyrl.evaluation.returns_file import read_returns
        from steadyrl.evaluation.risk_report import RiskReport

        about_playing = {
            "a run": self.path is not None,
            "--env": self.env is not None,
            "--env-set": bool(self.env_set),
            "--gamma": self.gamma is not None,
            "--deterministic": self.deterministic,
            "--risk-aversion": self.risk_aversion is not None,
        }
        for name, given in about_playing.items():
            if given:
                raise ValueError(f"--returns {file} and {name}: nothing is played with logged returns. Leave out one.")
        report = RiskReport.from_returns(read_returns(file, self.column), seed=self.seed, measures=names)
        column = "" if self.column is None else f", column {self.column}"
        fields = {"returns_file": str(file), **({} if self.column is None else {"column": self.column})}
        return Evaluated(f"returns of {file}{column}", fields, report)


class Evaluated(NamedTuple):
    """A report, what it is of in a line, and in JSON."""

    title: str
    fields: dict[str, Any]
    report: RiskReport
