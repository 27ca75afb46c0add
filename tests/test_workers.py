"""Jobs in processes of their own: all cores at work, failures told, order kept."""

import os
import time
from pathlib import Path

import pytest

from steadyrl.progress import bar
from steadyrl.workers import do_all


class TwoPartsError(Exception):
    """Pickles, but cannot be made again from what was pickled."""

    def __init__(self, what, where):
        super().__init__(f"{what} at {where}")


def meet(folder, number, others, progress):
    """Wait until the others have come too: only jobs that run at the same time get to the end."""
    progress.add_task("meeting", total=1, unit="ep", note="", start=False)
    (Path(folder) / str(number)).touch()
    deadline = time.monotonic() + 60
    while len(list(Path(folder).iterdir())) < others:
        assert time.monotonic() < deadline, "nobody came"
        time.sleep(0.05)
    return number, os.getpid(), sorted(os.sched_getaffinity(0)), os.environ["NPROC"]


def fail(number, progress):
    if number == 1:
        raise TwoPartsError("trouble", "home")
    return number


needs_two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")


@needs_two_cores
def test_jobs_run_at_the_same_time_each_on_a_core_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("NPROC", "2")
    with bar() as progress:
        done = do_all(meet, [(str(tmp_path), 0, 2), (str(tmp_path), 1, 2)], progress)
    assert [number for number, *_ in done] == [0, 1]
    assert len({pid for _, pid, _, _ in done} | {os.getpid()}) == 3
    assert all(len(cores) == 1 for _, _, cores, _ in done)
    assert done[0][2] != done[1][2]
    assert {threads for *_, threads in done} == {"1"}
    assert os.environ["NPROC"] == "2"


@needs_two_cores
def test_a_failure_keeps_its_words(monkeypatch):
    monkeypatch.setenv("NPROC", "2")
    with bar() as progress, pytest.raises(RuntimeError, match="TwoPartsError: trouble at home"):
        do_all(fail, [(0,), (1,)], progress)


def test_with_one_core_jobs_run_here(tmp_path, monkeypatch):
    monkeypatch.setenv("NPROC", "1")
    with bar() as progress:
        ((_, pid, _, _),) = do_all(meet, [(str(tmp_path), 0, 1)], progress)
    assert pid == os.getpid()
