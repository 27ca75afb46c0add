"""`steadyrl.film`: films of the worst, median and best of many episodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym

from steadyrl.agents.agent import Agent
from steadyrl.envs.resolve import EnvLike
from steadyrl.evaluation.agent_looks import agent_colours, agent_title
from steadyrl.evaluation.evaluate import check, check_spaces
from steadyrl.evaluation.film.files import check_film_file
from steadyrl.evaluation.film.rendering_env import rendering_env
from steadyrl.evaluation.film.scenes import MAX_BYTES, Film, Take, record_scenes
from steadyrl.evaluation.film.selection import Wanted, Which, parse_which, select
from steadyrl.evaluation.play import play_policy

LAYOUTS = ("side by side", "one by one")


def film(
    policy: Any,
    env: EnvLike,
    out: str | Path | None = None,
    *,
    episodes: int = 200,
    which: Which = ("worst", "median", "best"),
    layout: str | None = None,
    deterministic: bool = False,
    seed: int = 0,
    width: int | None = None,
    fps: float = 15,
    seconds: float = 12,
    max_bytes: int | None = MAX_BYTES,
) -> Film:
    """Play many episodes, choose some by the rank of their return, and film exact replays of them.

    The episodes are those that `evaluate` plays with the same seed, except for agents trained in EnvPool: those are
    filmed in Gymnasium's simulator. Pictures show the return so far, the rank of the episode, and the noise in
    rewards where the environment reports it as `info["reward_noise"]`. An error is raised if a replay has another
    return.

    Example:
        >>> steadyrl.film(agent, "steadyrl/GuardedMaze-v0", "worst.gif", which="worst:5")
        >>> steadyrl.film({"REINFORCE": one, "MG": other}, env, "both.mp4", which=("worst", "median"))

    Args:
        policy: What `evaluate` takes; or a mapping from names to several of them, which are shown side by side.
        env: A Gymnasium id, an environment, or a function that makes one, with a render mode "rgb_array".
        out: The file to write: .gif, .webp, or, with steadyrl[film] installed, .mp4. None for no file.
        episodes: How many to play and rank.
        which: "worst", "median", "best", "worst:5", "best:5", the number of an episode, or several of these.
        layout: "side by side" or "one by one"; by default the first for three episodes or fewer. The episodes of
            several policies are always shown one by one, and the policies side by side.
        deterministic: Whether an agent or `predict` takes its most likely action.
        seed: Of the episodes, as in `evaluate`.
        width: Of the picture of an episode, in pixels; 400 for one, else 240. Captions need 200.
        fps: Pictures a second, at most; fewer if the environment has fewer steps a second.
        seconds: Longer episodes are shown faster, so that they take at most so long.
        max_bytes: The largest file to write as .gif or .webp.
    """
    label = agent_title(policy.name) if isinstance(policy, Agent) else ""
    policies = dict(policy) if isinstance(policy, Mapping) else {label: policy}
    wanted = _checked(policies, env, episodes, which, layout, seed, width, fps, seconds)
    file = None if out is None else check_film_file(out).absolute()  # Environments may change the folder.
    rendering = rendering_env(env)
    try:
        takes = [
            _choose(label, one, rendering, episodes, seed, deterministic, wanted) for label, one in policies.items()
        ]
        made = record_scenes(rendering, _arranged(_coloured(takes, policies), layout), fps, seconds, width)
    finally:
        if rendering is not env:
            rendering.close()
    if file is not None:
        made.save(file, max_bytes)
    return made


def _checked(
    policies: Mapping[str, Any],
    env: EnvLike,
    episodes: int,
    which: Which,
    layout: str | None,
    seed: int,
    width: int | None,
    fps: float,
    seconds: float,
) -> list[Wanted]:
    """What is to be chosen; everything that is wrong is reported before anything is played."""
    if not policies:
        raise ValueError("policy is an empty mapping: name at least one policy.")
    for policy in policies.values():
        check(policy, env, episodes, seed)
    if layout not in (None, *LAYOUTS):
        raise ValueError(f"layout={layout!r}: use 'side by side' or 'one by one'.")
    if width is not None and not 16 <= width <= 4000:
        raise ValueError(f"width={width}: a number of pixels from 16 to 4000 is needed.")
    for name, value in (("fps", fps), ("seconds", seconds)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name}={value}: a number above 0 is needed.")
    return parse_which(which, episodes)


def _choose(
    label: str,
    policy: Any,
    env: gym.Env[Any, Any],
    episodes: int,
    seed: int,
    deterministic: bool,
    wanted: list[Wanted],
) -> list[Take]:
    """Play the episodes of one policy, and choose from them."""
    check_spaces(policy, env)
    played = play_policy(policy, env, episodes, seed, deterministic, gamma=1.0, keep_scripts=True)
    return [
        Take(label, one, episodes, played.scripts[one.episode], float(played.returns[one.episode]))
        for one in select(wanted, played.returns)
    ]


def _coloured(takes: list[list[Take]], policies: Mapping[str, Any]) -> list[list[Take]]:
    """Curves of agents in the colours that they have everywhere."""
    colours = agent_colours(one.name for one in policies.values() if isinstance(one, Agent))
    return [
        [take._replace(colour=colours[one.name]) for take in some] if isinstance(one, Agent) else some
        for some, one in zip(takes, policies.values(), strict=True)
    ]


def _arranged(takes: list[list[Take]], layout: str | None) -> list[tuple[Take, ...]]:
    """Scenes: policies side by side; of a single policy, its episodes as the layout says."""
    if len(takes) > 1:
        return list(zip(*takes, strict=True))
    side_by_side = layout == LAYOUTS[0] or (layout is None and len(takes[0]) <= 3)
    return [tuple(takes[0])] if side_by_side else [(take,) for take in takes[0]]
