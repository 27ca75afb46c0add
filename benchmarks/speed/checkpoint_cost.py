"""What checkpoints cost: the seconds one takes, and the fraction of training time at the default interval.

    python -m benchmarks.speed.checkpoint_cost [--rounds 5] [--out FOLDER] [--buffer-size 1000000]

An agent is brought into the state that costs most, with its replay buffer full, and its checkpoint is written as during
training, to `--out`: disks differ. The fraction is what is spent if checkpoints come as `CheckpointTimer` decides.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import steadyrl
from steadyrl.training.checkpoint_timer import SECONDS, TIMES_ITS_COST
from steadyrl.training.run_folder import Run, config_of, resume_files

CASES = {
    "MG in CartPole-v1": lambda size: steadyrl.MeanGini("CartPole-v1"),
    "MG with PPO in HalfCheetah-v5": lambda size: steadyrl.MeanGini("HalfCheetah-v5", mean="ppo"),
    "DQN in LunarLander-v3": lambda size: steadyrl.DQN("LunarLander-v3", buffer_size=size),
    "TD3 in HalfCheetah-v5": lambda size: steadyrl.TD3("HalfCheetah-v5", buffer_size=size),
}


def seconds(run):
    """Of one checkpoint."""
    start = time.perf_counter()
    run.agent.iterations += 1
    run.checkpoint()
    return time.perf_counter() - start


def measure(agent, folder, rounds):
    """The median seconds of a checkpoint of an agent whose replay buffer is full, and its bytes."""
    if agent.replay_buffer is not None:
        shape = agent.replay_buffer.shape_after(agent.settings.buffer_size)
        rows = np.random.default_rng(0).normal(size=shape)
        agent.replay_buffer.restore(rows.astype(np.float32), len(rows))
    run = Run.begin(folder, agent, config_of(agent, {"episodes": 1}))
    took = statistics.median(seconds(run) for _ in range(rounds))
    return took, sum(path.stat().st_size for path in resume_files(folder).values())


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured")
    parser.add_argument("--out", type=Path, help="a folder on the disk to measure; that of temporary files by default")
    parser.add_argument("--buffer-size", type=int, default=1_000_000, help="transitions in the replay buffers")
    options = parser.parse_args(arguments)
    print(f"{'':<32}{'MB':>8}{'seconds':>10}{'every s':>10}{'fraction':>10}")
    for name, make in CASES.items():
        with tempfile.TemporaryDirectory(dir=options.out) as folder:
            took, size = measure(make(options.buffer_size), Path(folder), options.rounds)
        every = max(SECONDS, TIMES_ITS_COST * took)
        print(f"{name:<32}{size / 1e6:>8.1f}{took:>10.3f}{every:>10.0f}{took / (took + every):>10.2%}", flush=True)


if __name__ == "__main__":
    main()
