"""Collects whole episodes from a simulator and a policy: the only loop that plays episodes outside compiled programs.

Episodes are assigned before they start and always played to the end: taking "the first n to finish" would favour short
episodes and bias every measure of dispersion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from threadpoolctl import ThreadpoolController

from steadyrl.envs.episode_metrics import MetricNames, stack_metrics
from steadyrl.envs.simulator import Simulator, SlotError, StepResult
from steadyrl.envs.spaces import allows, outside
from steadyrl.rollouts.acting import ActionNoise, Actor, at_start, of_episodes
from steadyrl.rollouts.episodes import Episodes

SCALE_REWARDS = "Scale the rewards, for example with gymnasium.wrappers.TransformReward."


NO_ACTION = "Allow at least one, or end the episode."


_NUMBERED = (gym.spaces.Discrete, gym.spaces.MultiDiscrete)


class FaultyEnvironmentError(ValueError):
    """The environment violated the Gymnasium API, raised an exception or did not end an episode."""


class Noise(Protocol):
    """Random numbers for the actions of several episodes."""

    def at(self, t: int, slots: Any) -> Any:
        """[k, ...]: the random numbers of step t for the episodes `slots`; called for t = 0, 1, ... in turn."""
        ...


class Acts(Protocol):
    """Chooses the actions, such as an `Actor`."""

    def features(self, observations: Any) -> Any:
        """The observations of k episodes as inputs of `act`."""
        ...

    def act(self, features: Any, noise: Any, masks: Any = None) -> Any:
        """[k, ...]: an action for each episode, one of those that the masks [k, A] allow, if there are any."""
        ...

    def to_space(self, actions: Any) -> Any:
        """The actions in the form of the simulator's action space."""
        ...


class StepBatch(NamedTuple):
    """One step of the k active episodes."""

    slots: Any
    observations: Any
    """Features before the step."""
    actions: Any
    """As chosen by the policy, before clipping."""
    result: StepResult
    next_observations: Any
    """Features after the step."""
    done: Any
    """[k] bool: whether the episode terminated or was truncated."""
    action_masks: Any = None
    """[k, A] bool: which actions were allowed before the step; None if there are no masks."""
    next_action_masks: Any = None
    """[k, A] bool: after the step."""


class _Wave(NamedTuple):
    """Episodes that were played at the same time."""

    steps: list[StepBatch]
    last_observations: dict[int, Any]
    terminated: dict[int, bool]
    metrics: dict[int, dict[str, float]]
    last_masks: dict[int, Any]


class Limits(NamedTuple):
    """The maximum length of an episode, and what error messages call the environment and its episodes."""

    env_name: str
    max_episode_steps: int
    """An episode of more steps is an error."""
    first_episode: int = 0
    """The number of the first episode."""
    max_reward: float = math.inf
    """A reward of more than that, positive or negative, is an error."""
    metric_names: MetricNames | None = None
    """What the names of episode metrics are compared with; by default those of the first of these episodes."""


def collect(
    simulator: Simulator, actor: Actor, seeds: Sequence[int], limits: Limits, deterministic: bool = False
) -> Episodes:
    """One whole episode from each seed, `simulator.size` at a time; `actor.levels`, if any, are those of the episodes.

    The observations are features before normalization, and the actions those of the policy before clipping.
    """
    starts = range(0, len(seeds), simulator.size)
    with single_threaded_blas():
        waves = [
            _play_wave(
                simulator,
                of_episodes(actor, slice(start, start + simulator.size)),
                seeds[start : start + simulator.size],
                limits._replace(first_episode=limits.first_episode + start),
                deterministic,
            )
            for start in starts
        ]
    steps = [step for wave in waves for step in wave.steps]
    counts = [len(step.slots) for step in steps]
    offsets = [start for start, wave in zip(starts, waves, strict=True) for _ in wave.steps]
    rows = np.concatenate([step.slots for step in steps]) + np.repeat(offsets, counts)
    columns = np.repeat([t for wave in waves for t in range(len(wave.steps))], counts)

    def padded(values: Any) -> Any:
        array = np.zeros((len(seeds), columns.max() + 1, *values.shape[1:]), values.dtype)
        array[rows, columns] = values
        return array

    return Episodes(
        observations=padded(np.concatenate([step.observations for step in steps])),
        actions=padded(np.concatenate([step.actions for step in steps])),
        rewards=padded(np.concatenate([step.result.rewards for step in steps])),
        mask=padded(np.ones(len(rows))),
        last_observations=np.stack([wave.last_observations[s] for wave in waves for s in sorted(wave.terminated)]),
        terminated=np.array([wave.terminated[s] for wave in waves for s in sorted(wave.terminated)]),
        episode_metrics=stacked_metrics([wave.metrics[s] for wave in waves for s in sorted(wave.terminated)], limits),
        **_masks_of(waves, padded),
    )


def _masks_of(waves: Sequence[_Wave], padded: Callable[[Any], Any]) -> dict[str, Any]:
    """The masks of `Episodes`, if there are any."""
    masks = [step.action_masks for wave in waves for step in wave.steps]
    if masks[0] is None:
        return {}
    last = [wave.last_masks[s] for wave in waves for s in sorted(wave.terminated)]
    return {"action_masks": padded(np.concatenate(masks)), "last_action_masks": np.stack(last)}


def stacked_metrics(episodes: Sequence[dict[str, float]], limits: Limits) -> dict[str, Any]:
    """`stack_metrics` of episodes from `limits.first_episode` on; errors name the environment."""
    try:
        return stack_metrics(episodes, limits.first_episode, limits.metric_names)
    except ValueError as error:
        raise FaultyEnvironmentError(f"{limits.env_name}: {error}") from None


def _play_wave(simulator: Simulator, actor: Actor, seeds: Sequence[int], limits: Limits, deterministic: bool) -> _Wave:
    """Play episodes at the same time, until the last one has ended."""
    wave = _Wave([], {}, {}, {}, {})
    noise = None if deterministic else ActionNoise(actor.policy, seeds)
    current = actor = at_start(actor, len(seeds))

    def of_active() -> Actor:
        return current

    for step in iterate_steps(simulator, of_active, noise, seeds, limits):
        wave.steps.append(step)
        if step.done.any():
            current = of_episodes(actor, step.slots[~step.done])
        for row in np.flatnonzero(step.done):
            slot = int(step.slots[row])
            wave.last_observations[slot] = step.next_observations[row]
            wave.terminated[slot] = bool(step.result.terminated[row])
            wave.metrics[slot] = step.result.episode_metrics.get(slot, {})
            if step.next_action_masks is not None:
                wave.last_masks[slot] = step.next_action_masks[row]
    return wave


def iterate_steps(
    simulator: Simulator, actor: Callable[[], Acts], noise: Noise | None, seeds: Sequence[int], limits: Limits
) -> Iterator[StepBatch]:
    """Play an episode from each seed, all at the same time, and yield each step; `actor` is called for each step."""
    active, t = np.arange(len(seeds)), 0
    try:
        features = _features(actor(), simulator.observation_space, simulator.reset(seeds), active)
        masks: Any = getattr(simulator, "action_masks", None)
        masks = None if masks is None else masks[active]
        after_masks: Any = None
        while active.size:
            if t == limits.max_episode_steps:
                remedy = "Give the environment a time limit (max_episode_steps=...), or raise max_episode_steps."
                raise SlotError(int(active[0]), "no end", remedy)
            current = actor()
            drawn = None if noise is None else noise.at(t, active)
            if masks is None:
                actions = current.act(features, drawn)
            else:
                check_masks(simulator.action_space, masks, active)
                actions = current.act(features, drawn, masks)
            t += 1
            result = simulator.step(active, current.to_space(actions))
            _check_rewards(result.rewards, active, limits.max_reward)
            after = _features(current, simulator.observation_space, result.observations, active)
            done = result.terminated | result.truncated
            if masks is not None:
                after_masks = simulator.action_masks[active]  # type: ignore[attr-defined]
            yield StepBatch(active, features, actions, result, after, done, masks, after_masks)
            if masks is not None:
                masks = after_masks[~done]
            active, features = (active[~done], after[~done]) if done.any() else (active, after)
    except SlotError as error:
        first = limits.first_episode
        episode = f"one of the episodes {first} to {first + len(seeds) - 1}"
        if error.slot is not None:
            episode = f"episode {first + error.slot} (seed {seeds[error.slot]})"
        raise FaultyEnvironmentError(
            f"{limits.env_name}: {error} at step {t} of {episode}. {error.remedy}"
        ) from error.__cause__


def check_masks(action_space: gym.Space[Any], masks: Any, active: Any) -> None:
    """An error for a mask [k, A] that allows no action, or nothing for one of several choices."""
    allowed = allows(action_space, masks)
    if not allowed.all():
        raise SlotError(int(active[allowed.argmin()]), "an action mask that allows no action", NO_ACTION)


def single_threaded_blas() -> AbstractContextManager[Any]:
    """A context in which NumPy's matrix products use one thread: small ones can take 100 times longer with several."""
    limit: AbstractContextManager[Any] = _blas().limit(limits=1, user_api="blas")
    return limit


def _features(actor: Acts, space: gym.Space[Any], observations: Any, active: Any) -> Any:
    """The features of the observations, after checking that these are valid."""
    if isinstance(space, _NUMBERED):
        wrong = outside(space, observations)
        if wrong.any():
            row = int(wrong.argmax())
            raise SlotError(int(active[row]), f"observation {observations[row]} that is not in {space}")
    features = actor.features(observations)
    _check_finite(features, active, "observation")
    return features


def _check_finite(values: Any, active: Any, what: str) -> None:
    if values.dtype == object or math.isfinite(np.vdot(values, values)):  # Fast; False also if squares overflow.
        return
    for bad in map(tuple, np.argwhere(~np.isfinite(values))):
        raise SlotError(int(active[bad[0]]), f"{what} {values[bad]}")


def _check_rewards(rewards: Any, active: Any, largest: float) -> None:
    if np.vdot(rewards, rewards) < min(largest**2, math.inf):  # Fast; False for NaN, and if squares overflow.
        return
    _check_finite(rewards, active, "reward")
    row = int(np.abs(rewards).argmax())
    if abs(rewards[row]) > largest:
        raise SlotError(
            int(active[row]),
            f"reward {rewards[row]:g} that does not fit in 32 bits, in which agents learn,",
            SCALE_REWARDS,
        )


@cache
def _blas() -> ThreadpoolController:
    """The libraries of NumPy's matrix products; finding them takes a millisecond."""
    return ThreadpoolController()
