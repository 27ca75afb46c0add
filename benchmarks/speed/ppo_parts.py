"""Where the time of PPO in HalfCheetah goes: the parts of a round of `speed/ppo.py`, beside what bounds each of them.

    python -m benchmarks.speed.ppo_parts [--rounds 8]

Collecting is timed while it happens. The parts of an update are programs of their own, with the batch of that round:
their sum may differ from the update a little. All are measured in turn, round by round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import contextmanager
from unittest.mock import patch

import gymnasium as gym
import jax
import jax.numpy as jnp
from threadpoolctl import threadpool_limits

from benchmarks.speed import ppo
from benchmarks.speed.limits import Physics, PPOProducts
from steadyrl.agents.ppo_passes import PPOSteps
from steadyrl.rollouts.acting import Actor
from steadyrl.training.batch import batch_from_episodes
from steadyrl.training.engines import host

SECONDS: dict[str, float] = defaultdict(float)


def timed(function, name):
    """The function, whose time is added to `SECONDS`."""

    def call(*arguments, **options):
        start = time.perf_counter()
        result = function(*arguments, **options)
        SECONDS[name] += time.perf_counter() - start
        return result

    return call


class TimedPhysics:
    """MuJoCo's batch with a stopwatch."""

    def __init__(self, physics):
        self._physics, self.step = physics, timed(physics.step, "physics, step by step")

    def __getattr__(self, name):
        return getattr(self._physics, name)


@contextmanager
def watched(training):
    """Time what happens in rounds of a training; the arguments of the latest update are kept in what is yielded."""
    simulator, latest, update = training.simulator.simulator, {}, host._update
    simulator._physics = TimedPhysics(simulator._physics)
    simulator.step = timed(simulator.step, "simulator")

    def kept(*arguments):
        latest["update"] = arguments
        return update(*arguments)

    with patch.object(Actor, "act", timed(Actor.act, "acting")), patch.object(host, "_update", kept):
        yield latest


def parts_of_update(algorithm, learner, episodes):
    """Name -> a function that does this part of the update."""
    batch = jax.jit(batch_from_episodes)(episodes, algorithm.settings.gamma)
    A, targets, _ = algorithm.advantages(learner, episodes)
    old = algorithm.log_prob(learner.theta, batch)[..., 0]
    steps = PPOSteps(batch.observations, batch.actions, old, A, targets, batch.state_visits)
    M = algorithm.settings.inner_updates

    def risk_weights(log_ratios):
        return jnp.zeros((len(log_ratios), 1)), learner.risk

    def policy(algorithm, learner, batch, steps):
        return jax.lax.scan(lambda x, _: algorithm.step_policy(x, steps, risk_weights), learner, length=M)

    def values(algorithm, learner, batch, steps):
        return jax.lax.scan(lambda x, _: jax.lax.scan(algorithm.step_values, x, steps), learner, length=M)

    def critic(algorithm, learner, batch, steps):
        return algorithm.credit_steps(learner, batch)

    def once(algorithm, learner, batch, steps):
        return algorithm.advantages(learner, episodes), algorithm.log_prob(learner.theta, batch)

    named = {"passes of the policy": policy, "passes of the values": values, "risk critic": critic}
    named["advantages and old log pi"] = once
    arguments = jax.tree.map(jnp.asarray, (algorithm, learner, batch, steps))
    return {name: _called(jax.jit(part), arguments) for name, part in named.items()}


def _called(program, arguments):
    return lambda: jax.block_until_ready(program(*arguments))


def measure(rounds):
    """The median seconds of each part of a round."""
    training, physics = ppo.make_ours(), Physics(gym.make(ppo.ENV), ppo.CORES)
    numpy, of_jax = PPOProducts(ppo.SHAPE), PPOProducts(ppo.SHAPE, jnp.asarray, jax.jit, jax.block_until_ready)
    every = []
    with watched(training) as latest:
        ppo.measure_ours(training, physics)
        parts = parts_of_update(*latest["update"])
        for _ in range(2 + rounds):
            SECONDS.clear()
            row = ppo.measure_ours(training, physics)
            row |= SECONDS
            row["update"] = row["ours"] - row["collecting"]
            with threadpool_limits(1):
                row["products of acting"], _ = numpy.seconds()
            _, row["products of passes"] = of_jax.seconds()
            for name, part in parts.items():
                start = time.perf_counter()
                part()
                row[name] = time.perf_counter() - start
            every.append(row)
    return {name: statistics.median(row[name] for row in every[2:]) for name in every[0]}


def report(seconds):
    """The table: each part, and what bounds it."""
    s = {name: 1000 * x for name, x in seconds.items()}
    limit = s["physics"] + s["products of acting"] + s["products of passes"]
    rows = [
        ("round", s["ours"], limit),
        ("  collecting", s["collecting"], s["physics"] + s["products of acting"]),
        ("    physics, step by step", s["physics, step by step"], s["physics"]),
        ("    rest of the simulator", s["simulator"] - s["physics, step by step"], 0),
        ("    acting", s["acting"], s["products of acting"]),
        ("    rest of collecting", s["collecting"] - s["simulator"] - s["acting"], 0),
        ("  update", s["update"], s["products of passes"]),
        ("    passes of policy and values", s["passes of the policy"] + s["passes of the values"], None),
        ("      policy", s["passes of the policy"], s["products of passes"] / 2),
        ("      values", s["passes of the values"], s["products of passes"] / 2),
        ("    risk critic", s["risk critic"], 0),
        ("    advantages and old log pi", s["advantages and old log pi"], 0),
    ]
    shown = [f"{name:<36}{ours:>8.0f}{'' if bound is None else format(bound, '8.0f'):>8}" for name, ours, bound in rows]
    return "\n".join([f"{'milliseconds':<36}{'ours':>8}{'limit':>8}", *shown, f"ratio: {s['ours'] / limit:.2f}"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8, help="how often each is measured")
    options = parser.parse_args(arguments)
    print(f"Load average at the start: {os.getloadavg()[0]:.1f}.", flush=True)
    print(report(measure(options.rounds)))


if __name__ == "__main__":
    main()
