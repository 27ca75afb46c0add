"""Settings that methods share."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from steadyrl.settings import Settings, setting


def mean_setting(default: str) -> Any:
    """The setting `mean`, which decides what the other settings are."""
    return setting(
        default,
        "How the mean is maximised: 'vpg', the vanilla policy gradient, or 'ppo', proximal policy optimisation.",
        choices=("vpg", "ppo"),
    )


@dataclass(frozen=True)
class AgentSettings(Settings):
    """What every agent needs."""

    gamma: float = setting(0.999, "Discount factor of the return.", above=0, most=1)
    longest_episode: int = setting(
        100_000, "Steps after which an episode counts as endless, which is an error.", least=1
    )

    @property
    def n(self) -> int:
        """How many whole episodes a round is."""
        return 1

    def completed(self, tabular: bool, finite: bool = False) -> Self:
        """With whatever was left to the environment decided.

        `tabular` if its states and actions are numbered; `finite` if it is a finite process known in full, of which its
        time limit is a part.
        """
        return self


def time_out_setting() -> Any:
    """The setting `time_out_ends` of methods that learn values from single steps."""
    return setting(
        None,
        "Whether nothing is expected after a time limit; else the value of what was seen last is. If not given, only "
        "where the limit is part of a finite process, as in the Guarded Maze.",
    )


@dataclass(frozen=True)
class EpisodeSettings(AgentSettings):
    """What methods need that learn from whole episodes."""

    episodes_per_update: int | None = setting(
        None,
        "n: whole episodes collected before each round of updates; if not given, 50 for a table and 20 for a network.",
        least=1,
    )

    @property
    def n(self) -> int:
        """`episodes_per_update`, once it is decided."""
        assert self.episodes_per_update is not None, "settings are completed before they are used"
        return self.episodes_per_update

    def completed(self, tabular: bool, finite: bool = False) -> Self:
        """See `AgentSettings`."""
        return dataclasses.replace(self, episodes_per_update=self.episodes_per_update or (50 if tabular else 20))


@dataclass(frozen=True)
class PolicyGradientSettings(EpisodeSettings):
    """What every policy gradient needs."""

    policy_learning_rate: float | None = setting(
        None, "Step size of the policy; if not given, 1e-4 for a table and 7e-4 for a network.", above=0
    )
    network: str = setting(
        "auto",
        "What is learned: a 'table', an 'mlp' (dense layers), or 'auto': a table if states and actions are numbered.",
        choices=("auto", "table", "mlp"),
    )
    hidden: tuple[int, ...] = setting((128, 128), "Sizes of the hidden layers of networks.", least=1)
    optimiser: str = setting(
        "auto",
        "How steps are taken: 'sgd', 'adam', or 'auto': adam, but sgd for tables without PPO.",
        choices=("auto", "sgd", "adam"),
    )
    initial_log_std: float = setting(
        -0.5, "Log of the standard deviation that real-valued actions start with, in halves of their range."
    )
    normalise_observations: bool = setting(
        False, "Whether networks see observations in units of their spread so far. Rewards never are."
    )

    learning_rates: ClassVar[dict[str, float]] = {"table": 1e-4, "mlp": 7e-4}
    optimisers: ClassVar[dict[str, str]] = {"table": "sgd", "mlp": "adam"}

    def completed(self, tabular: bool, finite: bool = False) -> Self:
        """See `AgentSettings`."""
        network = self.network if self.network != "auto" else "table" if tabular else "mlp"
        if network == "table" and not tabular:
            raise ValueError("network='table': it needs Discrete observations and actions, from 0. Use network='mlp'.")
        if network == "table" and self.normalise_observations:
            raise ValueError("normalise_observations=True: the states of a table are numbers of rows. Leave it out.")
        return dataclasses.replace(
            super().completed(network == "table", finite),
            network=network,
            optimiser=self.optimiser if self.optimiser != "auto" else self.optimisers[network],
            policy_learning_rate=self.policy_learning_rate or self.learning_rates[network],
        )
