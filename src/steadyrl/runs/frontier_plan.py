"""What a frontier is made of: environment, agents with their lambdas, seeds and budgets, from what users give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadyrl.agents import AGENTS, agent_class
from steadyrl.runs.final_evaluation import EPISODES
from steadyrl.runs.job import Job
from steadyrl.runs.risk_aversions import aversions_of, default_range, has_risk_aversion, penalized_measure
from steadyrl.runs.sweep import Sweep, budget_of, folder_name, short_name
from steadyrl.training.checkpoint_timer import SECONDS

SEEDS = 3
LAMBDAS = 9
"""At most so many for each agent if they are chosen automatically."""

Aversions = str | float | Iterable[float]
"""A range as text, a number, or several."""


@dataclass(frozen=True)
class FrontierPlan:
    """What to train, evaluate and draw."""

    env: str
    agents: dict[str, dict[str, Any]]
    """Agent -> its other settings."""
    aversions: dict[str, tuple[float, ...]]
    """Agent -> its lambdas; without an entry, they are chosen automatically, or the agent has none."""
    env_options: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = tuple(range(SEEDS))
    budget: dict[str, int] = field(default_factory=lambda: budget_of(None, None))
    most: int = LAMBDAS
    """Of lambdas that are chosen automatically."""
    episodes: int = EPISODES
    """Evaluation episodes of each policy."""
    deterministic: bool = False
    engine: str = "auto"
    loggers: tuple[str, ...] = ()
    checkpoint_seconds: float = SECONDS

    def __post_init__(self) -> None:
        if not isinstance(self.env, str):
            raise ValueError(
                f"env is a {type(self.env).__name__}: runs are trained in processes of their own, which need its "
                "name. Pass a Gymnasium id or module:factory, with env_options=..."
            )
        if self.episodes < 2:
            raise ValueError(f"evaluation episodes {self.episodes}: risk needs at least 2, and about 200 to be useful.")
        if self.most < 3 and self.automatic:
            raise ValueError(f"lambdas {self.most}: at least 3 are needed to choose them.")
        for agent in filter(has_risk_aversion, self.agents):
            check_risk(agent, self.agents[agent], min(self.aversions.get(agent, (0.0,))))

    @property
    def automatic(self) -> list[str]:
        """The agents whose lambdas are chosen."""
        return [agent for agent in self.agents if has_risk_aversion(agent) and agent not in self.aversions]

    def cells(self, out: Path, aversions: Mapping[str, Sequence[float]]) -> list[Job]:
        """Jobs of the agents with these lambdas; of those without lambda where there is an entry."""
        chosen: dict[str, dict[str, list[Any]]] = {}
        for agent, values in aversions.items():
            chosen[agent] = {name: [value] for name, value in self.agents[agent].items()}
            if has_risk_aversion(agent):
                chosen[agent]["risk_aversion"] = list(values)
        sweep = Sweep(
            envs=(self.env,),
            agents=chosen,
            seeds=self.seeds,
            budget=self.budget,
            env_settings={name: [value] for name, value in self.env_options.items()},
            engine=self.engine,
            loggers=self.loggers,
        )
        return sweep.cells(out, self.checkpoint_seconds)

    def settings(self) -> dict[str, Any]:
        """What the result depends on, for the file."""
        return {
            "agents": self.agents,
            "seeds": list(self.seeds),
            "budget": self.budget,
            "evaluation_episodes": self.episodes,
            "deterministic": self.deterministic,
            "automatic": self.automatic,
        }


def check_risk(agent: str, settings: Mapping[str, Any], lowest: float) -> None:
    """An error if lambdas cannot begin there (MVP, for example, has none of 0), or if the measure makes no sense.

    An agent with lambda 0 does not need its measure, so its training would not notice.
    """
    AGENTS[agent].settings_of(settings)
    try:
        AGENTS[agent].settings_of({**settings, "risk_aversion": lowest})
    except ValueError as error:
        raise ValueError(f"{agent}: {error} Give a range of risk aversion that it has.") from None
    penalized_measure(agent, settings)


def default_out(kind: str, env: str, options: Mapping[str, Any]) -> Path:
    """Where the runs of a command go: runs/KIND-ENV."""
    return Path("runs") / f"{kind}-{folder_name(short_name(env), options)}"


def plan_of(
    env: str,
    agents: Sequence[str] | Mapping[str, Mapping[str, Any]],
    risk_aversion: Aversions | Mapping[str, Aversions] | None,
    auto: bool,
    **options: Any,
) -> FrontierPlan:
    """A plan from what users give; mistakes are errors here, before anything is trained."""
    given = {name: {} for name in agents} if not isinstance(agents, Mapping) else agents
    settings = {agent_class(name).name: dict(values) for name, values in given.items()}
    if not settings or len(settings) < len(given):
        raise ValueError("agents: name at least one, and each once.")
    named: dict[str, Aversions] = {}
    averse = [agent for agent in settings if has_risk_aversion(agent)]
    for agent, values in settings.items():
        if "risk_aversion" in values:
            raise ValueError(f"{agent}: give its lambdas as the range of risk aversion, not as a setting.")
    if isinstance(risk_aversion, Mapping):
        named = {agent_class(name).name: values for name, values in risk_aversion.items()}
    elif risk_aversion is not None:
        named = dict.fromkeys(averse, risk_aversion)
        if not averse:
            raise ValueError(f"risk aversion: {', '.join(settings)} has none. Add an agent that has, such as mg.")
    for agent in named:
        if agent not in averse:
            reason = "has no risk aversion" if agent in settings else "is not among the agents"
            raise ValueError(f"risk aversion of {agent}: it {reason}.")
    if auto and risk_aversion is not None:
        raise ValueError("give a range of risk aversion, or let it be chosen automatically, not both.")
    aversions = {agent: aversions_of(values, f"risk aversion of {agent}") for agent, values in named.items()}
    if not auto:
        aversions |= {agent: default_range(agent, settings[agent]) for agent in averse if agent not in aversions}
    return FrontierPlan(env, settings, aversions, **options)
