"""Run folders: locks, folders that hold something else, half-written lines, and the timing of checkpoints."""

import errno
import json
import subprocess
import sys

import pytest
from commands import refusal
from interrupted_runs import MAZE, make_job

import steadyrl
from steadyrl.base.files import append_atomic, lock_folder
from steadyrl.cli.main import main
from steadyrl.runs.job import run_job
from steadyrl.training.checkpoint_timer import CheckpointTimer

TRAIN = ["train", MAZE, "--episodes", "50", "--no-progress", "--out"]


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_half_a_line_of_metrics_is_removed(tmp_path, monkeypatch):
    """On a full disk the last line may be written in part."""
    path = tmp_path / "metrics.jsonl"
    append_atomic(path, "whole\n")
    real = type(path).open

    class HalfWritten:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, text):
            self.file.write(text[: len(text) // 2])
            self.file.flush()
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(type(path), "open", lambda self, mode: HalfWritten(real(self, mode)))
    with pytest.raises(OSError, match=r"metrics.jsonl could not be written: No space left on device\."):
        append_atomic(path, "half of this\n")
    monkeypatch.undo()
    assert path.read_text() == "whole\n"


def test_a_folder_that_cannot_be_created_gets_one_line(tmp_path, capsys):
    file = tmp_path / "file"
    file.touch()
    line = refusal(capsys, *TRAIN, str(file / "run"))
    assert f"{file / 'run'} cannot be created: Not a directory. Choose another --out." in line


def test_two_processes_cannot_share_a_folder(tmp_path, capsys):
    out = tmp_path / "run"
    code = f"""
import sys
from pathlib import Path
from steadyrl.base.files import lock_folder
with lock_folder(Path({str(out)!r})):
    print("locked", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "locked\n"
        line = refusal(capsys, *TRAIN, str(out))
        other.stdin.close()
    assert "another process is at work in it" in line
    assert list(out.iterdir()) == []
    with lock_folder(out):
        pass


def test_a_run_of_another_version_is_not_touched(tmp_path, capsys):
    out = tmp_path / "run"
    main([*TRAIN, str(out)])
    config = json.loads((out / "config.json").read_text())
    config["versions"]["jax"] = "0.1"
    (out / "config.json").write_text(json.dumps(config))
    before = content(out)
    capsys.readouterr()
    assert "other versions (jax 0.1, here " in refusal(capsys, *TRAIN, str(out))
    assert content(out) == before
    assert steadyrl.load(out / "checkpoint.steady").episodes == 50


@pytest.mark.parametrize("name", ["config.json", "checkpoint.steady", "metrics.jsonl"])
def test_other_files_are_not_touched(name, tmp_path, capsys):
    (tmp_path / name).write_text('{"mine": 1}')
    (tmp_path / "error.txt").write_text("mine too")
    before = content(tmp_path)
    assert "Choose another --out" in refusal(capsys, *TRAIN, str(tmp_path))
    assert content(tmp_path) == before


def test_an_agent_without_a_note_of_completion_is_not_touched(tmp_path):
    """Folders written before runs could be resumed have such agents."""
    job = make_job("compiled", tmp_path, seeds=(5,), budget={"episodes": 50}, evaluations=None)
    run_job(job)
    file = job.folders[0] / "checkpoint.steady"
    steadyrl.load(file).save(file)
    before = file.read_bytes()
    with pytest.raises(FileExistsError, match="already holds an agent, but nothing to resume from"):
        run_job(job)
    assert file.read_bytes() == before


@pytest.mark.parametrize("seconds", ["nan", "-1", "inf"])
def test_the_time_between_checkpoints_is_finite(seconds, tmp_path, capsys):
    assert "--checkpoint-every" in refusal(capsys, *TRAIN, str(tmp_path / "run"), "--checkpoint-every", seconds)
    assert not (tmp_path / "run").exists()


def test_checkpoints_take_little_of_the_time(monkeypatch):
    """Whatever one costs: here 3 seconds, where a round takes 1."""
    now, writes = [0.0], []

    class CostlyRun:
        class agent:  # noqa: N801
            iterations = 0

        def checkpoint(self):
            now[0] += 3
            writes.append(now[0])

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    timer = CheckpointTimer([CostlyRun()])
    while now[0] < 10_000:
        now[0] += 1
        timer([], [])
    assert len(writes) > 20
    assert 3 * len(writes) / now[0] < 0.02
