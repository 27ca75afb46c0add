"""From a simulator and a policy to whole episodes.

Episodes are assigned before they start and always played to their end: taking "the first n to finish" would
favour short episodes and falsify every measure of dispersion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from steadyrl.behaviour import Behaviour, Noise
from steadyrl.episodes import Episodes, facts_of
from steadyrl.simulators.simulator import Simulator, SlotError, Steps


class FaultyEnvironmentError(RuntimeError):
    """The environment did what no environment may do."""


class Moment(NamedTuple):
    """One step of the episodes that were still going on."""

    slots: Any
    seen: Any
    actions: Any
    rewards: Any


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
) -> Episodes:
    """One whole episode from each seed, as many side by side as the simulator has room for.

    Observations are what `behaviour.see` makes of them and actions the policy's own, before they were clipped. `name`
    is the environment's, for errors; so is `longest`, the number of steps after which an episode counts as endless.
    """
    waves = [
        _wave(simulator, behaviour, seeds[first : first + simulator.size], first, name, longest, deterministic)
        for first in range(0, len(seeds), simulator.size)
    ]
    T = max(len(moments) for moments, _ in waves)
    rows, columns, offset = [], [], 0
    for moments, ends in waves:
        rows += [moment.slots + offset for moment in moments]
        columns += [np.full(len(moment.slots), t) for t, moment in enumerate(moments)]
        offset += len(ends.facts)
    everything = [moment for moments, _ in waves for moment in moments]
    where = np.concatenate(rows), np.concatenate(columns)

    def filled(steps: list[Any], dtype: Any = None) -> Any:
        flat = np.concatenate(steps)
        array = np.zeros((len(seeds), T, *flat.shape[1:]), dtype or flat.dtype)
        array[where] = flat
        return array

    ended = [ends for _, ends in waves]
    return Episodes(
        observations=filled([moment.seen for moment in everything]),
        actions=filled([moment.actions for moment in everything]),
        rewards=filled([moment.rewards for moment in everything], np.float64),
        mask=filled([np.ones(len(row)) for row in rows]),
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

    def fault(slot: int, what: str, remedy: str = "Mend the environment.") -> FaultyEnvironmentError:
        where = f"step {len(moments)} of episode {first + slot} (seed {seeds[slot]})"
        return FaultyEnvironmentError(f"{name}: {what} at {where}. {remedy}")

    moments: list[Moment] = []
    ends = Ends({}, {}, {})
    noise = Noise(behaviour.policy, seeds)
    playing = np.arange(len(seeds))
    try:
        seen = behaviour.see(simulator.reset(seeds))
        while playing.size:
            if problem := _not_finite(seen, "observation"):
                raise fault(playing[problem[0]], problem[1])
            if len(moments) == longest:
                remedy = "Give the environment a time limit (max_episode_steps=...), or raise longest_episode."
                raise fault(playing[0], "no end", remedy)
            actions = behaviour.act(seen, None if deterministic else noise.at(len(moments), playing))
            steps = simulator.step(playing, behaviour.policy.to_space(actions))
            if problem := _not_finite(steps.rewards, "reward"):
                raise fault(playing[problem[0]], problem[1])
            moments.append(Moment(playing, seen, actions, steps.rewards))
            seen = behaviour.see(steps.observations)
            over = steps.terminated | steps.truncated
            if over.any():
                _note_ends(ends, playing, seen, steps, over)
                playing, seen = playing[~over], seen[~over]
    except SlotError as error:
        raise fault(error.slot, str(error)) from error.__cause__
    return moments, ends


def _note_ends(ends: Ends, playing: Any, seen: Any, steps: Steps, over: Any) -> None:
    for row in np.flatnonzero(over):
        slot = int(playing[row])
        ends.last_seen[slot] = seen[row]
        ends.terminated[slot] = bool(steps.terminated[row])
        ends.facts[slot] = steps.facts.get(slot, {})


def _not_finite(values: Any, what: str) -> tuple[int, str] | None:
    """Which row holds a NaN or an infinity, and what to say of it."""
    if math.isfinite(values.sum()):  # One pass, and right unless finite numbers add up to infinity.
        return None
    bad = np.argwhere(~np.isfinite(values))
    return (int(bad[0][0]), f"{what} {values[tuple(bad[0])]}") if len(bad) else None
