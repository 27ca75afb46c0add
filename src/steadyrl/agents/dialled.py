"""An agent for one lambda, out of an agent that has learned for a range of them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from steadyrl.base.shown import shown
from steadyrl.training.algorithm import Learner
from steadyrl.training.dial import level_of

if TYPE_CHECKING:
    from steadyrl.agents.acting import ActingAgent
    from steadyrl.agents.agent import Agent


def range_of(agent: ActingAgent) -> tuple[float, float] | None:
    """The lowest and the highest lambda; None if the agent has one lambda, or none."""
    ends = getattr(getattr(agent, "settings", None), "risk_aversion", None)  # An agent of others may have none.
    return ends if isinstance(ends, tuple) else None


def needs_a_lambda(agent: ActingAgent) -> ValueError:
    """The error about the use of a policy before its lambda is chosen."""
    low, high = cast(Any, agent.settings).risk_aversion
    return ValueError(
        f"{agent.name} has learned for all risk_aversion from {low:g} to {high:g}, and acts once one of them is "
        f"chosen: use agent.at({(low + high) / 2:g}), or --at {(low + high) / 2:g} on the command line."
    )


def settings_at(agent: Agent, risk_aversion: Any) -> Any:
    """The settings of an agent that has one lambda of the range, or an error if it is outside of it."""
    s, ends, at = cast(Any, agent.settings), range_of(agent), f"at({shown(risk_aversion, 40)})"
    if ends is None:
        raise ValueError(
            f"{at}: {agent.name} was not trained for a range of lambdas. Train it with risk_aversion=(low, high)."
        )
    is_number = isinstance(risk_aversion, int | float | np.number) and not isinstance(risk_aversion, bool)
    if not is_number or not ends[0] <= risk_aversion <= ends[1]:
        raise ValueError(f"{at}: risk_aversion was from {ends[0]:g} to {ends[1]:g} in training. Choose one of these.")
    # Rules apply again where the range decided: an agent with one lambda may remember returns of earlier batches.
    remembered = type(s).__dataclass_fields__["returns_remembered"].default
    return dataclasses.replace(s, risk_aversion=float(risk_aversion), returns_remembered=remembered)


def learner_at(agent: Agent, risk_aversion: float, untrained: Learner) -> Learner:
    """What `agent` has learned, at one lambda, in an `untrained` learner of an agent with that lambda.

    With the level fixed, the input that it was is a part of the first biases, and a table is a mixture of those at the
    knots. So policy, values and critic are those of an agent that never had a dial. Its optimizers start anew.
    """
    learner, algorithm, level = agent.learner, cast(Any, agent.algorithm), level_of(risk_aversion)
    risk, shared = untrained.risk, getattr(agent.settings, "shared_trunk", False)
    if risk:  # Without aversion there is no critic.
        old = learner.risk
        known = algorithm.critic.network.at_level(old.parameters, level)
        risk = risk._replace(parameters=known, key=old.key, scale=old.scale, length=old.length)
    return untrained._replace(
        theta=algorithm.policy.at_level(learner.theta, level),
        phi=learner.phi if shared else algorithm.value.at_level(learner.phi, level),
        risk=risk,
        seen=learner.seen,
        key=learner.key,
    )
