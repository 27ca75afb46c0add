"""A sweep that takes a few seconds, to be broken off in the middle, and what it leaves."""

import json
import subprocess
import sys
import time
from pathlib import Path

from steadyrl.runs import resume_files

LONG = ["sweep", "CartPole-v1", "--agents", "dqn", "--seeds", "2", "--episodes", "150", "--checkpoint-every", "0"]
LONG += ["--set", "hidden=16,16", "--set", "learning_starts=100", "--set", "gradient_steps=1"]


def folders(out):
    return sorted(path.parent.relative_to(out).as_posix() for path in Path(out).rglob("checkpoint.steady"))


def bits(out):
    """Of all that runs left, but for what clocks said."""
    clocks = ("time", "seconds_collecting", "seconds_updating")
    found = {}
    for name in folders(out):
        lines = (out / name / "metrics.jsonl").read_text().splitlines()
        records = [{k: v for k, v in json.loads(line).items() if k not in clocks} for line in lines]
        found[name] = ((out / name / "checkpoint.steady").read_bytes(), records)
    return found


def broken_off(command, out, stop):
    """Start a sweep, and end it by a signal when two runs have a checkpoint."""
    process = subprocess.Popen([sys.executable, "-m", "steadyrl", *command, "--out", str(out)], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while len([folder for folder in out.rglob("seed*") if resume_files(folder)]) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.05)
    process.send_signal(stop)
    _, error = process.communicate(timeout=120)
    return process.returncode, error.decode()
