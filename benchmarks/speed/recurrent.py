"""What a recurrent network costs: `python -m benchmarks.speed.recurrent`.

Seconds of PPO's update from 8 episodes of 500 steps (10 passes), and microseconds of acting in 8 episodes at once, with
a GRU and with dense layers: medians of interleaved rounds. Only ratios compare between machines.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import steadyrl
from benchmarks.learning.memory import positions
from steadyrl.rollouts.acting import at_start
from steadyrl.rollouts.episodes import Episodes
from steadyrl.training.batch import EpisodeBatch
from steadyrl.training.engines import host
from steadyrl.training.engines.engine import as_arrays

EPISODES, STEPS = 8, 500
NETWORKS: dict[str, dict[str, Any]] = {
    "gru 64": {"network": "gru", "hidden": (64,)},
    "gru 128": {"network": "gru", "hidden": (128,)},
    "mlp 64, 64": {"hidden": (64, 64)},
    "mlp 256, 256": {"hidden": (256, 256)},
}


def works(settings: dict[str, Any], steps: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """An update, and acting in all steps."""
    rng = np.random.default_rng(0)
    agent = steadyrl.PPO(positions, target_kl=0.0, seed=0, **settings)
    observations, mask = rng.normal(size=(EPISODES, steps, 2)).astype(np.float32), np.ones((EPISODES, steps))
    actions, truncated = rng.integers(2, size=(EPISODES, steps)), np.zeros(EPISODES, bool)
    episodes = Episodes(observations, actions, mask, mask, observations[:, 0], truncated, {})
    batch, algorithm = EpisodeBatch.of(episodes, agent.gamma, lambda x: x), as_arrays(agent.algorithm)
    batch = batch if settings.get("network") == "gru" else batch.packed()
    actor = at_start(agent.actor(), EPISODES)
    noise = actor.policy.noise(rng, EPISODES)
    return (
        lambda: jax.block_until_ready(host._update(algorithm, agent.learner, batch)),
        lambda: [actor.act(observations[:, t], noise) for t in range(steps)],
    )


def measured(rounds: int, steps: int = STEPS) -> dict[str, tuple[float, float]]:
    """Network -> seconds of an update, and of acting in a step."""
    each = {name: works(settings, steps) for name, settings in NETWORKS.items()}
    for update, _ in each.values():
        update()  # Compiles.
    seconds: dict[str, list[list[float]]] = {name: [] for name in each}
    for _ in range(rounds):
        for name, work in each.items():
            clock = [time.perf_counter()]
            for one in work:
                one()
                clock.append(time.perf_counter())
            seconds[name].append([clock[1] - clock[0], (clock[2] - clock[1]) / steps])
    return {name: tuple(np.median(values, axis=0)) for name, values in seconds.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    for name, (update, act) in measured(parser.parse_args().rounds).items():
        print(f"{name}: {update:.3f} s an update, {1e6 * act:.0f} us to act")


if __name__ == "__main__":
    main()
