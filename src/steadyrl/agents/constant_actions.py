"""A warning for a risk aversion so large that doing always the same counts as better than what was learned."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from steadyrl.base.seeding import play_seeds
from steadyrl.envs.simulator import SlotError
from steadyrl.risk import gini_deviation
from steadyrl.rollouts.collector import FaultyEnvironmentError, Limits, collect
from steadyrl.rollouts.simulators.choose import simulator_for
from steadyrl.training.returns import discounted_returns

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

MIN_EPISODES = 500
"""Of training: before, a policy may be worse than that because it has not learned yet."""
RECORDS = 10
"""The latest, from which the policy's own score is taken."""
MAX_ACTIONS, MAX_PLAYED, MIN_PLAYED = 5, 20, 8
"""Actions that are tried, spread over the space; and episodes of each."""
SHARE = 0.02
"""Of the steps of training, at most, that all this may take."""


@dataclass(frozen=True)
class _ConstantActor:
    """Takes the same action in every step."""

    action: Any
    policy: Any = None

    def features(self, observations: Any) -> Any:
        return observations

    def act(self, features: Any, noise: Any, masks: Any = None) -> Any:
        if masks is not None:  # Not all actions are always allowed.
            raise SlotError(None, "action masks")
        return np.repeat(np.asarray(self.action)[None], len(features), axis=0)

    def to_space(self, actions: Any) -> Any:
        return actions


def warn_if_a_constant_action_is_better(agent: Agent) -> None:
    """Warn if mean - lambda GD of an action that never changes is above that of the trained policy."""
    recent = [record for record in agent.history[-RECORDS:] if "gini_deviation" in record]
    risk_aversion = getattr(agent.settings, "risk_aversion", 0.0)
    if not risk_aversion or isinstance(risk_aversion, tuple) or agent.episodes < MIN_EPISODES or not recent:
        return
    names = ("discounted_return", "gini_deviation", "length")
    if _discount(agent) == 1:
        names = ("return", "undiscounted_gini_deviation", "length")
    mean, deviation, length = (float(np.mean([record[name] for record in recent])) for name in names)
    own, actions = mean - risk_aversion * deviation, _some_actions(agent.action_space)
    episodes = min(int(SHARE * agent.timesteps / (length * len(actions))), MAX_PLAYED)
    if episodes < MIN_PLAYED:
        return
    played = {
        k: returns
        for k, action in enumerate(actions)
        if (returns := _returns(agent, action, episodes, most_steps=int(10 * length) + 100)) is not None
    }
    scores = {k: float(R.mean() - risk_aversion * gini_deviation(R)) for k, R in played.items()}
    if not scores:
        return
    best = max(scores, key=scores.__getitem__)
    noise = 2 * (1 + risk_aversion) * float(played[best].std()) / episodes**0.5
    # A policy that has found this very action still explores a little.
    exploring = 0.1 * (scores[best] - min(scores.values()))
    if scores[best] - noise - exploring > own:
        warnings.warn(
            f"{agent.env_name}: action {np.asarray(actions[best]).tolist()} in every step scores {scores[best]:.4g} "
            f"(mean - lambda GD, risk_aversion={risk_aversion:g}), the trained policy {own:.4g}. Lower "
            "risk_aversion, train longer, or try risk_aversion=0 to see whether the method learns here at all.",
            UserWarning,
            stacklevel=4,
        )


def _some_actions(space: gym.Space[Any]) -> list[Any]:
    if isinstance(space, Discrete):
        chosen = np.linspace(0, int(space.n) - 1, min(int(space.n), MAX_ACTIONS)).round().astype(int)
        return [np.int64(space.start + k) for k in chosen]
    if isinstance(space, MultiDiscrete | MultiBinary):
        low = space.start if isinstance(space, MultiDiscrete) else np.zeros(space.shape, np.int8)
        last = space.nvec - 1 if isinstance(space, MultiDiscrete) else np.ones(space.shape, np.int8)
        return [(low + last * share).round().astype(space.dtype) for share in (0.0, 0.5, 1.0)]
    assert isinstance(space, Box), "see `check_spaces`"
    low, high = (np.nan_to_num(x, neginf=-1.0, posinf=1.0) for x in (space.low, space.high))
    return [(low + (high - low) * share).astype(space.dtype) for share in (0.0, 0.5, 1.0)]


def _returns(agent: Agent, action: Any, episodes: int, most_steps: int) -> Any:
    """[n]: returns, discounted as those whose risk is penalized; None if episodes with this action do not end."""
    engine = "gymnasium" if agent.engine == "compiled" else agent.engine
    simulator = simulator_for(engine, agent.source, episodes)
    actor: Any = _ConstantActor(action)
    try:
        played = collect(simulator, actor, play_seeds(agent.seed, episodes), Limits(agent.env_name, most_steps), True)
    except FaultyEnvironmentError:
        return None
    finally:
        simulator.close()
    return discounted_returns(played.rewards, _discount(agent))


def _discount(agent: Agent) -> float:
    """1 for undiscounted returns, or gamma: nothing else is recorded."""
    return 1.0 if getattr(agent.settings, "risk_discount", agent.gamma) == 1 else agent.gamma
