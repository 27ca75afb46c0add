"""Jobs in processes of their own: one for each core, results in order, failures reported, no process left over."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steadyrl.runs.workers import JobResult, run_all


class TwoPartsError(Exception):
    """Can be pickled, but not unpickled."""

    def __init__(self, what, where):
        super().__init__(f"{what} at {where}")


def meet(job, report):
    """Wait until the others have started too: only jobs that run at the same time end."""
    folder, number, others = job
    (Path(folder) / str(number)).touch()
    report(f"{number} is here")
    deadline = time.monotonic() + 60
    while len(list(Path(folder).iterdir())) < others:
        assert time.monotonic() < deadline, "the others did not start"
        time.sleep(0.05)
    return number, os.getpid(), sorted(os.sched_getaffinity(0)), os.environ["NPROC"]


def fail(number, report):
    if number == 1:
        raise TwoPartsError("trouble", "home")
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 3:
        raise ValueError("a mistake\nin two lines")
    return number


def saves_when_stopped(folder, report):
    (Path(folder) / str(os.getpid())).touch()
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        (Path(folder) / "saved").touch()
        raise


def ignores_sigterm(folder, report):
    """Shows that it is alive, and cannot be terminated."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        (Path(folder) / str(os.getpid())).touch()
        time.sleep(0.05)


needs_two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")


@needs_two_cores
def test_jobs_run_at_the_same_time_each_on_a_core_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("NPROC", "2")
    shown = []
    done = run_all(meet, [(str(tmp_path), 0, 2), (str(tmp_path), 1, 2)], lambda *report: shown.append(report))
    assert all(result.error is None for result in done)
    done = [result.value for result in done]
    assert [number for number, *_ in done] == [0, 1]
    assert len({pid for _, pid, _, _ in done} | {os.getpid()}) == 3
    assert all(len(cores) == 1 for _, _, cores, _ in done)
    assert done[0][2] != done[1][2]
    assert {threads for *_, threads in done} == {"1"}
    assert os.environ["NPROC"] == "2"
    assert {(0, "0 is here"), (0, None), (1, "1 is here"), (1, None)} == set(shown)


@pytest.mark.parametrize("cores", ["1", "2"])
def test_other_jobs_run_when_some_fail_or_die(cores, monkeypatch):
    monkeypatch.setenv("NPROC", cores)
    done = run_all(fail, range(6), lambda *_: None)
    assert [result.value for result in done] == [0, None, None, None, 4, 5]
    assert done[1].error == "TwoPartsError: trouble at home"
    assert "killed (SIGKILL)" in done[2].error
    assert done[3] == JobResult(error="a mistake in two lines")


def started(tmp_path, job):
    """A process that runs a job, and the file by which the job shows that it is alive."""
    # A test run in the background may have been started with Ctrl-C ignored.
    heed_ctrl_c = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"from test_workers import *; {heed_ctrl_c}; run_all({job}, [{str(tmp_path)!r}], print)"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parent, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (found := [path for path in tmp_path.iterdir() if path.name.isdecimal()]):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    return process, found[0]


def test_jobs_can_save_when_all_is_stopped(tmp_path):
    process, _ = started(tmp_path, "saves_when_stopped")
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in error
    assert (tmp_path / "saved").exists()


def test_no_job_outlives_its_owner(tmp_path):
    process, sign_of_life = started(tmp_path, "ignores_sigterm")
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while time.time() - sign_of_life.stat().st_mtime < 2:
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.2)
