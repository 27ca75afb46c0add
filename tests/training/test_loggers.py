"""Loggers: what each of them records, when they are closed, and where a resumed run is logged."""

import json
import math
import sys
from types import SimpleNamespace

import pytest

from steadyrl import MeanGini
from steadyrl.base.signals import TrainingInterruptedError
from steadyrl.cli.main import main
from steadyrl.runs.job import Job, RunSpec, run_job
from steadyrl.training.loggers import LOGGERS, RunInfo, finite_metrics, logger_class, open_loggers
from steadyrl.training.loggers.jsonl import JSONLinesLogger
from steadyrl.training.loggers.mlflow import MLflowLogger
from steadyrl.training.loggers.tensorboard import TensorBoardLogger
from steadyrl.training.loggers.wandb import WandbLogger
from steadyrl.training.run import Plan
from steadyrl.training.run_folder import read_metrics

MAZE = "steadyrl/GuardedMaze-v0"
TRAIN = ["train", MAZE, "--episodes", "150", "--no-progress", "--tensorboard", "--out"]
CONFIG = {"agent": "mg", "env": {"id": MAZE, "options": {}}, "settings": {"gamma": 0.9, "hidden": (8, 8)}, "seed": 3}
COUNTERS = {"iteration", "episodes", "timesteps", "time"}


def maze(seed=0):
    return MeanGini(MAZE, seed=seed)


def record(episodes, **metrics):
    counters = {"iteration": 1, "episodes": episodes, "timesteps": 10 * episodes, "time": 1.5}
    return {**counters, "return": 2.0 * episodes, **metrics}


def info(folder=None):
    return RunInfo("maze", folder, CONFIG)


class Recorder:
    """A logger of somebody's own."""

    def __init__(self):
        self.events = []

    def log(self, record):
        self.events.append(record["episodes"])

    def close(self):
        self.events.append("closed")


class StartedRecorder(Recorder):
    def start(self, info):
        self.events.append(info)


def interrupt_after(episodes, error=KeyboardInterrupt):
    def callback(local, world):
        if local["self"].episodes >= episodes:
            raise error

    return callback


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


# Weights & Biases, in place of which a module records the calls.


class FakeWandb:
    """The part of wandb that is used; a run that is resumed starts after the last step it holds."""

    def __init__(self):
        self.calls, self.steps = [], {}

    def init(self, **options):
        self.calls.append(("init", options))
        return FakeWandbRun(self, options.get("id") or f"id{len(self.steps)}")


class FakeWandbRun:
    def __init__(self, module, run_id):
        self.id, self._module = run_id, module
        self.step = module.steps.setdefault(run_id, -1) + 1

    def log(self, metrics, step):
        self._module.calls.append(("log", self.id, step, metrics))
        self.step = self._module.steps[self.id] = step

    def finish(self, exit_code):
        self._module.calls.append(("finish", self.id, exit_code))


@pytest.fixture
def wandb(monkeypatch):
    for name in ("WANDB_PROJECT", "WANDB_NAME"):
        monkeypatch.delenv(name, raising=False)
    module = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


def test_wandb_calls(wandb):
    logger = WandbLogger()
    logger.start(info())
    logger.log(record(50, loss=math.nan, kl=0.5))
    logger.log(record(100))
    logger.close()
    logger.close()
    options = {"project": "steadyrl", "name": "maze", "config": CONFIG, "reinit": "create_new"}
    assert wandb.calls == [
        ("init", options),
        ("log", "id0", 500, {"episodes": 50, "return": 100.0, "kl": 0.5}),
        ("log", "id0", 1000, {"episodes": 100, "return": 200.0}),
        ("finish", "id0", 0),
    ]


def test_wandb_arguments_come_before_the_environment_and_that_before_defaults(wandb, monkeypatch):
    monkeypatch.setenv("WANDB_PROJECT", "mazes")
    monkeypatch.setenv("WANDB_NAME", "first")
    WandbLogger().start(info())
    WandbLogger("cart-pole", name="second", tags=["risk"]).start(info())
    (_, by_environment), (_, by_argument) = wandb.calls
    assert (by_environment["project"], by_environment["name"]) == ("mazes", "first")
    assert (by_argument["project"], by_argument["name"], by_argument["tags"]) == ("cart-pole", "second", ["risk"])


def test_a_resumed_run_continues_its_wandb_run(wandb, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        maze().learn(total_episodes=200, loggers=["wandb"], out=out, callback=interrupt_after(100), progress_bar=False)
    assert wandb.calls[-1] == ("finish", "id0", 1)
    maze().learn(total_episodes=200, loggers=["wandb"], out=out, progress_bar=False)
    (_, first), (_, second) = [call for call in wandb.calls if call[0] == "init"]
    assert "id" not in first
    assert (second["id"], second["resume"]) == ("id0", "allow")
    logged = [call for call in wandb.calls if call[0] == "log"]
    assert [metrics["episodes"] for *_, metrics in logged] == [50, 100, 150, 200]
    assert [step for _, _, step, _ in logged] == [r["timesteps"] for r in read_metrics(out)]
    assert wandb.calls[-1] == ("finish", "id0", 0)


def test_records_that_the_wandb_run_holds_are_not_logged_again(wandb, tmp_path):
    for rounds in ((1, 2, 3), (2, 3, 4)):
        logger = WandbLogger()
        logger.start(info(tmp_path))
        for k in rounds:
            logger.log(record(50 * k))
        logger.close()
    assert [call[2] for call in wandb.calls if call[0] == "log"] == [500, 1000, 1500, 2000]


def test_a_wandb_run_without_records_is_not_continued(wandb, tmp_path):
    logger = WandbLogger()
    logger.start(info(tmp_path))
    logger.close()
    assert not list(tmp_path.iterdir())


def test_runs_of_one_job_have_wandb_runs_of_their_own(wandb, tmp_path):
    runs = tuple(RunSpec(seed, tmp_path / f"seed{seed}", {}, "mg") for seed in (0, 1))
    run_job(Job(MAZE, "mg", runs, Plan({"episodes": 100}), loggers=("wandb",)))
    started = [options["config"]["seed"] for kind, options in (c for c in wandb.calls if c[0] == "init")]
    assert started == [0, 1]
    logged = [(run_id, metrics["episodes"]) for _, run_id, _, metrics in (c for c in wandb.calls if c[0] == "log")]
    assert sorted(logged) == [("id0", 50), ("id0", 100), ("id1", 50), ("id1", 100)]


@pytest.mark.slow
def test_the_real_wandb_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    for seed in (0, 1, 0, 1):  # Two runs in one process, and both again.
        folder = tmp_path / f"{seed}"
        folder.mkdir(exist_ok=True)
        logger = WandbLogger(project="test")
        logger.start(info(folder))
        logger.log(record(50))
        logger.close()
    ids = {info(tmp_path / seed).stored_id("wandb") for seed in ("0", "1")}
    assert len(ids) == 2
    files = list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))
    assert {file.name for file in files} == {f"run-{run_id}.wandb" for run_id in ids}


# MLflow, in place of which a module records the calls; and the real one, in SQLite.


class FakeMLflow:
    """The part of mlflow that is used. It is its own client."""

    class MlflowException(Exception):  # noqa: N818
        pass

    def __init__(self):
        self.calls, self.experiments, self.runs = [], {}, {}
        self.tracking_uri = "http://fake"
        self.entities = SimpleNamespace(Param=lambda *x: x, Metric=lambda *x: x)
        self.exceptions = SimpleNamespace(MlflowException=self.MlflowException)

    def get_tracking_uri(self):
        return self.tracking_uri

    def MlflowClient(self, tracking_uri):  # noqa: N802
        self.tracking_uri = tracking_uri
        return self

    def get_experiment_by_name(self, name):
        return SimpleNamespace(experiment_id=self.experiments[name]) if name in self.experiments else None

    def create_experiment(self, name):
        self.experiments[name] = f"experiment {name}"
        return self.experiments[name]

    def create_run(self, experiment_id, run_name):
        run_id = f"id{len(self.runs)}"
        self.runs[run_id] = {}
        self.calls.append(("create_run", experiment_id, run_name))
        return SimpleNamespace(info=SimpleNamespace(run_id=run_id))

    def get_run(self, run_id):
        if run_id not in self.runs:
            raise self.MlflowException("no such run.")
        return SimpleNamespace(data=SimpleNamespace(metrics=self.runs[run_id]))

    def update_run(self, run_id, status):
        self.calls.append(("update_run", run_id, status))

    def log_batch(self, run_id, metrics=(), params=()):
        self.calls.append(("log_batch", run_id, list(metrics), list(params)))
        self.runs[run_id] |= {name: value for name, value, *_ in metrics}

    def set_terminated(self, run_id, status):
        self.calls.append(("set_terminated", run_id, status))

    @property
    def logged_episodes(self):
        batches = [metrics for kind, _, metrics, _ in (c for c in self.calls if c[0] == "log_batch")]
        return [value for metrics in batches for name, value, *_ in metrics if name == "episodes"]


@pytest.fixture
def mlflow(monkeypatch):
    for name in ("MLFLOW_EXPERIMENT_NAME", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    module = FakeMLflow()
    monkeypatch.setitem(sys.modules, "mlflow", module)
    return module


def test_mlflow_calls(mlflow):
    logger = MLflowLogger()
    logger.start(info())
    logger.log(record(50, loss=math.inf, **{"landed (%)": 0.5}))
    logger.log(record(100))
    logger.close()
    logger.close()
    params = {"agent": "mg", "env.id": MAZE, "settings.gamma": "0.9", "settings.hidden": "(8, 8)", "seed": "3"}
    first = [("episodes", 50.0, 1500, 500), ("return", 100.0, 1500, 500), ("landed ___", 0.5, 1500, 500)]
    second = [("episodes", 100.0, 1500, 1000), ("return", 200.0, 1500, 1000)]
    assert mlflow.calls == [
        ("create_run", "experiment steadyrl", "maze"),
        ("log_batch", "id0", [], list(params.items())),
        ("log_batch", "id0", first + second, []),
        ("set_terminated", "id0", "FINISHED"),
    ]


def test_mlflow_metrics_are_sent_every_few_seconds_in_batches(mlflow, monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, sleep=None)
    monkeypatch.setattr("steadyrl.training.loggers.mlflow.time", clock)
    monkeypatch.setattr("steadyrl.training.loggers.mlflow.BATCH", 3)
    logger = MLflowLogger()
    logger.start(info())
    for k, now in enumerate((0.5, 1.0, 2.5, 3.0), start=1):
        clock.now = now
        logger.log(record(50 * k))
    sizes = [len(metrics) for kind, _, metrics, _ in mlflow.calls[1:] if metrics]
    assert sizes == [3, 3]  # Two metrics in each of three records; the fourth one waits.
    logger.close()
    assert mlflow.logged_episodes == [50, 100, 150, 200]


def test_mlflow_arguments_come_before_the_environment_and_that_before_defaults(mlflow, monkeypatch):
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mazes")
    MLflowLogger().start(info())
    assert mlflow.tracking_uri == "http://fake"
    MLflowLogger("cart-pole", tracking_uri="http://other").start(info())
    assert mlflow.tracking_uri == "http://other"
    assert list(mlflow.experiments) == ["mazes", "cart-pole"]


def test_an_experiment_made_by_another_process_at_the_same_time_is_used(mlflow, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    create = mlflow.create_experiment

    def lose_the_race(name):
        create(name)
        raise mlflow.MlflowException("it exists already.")

    mlflow.create_experiment = lose_the_race
    MLflowLogger().start(info())
    assert mlflow.calls[0] == ("create_run", "experiment steadyrl", "maze")


def test_an_mlflow_that_does_not_answer_is_an_error(mlflow, monkeypatch):
    def refuse(name):
        raise mlflow.MlflowException("not today.")

    monkeypatch.setattr("time.sleep", lambda seconds: None)
    mlflow.get_experiment_by_name = refuse
    with pytest.raises(mlflow.MlflowException, match="not today"):
        maze().learn(total_episodes=50, loggers=["mlflow"], progress_bar=False)


@pytest.mark.parametrize(
    ("error", "raised", "status"),
    [(KeyboardInterrupt, KeyboardInterrupt, "KILLED"), (RuntimeError, TrainingInterruptedError, "FAILED")],
)
def test_a_resumed_run_continues_its_mlflow_run(mlflow, tmp_path, error, raised, status):
    out = tmp_path / "run"
    with pytest.raises(raised, match="is saved in"):
        maze().learn(
            total_episodes=200, loggers=["mlflow"], out=out, callback=interrupt_after(100, error), progress_bar=False
        )
    assert mlflow.calls[-1] == ("set_terminated", "id0", status)
    maze().learn(total_episodes=200, loggers=["mlflow"], out=out, progress_bar=False)
    assert list(mlflow.runs) == ["id0"]
    assert ("update_run", "id0", "RUNNING") in mlflow.calls
    assert mlflow.logged_episodes == [50, 100, 150, 200]
    assert mlflow.calls[-1] == ("set_terminated", "id0", "FINISHED")


def test_records_that_the_mlflow_run_holds_are_not_logged_again(mlflow, tmp_path):
    for rounds in ((1, 2, 3), (2, 3, 4)):
        logger = MLflowLogger()
        logger.start(info(tmp_path))
        for k in rounds:
            logger.log(record(50 * k))
        logger.close()
    assert mlflow.logged_episodes == [50, 100, 150, 200]


def test_an_mlflow_run_that_is_gone_is_an_error_with_a_remedy(mlflow, tmp_path):
    info(tmp_path).store_id("mlflow", "gone")
    with pytest.raises(ValueError, match=r"cannot continue its run gone: no such run. .* or remove .*mlflow_run_id"):
        MLflowLogger().start(info(tmp_path))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow's own.
def test_the_real_mlflow_in_sqlite(tmp_path, monkeypatch):
    for package in ("mlflow", "alembic"):
        pytest.importorskip(package)
    import mlflow

    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        maze().learn(total_episodes=200, loggers=["mlflow"], out=out, callback=interrupt_after(100), progress_bar=False)
    client, run_id = mlflow.MlflowClient(), (out / "mlflow_run_id").read_text().strip()
    assert client.get_run(run_id).info.status == "KILLED"
    maze().learn(total_episodes=200, loggers=["mlflow"], out=out, progress_bar=False)
    (run,) = client.search_runs([client.get_experiment_by_name("steadyrl").experiment_id])
    assert (run.info.run_id, run.info.run_name, run.info.status) == (run_id, "run", "FINISHED")
    assert run.data.params["agent"] == "mg"
    assert run.data.params["settings.risk_aversion"] == "1.2"
    history = sorted((metric.step, metric.value) for metric in client.get_metric_history(run_id, "return"))
    assert history == [(record["timesteps"], record["return"]) for record in read_metrics(out)]
