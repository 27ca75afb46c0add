"""What interrupts a run: a killed process, a full disk, a signal, an environment that fails."""

import errno
import os
import signal
import subprocess
import sys

import pytest
from interrupted_runs import MAZE, REPLAY, Killed, assert_same_runs, make_job, raising_at, without_clocks

import steadyrl
from steadyrl.base.signals import TrainingInterruptedError, defer_signals
from steadyrl.cli.main import main
from steadyrl.reports.page.runs_found import find_runs
from steadyrl.runs.job import run_job
from steadyrl.training.engines import replay
from steadyrl.training.engines.host import HostEngine
from steadyrl.training.run_folder import agent_file, resume_files

DYING = """
import os, signal
written, fsync = [], os.fsync
def dying_fsync(file):
    written.append(file)
    if len(written) == {number}:
        os.kill(os.getpid(), signal.SIGKILL)
    fsync(file)
os.fsync = dying_fsync
from steadyrl.cli.main import main
main({arguments!r})
"""


@pytest.mark.slow
def test_killed_in_the_middle_of_writing(tmp_path):
    """`kill -9` at each of the moments at which a file is not yet whole, in one run after the other."""
    arguments = ["train", "CartPole-v1", "--agent", "dqn", "--episodes", "9", "--checkpoint-every", "0"]
    arguments += [f"--set={name}={','.join(map(str, v)) if name == 'hidden' else v}" for name, v in REPLAY.items()]
    arguments += ["--no-progress", "--out"]
    whole, interrupted, partial_files = tmp_path / "whole", tmp_path / "interrupted", 0
    for number in (3, 5, 2, 1000):
        code = DYING.format(number=number, arguments=[*arguments, str(interrupted)])
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == (0 if number == 1000 else -signal.SIGKILL), done.stderr
        partial_files += len(list(interrupted.glob(".*.partial")))
    assert partial_files > 0
    subprocess.run([sys.executable, "-m", "steadyrl", *arguments, str(whole)], check=True, capture_output=True)
    assert (interrupted / "checkpoint.steady").read_bytes() == (whole / "checkpoint.steady").read_bytes()
    assert without_clocks(interrupted / "metrics.jsonl") == without_clocks(whole / "metrics.jsonl")
    assert sorted(path.name for path in interrupted.iterdir()) == sorted(path.name for path in whole.iterdir())


def test_a_full_disk_leaves_the_last_checkpoint_whole(tmp_path, monkeypatch):
    whole, interrupted = make_job("dqn", tmp_path / "whole"), make_job("dqn", tmp_path / "interrupted")
    run_job(whole)
    writes, fsync = [], os.fsync

    def full(file):
        writes.append(file)
        if len(writes) > 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(file)

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(TrainingInterruptedError) as stop:
        run_job(interrupted)
    monkeypatch.undo()
    assert "could not be written: No space left on device." in str(stop.value)
    assert f"until the last checkpoint is saved in {interrupted.folders[0]}" in str(stop.value)
    assert len(str(stop.value).splitlines()) == 1
    assert len(resume_files(interrupted.folders[0])) == 1
    run_job(interrupted)
    assert_same_runs(interrupted, whole)


def test_the_same_command_resumes_and_reports_it(tmp_path, capsys):
    command = ["train", MAZE, "--episodes", "2500", "--no-progress", "--out"]
    main([*command, str(tmp_path / "whole")])
    out = tmp_path / "interrupted" / "seed0"
    job = make_job("compiled", out.parent, seeds=(0,), evaluations=None, episodes_per_record=1)
    with pytest.raises(KeyboardInterrupt) as stop:
        run_job(job, raising_at(2, KeyboardInterrupt))
    assert f"until the last checkpoint is saved in {out}" in str(stop.value)
    assert "The same command resumes from there." in str(stop.value)
    capsys.readouterr()
    main(["evaluate", str(out), "--episodes", "5"])
    assert "is not complete: this is its agent after" in capsys.readouterr().err
    assert find_runs(out)[1] == {"still running or interrupted: training incomplete": ["."]}
    main([*command, str(out)])
    assert f"Resuming in {out} after 1,000 episodes." in capsys.readouterr().err
    assert (out / "checkpoint.steady").read_bytes() == (tmp_path / "whole/checkpoint.steady").read_bytes()
    main([*command, str(out)])
    assert "complete already" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["_update", "_summarize"])
def test_an_interrupt_during_an_episode_leaves_no_trace_in_the_replay_buffer(place, tmp_path, monkeypatch):
    """In an update, after some steps were stored; or when all were, but the episode is not recorded."""
    whole, interrupted = make_job("dqn", tmp_path / "whole"), make_job("dqn", tmp_path / "interrupted")
    run_job(whole)
    calls, real = [], getattr(replay, place)

    def interrupting(*arguments):
        calls.append(1)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(replay, place, interrupting)
    with pytest.raises(KeyboardInterrupt):
        run_job(interrupted)
    run_job(interrupted)
    assert_same_runs(interrupted, whole)


def test_an_environment_that_fails_once_changes_nothing(tmp_path, monkeypatch):
    whole, interrupted = make_job("tamar", tmp_path / "whole"), make_job("tamar", tmp_path / "interrupted")
    run_job(whole)
    calls, real = [], HostEngine._round

    def fails_once(self, learner, k):
        calls.append(k)
        if calls.count(73) == 1 and k == 73:
            raise RuntimeError("the wheel came off")
        return real(self, learner, k)

    monkeypatch.setattr(HostEngine, "_round", fails_once)
    with pytest.raises(TrainingInterruptedError, match=r"the wheel came off.* in 50 episodes is saved"):
        run_job(interrupted)
    (folder,) = interrupted.folders
    assert "fails_once" in (folder / "error.txt").read_text()
    assert "failed (see error.txt): training incomplete" in find_runs(folder)[1]
    run_job(interrupted)
    assert not (folder / "error.txt").exists()
    assert_same_runs(interrupted, whole)


def test_the_agent_of_an_interrupted_run_is_its_latest(tmp_path):
    job = make_job("dqn", tmp_path)
    with pytest.raises(TrainingInterruptedError):
        run_job(job, raising_at(4, RuntimeError))
    (folder,) = job.folders
    assert agent_file(folder) == folder / "checkpoint.steady"
    with pytest.raises(Killed):
        run_job(job, raising_at(5, Killed))
    assert steadyrl.load(agent_file(folder)).episodes == max(resume_files(folder))


@pytest.fixture
def ctrl_c_enabled():
    """A test run in the background may have been started with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_enabled")
def test_signals_wait_until_everything_is_recorded():
    recorded = []

    def work(signals):
        with defer_signals():
            for _ in range(signals):
                os.kill(os.getpid(), signal.SIGINT)
            recorded.append(signals)
        recorded.append("after")

    with pytest.raises(KeyboardInterrupt):
        work(1)
    assert recorded == [1]
    with pytest.raises(KeyboardInterrupt):
        work(2)  # The second is not deferred.
    assert recorded == [1]
    work(0)
    assert recorded == [1, 0, "after"]
