"""Evaluation: play whole episodes with any policy, and report the risk of their returns."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from steadyrl.agents.agent import Agent
from steadyrl.agents.dialled import needs_a_lambda
from steadyrl.envs.resolve import EnvLike, resolve
from steadyrl.envs.running_statistics import running_statistics
from steadyrl.envs.spaces import shown_space
from steadyrl.evaluation.play import play_policy
from steadyrl.evaluation.reported import Metric, requested
from steadyrl.evaluation.risk_report import RiskReport

MAX_EPISODES = 10_000_000


def evaluate(
    policy: Any,
    env: EnvLike,
    episodes: int = 100,
    gamma: float | None = None,
    deterministic: bool = False,
    seed: int = 0,
    measures: str | Iterable[str] = (),
    metrics: Mapping[str, Metric] | None = None,
) -> RiskReport:
    """Play whole episodes and report the mean and the risk of their returns, with confidence intervals.

    Example:
        >>> report = evaluate(lambda observation: int(observation[2] > 0), "CartPole-v1", episodes=200)
        >>> print(report)  # or report.gini_deviation.low

    Args:
        policy: A steadyrl agent; or any object with Stable-Baselines3's
            `predict(observation, state, episode_start, deterministic) -> (action, state)`; or a function from
            an observation to an action.
        env: A Gymnasium id, an environment, or a function that makes one. Your own environment is left open.
        episodes: How many to play, at least 2. Asking for more leaves the first ones as they were.
        gamma: Discount of `report.discounted`; if not given, the policy's own `gamma`, or else 1.
        deterministic: Whether an agent or `predict` takes its most likely action; functions are not affected.
        seed: Of the episodes, of an agent's actions and of the intervals. It cannot reach what `predict` or a
            function draws for itself: seed that at its source, or make it deterministic.
        measures: Names of further measures to report, such as "semivariance" or "cvar:0.2", where the number is alpha
            or beta; see `risk.MEASURES`. They are in `report.measures`, by these names.
        metrics: Measures of your own, such as `{"loss_rate": lambda returns: (returns < 0).mean()}`: functions from the
            returns [n] of some episodes to a number. They are in `report.measures` too, with intervals.
    """
    more = requested(measures, metrics)
    check(policy, env, episodes, seed)
    discount = discount_of(policy, gamma)
    made_here = not isinstance(env, gym.Env)
    environment = resolve(env)
    wrapper = running_statistics(environment)
    if made_here and wrapper is not None:
        warnings.warn(
            f"{wrapper}: its running statistics start anew here, not with those of training. Pass the environment that "
            "the policy was trained in, or one with fixed statistics.",
            UserWarning,
            stacklevel=2,
        )
    check_spaces(policy, environment)
    try:
        played = play_policy(policy, environment, int(episodes), int(seed), deterministic, discount)
    finally:
        if made_here:
            environment.close()
    return RiskReport.from_returns(
        returns=played.returns,
        discounted_returns=played.discounted_returns,
        gamma=discount,
        facts=played.metrics,
        seed=seed,
        measures=more,
    )


def check(policy: Any, env: Any, episodes: int, seed: int) -> None:
    """Refuse before the first step what would fail after the last."""
    if inspect.isclass(policy) or not (isinstance(policy, Agent) or hasattr(policy, "predict") or callable(policy)):
        what = f"the class {policy.__name__}" if inspect.isclass(policy) else f"a {type(policy).__name__}"
        raise TypeError(
            f"policy is {what}: pass a steadyrl agent, an object with Stable-Baselines3's "
            "predict(observation, state, episode_start, deterministic), or a function of the observation."
        )
    if isinstance(policy, Agent) and policy.risk_aversion_range is not None:
        raise needs_a_lambda(policy)
    if isinstance(env, VectorEnv):
        raise TypeError(
            f"env is a {type(env).__name__}: evaluation plays episodes of its own, each from its own seed. "
            "Pass the single environment's id, the environment, or a function that makes it."
        )
    if not _is_whole(episodes):
        raise ValueError(f"episodes={episodes!r}: only whole episodes are played. Pass a whole number of at least 2.")
    if episodes < 2:
        raise ValueError(
            f"episodes={episodes}: risk is how the returns of episodes differ, so at least 2 are needed, "
            "and about 100 for useful intervals. Raise episodes."
        )
    if episodes > MAX_EPISODES:
        raise ValueError(f"episodes={episodes}: intervals hardly narrow from {MAX_EPISODES:,} on. Lower episodes.")
    if not _is_whole(seed) or seed < 0:
        raise ValueError(f"seed={seed!r}: random streams are numbered from 0. Pass a whole number of at least 0.")


def discount_of(policy: Any, gamma: float | None) -> float:
    """`gamma` if it is given, else the policy's own, else 1."""
    discount = float(getattr(policy, "gamma", 1.0) if gamma is None else gamma)
    if not 0 <= discount <= 1:
        raise ValueError(f"gamma={discount}: it discounts later rewards, so 0 <= gamma <= 1. Use 1 for no discount.")
    return discount


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def check_spaces(policy: Any, env: gym.Env[Any, Any]) -> None:
    """An agent's tables would be indexed out of bounds in an environment of another size."""
    if not isinstance(policy, Agent):
        return
    for name in ("observation_space", "action_space"):
        own, other = getattr(policy, name, None), getattr(env, name)
        if own is not None and own != other:
            raise ValueError(
                f"the agent's {name} is {shown_space(own)}, but this environment's is {shown_space(other)}. "
                "Pass an environment with the same spaces."
            )
