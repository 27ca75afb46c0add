"""Loggers: what each of them records and when they are closed; JSON lines and TensorBoard."""

import json
import math
import sys
from types import SimpleNamespace

import pytest
from logged_runs import COUNTERS, TRAIN, Recorder, StartedRecorder, info, interrupt_after, maze, record

from steadyrl.cli.main import main
from steadyrl.training.loggers import LOGGERS, finite_metrics, logger_class, open_loggers
from steadyrl.training.loggers.jsonl import JSONLinesLogger
from steadyrl.training.loggers.tensorboard import TensorBoardLogger
from steadyrl.training.run_folder import read_metrics

# Which loggers there are, and when they are opened and closed.


@pytest.mark.parametrize("name", LOGGERS)
def test_every_logger_has_what_the_loop_and_the_scheduler_ask_for(name, monkeypatch):
    for package in ("tensorboardX", "wandb", "mlflow"):
        monkeypatch.setitem(sys.modules, package, SimpleNamespace())
    kind = logger_class(name)
    assert getattr(kind, "writes_files", False) == (name in ("jsonl", "tensorboard"))
    for method in ("start", "log", "close"):
        assert callable(getattr(kind(), method))
    kind().close()  # Also before it was started.


@pytest.mark.parametrize(
    ("name", "package"), [("tensorboard", "tensorboardX"), ("wandb", "wandb"), ("mlflow", "mlflow")]
)
def test_a_missing_package_is_named_with_its_extra_before_training(name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    agent = maze()
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'steadyrl\[{name}\]'"):
        agent.learn(total_episodes=50, loggers=[name], progress_bar=False)
    assert agent.episodes == 0


def test_without_the_package_the_command_creates_no_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(SystemExit) as stop:
        main([*TRAIN, str(tmp_path / "run")])
    assert stop.value.code == 2
    assert "pip install 'steadyrl[tensorboard]'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(ValueError, match=r"unknown logger 'tensorbord'\. Did you mean 'tensorboard'\?"):
        maze().learn(total_episodes=50, loggers=["tensorbord"])


@pytest.mark.parametrize("name", ["jsonl", "tensorboard"])
def test_loggers_of_files_need_a_run_folder(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace())
    with pytest.raises(ValueError, match=rf"loggers=\['{name}'\]: there is no run folder to write to. Add out=..."):
        maze().learn(total_episodes=50, loggers=[name], progress_bar=False)


@pytest.mark.parametrize("wrong", [3, Recorder, SimpleNamespace(log=print)])
def test_what_is_no_logger_is_refused(wrong):
    with pytest.raises(TypeError, match=r"pass an object with the methods log\(record\) and close\(\), or a name: jso"):
        maze().learn(total_episodes=50, loggers=[wrong], progress_bar=False)


def test_objects_are_started_if_they_can_be_get_every_record_and_are_closed():
    recorder, started = Recorder(), StartedRecorder()
    maze(seed=4).learn(total_episodes=150, loggers=[recorder, started], progress_bar=False)
    assert recorder.events == [50, 100, 150, "closed"]
    first, *rest = started.events
    assert (first.name, first.folder, first.config["seed"]) == ("mg-seed4", None, 4)
    assert first.config["settings"]["risk_aversion"] == 0.5
    assert rest == recorder.events


def test_an_object_logs_one_run():
    with (
        pytest.raises(ValueError, match="Name loggers to log several"),
        open_loggers([Recorder()], [info(), info()], [maze(0), maze(1)]),
    ):
        pass


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_loggers_are_closed_when_training_raises(error):
    recorder = Recorder()
    with pytest.raises(error):
        maze().learn(total_episodes=500, loggers=[recorder], callback=interrupt_after(100, error), progress_bar=False)
    assert recorder.events == [50, 100, "closed"]


def test_loggers_opened_before_one_that_fails_are_closed():
    recorder = Recorder()
    with pytest.raises(ValueError, match="no run folder"):
        maze().learn(total_episodes=50, loggers=[recorder, "jsonl"], progress_bar=False)
    assert recorder.events == ["closed"]


def test_metrics_are_finite_and_without_counters():
    given = record(50, loss=math.nan, gain=math.inf, kl=0.5)
    assert finite_metrics(given) == {"return": 100.0, "kl": 0.5}


def test_ids_are_kept_in_the_run_folder(tmp_path):
    assert info().stored_id("wandb") is None
    info().store_id("wandb", "abc")  # Without a folder there is nothing to resume.
    assert info(tmp_path).stored_id("wandb") is None
    info(tmp_path).store_id("wandb", "abc")
    assert info(tmp_path).stored_id("wandb") == "abc"
    assert info(tmp_path).stored_id("mlflow") is None


# JSON lines.


def test_json_lines_are_the_records(tmp_path):
    agent = maze().learn(total_episodes=150, loggers=["jsonl"], out=tmp_path / "run", progress_bar=False)
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == agent.history


def test_json_lines_in_a_file_of_your_own_are_valid_json(tmp_path):
    logger = JSONLinesLogger(tmp_path / "mine.jsonl")
    logger.start(info())
    logger.log(record(50, loss=math.nan))
    logger.log(record(100))
    first, second = (tmp_path / "mine.jsonl").read_text().splitlines()
    assert json.loads(first) == record(50)
    assert json.loads(second) == record(100)


# TensorBoard.


def scalars(folder):
    """Tag -> list of (step, value), from all files of events in a folder."""
    from tensorboardX.proto.event_pb2 import Event

    found = {}
    for file in sorted(folder.iterdir()):
        content = file.read_bytes()
        while content:
            # A record: length (8 bytes), its checksum (4), the event, its checksum (4).
            length = int.from_bytes(content[:8], "little")
            event = Event.FromString(content[12 : 12 + length])
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
            content = content[16 + length :]
    return found


def test_events_are_the_metrics_by_episodes_and_by_timesteps(tmp_path, capsys):
    pytest.importorskip("tensorboardX")
    main([*TRAIN, str(tmp_path / "run")])
    assert f"tensorboard --logdir {tmp_path / 'run' / 'tensorboard'}" in capsys.readouterr().out
    metrics, events = read_metrics(tmp_path / "run"), scalars(tmp_path / "run" / "tensorboard")
    names = metrics[0].keys() - COUNTERS
    assert events.keys() == {f"by_{axis}/{name}" for name in names for axis in ("episodes", "timesteps")}
    for axis in ("episodes", "timesteps"):
        expected = [(record[axis], pytest.approx(record["return"])) for record in metrics]
        assert events[f"by_{axis}/return"] == expected


def test_events_after_a_checkpoint_are_repeated_with_the_same_values(tmp_path):
    pytest.importorskip("tensorboardX")
    for episodes in (100, 150):  # As after a crash that lost the second and third record.
        logger = TensorBoardLogger(tmp_path)
        maze().learn(total_episodes=episodes, loggers=[logger], progress_bar=False)
    for events in scalars(tmp_path).values():
        assert len(events) == 5
        assert len(set(events)) == 3


def test_a_tensorboard_logger_can_be_used_again(tmp_path):
    pytest.importorskip("tensorboardX")
    logger, agent = TensorBoardLogger(tmp_path), maze()
    for _ in range(2):
        agent.learn(total_episodes=50, loggers=[logger], progress_bar=False)
    assert [step for step, _ in scalars(tmp_path)["by_episodes/return"]] == [50, 100]
