"""`steadyrl.from_sb3`: an agent that goes on from what a Stable-Baselines3 model has learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, MultiBinary

from steadyrl.agents.dqn import DQN
from steadyrl.agents.mean_gini import MeanGini
from steadyrl.agents.mvpi import MVPI
from steadyrl.agents.networks import ActionRange, NormalisedValue
from steadyrl.agents.networks.normalised_value import NormalisedParameters
from steadyrl.agents.networks.running_scale import RunningScale
from steadyrl.agents.ppo import PPO
from steadyrl.agents.sb3.environment import episodes_of, own_source
from steadyrl.agents.sb3.normalization import Scales
from steadyrl.agents.sb3.parameters import Networks, read_networks
from steadyrl.agents.sb3.settings import settings_of
from steadyrl.agents.td3 import TD3, Targets
from steadyrl.base.settings import canonical
from steadyrl.envs import spaces
from steadyrl.envs.running_statistics import refuse_running_statistics
from steadyrl.envs.source import AnyEnv, Source
from steadyrl.training.algorithm import Learner

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

KINDS = {"PPO": "PPO", "A2C": "A2C", "DQN": "DQN", "TD3": "TD3", "MaskablePPO": "PPO"}
"""Algorithms whose models can be taken over -> what they are. That of sb3-contrib is a PPO: masks are no parameters."""


def from_sb3(
    model: Any,
    env: AnyEnv | None = None,
    *,
    vec_normalize: Any = None,
    risk_aversion: float | None = None,
    seed: int = 0,
    engine: str = "auto",
    **settings: Any,
) -> Agent:
    """An agent with the networks of a Stable-Baselines3 PPO, A2C, DQN or TD3, to evaluate, to export and to fine-tune.

    Or with those of sb3-contrib's MaskablePPO: it gets the masks of the environment, as any agent does.

    Example:
        >>> model = stable_baselines3.PPO.load("cartpole.zip")
        >>> agent = steadyrl.from_sb3(model, "CartPole-v1", risk_aversion=1.0)
        >>> agent.learn(total_timesteps=50_000)

    Policy, values, target networks, log_std, the statistics of VecNormalize and the settings that mean the same here
    are taken over; the state of optimizers and the replay buffer are not. Its actions are those of
    `model.predict(..., deterministic=True)`, of observations before they are normalized.

    Args:
        model: The model. It is not changed, and not needed afterwards.
        env: Where the agent learns, as for any agent; by default the model's own environment, if it has one in this
            process. Without one, the agent acts, but `learn` needs one.
        vec_normalize: The VecNormalize that it was trained with; by default the model's own, if it has one.
        risk_aversion: lambda. If it is not 0, the agent is a `MeanGini` for PPO and A2C, and an `MVPI` for DQN and
            TD3; else a `PPO`, `DQN` or `TD3`.
        seed: Seed of further training.
        engine: What simulates episodes, as for any agent.
        **settings: Settings of the agent, in place of those of the model.
    """
    kind = _kind(model)
    if isinstance(risk_aversion, tuple | list):
        raise ValueError(
            f"risk_aversion={risk_aversion}: it cannot be a range, as a model's networks have no input for a lambda. "
            "Pass one number."
        )
    _check_spaces(kind, model)
    networks = read_networks(kind, model.policy)
    if vec_normalize is None and hasattr(model, "get_vec_normalize_env"):
        vec_normalize = model.get_vec_normalize_env()
    scales = Scales.of(vec_normalize)
    given = {**settings_of(kind, model), "hidden": networks.hidden, "activation": networks.activation, "network": "mlp"}
    if kind in ("PPO", "A2C"):
        given |= {"squash_mean": False, "normalise_observations": scales.moments is not None}
    agent_type = _agent_type(kind, bool(risk_aversion))
    if risk_aversion:  # What it is chosen by: see `Agent.choice`.
        given |= {agent_type.choice: "ppo" if agent_type is MeanGini else kind.lower(), "risk_aversion": risk_aversion}
    settings = {**given, **canonical(settings, (agent_type.settings_class(given),))}
    agent = _new_agent(agent_type, model, env, seed, engine, settings)
    take_over = _actor_critic if kind in ("PPO", "A2C") else _action_values if kind == "DQN" else _twin_critics
    agent.learner = _checked(agent.learner, take_over(agent, networks, scales))
    agent.timesteps = int(getattr(model, "num_timesteps", 0))
    if agent.timesteps:
        agent.iterations, agent.episodes = 1, episodes_of(model)
    return agent


def _kind(model: Any) -> str:
    names = [parent.__name__ for parent in type(model).__mro__]
    has_parameters = hasattr(getattr(model, "policy", None), "state_dict")
    # DDPG is a TD3 with one critic.
    if "DDPG" in names or not any(name in KINDS for name in names) or not has_parameters:
        raise TypeError(
            f"a {names[0]} cannot be taken over: from_sb3 takes a {', '.join(KINDS)} of Stable-Baselines3 or "
            "sb3-contrib. Any model with predict can be passed to steadyrl.evaluate as it is."
        )
    return next(KINDS[name] for name in names if name in KINDS)


def _check_spaces(kind: str, model: Any) -> None:
    spaces.check_spaces(model.observation_space, model.action_space)
    if isinstance(model.action_space, MultiBinary):
        raise ValueError(f"this {kind} has {model.action_space} actions, and only other spaces can be taken over.")
    if getattr(model, "use_sde", False):
        raise ValueError(f"this {kind} explores by the state (use_sde=True), which is not supported here.")


def _agent_type(kind: str, averse: bool) -> type[Agent]:
    if kind in ("PPO", "A2C"):
        return MeanGini if averse else PPO
    return MVPI if averse else DQN if kind == "DQN" else TD3


def _new_agent(
    agent_type: type[Agent], model: Any, env: AnyEnv | None, seed: int, engine: str, settings: dict[str, Any]
) -> Agent:
    """An untrained agent with the model's spaces and the right networks."""
    own = model.observation_space, model.action_space
    source = own_source(model) if env is None else Source.of(env)
    refuse_running_statistics(source.env)
    if source.env is not None and not all(map(spaces.same_spaces, source.spaces, own)):
        trained, here = (" and ".join(map(spaces.shown_space, pair)) for pair in (own, source.spaces))
        raise ValueError(
            f"the model was trained on {trained}, but this environment has {here}. Pass one with the same spaces."
        )
    agent = agent_type.__new__(agent_type)
    agent._set_up(source, *own, agent_type.settings_of(settings), seed, engine)
    return agent


def _actor_critic(agent: Agent, networks: Networks, scales: Scales) -> Learner:
    """PPO and A2C. Actions are in halves of their range here, and in the space's units there."""
    theta: Any = networks.policy
    if isinstance(agent.action_space, Box):
        actions = ActionRange.of(agent.action_space)
        low, high = np.asarray(actions.low), np.asarray(actions.high)
        middle, half = ((low + high) / 2, (high - low) / 2) if actions.bounded else (0.0, np.ones_like(low))
        *hidden, last = networks.policy
        last = {"weight": last["weight"] / half, "bias": (last["bias"] - middle) / half}
        assert networks.log_std is not None, "a normal distribution has one"
        theta = {"mean": [*hidden, last], "log_std": networks.log_std - np.log(half)}
    (phi,) = networks.values
    if isinstance(cast(Any, agent.algorithm).value, NormalisedValue):
        # Values are scale.std times outputs. With an episode seen, the next batch changes the scale and not the values.
        scale = RunningScale(jnp.float32(0), jnp.float32(scales.reward**2), jnp.float32(1))
        values: Any = NormalisedParameters(phi, scale)
    else:
        values = scales.in_rewards(phi)
    return agent.learner._replace(theta=theta, phi=values, seen=scales.moments or agent.learner.seen)


def _action_values(agent: Agent, networks: Networks, scales: Scales) -> Learner:
    """DQN."""
    theta, targets = (scales.in_rewards(scales.folded(layers)) for layers in (networks.policy, *networks.targets))
    return agent.learner._replace(theta=theta, targets=targets)


def _twin_critics(agent: Agent, networks: Networks, scales: Scales) -> Learner:
    """TD3. Actions of its critics are in halves of their range, as here."""
    target_policy, *target_critics = networks.targets
    phi, target_phi = (
        [scales.in_rewards(scales.folded(layers)) for layers in critics]
        for critics in (networks.values, target_critics)
    )
    targets = Targets(scales.folded(target_policy), target_phi)
    return agent.learner._replace(theta=scales.folded(networks.policy), phi=phi, targets=targets)


def _checked(untrained: Learner, learner: Learner) -> Learner:
    """The learner with arrays of JAX, if they have the shapes of an untrained one."""

    def shapes(tree: Learner) -> Any:
        return jax.tree.structure(tree), [jnp.shape(x) for x in jax.tree.leaves(tree)]

    if shapes(learner) != shapes(untrained):
        raise ValueError("the model's networks do not have the sizes that its spaces and settings imply.")
    result: Learner = jax.tree.map(lambda x, old: jnp.asarray(x, old.dtype), learner, untrained)
    return result
