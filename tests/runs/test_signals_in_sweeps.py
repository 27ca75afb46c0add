"""Sweeps that are stopped at any moment: no process is left over, and nothing but one line is printed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SWEEP = ["sweep", "CartPole-v1", "--agents", "mg", "--seeds", "2", "--episodes", "100000"]
MOMENTS = [0.3, 1, 2, 4, 6]


def workers_of(owner):
    """The processes that a process has started, except the one by which multiprocessing frees what they share."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == owner and b"resource_tracker" not in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (OSError, ValueError, IndexError):
            continue
    return found


def sent(number, after, out):
    """Start a sweep and send a signal after so many seconds; its status, what it printed, and its workers."""
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import runpy; "
    code += "runpy.run_module('steadyrl', run_name='__main__')"
    command = [sys.executable, "-c", code, *SWEEP, "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(after)
    workers = workers_of(process.pid)
    process.send_signal(number)
    # Until all that hold the pipes have ended, the workers too.
    _, error = process.communicate(timeout=60)
    return process.returncode, error, workers


def alive(workers):
    return [worker for worker in workers if os.path.exists(f"/proc/{worker}")]


@pytest.mark.parametrize("after", MOMENTS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_sweep_that_is_stopped(number, after, tmp_path):
    status, error, workers = sent(number, after, tmp_path / "out")
    assert status == 130, error
    assert "steadyrl: stopped." in error.splitlines()[-1]
    assert "Traceback" not in error
    assert "ignored" not in error
    assert alive(workers) == []


@pytest.mark.parametrize("after", MOMENTS)
def test_a_sweep_that_is_killed(after, tmp_path):
    """Its workers print nothing of ours; Python itself may, if it was about to start one."""
    status, error, workers = sent(signal.SIGKILL, after, tmp_path / "out")
    assert status == -signal.SIGKILL
    assert "steadyrl" not in error
    assert "Connection" not in error
    deadline = time.monotonic() + 10
    while alive(workers):
        assert time.monotonic() < deadline
        time.sleep(0.1)
