"""The policy of a learner, ready to act."""

from __future__ import annotations

from typing import Any

import numpy as np

from steadyrl.rollouts.acting import Actor
from steadyrl.rollouts.normalization import RunningMoments
from steadyrl.training.algorithm import Algorithm, Learner


def make_actor(
    algorithm: Algorithm,
    learner: Learner,
    observation_space: Any,
    exploring_at: int | None = None,
    levels: Any = None,
) -> Actor:
    """The learned policy in NumPy; with exploration as after so many steps, and at the levels of episodes, if given."""
    policy, parameters = algorithm.numpy_policy(learner, exploring_at)
    moments = RunningMoments(*map(np.asarray, learner.seen)) if learner.seen else None
    takes_states = getattr(policy, "takes_states", False)
    return Actor(policy, parameters, None if takes_states else observation_space, moments, levels)
