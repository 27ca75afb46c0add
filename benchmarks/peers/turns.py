"""A process that measures in turns with others, in the Python of its library; the scripts in `speed` start it.

    python -m benchmarks.peers.turns '{"measure": "training", "library": "sbx", "warm_up": [11000], ...}'

It takes the turns of "warm_up", which compile what there is to compile, and prints a line. From then on it reads
amounts, such as numbers of steps, and answers each with a measurement. With "core" it runs on that core alone and with
one thread. The rest of the description is that of an agent (`agents.py`), or what the measurement below needs.
"""

from __future__ import annotations

import json
import os
import sys
import time
from functools import partial

from benchmarks.peers.agents import make_ours, make_peer


def training(run):
    """Steps per second of an agent, trained for at least so many steps."""
    if run["library"] == "ours":
        agent = make_ours(run)
        return _rate(partial(agent.learn, progress_bar=False), lambda: agent.timesteps)
    peer = make_peer(run)
    return _rate(partial(peer.learn, reset_num_timesteps=False), lambda: peer.num_timesteps)


def collecting(run):
    """Steps per second of Stable-Baselines3's PPO while it collects; its updates in between do not count."""
    agent = make_peer(run)
    _, callback = agent._setup_learn(10**9)

    def turn(_):
        start = time.perf_counter()
        agent.collect_rollouts(agent.env, callback, agent.rollout_buffer, n_rollout_steps=agent.n_steps)
        seconds = time.perf_counter() - start
        agent.train()
        return agent.n_envs * agent.n_steps / seconds

    return turn


def ppo_products(run):
    """Seconds of the matrix products of PPO's acting and of its updates, in PyTorch; see `PPOProducts`."""
    import torch

    from benchmarks.speed.limits import PPOProducts

    torch.set_num_threads(run["threads"])
    products = PPOProducts(run["shape"], torch.from_numpy)
    return lambda _: products.seconds()


def td3_products(run):
    """Updates per second of TD3's matrix products alone, in NumPy, with one of "cores" equal parts of each batch."""
    from benchmarks.speed.limits import TD3Products

    products = TD3Products(17, 6, run["settings"]["hidden"], run["settings"]["batch_size"] // run["cores"])
    return _rate(products.update, lambda: products.updates)


def updates_together(run):
    """Updates per second, of all seeds, of our agents for several "seeds" in one program, without acting.

    Their products are "batched" by `jax.vmap`, or side by side, for XLA to schedule.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    algorithm, s, seeds = make_ours(run).algorithm, run["settings"], run["seeds"]
    learners = jax.vmap(algorithm.init)(jax.random.split(jax.random.key(0), seeds))
    shape = (seeds, s["gradient_steps"], s["batch_size"], algorithm.layout.width)
    rows = np.random.default_rng(0).normal(size=shape).astype(np.float32)

    def update(learner, drawn):
        return algorithm.update(learner, algorithm.layout.parts(drawn, 0))[0]

    def side_by_side(learners, drawn):
        each = [jax.tree.map(lambda x, k=k: x[k], (learners, drawn)) for k in range(seeds)]
        return jax.tree.map(lambda *x: jnp.stack(x), *(update(*one) for one in each))

    program = jax.jit(jax.vmap(update) if run["batched"] else side_by_side)
    state = [learners, 0]

    def learn(updates):
        for _ in range(updates // s["gradient_steps"]):
            state[0] = jax.block_until_ready(program(state[0], rows))
            state[1] += seeds * s["gradient_steps"]

    return _rate(learn, lambda: state[1])


MEASURES = {
    measure.__name__: measure for measure in (training, collecting, ppo_products, td3_products, updates_together)
}


def _rate(advance, count):
    """A turn that advances by an amount, and by how much `count` grew per second."""

    def turn(amount):
        before, start = count(), time.perf_counter()
        advance(amount)
        seconds = time.perf_counter() - start
        return (count() - before) / seconds

    return turn


def pin_to(core):
    """Run on this core alone; to be called before NumPy and JAX are imported, which count the cores then."""
    os.sched_setaffinity(0, {core})
    os.environ |= {"NPROC": "1", "OPENBLAS_NUM_THREADS": "1"}


def main() -> None:
    """Take turns until the input ends."""
    run = json.loads(sys.argv[1])
    if "core" in run:
        pin_to(run["core"])
    turn = MEASURES[run["measure"]](run)
    for amount in run["warm_up"]:
        turn(amount)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(turn(int(line))), flush=True)


if __name__ == "__main__":
    main()
