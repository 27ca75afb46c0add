"""What belongs to a run folder: nothing else is written, changed or removed, and everyone agrees on its state."""

import shutil
from pathlib import Path

import gymnasium as gym
import pytest
from commands import refusal
from crafted_files import craft
from interrupted_runs import MAZE, make_job, raising_at

import steadyrl
from steadyrl.base.signals import TrainingInterruptedError
from steadyrl.cli.main import main
from steadyrl.reports.page.runs_found import find_runs
from steadyrl.runs.job import run_job
from steadyrl.training import checkpoint, run_folder
from steadyrl.training.run_files import RESUME, has_error
from steadyrl.training.run_folder import is_complete, resume_files

pytestmark = pytest.mark.optimized  # One program, in which many tests train to the end.
TRAIN = ["train", MAZE, "--episodes", "50", "--no-progress", "--out"]
MINE = {"error.txt": "mine", ".notes.partial": "mine", ".draft.12.partial": "mine", "resume.txt": "mine"}


@pytest.fixture
def interrupted(tmp_path):
    """A job that can be resumed."""
    job = make_job("compiled", tmp_path / "run", seeds=(5,))
    with pytest.raises(KeyboardInterrupt):
        run_job(job, raising_at(2, KeyboardInterrupt()))
    assert resume_files(job.folders[0])
    return job


@pytest.mark.parametrize("name", ["metrics.jsonl", "evaluations.jsonl", "checkpoint.steady", "error.txt", "log.jsonl"])
def test_links_are_not_written_through(name, interrupted, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("important\n" * 1000)
    path = interrupted.folders[0] / name
    path.unlink(missing_ok=True)
    path.symlink_to(outside)
    with pytest.raises(FileExistsError, match=rf"{name} is a symbolic link.* Remove it\."):
        run_job(interrupted)
    assert outside.read_text() == "important\n" * 1000


def own_files(folder):
    folder.mkdir(exist_ok=True)
    for name, text in MINE.items():
        (folder / name).write_text(text)


def test_an_interrupt_before_anything_is_learned_removes_only_what_the_run_wrote(tmp_path):
    job = make_job("compiled", tmp_path, seeds=(5,))
    own_files(job.folders[0])
    (job.folders[0] / ".config.json.99.partial").write_text("{")  # Of an earlier process that was killed.

    def listeners(agents, runs):
        assert {path.name for path in runs[0].folder.iterdir()} == {*MINE, "config.json"}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="Nothing had been learned yet"):
        run_job(job, listeners)
    assert {path.name: path.read_text() for path in job.folders[0].iterdir()} == MINE


def test_an_empty_folder_of_the_user_stays(tmp_path):
    job = make_job("compiled", tmp_path, seeds=(5,))

    def listeners(agents, runs):
        raise KeyboardInterrupt

    for made_before in (False, True):
        if made_before:
            job.folders[0].mkdir()
        with pytest.raises(KeyboardInterrupt):
            run_job(job, listeners)
        assert job.folders[0].exists() == made_before


def test_an_error_does_not_overwrite_the_users_error_txt(tmp_path):
    job = make_job("compiled", tmp_path, seeds=(5,))
    own_files(job.folders[0])
    with pytest.raises(TrainingInterruptedError) as stop:
        run_job(job, raising_at(2, RuntimeError("broken")))
    assert "error.txt" not in str(stop.value)
    run_job(job)
    assert is_complete(job.folders[0])
    assert {name: (job.folders[0] / name).read_text() for name in MINE} == MINE


def test_our_error_txt_goes_when_the_run_goes_on(tmp_path):
    job = make_job("compiled", tmp_path, seeds=(5,))
    with pytest.raises(TrainingInterruptedError, match=r"the traceback in error\.txt there"):
        run_job(job, raising_at(2, RuntimeError("broken")))
    assert "RuntimeError: broken" in (job.folders[0] / "error.txt").read_text()
    assert has_error(job.folders[0])
    run_job(job)
    assert not (job.folders[0] / "error.txt").exists()


def test_a_run_killed_before_it_tidied_up_is_complete_for_everyone(interrupted, capsys):
    (folder,) = interrupted.folders
    leftover = next(iter(resume_files(folder).values()))
    kept = folder.parent / "kept"
    shutil.copy(leftover, kept)
    run_job(interrupted)
    shutil.copy(kept, leftover)
    (folder / ".resume-7.steady.99.partial").write_text("half")
    main(["evaluate", str(folder), "--episodes", "5"])
    assert "not complete" not in capsys.readouterr().err
    assert not [note for note in find_runs(folder)[1] if "incomplete" in note]
    run_job(interrupted)
    assert is_complete(folder)
    assert not leftover.exists()
    assert not list(folder.glob(".*.partial"))


def test_a_finished_agent_is_nothing_to_resume_from(interrupted):
    (folder,) = interrupted.folders
    (path,) = resume_files(folder).values()
    steadyrl.load(path).save(path)
    with pytest.raises(ValueError, match="not what is needed to resume"):
        run_job(interrupted)
    assert path.exists()


@pytest.mark.parametrize("waiting", [[1], [{"a": "b"}], [{"episodes": "x"}], {}])
def test_records_that_wait_in_a_resume_file_are_checked(waiting, interrupted):
    (path,) = resume_files(interrupted.folders[0]).values()
    craft(path, lambda header, arrays: header["note"].update(waiting=waiting))
    with pytest.raises(ValueError, match="not what is needed to resume"):
        run_job(interrupted)


def test_a_flipped_bit_in_a_resume_file_is_an_error(interrupted):
    (path,) = resume_files(interrupted.folders[0]).values()
    content = bytearray(path.read_bytes())
    content[-5] ^= 4
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"resume-\d+\.steady is damaged"):
        run_job(interrupted)


def test_a_resume_file_without_a_config_is_not_touched(tmp_path, capsys):
    mine = tmp_path / RESUME.format(3)
    mine.write_text("mine")
    assert "resume-3.steady without a config.json" in refusal(capsys, *TRAIN, tmp_path)
    assert mine.read_text() == "mine"


class Wandering(gym.Wrapper):
    """An environment that changes the current folder."""

    def reset(self, **options):
        import os

        os.chdir("/")
        return super().reset(**options)


def wandering():
    return Wandering(gym.make("CartPole-v1"))


def test_an_environment_may_change_the_current_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["train", f"{__name__}:wandering", "--set", "hidden=4", "--episodes", "60", "--no-progress"]
    main([*command, "--out", "run", "--log", "jsonl"])
    assert is_complete(tmp_path / "run")
    assert (tmp_path / "run" / "log.jsonl").exists()
    assert Path.cwd() == Path("/")
    assert "steadyrl evaluate run" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    main(["evaluate", "run", "--env", f"{__name__}:wandering", "--episodes", "2", "--histogram", "returns.png"])
    assert (tmp_path / "returns.png").exists()


def test_an_agent_can_be_read_while_its_run_is_written(interrupted, monkeypatch):
    """The checkpoint that was just found may be replaced before it is read."""
    (folder,) = interrupted.folders
    (folder / "checkpoint.steady").unlink()
    (first,) = resume_files(folder).values()
    real, calls = checkpoint.read, []

    def replaced(path):
        calls.append(path)
        if len(calls) == 1:
            first.rename(folder / RESUME.format(900))
        return real(path)

    monkeypatch.setattr(run_folder.checkpoint, "read", replaced)
    assert steadyrl.load(folder).episodes > 0
    assert [path.name for path in calls] == [first.name, "resume-900.steady"]


def test_a_run_folder_can_be_loaded(interrupted, tmp_path):
    (folder,) = interrupted.folders
    episodes = steadyrl.load(folder).episodes
    run_job(interrupted)
    assert steadyrl.MeanGini.load(folder).episodes > episodes
    with pytest.raises(FileNotFoundError, match=rf"holds no trained agent.* Did you mean {folder}\?"):
        steadyrl.load(tmp_path)


@pytest.mark.parametrize("when", ["import", "creation"])
def test_an_exit_in_the_users_module_is_an_error(when, tmp_path, monkeypatch, capsys):
    code = "import sys\nsys.exit(0)" if when == "import" else "def make():\n    raise SystemExit(0)"
    (tmp_path / f"leaving_{when}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    line = refusal(capsys, "train", f"leaving_{when}:make", "--out", tmp_path / "run")
    assert "SystemExit: 0" in line
    assert not (tmp_path / "run").exists()
