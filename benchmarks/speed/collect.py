"""How fast episodes are collected while an agent trains, beside the same simulator replaying the same actions.

    python -m benchmarks.speed.collect [--rounds 15] [--peers] [--only CASE]

Each round trains an agent on 30 episodes, then starts the same simulator from the same seeds and gives it the recorded
actions, with no policy and nothing stored. Printed are the medians of the steps per second of both, without the steps
in episodes that do not count, and of their ratio. If it is installed, Stable-Baselines3 collects in 30 of the same
environments too; `--peers` installs it, in a virtual environment of its own, `.venv-peers`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.peers import environment
from benchmarks.speed.table import Row

EPISODES = 30
HIDDEN = (128, 128)
CASES = {
    # Name: environment, engine, training episodes before the measurement, and Gymnasium's environment for peers.
    "LunarLander": ("steadyrl/LunarLander-v0", "envpool", 0, "LunarLander-v3"),
    "LunarLander, Gymnasium": ("steadyrl/LunarLander-v0", "gymnasium", 0, "LunarLander-v3"),
    # An untrained pendulum falls within 8 steps, too few to measure.
    "InvertedPendulum": ("steadyrl/InvertedPendulum-v0", "mujoco", 1500, "InvertedPendulum-v5"),
}
PEER_STEPS = 128


class Recorded:
    """A simulator that records the seeds and actions of its latest episodes, and their last step."""

    def __init__(self, simulator):
        self.simulator, self.seeds, self.steps, self.last = simulator, None, [], None

    def __getattr__(self, name):
        return getattr(self.simulator, name)

    def reset(self, seeds):
        """See `Simulator`."""
        self.seeds, self.steps = seeds, []
        return self.simulator.reset(seeds)

    def step(self, slots, actions):
        """See `Simulator`."""
        self.steps.append((slots, actions))
        self.last = self.simulator.step(slots, actions)
        return self.last

    def replay(self):
        """Seconds that the same episodes take once more, and their undiscounted returns."""
        start = time.perf_counter()
        self.simulator.reset(self.seeds)
        results = [self.simulator.step(slots, actions) for slots, actions in self.steps]
        seconds = time.perf_counter() - start
        returns = np.zeros(len(self.seeds))
        for (slots, _), result in zip(self.steps, results, strict=True):
            returns[slots] += result.rewards
        return seconds, returns


class RecordedTraining:
    """An agent that is trained round by round, in a simulator that records."""

    def __init__(self, agent):
        from steadyrl.training.engines.host import HostEngine

        self.agent, self._engine = agent, HostEngine(agent)
        self.simulator = self._engine._simulator = Recorded(self._engine._simulator)

    def round(self):
        """Train for one round; its record."""
        from steadyrl.training.records import take_over

        ((learner, rounds),) = self._engine.advance(1, sys.maxsize)
        (record,) = take_over(self.agent, learner, rounds, per_record=1)
        return record


def measure(name, engine, episodes_before, rounds):
    """Steps per second while training and replaying, their ratio, the share of idle steps and the mean length."""
    from steadyrl.agents import MeanGini

    agent = MeanGini(name, engine=engine, episodes_per_update=EPISODES, hidden=HIDDEN, risk_aversion=0.6, seed=0)
    agent.learn(total_episodes=episodes_before + EPISODES, progress_bar=False)
    training, rows = RecordedTraining(agent), []
    for _ in range(rounds):
        before = agent.timesteps
        record = training.round()
        steps, collecting = agent.timesteps - before, record["seconds_collecting"]
        seconds, returns = training.simulator.replay()
        # The same episodes, or the comparison would mean nothing.
        np.testing.assert_allclose(returns.mean(), record["return"], rtol=1e-6)
        idle = record["idle_steps"] / (steps + record["idle_steps"])
        rows.append((steps / collecting, steps / seconds, seconds / collecting, idle, record["length"]))
    return np.median(rows, axis=0)


def peer_rate(name, rounds):
    """Steps per second of Stable-Baselines3's PPO while it collects."""
    run = {
        "measure": "collecting",
        "library": "sb3",
        "algorithm": "PPO",
        "env": name,
        "seed": 0,
        "threads": 1,
        "sb3_envs": EPISODES,
        "sb3_steps": PEER_STEPS,
        "settings": {"hidden": HIDDEN},
        "warm_up": [],
    }
    with environment.start("benchmarks.peers.turns", json.dumps(run)) as process:
        process.read_line()
        return float(np.median([json.loads(process.ask("1")) for _ in range(rounds)]))


def rows(peers: bool = True, rounds: int = 5) -> Iterator[Row]:
    """For the table of all benchmarks."""
    theirs: dict[str, dict[str, float]] = {}
    for title, (name, engine, before, peer) in CASES.items():
        try:
            training, replaying, *_ = measure(name, engine, before, rounds)
        except (ImportError, ValueError) as error:
            print(f"{title}: not measured: {error}")
            continue
        if peers and peer not in theirs:
            theirs[peer] = {"Stable-Baselines3": peer_rate(peer, rounds)}
        others = theirs.get(peer, {})
        yield Row(
            f"collecting in {title} ({engine})", "steps/s", training, others, replaying, note="the simulator alone"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="how often each is measured")
    parser.add_argument("--peers", action="store_true", help="install Stable-Baselines3 if it is not there")
    parser.add_argument("--only", choices=CASES, help="one of the cases")
    options = parser.parse_args(arguments)
    if options.peers:
        environment.install()
    print(
        f"Collecting {EPISODES} episodes with a {'x'.join(map(str, HIDDEN))} network, "
        f"medians of {options.rounds} rounds, steps per second."
    )
    titles = ("training", "replaying", "ratio", "idle", "length", "SB3 PPO")
    print(f"{'environment (engine)':<40}" + "".join(f"{title:>12}" for title in titles), flush=True)
    for title, (name, engine, before, theirs) in CASES.items():
        if options.only not in (None, title):
            continue
        row = f"{f'{title} ({engine})':<40}"
        try:
            training, replaying, ratio, idle, length = measure(name, engine, before, options.rounds)
        except (ImportError, ValueError) as error:
            print(f"{row}  not measured: {error}")
            continue
        row += f"{training:>12,.0f}{replaying:>12,.0f}{ratio:>12.2f}{idle:>12.1%}{length:>12.0f}"
        peer = f"{peer_rate(theirs, options.rounds):>12,.0f}" if environment.installed() else f"{'-':>12}"
        print(row + peer, flush=True)
    if not environment.installed():
        print("Stable-Baselines3 is not installed here: run with --peers.")


if __name__ == "__main__":
    main()
