"""Evaluation episodes of any policy: compiled or in a fast simulator for agents trained there, else one by one."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from steadyrl.agents.agent import Agent
from steadyrl.base.seeding import EvaluationStream, evaluation_stream_seed
from steadyrl.envs.fast_simulator import fast_simulator
from steadyrl.envs.finite import FiniteModel, finite_model, replays_outcomes
from steadyrl.envs.simulator import Simulator
from steadyrl.evaluation.progress import progress_bar
from steadyrl.rollouts.acting import Actor
from steadyrl.rollouts.collector import Limits, collect, iterate_steps, stacked_metrics
from steadyrl.rollouts.compiled import outcomes_of
from steadyrl.rollouts.episodes import Episodes
from steadyrl.rollouts.simulators.single import SingleEnvSimulator
from steadyrl.training.returns import discounted_returns

MAX_STEPS = 1_000_000
"""An episode of more steps is an error."""
SIDE_BY_SIDE = 32
"""Number of episodes that a fast simulator plays at a time; only their rewards and metrics are kept."""

COMPILED_STEPS = 1_000_000
"""Number of steps that a compiled program plays at a time, all in memory, counting the longest episodes possible."""


class Script(NamedTuple):
    """What it takes to play an episode again in its Gymnasium environment."""

    seed: int
    actions: Sequence[Any]
    """In the form of the action space, one for each step."""
    options: dict[str, Any] | None = None
    """Of `reset`."""


class Played(NamedTuple):
    """What is kept of n episodes."""

    returns: np.ndarray
    """[n]."""
    discounted_returns: np.ndarray
    """[n]."""
    metrics: dict[str, np.ndarray]
    """name -> [n]: the metrics of the environment."""
    scripts: tuple[Script, ...] = ()
    """[n], if they were to be kept."""

    @classmethod
    def of(cls, rewards: np.ndarray, gamma: float, metrics: dict[str, np.ndarray]) -> Played:
        """From the rewards of all steps, [n, T]."""
        return cls(rewards.sum(axis=-1), discounted_returns(rewards, gamma), metrics)

    def picked(self, numbers: Sequence[int]) -> Played:
        """These episodes alone."""
        rows = np.asarray(numbers, int)
        metrics = {name: values[rows] for name, values in self.metrics.items()}
        scripts = tuple(self.scripts[number] for number in numbers) if self.scripts else ()
        return Played(self.returns[rows], self.discounted_returns[rows], metrics, scripts)

    @classmethod
    def joined(cls, parts: Sequence[Played]) -> Played:
        """One after the other."""
        return cls(
            np.concatenate([part.returns for part in parts]),
            np.concatenate([part.discounted_returns for part in parts]),
            {name: np.concatenate([part.metrics[name] for part in parts]) for name in parts[0].metrics},
            tuple(script for part in parts for script in part.scripts),
        )


class _How(NamedTuple):
    """How episodes are played, and what is kept of them."""

    deterministic: bool
    gamma: float
    keep_scripts: bool


def play_policy(
    policy: Any,
    env: gym.Env[Any, Any],
    episodes: int,
    seed: int,
    deterministic: bool,
    gamma: float,
    keep_scripts: bool = False,
) -> Played:
    """Play whole episodes; episode i does not depend on how many there are, and its seed not on the policy.

    With `keep_scripts` only where the environment itself can play them again; that rules out EnvPool.
    """
    return _play(policy, env, range(episodes), episodes, seed, _How(deterministic, gamma, keep_scripts))


def replay_numbered(agent: Agent, env: gym.Env[Any, Any], numbers: Sequence[int], episodes: int, seed: int) -> Played:
    """Some of the episodes of `play_policy`, by their numbers, with scripts.

    The others are played only where an episode depends on those before it, and in compiled programs, which exist for
    so many episodes already.
    """
    return _play(agent, env, numbers, episodes, seed, _How(deterministic=False, gamma=agent.gamma, keep_scripts=True))


def _play(policy: Any, env: gym.Env[Any, Any], numbers: Sequence[int], episodes: int, seed: int, how: _How) -> Played:
    """The episodes with these numbers, out of so many."""
    policy_seed = evaluation_stream_seed(seed, EvaluationStream.POLICY)
    if isinstance(policy, Agent) and (replays_outcomes(env) or not how.keep_scripts):
        compiled = _play_compiled(policy, env, episodes, policy_seed, how)
        if compiled is not None:
            return compiled.picked(numbers)
    seed_of = partial(evaluation_stream_seed, seed, EvaluationStream.EPISODES)
    if isinstance(policy, Agent):
        seeds = [seed_of(number) for number in numbers]
        in_jax = _play_in_jax(policy, env, seeds, how)
        if in_jax is not None:
            return in_jax
        simulator = _fast(policy, env, min(len(seeds), SIDE_BY_SIDE), how.keep_scripts)
        if simulator is not None:
            actor = _RowwiseActor(**vars(policy.actor()))
            return _play_fast(actor, simulator, str(env), seeds, how)
    acts = _PolicyActs(_act_function(policy, env.action_space, policy_seed, how.deterministic))
    # The random stream of a policy runs through all its episodes.
    return _play_one_by_one(acts, env, [seed_of(number) for number in range(max(numbers) + 1)], how).picked(numbers)


def _play_compiled(agent: Agent, env: gym.Env[Any, Any], episodes: int, seed: int, how: _How) -> Played | None:
    model = finite_model(env)
    portion = max(1, COMPILED_STEPS // model.mdp.horizon) if model is not None else episodes
    parts = []
    with progress_bar(episodes) as advance:
        for first in range(0, episodes, portion):
            count = min(portion, episodes - first)
            played = agent.play_compiled(env, count, seed, how.deterministic, first)
            if played is None:
                return None
            rewards = np.asarray(played.rewards, dtype=np.float64)
            one = Played.of(rewards, how.gamma, played.episode_metrics)
            if how.keep_scripts and model is not None:
                one = one._replace(scripts=_compiled_scripts(model, played, seed))
            parts.append(one)
            advance(count)
    return Played.joined(parts)


def _play_in_jax(agent: Agent, env: gym.Env[Any, Any], seeds: list[int], how: _How) -> Played | None:
    in_jax = agent.play_in_jax(env, seeds, how.deterministic)
    if in_jax is None:
        return None
    actor, parts, first = agent.actor(), [], 0
    with progress_bar(len(seeds)) as advance:
        for played in in_jax:
            count = len(played.mask)
            parts.append(_without_padding(actor, played, seeds[first : first + count], how))
            advance(count)
            first += count
    return Played.joined(parts)


def _compiled_scripts(model: FiniteModel, episodes: Episodes, seed: int) -> tuple[Script, ...]:
    """Compiled programs have random numbers of their own, so the outcome of each step is part of the script."""
    outcomes, lengths = outcomes_of(model.mdp, episodes), episodes.mask.sum(axis=1).astype(int)
    rows = zip(episodes.actions, outcomes, lengths, strict=True)
    return tuple(Script(seed, actions[:n].tolist(), {"outcomes": drawn[:n].tolist()}) for actions, drawn, n in rows)


def _fast(agent: Agent, env: gym.Env[Any, Any], size: int, same_episodes: bool) -> Simulator | None:
    """The fast simulator of the environment, if the agent was trained in it."""
    fast = fast_simulator(env)
    if fast is None or fast.engine != agent.engine or fast.unsupported is not None:
        return None
    if same_episodes and not fast.same_episodes:
        return None
    return fast.make(size)


def _play_fast(actor: Actor, simulator: Simulator, env_name: str, seeds: list[int], how: _How) -> Played:
    parts = []
    with closing(simulator), progress_bar(len(seeds)) as advance:
        for start in range(0, len(seeds), simulator.size):
            batch = seeds[start : start + simulator.size]
            limits = Limits(env_name, MAX_STEPS, first_episode=start)
            episodes = collect(simulator, actor, batch, limits, how.deterministic)
            parts.append(_without_padding(actor, episodes, batch, how))
            advance(len(batch))
    return Played.joined(parts)


def _without_padding(actor: Actor, episodes: Episodes, seeds: Sequence[int], how: _How) -> Played:
    """The rounding of a sum depends on the padding, and so on how many episodes were played together."""
    rewards = [row[mask > 0] for row, mask in zip(episodes.rewards, episodes.mask, strict=True)]
    single = [Played.of(row[None], how.gamma, {}) for row in rewards]
    scripts = _scripts(actor, episodes, seeds) if how.keep_scripts else ()
    return Played.joined(single)._replace(metrics=episodes.episode_metrics, scripts=scripts)


def _scripts(actor: Actor, episodes: Episodes, seeds: Sequence[int]) -> tuple[Script, ...]:
    rows = zip(seeds, episodes.actions, episodes.mask, strict=True)
    return tuple(Script(seed, actor.to_space(actions[mask > 0])) for seed, actions, mask in rows)


@dataclass(frozen=True)
class _RowwiseActor(Actor):
    """Acts on one observation at a time.

    The rounding of a matrix product depends on its number of rows, so an action in a batch would depend on how many
    episodes are played, and physics amplify the difference.
    """

    def act(self, features: Any, noise: Any, masks: Any = None) -> Any:
        """See `Actor`."""
        each = ([None] * len(features) if x is None else x[:, None] for x in (features, noise, masks))
        rows = enumerate(zip(*each, strict=True))
        return np.concatenate([super(_RowwiseActor, self._of_row(i)).act(*row) for i, row in rows])

    def _of_row(self, i: int) -> _RowwiseActor:
        """The actor of one of the episodes."""
        return self if self.states is None else replace(self, states=self.states.of([i]))


def _play_one_by_one(acts: _PolicyActs, env: gym.Env[Any, Any], seeds: list[int], how: _How) -> Played:
    simulator, parts, metrics = SingleEnvSimulator(env), [], []
    with progress_bar(len(seeds)) as advance:
        for index, seed in enumerate(seeds):
            acts.episode_start = True
            limits = Limits(str(env), MAX_STEPS, first_episode=index)
            rewards, actions = [], []
            for step in iterate_steps(simulator, lambda: acts, None, [seed], limits):
                rewards.append(step.result.rewards[0])  # Observations are not kept: they could fill the memory.
                if how.keep_scripts:
                    actions.append(copy.deepcopy(step.actions[0]))  # A policy may reuse its array.
            one = Played.of(np.array([rewards]), how.gamma, {})
            parts.append(one._replace(scripts=(Script(seed, actions),) if how.keep_scripts else ()))
            metrics.append(step.result.episode_metrics[0])
            advance(1)
    return Played.joined(parts)._replace(metrics=stacked_metrics(metrics, Limits(str(env), MAX_STEPS)))


class _PolicyActs:
    """Any policy as `Acts`, for one episode at a time with the environment's own observations."""

    def __init__(self, act: Callable[[Any, bool, Any], Any]) -> None:
        self._act, self.episode_start = act, True

    def features(self, observations: Any) -> Any:
        """Unchanged."""
        return observations

    def act(self, features: Any, noise: Any, masks: Any = None) -> Any:
        """[action]."""
        action = self._act(features[0], self.episode_start, None if masks is None else masks[0])
        self.episode_start = False
        return [action]

    def to_space(self, actions: Any) -> Any:
        """Unchanged."""
        return actions


def _act_function(
    policy: Any, space: gym.Space[Any], seed: int, deterministic: bool
) -> Callable[[Any, bool, Any], Any]:
    """`act(observation, episode_start, action_mask)` of any policy, with None for no mask.

    An agent's actions are not checked: they are in its space.
    """
    if isinstance(policy, Agent):
        act = policy.act_function(seed, deterministic)
        return lambda observation, episode_start, mask: act(observation, mask, episode_start)
    if callable(getattr(policy, "predict", None)):
        return _predict_function(policy, space, deterministic)
    return lambda observation, _, mask: _checked_action(policy(observation), space)


def _predict_function(policy: Any, space: gym.Space[Any], deterministic: bool) -> Callable[[Any, bool, Any], Any]:
    """Acts by `predict`, passing a recurrent policy its state from step to step, anew in each episode.

    Masks go to a `predict` that takes `action_masks`, as that of sb3-contrib does.
    """
    state: Any = None
    takes_masks = _takes_masks(policy.predict)

    def act(observation: Any, episode_start: bool, mask: Any) -> Any:
        nonlocal state
        masks = {"action_masks": mask} if takes_masks and mask is not None else {}
        prediction = policy.predict(
            observation,
            state=None if episode_start else state,
            episode_start=np.array([episode_start]),
            deterministic=deterministic,
            **masks,
        )
        if not (isinstance(prediction, tuple) and len(prediction) == 2):
            raise TypeError(
                f"predict of {type(policy).__name__} returned a {type(prediction).__name__}, not "
                "(action, state). Return both, with None for the state of a policy that has none; "
                "or pass a function of the observation."
            )
        action, state = prediction
        return _checked_action(action, space)

    return act


def _takes_masks(predict: Any) -> bool:
    try:
        return "action_masks" in inspect.signature(predict).parameters
    except (TypeError, ValueError):  # It has no signature that can be read.
        return False


def _checked_action(action: Any, space: gym.Space[Any]) -> Any:
    """`action` as the space holds it: an int in Discrete, else an array of the space's precision."""
    valid = action
    if isinstance(space, gym.spaces.Discrete):
        array = _array(action)
        if array.size == 1 and array.dtype.kind in "iub":
            valid = int(array.item())
    elif isinstance(space, gym.spaces.Box | gym.spaces.MultiDiscrete | gym.spaces.MultiBinary):
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
    except ValueError:  # Ragged, such as an (action, state) pair: no space contains it, which is reported above.
        return np.asarray(action, dtype=object)
