"""The frontier of one trained agent whose risk aversion is chosen when it acts: nothing is trained."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from steadyrl.envs.finite import finite_model
from steadyrl.envs.resolve import EnvLike, resolve
from steadyrl.evaluation.evaluate import evaluate
from steadyrl.evaluation.frontier import Frontier, FrontierPoint, exact_points
from steadyrl.runs.risk_aversions import aversions_of, rounded
from steadyrl.training.run_folder import versions

POINTS = 9
"""By default."""


def has_dial(agent: Any) -> bool:
    """Whether a trained agent has `risk_aversion_range` and `at(risk_aversion)`."""
    return callable(getattr(agent, "at", None)) and hasattr(agent, "risk_aversion_range")


def dial_frontier(agent: Any, env: EnvLike | None, risk_aversion: Any, episodes: int, deterministic: bool) -> Frontier:
    """Evaluate `agent.at(lambda)` for each lambda; the intervals are over episodes."""
    spanned = agent.risk_aversion_range
    if spanned is None:
        raise ValueError(
            "risk_aversion_range is None: this agent has one risk aversion. Pass the name of an environment."
        )
    low, high = map(float, spanned)
    values = aversions_of(risk_aversion) if risk_aversion is not None else _steps(low, high)
    for value in values:
        if not low <= value <= high:
            raise ValueError(f"risk_aversion {value:g}: this agent was trained for {low:g} to {high:g}.")
    world = env if env is not None else getattr(agent, "env", None)
    if world is None:
        raise ValueError("this agent has no environment: pass one.")
    name = str(getattr(agent, "name", type(agent).__name__))
    points = []
    for value in values:
        returns = evaluate(agent.at(value), world, episodes, deterministic=deterministic).returns
        points.append(FrontierPoint.of(name, value, [returns]))
    made = resolve(world)
    model = finite_model(made)
    described = world if isinstance(world, str) else str(getattr(getattr(made, "spec", None), "id", made))
    if made is not world:
        made.close()
    details = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "versions": versions()}
    return Frontier(tuple(points), described, {}, exact_points(model.mdp) if model else (), details)


def refuse_training_options(given: Mapping[str, bool]) -> None:
    """An error for options, name -> whether it is given, that have no meaning where nothing is trained."""
    if names := [f"{name}=" for name, is_given in given.items() if is_given]:
        raise ValueError(
            f"{', '.join(names)}: with a trained agent nothing is trained or written. Leave that out; pass an "
            "environment with options of its own as env, and call save on the result."
        )


def _steps(low: float, high: float) -> tuple[float, ...]:
    """From one end to the other, spread evenly over log(1 + lambda) as in training; the ends are exact."""
    inner = np.expm1(np.linspace(np.log1p(low), np.log1p(high), POINTS))[1:-1]
    within = (min(max(rounded(value), low), high) for value in inner)
    return tuple(dict.fromkeys((low, *within, high)))
