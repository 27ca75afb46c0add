"""One policy for a range of lambdas, beside agents that are trained for one lambda each.

    python -m benchmarks.learning.dial                     # trains what is missing: hours, of which the maze 15 minutes
    python -m benchmarks.learning.dial --domains maze      # one domain, or several
    python -m benchmarks.learning.dial --report            # writes docs/results/dial.md

Domains, budgets, seeds and settings are in dial.toml beside this file. Each run leaves a line of JSON in
docs/results/dial_runs.jsonl with the settings it had; what is there with the settings of the plan is not run again, and
what is there with others does not count. In finite environments E and D are exact, elsewhere those of sampled episodes.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import jax.numpy as jnp
import numpy as np

import steadyrl
from benchmarks.learning import dial_page
from steadyrl import exact
from steadyrl.agents.networks.dialled_tables import Knots
from steadyrl.base.pytree import register_pytree
from steadyrl.base.seeding import Stream, stream_key
from steadyrl.envs.finite import finite_model
from steadyrl.training.dial import Dial
from steadyrl.training.loop import learn_together
from steadyrl.training.run_folder import versions

PLAN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
RUNS, PAGE = Path("docs/results/dial_runs.jsonl"), Path("docs/results/dial.md")


class Case(NamedTuple):
    """One training: of a dial, or of an agent for each lambda."""

    domain: str
    method: str
    seed: int


@dataclass(frozen=True)
class FixedDial(Dial):
    """Plays at the same lambdas in every round, those of the tables."""

    def levels(self, k: Any) -> Any:
        """See `Dial`."""
        return jnp.linspace(jnp.log1p(self.low), jnp.log1p(self.high), self.groups)


register_pytree(FixedDial)


def cases(domains: Sequence[str], seeds: int | None = None) -> list[Case]:
    """All runs of these domains, one seed of every method after the other."""
    first = PLAN["first_seed"]
    return [
        Case(domain, method, seed)
        for domain in domains
        for seed in range(first, first + (seeds or PLAN["domains"][domain]["seeds"]))
        for method in PLAN["domains"][domain]["methods"]
    ]


def lambdas_of(domain: str) -> list[float]:
    """Where policies are compared: even in log(1 + lambda)."""
    low, high = range_of(domain)
    return [float(x) for x in np.expm1(np.linspace(np.log1p(low), np.log1p(high), PLAN["domains"][domain]["lambdas"]))]


def range_of(domain: str) -> tuple[float, float]:
    """The lowest and the highest lambda of a domain: the plan's, if it has none of its own."""
    low, high = PLAN["domains"][domain].get("range", PLAN["range"])
    return low, high


def settings_of(domain: str, method: str) -> dict[str, Any]:
    """Of a method in a domain, as planned."""
    plan = PLAN["domains"][domain]
    return {**plan["shared"], **plan["methods"][method]}


def budget_of(domain: str, method: str) -> int:
    """The episodes of a training: of one agent with one lambda, or of a dial."""
    return int(PLAN["domains"][domain]["episodes"] * (PLAN["dial_times"] if method.startswith("dial") else 1))


def as_planned(one: dict[str, Any]) -> bool:
    """Whether a recorded run is one of the plan as it is now."""
    domain, method = one["domain"], one["method"]
    if method not in PLAN["domains"].get(domain, {}).get("methods", {}):
        return False
    planned = settings_of(domain, method), budget_of(domain, method), lambdas_of(domain)
    return bool((one["settings"], one["budget"], [point["lambda"] for point in one["points"]]) == planned)


def dialled(env: Any, domain: str, method: str, seed: int) -> Any:
    """The agent with a dial of that name."""
    ends = range_of(domain)
    agent = steadyrl.MeanGini(env, seed=seed, risk_aversion=ends, **settings_of(domain, method))
    algorithm: Any = agent.algorithm
    if "2 tables" in method:
        low, high = agent.settings.levels
        knots = Knots(low, high, 2)
        critic = dataclasses.replace(
            algorithm.critic, network=dataclasses.replace(algorithm.critic.network, knots=knots)
        )
        policy, value = (dataclasses.replace(part, knots=knots) for part in (algorithm.policy, algorithm.value))
        agent.algorithm = dataclasses.replace(algorithm, policy=policy, value=value, critic=critic)
        agent.learner = agent.algorithm.init(stream_key(seed, Stream.PARAMETERS))
    elif "apart" in method:
        fixed = FixedDial(*ends, agent.settings.lambdas_per_update)
        agent.algorithm = dataclasses.replace(algorithm, risk_aversion=fixed)
    return agent


def run(case: Case) -> dict[str, Any]:
    """Train and evaluate one case."""
    plan, settings = PLAN["domains"][case.domain], settings_of(case.domain, case.method)
    env, lambdas = gym.make(plan["env"]), lambdas_of(case.domain)
    budget, started = budget_of(case.domain, case.method), time.monotonic()
    if case.method.startswith("dial"):
        agent = dialled(env, case.domain, case.method, case.seed)
        agent.learn(total_episodes=budget, progress_bar=False)
        agents, episodes = [agent.at(x) for x in lambdas], agent.episodes
    else:
        agents = [steadyrl.MeanGini(env, seed=case.seed, risk_aversion=x, **settings) for x in lambdas]
        for group in (agents[:1], agents[1:]):  # Without aversion it is another program.
            learn_together(group, total_episodes=budget, progress_bar=False)
        episodes = sum(agent.episodes for agent in agents)
    return {
        **case._asdict(),
        "settings": settings,
        "budget": budget,
        "episodes": episodes,
        "seconds": round(time.monotonic() - started),
        "points": [{"lambda": x, **risk_of(agent, case.seed)} for x, agent in zip(lambdas, agents, strict=True)],
        "date": datetime.date.today().isoformat(),
        "versions": versions(),
    }


def risk_of(agent: Any, seed: int) -> dict[str, float]:
    """E and D of the undiscounted return: exact, or of sampled episodes."""
    model = finite_model(agent.env) if agent.engine == "compiled" else None
    if model is not None:
        law = exact.return_distribution(model.mdp, agent.probabilities(), 1.0)
        return {"mean": float(law.mean), "gini_deviation": float(law.gini_deviation)}
    returns = agent.play(PLAN["evaluation_episodes"], seed=10_000 + seed).rewards.sum(axis=-1)
    return {"mean": float(returns.mean()), "gini_deviation": float(steadyrl.risk.gini_deviation(returns))}


def main(given: Sequence[str] | None = None) -> None:
    """Train what is missing, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", nargs="+", choices=list(PLAN["domains"]), default=list(PLAN["domains"]))
    parser.add_argument("--seeds", type=int, help="how many, in place of the plan's")
    parser.add_argument("--report", action="store_true", help="write the page from what is there")
    arguments = parser.parse_args(given)
    recorded = [json.loads(line) for line in RUNS.read_text().splitlines()] if RUNS.exists() else []
    runs = [one for one in recorded if as_planned(one)]
    if arguments.report:
        PAGE.write_text(dial_page.page(PLAN, runs))
        return
    done = {Case(one["domain"], one["method"], one["seed"]) for one in runs}
    for case in [case for case in cases(arguments.domains, arguments.seeds) if case not in done]:
        one = run(case)
        with RUNS.open("a") as file:
            file.write(json.dumps(one) + "\n")
        values = [round(p["mean"] - p["lambda"] * p["gini_deviation"], 2) for p in one["points"]]
        print(*case, values, f"{one['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
