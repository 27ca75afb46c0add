"""How fast episodes are collected while an agent trains, beside the same simulator replaying the same actions.

    python benchmarks/collect.py [--rounds 15] [--peers]

Each round trains an agent on 30 episodes, then starts the same simulator from the same seeds and gives it the recorded
actions, with no policy and nothing stored. Printed are the medians of the steps per second of both, without the steps
in episodes that do not count, and of their ratio. With `--peers`, Stable-Baselines3 collects in 30 of the same
environments too; it is installed in a virtual environment of its own, `.venv-peers`, when that is not there yet.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import peers

EPISODES = 30
CASES = {
    # Name: environment, engine, episodes to learn from before the measurement, and Gymnasium's own for peers.
    "LunarLander": ("steadyrl/LunarLander-v0", "envpool", 0, "LunarLander-v3"),
    "LunarLander, Gymnasium": ("steadyrl/LunarLander-v0", "gymnasium", 0, "LunarLander-v3"),
    # A pendulum that nobody holds falls within 8 steps, in which little can be measured.
    "InvertedPendulum": ("steadyrl/InvertedPendulum-v0", "mujoco", 1500, "InvertedPendulum-v5"),
}
PEER_STEPS = 128
PEER = f"""
import statistics, sys, time, gymnasium, torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

torch.set_num_threads(1)
name, rounds = sys.argv[1], int(sys.argv[2])
envs = make_vec_env(name, n_envs={EPISODES}, seed=0)
shape = dict(net_arch=dict(pi=[128, 128], vf=[128, 128]), activation_fn=torch.nn.ReLU)
agent = PPO("MlpPolicy", envs, n_steps={PEER_STEPS}, policy_kwargs=shape, seed=0, device="cpu")
_, callback = agent._setup_learn(10**9)
rates = []
for _ in range(rounds):
    start = time.perf_counter()
    agent.collect_rollouts(envs, callback, agent.rollout_buffer, n_rollout_steps={PEER_STEPS})
    rates.append({EPISODES * PEER_STEPS} / (time.perf_counter() - start))
    agent.train()
print(statistics.median(rates))
"""


class Recorded:
    """A simulator that writes down what it is asked for."""

    def __init__(self, simulator):
        self.simulator, self.seeds, self.steps = simulator, None, []

    def __getattr__(self, name):
        return getattr(self.simulator, name)

    def reset(self, seeds):
        """See `Simulator`."""
        self.seeds, self.steps = seeds, []
        return self.simulator.reset(seeds)

    def step(self, slots, actions):
        """See `Simulator`."""
        self.steps.append((slots, actions))
        return self.simulator.step(slots, actions)

    def replay(self):
        """Seconds that the same episodes take once more, and their undiscounted returns."""
        start = time.perf_counter()
        self.simulator.reset(self.seeds)
        steps = [self.simulator.step(slots, actions) for slots, actions in self.steps]
        seconds = time.perf_counter() - start
        returns = np.zeros(len(self.seeds))
        for (slots, _), step in zip(self.steps, steps, strict=True):
            returns[slots] += step.rewards
        return seconds, returns


def measure(name, engine, before, rounds):
    """Steps per second while training and replaying, their ratio, the share of idle steps and the mean length."""
    from steadyrl.agents import MeanGini

    agent = MeanGini(name, engine=engine, episodes_per_update=EPISODES, hidden=(128, 128), risk_aversion=0.6, seed=0)
    agent.learn(total_episodes=before + EPISODES, progress_bar=False)
    recorded = Recorded(agent.simulator())
    agent.simulator = lambda: recorded
    rows = []
    for _ in range(rounds):
        before = agent.timesteps
        agent.learn(total_episodes=EPISODES, progress_bar=False)
        told, steps = agent.history[-1], agent.timesteps - before
        seconds, returns = recorded.replay()
        # The same episodes, or the comparison would mean nothing.
        np.testing.assert_allclose(returns.mean(), told["return"], rtol=1e-6)
        collecting = told["seconds_collecting"]
        idle = told["idle_steps"] / (steps + told["idle_steps"])
        rows.append((steps / collecting, steps / seconds, seconds / collecting, idle, told["length"]))
    return np.median(rows, axis=0)


def peer_rate(name, rounds):
    """Steps per second of Stable-Baselines3's PPO while it collects, or None if it is not installed."""
    if not peers.installed():
        return None
    return float(peers.run("-c", PEER, name, rounds).split()[-1])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="how often each is measured")
    parser.add_argument("--peers", action="store_true", help="install Stable-Baselines3 if it is not there")
    parser.add_argument("--only", choices=CASES, help="one of the cases")
    options = parser.parse_args()
    if options.peers:
        peers.install()
    print(
        f"Collecting {EPISODES} episodes with a 128x128 network, medians of {options.rounds} rounds, steps per second."
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
        peer = peer_rate(theirs, options.rounds)
        print(row + (f"{peer:>12,.0f}" if peer else f"{'-':>12}"), flush=True)
    if not peers.installed():
        print("Stable-Baselines3 is not installed here: run with --peers.")


if __name__ == "__main__":
    sys.exit(main())
