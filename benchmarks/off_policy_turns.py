"""A DQN or TD3 of one library that trains in turns, in a process of its own: `off_policy_speed.py` starts it.

    python benchmarks/off_policy_turns.py '{"library": "sbx", "algorithm": "TD3", "warm_up": 11000, ...}'

It prints a line once it has learned for "warm_up" steps, which compiles what there is to compile. From then on it is
told numbers of steps; it takes them, and answers with its steps per second. With "core" it keeps to that core and to
one thread. Two are no libraries: "products" is what every TD3 has to multiply, and "together" the updates of ours for
several seeds in one program, without acting.
"""

from __future__ import annotations

import json
import os
import sys
import time

from off_policy_agents import our_agent, peer_agent


def keep_to(core):
    """Run on this core alone; to be called before NumPy and JAX are imported, which count the cores then."""
    os.sched_setaffinity(0, {core})
    os.environ |= {"NPROC": "1", "OPENBLAS_NUM_THREADS": "1"}


def ours(run):
    """How ours learns on, and how many steps it has taken."""
    agent = our_agent(run)
    return lambda steps: agent.learn(total_timesteps=steps, progress_bar=False), lambda: agent.timesteps


def peer(run):
    """How theirs learns on, and how many steps it has taken."""
    import torch

    torch.set_num_threads(run["threads"])
    agent = peer_agent(run)
    return lambda steps: agent.learn(steps, reset_num_timesteps=False), lambda: agent.num_timesteps


def products(run):
    """How the matrix products of TD3's updates alone go on, this core's share of each batch, and how many updates."""
    from td3_limit import Products

    share = Products(17, 6, run["settings"]["hidden"], run["settings"]["batch_size"] // run["cores"])
    done = [0]

    def learn(updates):
        for _ in range(updates):
            share.update()
        done[0] += updates

    return learn, lambda: done[0]


def together(run):
    """How updates of ours go on that several seeds make in one program, and how many they have made in all."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    algorithm, s = our_agent(run).algorithm, run["settings"]
    learners = jax.vmap(algorithm.init)(jax.random.split(jax.random.key(0), run["seeds"]))
    shape = (run["seeds"], s["gradient_steps"], s["batch_size"], algorithm.layout.width)
    rows = np.random.default_rng(0).normal(size=shape).astype(np.float32)

    def update(learner, drawn):
        return algorithm.update(learner, algorithm.layout.parts(drawn, 0))[0]

    def side_by_side(learners, drawn):
        seeds = [jax.tree.map(lambda x, k=k: x[k], (learners, drawn)) for k in range(run["seeds"])]
        return jax.tree.map(lambda *x: jnp.stack(x), *(update(*seed) for seed in seeds))

    program = jax.jit(jax.vmap(update) if run["batched"] else side_by_side)
    state = [learners, 0]

    def learn(updates):
        for _ in range(updates // s["gradient_steps"]):
            state[0] = jax.block_until_ready(program(state[0], rows))
            state[1] += run["seeds"] * s["gradient_steps"]

    return learn, lambda: state[1]


LEARNING = {"ours": ours, "products": products, "together": together}


def main() -> None:
    """Answer until there is nothing more to answer."""
    run = json.loads(sys.argv[1])
    if "core" in run:
        keep_to(run["core"])
    learn, timesteps = LEARNING.get(run["library"], peer)(run)
    learn(run["warm_up"])
    print("ready", flush=True)
    for line in sys.stdin:
        before, start = timesteps(), time.perf_counter()
        learn(int(line))
        seconds = time.perf_counter() - start
        print(json.dumps((timesteps() - before) / seconds), flush=True)


if __name__ == "__main__":
    main()
