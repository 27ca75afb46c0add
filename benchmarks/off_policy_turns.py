"""A DQN or TD3 of one library that trains in turns, in a process of its own: `off_policy_speed.py` starts it.

    python benchmarks/off_policy_turns.py '{"library": "sbx", "algorithm": "TD3", "warm_up": 11000, ...}'

It prints a line once it has learned for "warm_up" steps, which compiles what there is to compile. From then on it is
told numbers of steps; it takes them, and answers with its steps per second. With "core" it keeps to that core and to
one thread. The library "products" is no library, but what every TD3 has to multiply.
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


def main() -> None:
    """Answer until there is nothing more to answer."""
    run = json.loads(sys.argv[1])
    if "core" in run:
        keep_to(run["core"])
    learn, timesteps = {"ours": ours, "products": products}.get(run["library"], peer)(run)
    learn(run["warm_up"])
    print("ready", flush=True)
    for line in sys.stdin:
        before, start = timesteps(), time.perf_counter()
        learn(int(line))
        seconds = time.perf_counter() - start
        print(json.dumps((timesteps() - before) / seconds), flush=True)


if __name__ == "__main__":
    main()
