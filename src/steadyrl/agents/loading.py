"""Agents from files and run folders."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from steadyrl.agents.networks.description import CUSTOM
from steadyrl.agents.registry import AGENTS
from steadyrl.agents.settings import AgentSettings
from steadyrl.envs import spaces
from steadyrl.envs.description import source_from
from steadyrl.envs.reward_wrappers import refuse_clipped_rewards
from steadyrl.envs.running_statistics import refuse_running_statistics
from steadyrl.envs.source import AnyEnv, Source
from steadyrl.rollouts.simulators.choose import UnsupportedEngineError
from steadyrl.training import checkpoint
from steadyrl.training.checkpoint import AgentFile
from steadyrl.training.run_folder import read_agent

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

_MAX_LAYERS = 100
"""Of a network in a file."""


def load(path: str | os.PathLike[str], env: AnyEnv | None = None, network: Callable[[int], Any] | None = None) -> Agent:
    """The agent in a file or run folder, in `env` or else in the environment that it was saved with, if possible.

    A file may come from anybody, so only environments that installed packages have registered with Gymnasium are made
    from it. For others the agent's `env` is None: pass `env`. A file has no code of networks either: for an agent that
    was made with a function as `network`, pass that function.
    """
    return from_file(read_agent(Path(path)), env, network)


def from_file(file: AgentFile, env: AnyEnv | None = None, network: Callable[[int], Any] | None = None) -> Agent:
    """The agent in a file that was read; see `load`."""
    path, header = file.path, file.header
    if header["agent"] not in AGENTS:
        raise ValueError(f"{path} holds an agent {header['agent']!r} that this version does not know.")
    agent = AGENTS[header["agent"]].__new__(AGENTS[header["agent"]])
    agent.network_function = network
    try:
        own = spaces.from_json(header["observation_space"]), spaces.from_json(header["action_space"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Settings in older files have their old names.
            settings = agent.settings_of(header["settings"])
    except ValueError as error:
        raise ValueError(f"{path} does not hold a {header['agent']} agent: {error}") from None
    custom = getattr(settings, "network", None) == CUSTOM
    if custom and network is None:
        raise ValueError(f"{path} holds an agent whose network is a function: pass it, as load(path, network=...).")
    if network is not None and not custom:
        raise ValueError(f"{path} holds an agent whose network is no function. Leave network out.")
    _check_sizes(file, own, settings)
    source = Source.of(env) if env is not None else source_from(header["env"])
    refuse_running_statistics(source.env)
    refuse_clipped_rewards(source.env)
    if source.env is not None and not all(map(spaces.same_spaces, source.spaces, own)):
        raise ValueError(
            "{} was trained on {} and {}, but this environment has {} and {}. Pass one with the same spaces.".format(
                path, *map(spaces.shown_space, (*own, *source.spaces))
            )
        )
    try:
        try:
            agent._set_up(source, *own, settings, header["seed"], header["engine"], untrained=False)
        except UnsupportedEngineError:
            # Another environment may take another engine; the same one without its engine's package leaves a policy.
            source, engine = (source, "auto") if env is not None else (Source(None, None), header["engine"])
            agent._set_up(source, *own, settings, header["seed"], engine, untrained=False)
    except ValueError as error:
        raise ValueError(f"{path} does not hold a {header['agent']} agent: {error}") from None
    checkpoint.restore(agent, file)
    return agent


def _check_sizes(file: AgentFile, own: tuple[gym.Space[Any], gym.Space[Any]], settings: AgentSettings) -> None:
    """Refuse a header that asks for more than the file's own arrays, before anything of that size is built.

    Every input and output has at least one parameter, in networks and tables. The widths of hidden layers are compared
    when shapes are, but each layer takes time.
    """
    numbers = sum(array.size for array in file.arrays.values())
    layers = max((len(value) for value in vars(settings).values() if isinstance(value, tuple)), default=0)
    if max(map(spaces.feature_count, own)) > numbers or layers > _MAX_LAYERS:
        raise checkpoint.altered(file.path, file.header)
