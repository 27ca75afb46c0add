"""Where the time of TD3 in HalfCheetah goes: the parts of 50 steps and 50 updates, and the products alone in XLA.

    python -m benchmarks.speed.td3_parts [--rounds 8]

The same batches of 256 and networks of 256x256 as in `speed/off_policy.py`. Parts of the update are programs of their
own, measured in turn: its matrix products, with gradient steps so small that nothing can be left out; and the steps of
Adam and the targets, without any gradient.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax

import steadyrl
from benchmarks.speed.limits import forward, forward_and_backward
from steadyrl.agents.replay import adam_step
from steadyrl.training.engines import replay
from steadyrl.training.engines.engine import as_arrays

ENV = "HalfCheetah-v5"
SETTINGS = {"hidden": (256, 256), "batch_size": 256, "learning_starts": 1000, "buffer_size": 100_000}
UPDATES = 50


def products_program(learner, rows, inputs):
    """The products of `UPDATES` updates, as a function of nothing."""

    def weights(layers):
        return [layer["weight"] for layer in layers]

    def moved(weights, gradients):
        return [w - 1e-9 * d for w, d in zip(weights, reversed(gradients), strict=True)]

    def step(carry, batch):
        policy, critics, targets, k = carry
        seen, pairs = batch[:, :inputs], batch[:, : critics[0][0].shape[0]]
        aside = forward(policy, seen)[-1].sum() + sum(forward(critic, pairs)[-1].sum() for critic in targets)
        critics = [moved(critic, forward_and_backward(critic, pairs)) for critic in critics]

        def follow(policy):
            slope = forward(critics[0], pairs)[-1]
            for w in reversed(critics[0]):
                slope = slope @ w.T
            return [w + 1e-9 * slope[0, 0] for w in moved(policy, forward_and_backward(policy, seen))]

        policy = jax.lax.cond(k % 2 == 1, follow, lambda policy: policy, policy)
        return (policy, critics, [[w + 1e-12 * aside for w in c] for c in targets], k + 1), None

    start = weights(learner.theta), [weights(x) for x in learner.phi], [weights(x) for x in learner.targets.phi]
    program = jax.jit(lambda start, rows: jax.lax.scan(step, (*start, 0), rows)[0])
    return lambda: jax.block_until_ready(program(start, rows))


def optimiser_program(algorithm, learner):
    """The steps of Adam and of the targets, as a function of nothing; gradients are the parameters."""

    def step(learner, _):
        rate = algorithm.settings.learning_rate
        phi, moments = adam_step(rate, learner.phi, learner.phi_optimiser, learner.phi)
        learner = learner._replace(phi=phi, phi_optimiser=moments, updates=learner.updates + 1)

        def follow(learner):
            theta, moments = adam_step(rate, learner.theta, learner.theta_optimiser, learner.theta)
            followed = type(learner.targets)(theta, learner.phi)
            targets = optax.incremental_update(followed, learner.targets, algorithm.settings.tau)
            return learner._replace(theta=theta, theta_optimiser=moments, targets=targets)

        return jax.lax.cond(learner.updates % 2 == 0, follow, lambda learner: learner, learner), None

    program = jax.jit(lambda learner: jax.lax.scan(step, learner, length=UPDATES)[0])
    return lambda: jax.block_until_ready(program(learner))


def measure(rounds):
    """Part -> its median milliseconds for each update or step."""
    agent = steadyrl.TD3(ENV, seed=0, train_freq=UPDATES, gradient_steps=UPDATES, **SETTINGS)
    agent.learn(total_timesteps=SETTINGS["learning_starts"], progress_bar=False)
    algorithm, learner, generator = as_arrays(agent.algorithm), agent.learner, np.random.default_rng(0)

    def sample():
        return agent.replay_buffer.sample(generator, UPDATES, SETTINGS["batch_size"])

    rows = sample()
    on_device, inputs = jnp.asarray(rows), algorithm.layout.inputs
    parts = {
        "update": lambda: jax.block_until_ready(replay._update(algorithm, learner, rows, 0)),
        "products of the update, in XLA": products_program(learner, on_device, inputs),
        "steps of Adam and of the targets": optimiser_program(algorithm, learner),
        "sampling from the replay buffer": sample,
        "policy from the device, to act with": lambda: agent.algorithm.numpy_policy(learner),
    }
    seconds = {name: [] for name in parts}
    for _ in range(2 + rounds):
        for name, part in parts.items():
            start = time.perf_counter()
            part()
            seconds[name].append((time.perf_counter() - start) / UPDATES)
    found = {name: 1000 * statistics.median(times[2:]) for name, times in seconds.items()}
    before = agent.timesteps
    agent.learn(total_timesteps=1000, progress_bar=False)
    record = agent.history[-1]
    found["whole step: updating"] = 1000 * record["seconds_updating"] / (agent.timesteps - before)
    found["whole step: acting, physics, storing"] = 1000 * record["seconds_collecting"] / (agent.timesteps - before)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8, help="how often each is measured")
    options = parser.parse_args(arguments)
    print(f"Load average at the start: {os.getloadavg()[0]:.1f}. Milliseconds for each update or step:", flush=True)
    for name, milliseconds in measure(options.rounds).items():
        print(f"{name:<42}{milliseconds:>8.3f}")


if __name__ == "__main__":
    main()
