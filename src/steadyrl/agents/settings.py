"""Settings that methods share, and defaults that depend on the environment."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import gymnasium as gym
import numpy as np

from steadyrl.agents.networks.description import CUSTOM, expanded
from steadyrl.agents.networks.mlp import ACTIVATIONS
from steadyrl.base.names import unknown
from steadyrl.base.settings import Alias, Rule, Settings, setting
from steadyrl.envs.images import MIN_SIDE
from steadyrl.envs.spaces import is_tabular
from steadyrl.training.schedule import SCHEDULES

_CLIPPED = (
    "clipping changes the law of the returns whose risk is measured, and cuts the rare large losses first. "
    "Leave it out; PPO's values are normalized inside"
)
_NORMALIZED = (
    "rewards that are normalized by what was seen so far mean something else in each episode, and their risk is not "
    "that of the returns. Leave it out; PPO's values are normalized inside"
)
REFUSED = {
    "n_steps": "dispersion is measured over whole episodes, so a batch is a number of episodes, not of steps. "
    "Set episodes_per_update",
    **dict.fromkeys(("clip_reward", "clip_rewards", "reward_clip", "reward_clipping"), _CLIPPED),
    **dict.fromkeys(
        (
            "norm_reward",
            "normalize_reward",
            "normalise_reward",
            "normalize_rewards",
            "normalise_rewards",
            "reward_normalization",
        ),
        _NORMALIZED,
    ),
}
"""Settings of other libraries that cannot exist here, and why."""
_TENSORBOARD = 'learn(..., loggers=["tensorboard"], out=FOLDER)'
INSTEAD = {
    "device": "JAX chooses the device: JAX_PLATFORMS=cpu in the environment keeps to the CPU",
    "n_envs": "the episodes of a batch are played side by side: set episodes_per_update",
    "verbose": "use learn(..., progress_bar=...)",
    "tensorboard_log": f"use {_TENSORBOARD}",
    "stats_window_size": f"what is recorded goes to loggers: {_TENSORBOARD}",
    "exploration_fraction": "set exploration_steps, a number of steps",
    "use_sde": "state-dependent exploration does not exist here",
}
"""Arguments of Stable-Baselines3's classes that are none here, and what there is instead."""


def unknown_setting(name: str, known: Collection[str], hints: Mapping[str, str]) -> str:
    """One line on a setting that does not exist: why, or what was probably meant."""
    if name in REFUSED and (name != "n_steps" or "episodes_per_update" in known):
        return f"{name}: there is no such setting, because {REFUSED[name]}."
    if name in INSTEAD:
        return f"{name}: there is no such setting: {INSTEAD[name]}."
    return unknown("setting", name, known, hints)


class EnvKind(NamedTuple):
    """What defaults may depend on."""

    tabular: bool
    """Whether observations and actions are Discrete, so that a table can hold a number for each pair."""
    finite: bool = False
    """Whether the environment is a finite MDP that is known in full, of which the time limit is a part."""
    real_observations: bool = True
    """Whether observations are real numbers, rather than Discrete or pixels."""
    real_actions: bool = False
    images: bool = False
    """Whether there are images in observations that convolutions can be used for."""


def by_network(table: float, mlp: float) -> Rule:
    """A default that depends on what is learned."""
    return Rule(lambda s, env: table if s.network == "table" else mlp, f"{table:g} for a table, {mlp:g} for a network")


def _policy_rate(s: Any, env: Any) -> float:
    # In the maze larger steps settle on a path before risk is seen: with 0.01 half of the seeds took the noisy one.
    return (0.0015 if env.finite else 0.01) if s.network == "table" else 7e-4


def _check_recurrent(s: Any, env: Any) -> None:
    """What a recurrent network does not have."""
    if env.images:
        raise ValueError(
            "network='gru': it has no convolutions, and observations are images. Use network='cnn', and "
            "gymnasium.wrappers.FrameStackObservation for several frames at once."
        )
    if not s.hidden:
        raise ValueError("hidden=(): the last of the hidden layers is the GRU. Give the size of at least one.")
    if s.layer_norm and len(s.hidden) == 1:
        raise ValueError(
            f"layer_norm=True: it is for dense layers, and of hidden={s.hidden} the only one is the GRU. Leave it out."
        )


def mean_setting(default: str) -> Any:
    """The setting `mean`, which decides what the other settings are."""
    return setting(
        default,
        "How the mean is maximized: 'vpg', the vanilla policy gradient, or 'ppo', proximal policy optimization.",
        choices=("vpg", "ppo"),
    )


def fitting_mean_setting(default: str) -> Any:
    """The setting `mean` of agents that choose it by themselves, see `with_fitting_mean`."""
    return setting(
        default,
        "How the mean is maximized: 'vpg', the vanilla policy gradient, or 'ppo', proximal policy optimization; by "
        "default 'vpg' for a table and 'ppo' for a network.",
        choices=("vpg", "ppo"),
    )


def with_fitting_mean(
    given: Mapping[str, Any], observation_space: gym.Space[Any], action_space: gym.Space[Any]
) -> Mapping[str, Any]:
    """The settings `given`, with `mean` where it is not: "vpg" for a table, "ppo" for a network."""
    if given.get("mean", "auto") != "auto":
        return given
    table = given.get("network", "auto") in (None, "auto", "table") and is_tabular(observation_space, action_space)
    return {**given, "mean": "vpg" if table else "ppo"}


def _negated(switch: Any) -> Any:
    """The opposite; what is no switch is left to the check of the setting."""
    return not switch if isinstance(switch, bool | np.bool_) else switch


def bootstrap_setting(default: Any) -> Any:
    """The setting `bootstrap_on_truncation` of methods that learn values."""
    return setting(
        default,
        "Whether to bootstrap from the value of the last observation when an episode is truncated.",
        aliases=(Alias("time_out_ends", _negated, deprecated=True),),
    )


UNLESS_FINITE = Rule(lambda s, env: not env.finite, "unless the limit is part of a finite MDP")
"""Of `bootstrap_on_truncation`: the Guarded Maze's limit is part of the process."""


EPISODES_PER_UPDATE = Rule(
    lambda s, env: 50 if env.finite else 20, "20; 50 in a known finite MDP, where they are cheap"
)
"""Of `episodes_per_update`."""


@dataclass(frozen=True)
class AgentSettings(Settings):
    """What every agent needs."""

    gamma: float = setting(0.99, "Discount factor of rewards still to come.", above=0, most=1)
    max_episode_steps: int = setting(
        100_000,
        "Steps after which an episode counts as endless, which is an error.",
        least=1,
        aliases=(Alias("longest_episode", deprecated=True),),
    )
    learning_rate_schedule: str = setting(
        "constant",
        "How the step sizes of policy, values and action values change over the budget of a training: not at all, or "
        "from 1 times to 0 times in a straight line ('linear') or along half a 'cosine'.",
        choices=SCHEDULES,
        aliases=("lr_schedule",),
    )

    @property
    def n(self) -> int:
        """How many whole episodes a round is."""
        return 1


def hidden_setting(*sizes: int) -> Any:
    """The setting `hidden`; after convolutions there is one large layer, as in Mnih et al. (2015)."""
    return setting(
        Rule(
            lambda s, env: HIDDEN.get(s.network, sizes),
            f"{sizes}; {HIDDEN['cnn']} after convolutions, {HIDDEN['gru']} with a GRU",
        ),
        "Sizes of the hidden layers of networks.",
        least=1,
    )


HIDDEN = {"cnn": (512,), "gru": (64,)}
"""Default sizes that depend on the network."""


@dataclass(frozen=True)
class NetworkSettings(AgentSettings):
    """The layers of networks."""

    activation: str = setting(
        "relu",
        "The function after each hidden layer of dense layers: 'relu', 'tanh', 'elu' or 'silu'.",
        choices=tuple(ACTIVATIONS),
        aliases=("activation_fn",),
    )
    layer_norm: bool = setting(False, "Whether hidden layers have layer normalization before their activation.")
    orthogonal: bool = setting(
        False,
        "Whether weights start orthogonal and biases at 0, as in Stable-Baselines3's PPO, rather than as PyTorch draws "
        "them.",
        aliases=("ortho_init",),
    )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """See `Settings`; the network may be described, see `NetworkDescription`."""
        return super().of(values if values.get("network") == CUSTOM else expanded(values))

    def resolve(self, context: EnvKind) -> Self:
        """See `Settings`."""
        resolved: Any = super().resolve(context)
        if resolved.network == "cnn" and not context.images:
            raise ValueError(
                f"network='cnn': observations have no images (uint8, 0 to 255) of at least {MIN_SIDE} x {MIN_SIDE} "
                "pixels. Use network='mlp'."
            )
        return resolved  # type: ignore[no-any-return]


@dataclass(frozen=True)
class PolicyGradientSettings(NetworkSettings):
    """What every policy gradient needs."""

    episodes_per_update: int = setting(
        EPISODES_PER_UPDATE,
        "n: whole episodes collected before each round of updates.",
        least=1,
    )
    network: str = setting(
        Rule(lambda s, env: "table" if env.tabular else "cnn" if env.images else "mlp", "auto"),
        "What is learned: a 'table', an 'mlp' (dense layers), a 'cnn' (convolutions of images, then dense layers), a "
        "'gru' (dense layers, the last of which is recurrent, for observations that do not show everything), or "
        "'auto': a table if states and actions are Discrete, convolutions for images. Also a description of layers or "
        "a function, which is recorded as 'custom'.",
        choices=("auto", "table", "mlp", "cnn", "gru", "custom"),
    )
    hidden: tuple[int, ...] = hidden_setting(128, 128)
    optimiser: str = setting(
        "adam",
        "How steps are taken: 'adam', or 'sgd', with which the right step size depends on the size of rewards.",
        choices=("sgd", "adam"),
        aliases=("optimizer",),
    )
    policy_learning_rate: float = setting(
        Rule(_policy_rate, "0.0007; 0.01 for a table, 0.0015 in a finite MDP"),
        "Step size of the policy.",
        above=0,
        aliases=("learning_rate",),
    )
    initial_log_std: float = setting(
        -0.5,
        "Log of the initial standard deviation of real-valued actions, in halves of their range.",
        aliases=("log_std_init",),
    )
    initial_output_scale: float = setting(
        0.01,
        "Scale of the last layer of a policy network at the start. Small, the untrained policy prefers no action; 1 is "
        "the paper's (deviation 33).",
        least=0,
    )
    squash_mean: bool = setting(
        True,
        "Whether the mean of actions within bounds is tanh of the network's output, rather than the output itself; "
        "actions are clipped to the bounds in any case.",
    )
    normalise_observations: bool = setting(
        False,
        "Whether networks see observations in standard deviations from their running mean. Rewards never are.",
        aliases=("normalize_observations",),
    )

    @property
    def n(self) -> int:
        """How many whole episodes a round is."""
        return self.episodes_per_update

    def resolve(self, context: EnvKind) -> Self:
        """See `Settings`."""
        resolved = super().resolve(context)
        if resolved.network == "table" and not context.tabular:
            raise ValueError("network='table': it needs Discrete observations and actions, from 0. Use network='mlp'.")
        if resolved.network == "table" and resolved.normalise_observations:
            raise ValueError("normalise_observations=True: the states of a table are row numbers. Leave it out.")
        if resolved.normalise_observations and context.images:
            raise ValueError("normalise_observations=True: pixels of images are from 0 to 1 already. Leave it out.")
        if resolved.network == "gru":
            _check_recurrent(resolved, context)
        return resolved

    def make_update(self, policy: Any, value: Any, measure: Any, risk_aversion: float) -> Any:
        """The algorithm that these settings belong to, with `risk_aversion` times `measure` as its risk part.

        Where there is a choice of `credit`, it also takes `critic` or `risk_discount`: see `PolicyGradientUpdate`.
        """
        raise NotImplementedError
