"""What training episodes must keep to, so that they can be learned from and recorded."""

from __future__ import annotations

import jax
import numpy as np

from steadyrl.envs.episode_metrics import MetricNames
from steadyrl.envs.finite import FiniteModel
from steadyrl.rollouts.collector import SCALE_REWARDS, FaultyEnvironmentError, Limits, stacked_metrics
from steadyrl.training.algorithm import Trainee
from steadyrl.training.engines.engine import MAX_FLOAT
from steadyrl.training.records import is_reserved


def training_limits(agent: Trainee) -> Limits:
    """The limits of an agent's training episodes, whose metrics have the same names throughout."""
    return Limits(
        agent.env_name, agent.settings.max_episode_steps, max_reward=MAX_FLOAT, metric_names=MetricNames(is_reserved)
    )


def check_returns(returns: np.ndarray, limits: Limits) -> None:
    """An error if the return of one of the episodes from `limits.first_episode` on is too large to learn from."""
    worst = int(np.abs(returns).argmax())
    if abs(returns[worst]) > limits.max_reward:
        raise FaultyEnvironmentError(
            f"{limits.env_name}: return {returns[worst]:g} of episode {limits.first_episode + worst} that does not fit "
            f"in 32 bits, in which agents learn. {SCALE_REWARDS}"
        )


def check_model(agent: Trainee, model: FiniteModel) -> None:
    """An error if a finite environment cannot keep to the limits; its episodes are not looked at one by one."""
    metrics = jax.eval_shape(model.metrics, np.zeros(model.mdp.n_states * model.mdp.n_actions), np.False_)
    stacked_metrics([dict.fromkeys(metrics, 0.0)], training_limits(agent))
    largest = float(np.abs(model.mdp.reward).max())
    if largest > MAX_FLOAT:
        raise FaultyEnvironmentError(
            f"{agent.env_name}: reward {largest:g} that does not fit in 32 bits, in which agents learn. "
            "Choose smaller rewards."
        )
