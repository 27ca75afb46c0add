"""A sweep that takes a few seconds, so that it can be stopped in the middle, and what it writes."""

import subprocess
import sys
import time
from pathlib import Path

from interrupted_runs import without_clocks

from steadyrl.training.run_folder import is_complete, resume_files

SETTINGS = {"hidden": (16, 16), "learning_starts": 100, "gradient_steps": 1}
EPISODES = 150
LONG = ["sweep", "CartPole-v1", "--agents", "dqn", "--seeds", "2", "--episodes", str(EPISODES)]
LONG += [
    "--checkpoint-every",
    "0",
    "--set",
    "hidden=16,16",
    "--set",
    "learning_starts=100",
    "--set",
    "gradient_steps=1",
]


def run_names(out):
    """The folders below `out` that hold an agent."""
    return sorted(path.parent.relative_to(out).as_posix() for path in Path(out).rglob("checkpoint.steady"))


def results(out):
    """The agents and metrics of all runs, without what clocks measured."""
    return {
        name: ((out / name / "checkpoint.steady").read_bytes(), without_clocks(out / name / "metrics.jsonl"))
        for name in run_names(out)
    }


def _can_be_stopped(out):
    folders = [*out.rglob("seed*")]
    in_training = [folder for folder in folders if resume_files(folder)]
    return bool(in_training) and len({*in_training, *filter(is_complete, folders)}) == 2


def stopped(command, out, signal):
    """Start a sweep, and stop it by a signal when both runs have a checkpoint; its status and what it printed.

    On a busy machine one of them may be complete before the other has begun.
    """
    process = subprocess.Popen([sys.executable, "-m", "steadyrl", *command, "--out", str(out)], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 600
    while not _can_be_stopped(out):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.05)
    process.send_signal(signal)
    _, error = process.communicate(timeout=120)
    return process.returncode, error.decode()
