"""What checkpoints cost: the seconds one takes, and their share of the time of training at the default interval.

    python benchmarks/checkpoint_cost.py [--rounds 5] [--out FOLDER]

An agent is brought into the state that costs most, with its replay memory full, and its checkpoint is written as while
it learns, to `--out`: disks differ. The share is what is spent if checkpoints come as `Checkpoints` decides.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import steadyrl
from steadyrl.checkpoints import SECONDS, TIMES_ITS_COST
from steadyrl.runs import Run, config_of, resume_files

CASES = {
    "MG in CartPole-v1": lambda: steadyrl.MeanGini("CartPole-v1"),
    "MG with PPO in HalfCheetah-v5": lambda: steadyrl.MeanGini("HalfCheetah-v5", mean="ppo"),
    "DQN in LunarLander-v3": lambda: steadyrl.DQN("LunarLander-v3", buffer_size=1_000_000),
    "TD3 in HalfCheetah-v5": lambda: steadyrl.TD3("HalfCheetah-v5", buffer_size=1_000_000),
}


def seconds(run):
    """What one checkpoint takes."""
    start = time.perf_counter()
    run.agent.iterations += 1
    run.keep()
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured")
    parser.add_argument("--out", type=Path, help="a folder on the disk to measure; that of temporary files by default")
    options = parser.parse_args()
    print(f"{'':<32}{'MB':>8}{'seconds':>10}{'every s':>10}{'share':>10}")
    for name, make in CASES.items():
        with tempfile.TemporaryDirectory(dir=options.out) as folder:
            agent = make()
            if agent.memory is not None:
                rows = np.random.default_rng(0).normal(size=(agent.settings.buffer_size, agent.algorithm.layout.width))
                agent.memory.restore(rows.astype(np.float32), len(rows))
            run = Run.begin(Path(folder), agent, config_of(agent, {"episodes": 1}))
            took = statistics.median(seconds(run) for _ in range(options.rounds))
            size = sum(path.stat().st_size for path in resume_files(Path(folder)).values())
        every = max(SECONDS, TIMES_ITS_COST * took)
        print(f"{name:<32}{size / 1e6:>8.1f}{took:>10.3f}{every:>10.0f}{took / (took + every):>10.2%}", flush=True)


if __name__ == "__main__":
    main()
