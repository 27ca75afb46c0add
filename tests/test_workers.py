"""Jobs in processes of their own: all cores at work, failures told, order kept, nobody left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steadyrl.workers import Outcome, do_all


class TwoPartsError(Exception):
    """Pickles, but cannot be made again from what was pickled."""

    def __init__(self, what, where):
        super().__init__(f"{what} at {where}")


def meet(job, tell):
    """Wait until the others have come too: only jobs that run at the same time get to the end."""
    folder, number, others = job
    (Path(folder) / str(number)).touch()
    tell(f"{number} is here")
    deadline = time.monotonic() + 60
    while len(list(Path(folder).iterdir())) < others:
        assert time.monotonic() < deadline, "nobody came"
        time.sleep(0.05)
    return number, os.getpid(), sorted(os.sched_getaffinity(0)), os.environ["NPROC"]


def fail(number, tell):
    if number == 1:
        raise TwoPartsError("trouble", "home")
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 3:
        raise ValueError("a mistake\nin two lines")
    return number


def saves_when_stopped(folder, tell):
    (Path(folder) / str(os.getpid())).touch()
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        (Path(folder) / "saved").touch()
        raise


def goes_on(folder, tell):
    """Takes note of time passing, and cannot be stopped by asking."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        (Path(folder) / str(os.getpid())).touch()
        time.sleep(0.05)


needs_two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")


@needs_two_cores
def test_jobs_run_at_the_same_time_each_on_a_core_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("NPROC", "2")
    shown = []
    done = do_all(meet, [(str(tmp_path), 0, 2), (str(tmp_path), 1, 2)], lambda *said: shown.append(said))
    assert all(outcome.error is None for outcome in done)
    done = [outcome.value for outcome in done]
    assert [number for number, *_ in done] == [0, 1]
    assert len({pid for _, pid, _, _ in done} | {os.getpid()}) == 3
    assert all(len(cores) == 1 for _, _, cores, _ in done)
    assert done[0][2] != done[1][2]
    assert {threads for *_, threads in done} == {"1"}
    assert os.environ["NPROC"] == "2"
    assert {(0, "0 is here"), (0, None), (1, "1 is here"), (1, None)} == set(shown)


@pytest.mark.parametrize("cores", ["1", "2"])
def test_others_go_on_when_some_fail_or_die(cores, monkeypatch):
    monkeypatch.setenv("NPROC", cores)
    done = do_all(fail, range(6), lambda *_: None)
    assert [outcome.value for outcome in done] == [0, None, None, None, 4, 5]
    assert done[1].error == "TwoPartsError: trouble at home"
    assert "ended from outside (SIGKILL)" in done[2].error
    assert done[3] == Outcome(error="a mistake in two lines")


def started(tmp_path, job):
    """A process with a job under way, and that job's process."""
    # Whoever runs the tests in the background may have told all children to ignore Ctrl-C.
    heed = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"from test_workers import *; {heed}; do_all({job}, [{str(tmp_path)!r}], print)"
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
    process, sign_of_life = started(tmp_path, "goes_on")
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while time.time() - sign_of_life.stat().st_mtime < 2:
        assert time.monotonic() < deadline, "it lives on"
        time.sleep(0.2)
