"""Evaluation: play whole episodes with any policy, and report the risk of their returns."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv
from rich.console import Console
from rich.progress import Progress

from steadyrl.envs.resolve import EnvLike, resolve
from steadyrl.episodes import Actor, Episodes, facts_of, play_in_turn
from steadyrl.returns import discounted_returns
from steadyrl.risk_report import RiskReport

POLICY_STREAM, EPISODE_STREAM = 1, 2
"""Keep these random numbers apart from each other and from the bootstrap's, all drawn from the same seed."""


def evaluate(
    policy: Any,
    env: EnvLike,
    episodes: int = 100,
    gamma: float | None = None,
    deterministic: bool = False,
    seed: int = 0,
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
        deterministic: Whether an agent or `predict` takes its most likely action; a function is not told.
        seed: Of the episodes, of an agent's actions and of the intervals. It cannot reach what `predict` or a
            function draws for itself: seed that at its source, or make it deterministic.
    """
    check(policy, env, episodes, seed)
    discount = discount_of(policy, gamma)
    made_here = not isinstance(env, gym.Env)
    environment = resolve(env)
    _check_spaces(policy, environment)
    try:
        rewards, facts = _play(policy, environment, int(episodes), int(seed), deterministic)
    finally:
        if made_here:
            environment.close()
    return RiskReport.from_returns(
        returns=[r.sum() for r in rewards],
        discounted_returns=[discounted_returns(r, discount) for r in rewards],
        gamma=discount,
        facts=facts,
        seed=seed,
    )


def episode_seed(seed: int, index: int) -> int:
    """The seed that episode `index` of an evaluation starts from, however many episodes are played."""
    return _stream(seed, EPISODE_STREAM, index)


def _stream(seed: int, *key: int) -> int:
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])


def check(policy: Any, env: Any, episodes: int, seed: int) -> None:
    """Refuse before the first step what would fail after the last."""
    if inspect.isclass(policy) or not (_is_agent(policy) or _predicts(policy) or callable(policy)):
        what = f"the class {policy.__name__}" if inspect.isclass(policy) else f"a {type(policy).__name__}"
        raise TypeError(
            f"policy is {what}: pass a steadyrl agent, an object with Stable-Baselines3's "
            "predict(observation, state, episode_start, deterministic), or a function of the observation."
        )
    if isinstance(env, VectorEnv):
        raise TypeError(
            f"env is a {type(env).__name__}: evaluation plays one episode at a time, each from its own seed. "
            "Pass the single environment's id, the environment, or a function that makes it."
        )
    if not _is_whole(episodes):
        raise ValueError(f"episodes={episodes!r}: only whole episodes are played. Pass a whole number of at least 2.")
    if episodes < 2:
        raise ValueError(
            f"episodes={episodes}: risk is how the returns of episodes differ, so at least 2 are needed, "
            "and about 100 for useful intervals. Raise episodes."
        )
    if not _is_whole(seed) or seed < 0:
        raise ValueError(f"seed={seed!r}: random streams are numbered from 0. Pass a whole number of at least 0.")


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _check_spaces(policy: Any, env: gym.Env[Any, Any]) -> None:
    """An agent's tables would be read out of bounds in a world of another size."""
    if not _is_agent(policy):
        return
    for name in ("observation_space", "action_space"):
        own, other = getattr(policy, name, None), getattr(env, name)
        if own is not None and own != other:
            raise ValueError(
                f"the agent's {name} is {own}, but this environment's is {other}. "
                "Pass an environment with the same spaces."
            )


def discount_of(policy: Any, gamma: float | None) -> float:
    """`gamma` if it is given, else the policy's own, else 1."""
    discount = float(getattr(policy, "gamma", 1.0) if gamma is None else gamma)
    if not 0 <= discount <= 1:
        raise ValueError(f"gamma={discount}: it discounts later rewards, so 0 <= gamma <= 1. Use 1 for no discount.")
    return discount


def _play(
    policy: Any, env: gym.Env[Any, Any], episodes: int, seed: int, deterministic: bool
) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """The rewards of each episode, and name -> [n] for the facts."""
    policy_seed = _stream(seed, POLICY_STREAM)
    if _is_agent(policy) and hasattr(policy, "rollout"):
        rolled: Episodes | None = policy.rollout(env, episodes, policy_seed, deterministic)
        if rolled is not None:
            rewards = np.asarray(rolled.rewards, dtype=np.float64)
            return list(rewards), {name: np.asarray(values) for name, values in rolled.facts.items()}
    act = _actor(policy, env.action_space, policy_seed, deterministic)
    played = []
    with _progress(episodes) as advance:
        for index in range(episodes):
            # One at a time, and only what the report needs: the observations of all could fill the memory.
            episode = play_in_turn(env, act, [episode_seed(seed, index)], first=index)
            played.append((episode.rewards[0], {name: values[0] for name, values in episode.facts.items()}))
            advance()
    return [rewards for rewards, _ in played], facts_of([facts for _, facts in played])


def _is_agent(policy: Any) -> bool:
    # A method of its class: Stable-Baselines3's TD3 and SAC hold a network, which can be called, as `actor`.
    return callable(getattr(type(policy), "actor", None))


def _predicts(policy: Any) -> bool:
    return callable(getattr(policy, "predict", None))


def _actor(policy: Any, space: gym.Space[Any], seed: int, deterministic: bool) -> Actor:
    """How `policy` acts. An agent's own actions are not checked: they are in its space."""
    if _is_agent(policy):
        act: Actor = policy.actor(seed, deterministic)
        return act
    if _predicts(policy):
        return _predictor(policy, space, deterministic)
    return lambda observation, _episode_start: _valid(policy(observation), space)


def _predictor(policy: Any, space: gym.Space[Any], deterministic: bool) -> Actor:
    """Acts by `predict`, handing a recurrent policy its state from step to step, anew in each episode."""
    state: Any = None

    def act(observation: Any, episode_start: bool) -> Any:
        nonlocal state
        prediction = policy.predict(
            observation,
            state=None if episode_start else state,
            episode_start=np.array([episode_start]),
            deterministic=deterministic,
        )
        if not (isinstance(prediction, tuple) and len(prediction) == 2):
            raise TypeError(
                f"predict of {type(policy).__name__} returned a {type(prediction).__name__}, not "
                "(action, state). Return both, with None for the state of a policy that has none; "
                "or pass a function of the observation."
            )
        action, state = prediction
        return _valid(action, space)

    return act


def _valid(action: Any, space: gym.Space[Any]) -> Any:
    """`action` as the space holds it: an int in Discrete, an array of the space's precision in Box."""
    valid = action
    if isinstance(space, gym.spaces.Discrete):
        array = _array(action)
        if array.size == 1 and array.dtype.kind in "iub":
            valid = int(array.item())
    elif isinstance(space, gym.spaces.Box):
        valid = _array(action)
        if np.can_cast(valid.dtype, space.dtype, casting="same_kind"):
            valid = valid.astype(space.dtype)
    if not space.contains(valid):
        raise ValueError(
            f"the policy's action {action!r} is not in the environment's {space}. "
            "Return an action of its type and shape, clipped to its bounds. "
            "A policy trained on another environment may not fit this one."
        )
    return valid


def _array(action: Any) -> np.ndarray:
    try:
        return np.asarray(action)
    except ValueError:  # Ragged, such as an (action, state) pair: no space holds it, which is said above.
        return np.asarray(action, dtype=object)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on stderr, if that is a terminal and the work takes more than two seconds."""
    console = Console(stderr=True)
    progress = Progress(console=console, transient=True, disable=not console.is_interactive)
    task = progress.add_task("evaluating", total=total)
    start = time.monotonic()

    def advance() -> None:
        progress.advance(task)
        if time.monotonic() - start > 2:
            progress.start()  # Does nothing from the second time on.

    try:
        yield advance
    finally:
        progress.stop()
