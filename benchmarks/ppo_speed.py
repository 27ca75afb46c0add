"""How fast PPO trains in HalfCheetah, collecting and updating, beside other libraries and beside the limit.

    python benchmarks/ppo_speed.py [--rounds 10]

A round is one update: 10 episodes of 500 steps, then 5 passes over all 5,000 steps, with 256x256 networks for policy
and value. Measured in turn, round by round, with compilation done before:

- ours: MG-PPO in steadyrl/HalfCheetah-v0, engine "mujoco";
- Stable-Baselines3's and SBX's PPO in Gymnasium's HalfCheetah-v5, in 10 environments with the same observations and
  length, in whichever of DummyVecEnv and SubprocVecEnv, and for the former with whichever number of PyTorch's threads,
  was quickest for them just before;
- the limit: MuJoCo alone with the states and actions of our round, and the matrix products alone, in the quickest of
  the libraries here.

All have the same cores. Peers are installed in `.venv-peers` when they are not there yet (see `peers.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path

import gymnasium as gym
import jax
import numpy as np
import peers
from collect import Recorded
from ppo_limit import Physics, Products
from threadpoolctl import threadpool_limits

ENV = "steadyrl/HalfCheetah-v0"
SHAPE = {"inputs": 18, "actions": 6, "hidden": [256, 256], "episodes": 10, "length": 500, "passes": 5}
STEPS = SHAPE["episodes"] * SHAPE["length"]
WARM_UP = 3
CORES = len(os.sched_getaffinity(0))
PEERS = {"sb3": "Stable-Baselines3", "sbx": "SBX"}


class Ends(Recorded):
    """Also keeps the latest step."""

    def step(self, slots, actions):
        """See `Simulator`."""
        self.latest = super().step(slots, actions)
        return self.latest


class Ours:
    """Our agent, whose simulator writes down what it is asked for."""

    def __init__(self):
        import steadyrl

        settings = {"episodes_per_update": SHAPE["episodes"], "inner_updates": SHAPE["passes"]}
        self.agent = steadyrl.MeanGini(
            ENV, mean="ppo", engine="mujoco", hidden=tuple(SHAPE["hidden"]), seed=0, **settings
        )
        self.recorded = Ends(self.agent.simulator())
        self.agent.simulator = lambda: self.recorded

    def update(self):
        """Seconds of one round of collecting and updating, and of its collecting alone."""
        before, start = self.agent.timesteps, time.perf_counter()
        self.agent.learn(total_episodes=SHAPE["episodes"], progress_bar=False)
        seconds = time.perf_counter() - start
        assert self.agent.timesteps - before == STEPS, "all episodes have the same length"
        return seconds, self.agent.history[-1]["seconds_collecting"]

    def played(self):
        """Seeds of the latest round, its actions [n, T, a] and where its episodes ended."""
        actions = np.stack([actions for _, actions in self.recorded.steps], axis=1)
        return self.recorded.seeds, actions, self.recorded.latest.observations[:, 0]


def measure(rounds):
    """Seconds of each round by what was measured, and what each vector environment took for the peers."""
    ours, physics = Ours(), Physics(gym.make(ENV), CORES)
    libraries = {
        "NumPy": Products(SHAPE),
        "JAX": Products(SHAPE, jax.numpy.asarray, jax.jit, jax.block_until_ready),
    }
    seconds = {}

    def note(name, value):
        seconds.setdefault(name, []).append(value)

    with peers.started(Path(__file__).with_name("ppo_speed_peers.py"), json.dumps(SHAPE), CORES) as peer:
        kinds = json.loads(peer.answer())
        for r in range(-WARM_UP, rounds):
            if r == 0:
                seconds.clear()
            whole, collecting = ours.update()
            note("ours", whole)
            note("collecting", collecting)
            for name in PEERS:
                note(name, json.loads(peer.answer(name)))
            alone, ends = physics.seconds(*ours.played()[:2])
            note("physics", alone)
            # The same episodes, or the comparison would mean nothing.
            np.testing.assert_allclose(ends, ours.played()[2], atol=1e-6)
            timed = {name: library.seconds() for name, library in libraries.items()}
            with threadpool_limits(1):
                timed["NumPy, 1 thread"] = libraries["NumPy"].seconds()
            timed["torch"] = json.loads(peer.answer("torch"))
            for name, (acting, passes) in timed.items():
                note(("acting", name), acting)
                note(("passes", name), passes)
    return {name: statistics.median(values) for name, values in seconds.items()}, kinds


def told(seconds, kinds):
    """The table, and what it comes to."""
    quickest = {
        part: min((s, name[1]) for name, s in seconds.items() if name[0] == part) for part in ("acting", "passes")
    }
    products = sum(s for s, _ in quickest.values())
    limit = seconds["physics"] + products
    rows = {"steadyrl, MG-PPO": seconds["ours"]}
    for name, title in PEERS.items():
        rows[f"{title}, PPO ({min(kinds[name], key=kinds[name].get)})"] = seconds[name]
    rows["limit: physics + products"] = limit
    rows["  physics alone"] = seconds["physics"]
    rows[f"  products of acting ({quickest['acting'][1]})"] = quickest["acting"][0]
    rows[f"  products of updates ({quickest['passes'][1]})"] = quickest["passes"][0]
    ours = seconds["ours"]
    return "\n".join(
        [
            f"{'':<45}{'steps/s':>12}{'seconds':>12}",
            *(f"{title:<45}{STEPS / s:>12,.0f}{s:>12.3f}" for title, s in rows.items()),
            "",
            *(
                f"ours / {title}: {seconds[name] / ours:.2f} times the steps per second"
                for name, title in PEERS.items()
            ),
            f"limit's time / our time: {limit / ours:.2f}",
            f"of our time, collecting is {seconds['collecting'] / ours:.0%}; the physics alone, on all cores, would be "
            f"{seconds['physics'] / ours:.0%}",
            *(
                f"{title} beforehand, seconds: " + ", ".join(f"{kind} {s:.3f}" for kind, s in kinds[name].items())
                for name, title in PEERS.items()
            ),
        ]
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="how often each is measured")
    options = parser.parse_args()
    peers.install()
    print(
        f"HalfCheetah, {SHAPE['episodes']} episodes of {SHAPE['length']} steps per update, {SHAPE['passes']} passes "
        f"over {STEPS:,} steps, networks of {'x'.join(map(str, SHAPE['hidden']))}.\n"
        f"All {CORES} cores for everyone, as many threads; medians of {options.rounds} rounds "
        f"after {WARM_UP} to warm up. Load average at the start: {os.getloadavg()[0]:.1f}.",
        flush=True,
    )
    print(told(*measure(options.rounds)))


if __name__ == "__main__":
    main()
