"""How fast PPO trains in HalfCheetah, collecting and updating, beside other libraries and beside the limit.

    python -m benchmarks.speed.ppo [--rounds 10] [--no-peers]

A round is one update: 10 episodes of 500 steps, then 5 passes over all 5,000 steps, with 256x256 networks for policy
and value. Measured in turn, round by round, with compilation done before:

- ours: MG-PPO in steadyrl/HalfCheetah-v0, engine "mujoco";
- Stable-Baselines3's and SBX's PPO in Gymnasium's HalfCheetah-v5, in 10 environments with the same observations and
  length, in whichever of DummyVecEnv and SubprocVecEnv, and for the former library with whichever number of PyTorch's
  threads, was fastest for them just before;
- the limit: MuJoCo alone with the states and actions of our round, and the matrix products alone, in the fastest of
  the libraries here (`limits.py`).

All have the same cores. Peers are installed in `.venv-peers` when they are not there yet; see `peers/environment.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import product

import gymnasium as gym
import jax
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.peers import environment
from benchmarks.speed.collect import RecordedTraining
from benchmarks.speed.limits import Physics, PPOProducts
from benchmarks.speed.table import Row

ENV = "steadyrl/HalfCheetah-v0"
SHAPE = {"inputs": 18, "actions": 6, "hidden": [256, 256], "episodes": 10, "length": 500, "passes": 5}
STEPS = SHAPE["episodes"] * SHAPE["length"]
WARM_UP, TRIALS = 3, 3
CORES = len(os.sched_getaffinity(0))
PEERS = {"sb3": "Stable-Baselines3", "sbx": "SBX"}
TURNS = "benchmarks.peers.turns"


def make_ours():
    """Our agent, trained in a simulator that records."""
    import steadyrl

    settings = {"episodes_per_update": SHAPE["episodes"], "inner_updates": SHAPE["passes"], "minibatch_size": 0}
    settings |= {"normalise_observations": False, "value_learning_rate": 3e-4, "entropy_coefficient": 0.01}
    agent = steadyrl.MeanGini(ENV, mean="ppo", engine="mujoco", hidden=tuple(SHAPE["hidden"]), seed=0, **settings)
    return RecordedTraining(agent)


def measure_ours(training, physics):
    """Seconds of one round of ours, of its collecting, and of its physics alone."""
    before, start = training.agent.timesteps, time.perf_counter()
    record = training.round()
    seconds = time.perf_counter() - start
    assert training.agent.timesteps - before == STEPS, "all episodes have the same length"
    simulator = training.simulator
    actions = np.stack([actions for _, actions in simulator.steps], axis=1)
    alone, ends = physics.seconds(simulator.seeds, actions)
    # The same episodes, or the comparison would mean nothing.
    np.testing.assert_allclose(ends, simulator.last.observations[:, 0], atol=1e-6)
    return {"ours": seconds, "collecting": record["seconds_collecting"], "physics": alone}


def measure_products(libraries):
    """Seconds of the products of (acting or passes, library)."""
    seconds = {name: library.seconds() for name, library in libraries.items()}
    with threadpool_limits(1):
        seconds["NumPy, 1 thread"] = libraries["NumPy"].seconds()
    return _by_part(seconds)


def _by_part(seconds):
    return {
        (part, name): s for name, both in seconds.items() for part, s in zip(("acting", "passes"), both, strict=True)
    }


def start_peer(library, kind, threads):
    """The process of a peer in a kind of vector environment, with so many of PyTorch's threads."""
    run = {
        "measure": "training",
        "library": library,
        "algorithm": "PPO",
        "env": "HalfCheetah-v5",
        "env_options": {"max_episode_steps": SHAPE["length"], "exclude_current_positions_from_observation": False},
        "vec_env": kind,
        "seed": 0,
        "threads": threads,
        "sb3_envs": SHAPE["episodes"],
        "sb3_steps": SHAPE["length"],
        "settings": {"hidden": SHAPE["hidden"], "minibatch_size": STEPS, "inner_updates": SHAPE["passes"]},
        # The first compiles, and SBX's second again: its learning rate is an array by then.
        "warm_up": [STEPS, STEPS],
    }
    return environment.start(TURNS, json.dumps(run))


def peer_seconds(process):
    """Of one round."""
    return STEPS / json.loads(process.ask(str(STEPS)))


def try_variants(library, stack):
    """(Kind of vector environment, PyTorch's threads) -> seconds of a round; and the process of the fastest.

    With more than one thread PyTorch can be slower: the products of acting are small.
    """
    counts = sorted({1, CORES}) if library == "sb3" else [CORES]
    kinds = ("DummyVecEnv", "SubprocVecEnv")
    processes = {variant: stack.enter_context(start_peer(library, *variant)) for variant in product(kinds, counts)}
    for process in processes.values():
        process.read_line()
    seconds = {
        variant: statistics.median(peer_seconds(process) for _ in range(TRIALS))
        for variant, process in processes.items()
    }
    fastest = processes.pop(min(seconds, key=seconds.get))
    for process in processes.values():
        process.read_all()  # Ends it.
    return seconds, fastest


def measure(rounds, peers=PEERS):
    """The median seconds of a round by what was measured, and those of the variants of each peer."""
    training, physics = make_ours(), Physics(gym.make(ENV), CORES)
    libraries = {
        "NumPy": PPOProducts(SHAPE),
        "JAX": PPOProducts(SHAPE, jax.numpy.asarray, jax.jit, jax.block_until_ready),
    }
    with ExitStack() as stack:
        tried = {library: try_variants(library, stack) for library in peers}
        variants = {library: seconds for library, (seconds, _) in tried.items()}
        processes = {library: process for library, (_, process) in tried.items()}
        torch = None
        if peers:
            run = {"measure": "ppo_products", "shape": SHAPE, "threads": CORES, "warm_up": [1]}
            torch = stack.enter_context(environment.start(TURNS, json.dumps(run)))
            torch.read_line()
        turns = []
        for _ in range(WARM_UP + rounds):
            turn = measure_ours(training, physics) | measure_products(libraries)
            turn |= {library: peer_seconds(process) for library, process in processes.items()}
            if torch is not None:
                turn |= _by_part({"torch": json.loads(torch.ask("1"))})
            turns.append(turn)
    return {name: statistics.median(turn[name] for turn in turns[WARM_UP:]) for name in turns[0]}, variants


def fastest_products(seconds):
    """Acting or passes -> seconds and name of the library that is fastest at its products."""
    return {part: min((s, name[1]) for name, s in seconds.items() if name[0] == part) for part in ("acting", "passes")}


def rows(peers: bool = True, rounds: int = 5) -> Iterator[Row]:
    """For the table of all benchmarks."""
    seconds, variants = measure(rounds, PEERS if peers else ())
    limit = seconds["physics"] + sum(s for s, _ in fastest_products(seconds).values())
    others = {PEERS[library]: STEPS / seconds[library] for library in variants}
    name, note = "MG-PPO in HalfCheetah (mujoco)", "physics and matrix products alone"
    yield Row(name, "steps/s", STEPS / seconds["ours"], others, STEPS / limit, note=note)


def report(seconds, variants):
    """The table, and its ratios."""
    fastest = fastest_products(seconds)
    products = sum(s for s, _ in fastest.values())
    ours, limit = seconds["ours"], seconds["physics"] + products
    rows = {"steadyrl, MG-PPO": ours}
    for library, tried in variants.items():
        rows[f"{PEERS[library]}, PPO ({_title(min(tried, key=tried.get))})"] = seconds[library]
    rows["limit: physics + products"] = limit
    rows["  physics alone"] = seconds["physics"]
    rows[f"  products of acting ({fastest['acting'][1]})"] = fastest["acting"][0]
    rows[f"  products of updates ({fastest['passes'][1]})"] = fastest["passes"][0]
    return "\n".join(
        [
            f"{'':<45}{'steps/s':>12}{'seconds':>12}",
            *(f"{title:<45}{STEPS / s:>12,.0f}{s:>12.3f}" for title, s in rows.items()),
            "",
            *(
                f"ours / {PEERS[library]}: {seconds[library] / ours:.2f} times the steps per second"
                for library in variants
            ),
            f"limit's time / our time: {limit / ours:.2f}",
            f"of our time, collecting is {seconds['collecting'] / ours:.0%}; the physics alone, on all cores, would be "
            f"{seconds['physics'] / ours:.0%}",
            *(
                f"{PEERS[library]} beforehand, seconds: " + ", ".join(f"{_title(v)} {s:.3f}" for v, s in tried.items())
                for library, tried in variants.items()
            ),
        ]
    )


def _title(variant):
    kind, threads = variant
    return f"{kind}, {threads} threads"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="how often each is measured")
    parser.add_argument("--no-peers", action="store_true", help="ours and the limit alone, without PyTorch")
    options = parser.parse_args(arguments)
    if not options.no_peers:
        environment.install()
    print(
        f"HalfCheetah, {SHAPE['episodes']} episodes of {SHAPE['length']} steps per update, {SHAPE['passes']} passes "
        f"over {STEPS:,} steps, networks of {'x'.join(map(str, SHAPE['hidden']))}.\n"
        f"All {CORES} cores for everyone, as many threads; medians of {options.rounds} rounds "
        f"after {WARM_UP} to warm up. Load average at the start: {os.getloadavg()[0]:.1f}.",
        flush=True,
    )
    print(report(*measure(options.rounds, () if options.no_peers else PEERS)))


if __name__ == "__main__":
    main()
