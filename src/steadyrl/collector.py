"""From a simulator and a policy to whole episodes.

Episodes are assigned before they start and always played to their end: taking "the first n to finish" would
favour short episodes and falsify every measure of dispersion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from threadpoolctl import ThreadpoolController

from steadyrl.behaviour import Behaviour, Noise
from steadyrl.episodes import Episodes, FaultyEnvironmentError, facts_of
from steadyrl.simulators.simulator import Simulator, SlotError, Steps


class Moment(NamedTuple):
    """One step of the k episodes that were still going on."""

    slots: Any
    seen: Any
    """What `behaviour.see` made of the observations before the step."""
    actions: Any
    """The policy's own, before they were clipped."""
    steps: Steps
    seen_after: Any
    over: Any
    """[k] bool: the episode is at its end, or its time limit."""


class Ends(NamedTuple):
    """How each episode of a wave ended."""

    last_seen: dict[int, Any]
    terminated: dict[int, bool]
    facts: dict[int, dict[str, float]]


def collect(
    simulator: Simulator,
    behaviour: Behaviour,
    seeds: Sequence[int],
    name: str,
    longest: int,
    deterministic: bool = False,
    first: int = 0,
) -> Episodes:
    """One whole episode from each seed, as many side by side as the simulator has room for.

    Observations are what `behaviour.see` makes of them and actions the policy's own, before they were clipped. For
    errors there are `name`, the environment's, `longest`, the number of steps after which an episode counts as endless,
    and `first`, the number of the first episode.
    """
    with small_products():
        waves = [
            _wave(simulator, behaviour, seeds[i : i + simulator.size], first + i, name, longest, deterministic)
            for i in range(0, len(seeds), simulator.size)
        ]
    everything = [moment for moments, _ in waves for moment in moments]
    counts = [len(moment.slots) for moment in everything]
    offsets = [wave * simulator.size for wave, (moments, _) in enumerate(waves) for _ in moments]
    rows = np.concatenate([moment.slots for moment in everything]) + np.repeat(offsets, counts)
    columns = np.repeat([t for moments, _ in waves for t in range(len(moments))], counts)

    def filled(steps: Any) -> Any:
        array = np.zeros((len(seeds), columns.max() + 1, *steps.shape[1:]), steps.dtype)
        array[rows, columns] = steps
        return array

    ended = [ends for _, ends in waves]
    return Episodes(
        observations=filled(np.concatenate([moment.seen for moment in everything])),
        actions=filled(np.concatenate([moment.actions for moment in everything])),
        rewards=filled(np.concatenate([moment.steps.rewards for moment in everything])),
        mask=filled(np.ones(len(rows))),
        last_observations=np.stack([ends.last_seen[slot] for ends in ended for slot in sorted(ends.last_seen)]),
        terminated=np.array([ends.terminated[slot] for ends in ended for slot in sorted(ends.terminated)]),
        facts=facts_of([ends.facts[slot] for ends in ended for slot in sorted(ends.facts)]),
    )


def _wave(
    simulator: Simulator,
    behaviour: Behaviour,
    seeds: Sequence[int],
    first: int,
    name: str,
    longest: int,
    deterministic: bool,
) -> tuple[list[Moment], Ends]:
    """Episodes side by side, until the last of them is over."""
    moments: list[Moment] = []
    ends = Ends({}, {}, {})
    noise = None if deterministic else Noise(behaviour.policy, seeds)
    for moment in moments_of(simulator, lambda: behaviour, noise, seeds, first, name, longest):
        moments.append(moment)
        if moment.over.any():
            _note_ends(ends, moment)
    return moments, ends


def moments_of(
    simulator: Simulator,
    behaviour: Callable[[], Behaviour],
    noise: Noise | None,
    seeds: Sequence[int],
    first: int,
    name: str,
    longest: int,
) -> Iterator[Moment]:
    """An episode from each seed, side by side, step by step; `behaviour` is asked anew at each step."""
    playing, t = np.arange(len(seeds)), 0
    try:
        seen = _see(behaviour(), simulator.observation_space, simulator.reset(seeds), playing)
        while playing.size:
            if t == longest:
                remedy = "Give the environment a time limit (max_episode_steps=...), or raise longest_episode."
                raise SlotError(int(playing[0]), "no end", remedy)
            acting = behaviour()
            actions = acting.act(seen, None if noise is None else noise.at(t, playing))
            t += 1
            steps = simulator.step(playing, acting.policy.to_space(actions))
            _check_finite(steps.rewards, playing, "reward")
            after = _see(acting, simulator.observation_space, steps.observations, playing)
            over = steps.terminated | steps.truncated
            yield Moment(playing, seen, actions, steps, after, over)
            playing, seen = (playing[~over], after[~over]) if over.any() else (playing, after)
    except SlotError as error:
        episode = f"one of the episodes {first} to {first + len(seeds) - 1}"
        if error.slot is not None:
            episode = f"episode {first + error.slot} (seed {seeds[error.slot]})"
        raise FaultyEnvironmentError(f"{name}: {error} at step {t} of {episode}. {error.remedy}") from error.__cause__


def small_products() -> AbstractContextManager[Any]:
    """Within it NumPy's products have one thread: those of a policy take a hundred times as long with several."""
    limit: AbstractContextManager[Any] = _linear_algebra().limit(limits=1, user_api="blas")
    return limit


def _see(behaviour: Behaviour, space: gym.Space[Any], observations: Any, playing: Any) -> Any:
    """What the policy sees of the observations, which an environment may have got wrong."""
    if isinstance(space, gym.spaces.Discrete):
        outside = (observations < space.start) | (observations >= space.start + space.n)
        if outside.any():
            row = int(outside.argmax())
            raise SlotError(int(playing[row]), f"observation {observations[row]} that is not in {space}")
    seen = behaviour.see(observations)
    _check_finite(seen, playing, "observation")
    return seen


def _check_finite(values: Any, playing: Any, what: str) -> None:
    if math.isfinite(np.vdot(values, values)):  # The quickest look, and right unless finite squares overflow.
        return
    for bad in map(tuple, np.argwhere(~np.isfinite(values))):
        raise SlotError(int(playing[bad[0]]), f"{what} {values[bad]}")


def _note_ends(ends: Ends, moment: Moment) -> None:
    for row in np.flatnonzero(moment.over):
        slot = int(moment.slots[row])
        ends.last_seen[slot] = moment.seen_after[row]
        ends.terminated[slot] = bool(moment.steps.terminated[row])
        ends.facts[slot] = moment.steps.facts.get(slot, {})


@cache
def _linear_algebra() -> ThreadpoolController:
    """The libraries behind NumPy's products; finding them takes a millisecond."""
    return ThreadpoolController()
