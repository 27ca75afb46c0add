"""MLflow: what is recorded, and where a resumed run is logged."""

import math
import sys
from types import SimpleNamespace

import pytest
from logged_runs import MAZE, info, interrupt_after, maze, record

from steadyrl.base.signals import TrainingInterruptedError
from steadyrl.training.loggers.mlflow import MLflowLogger
from steadyrl.training.run_folder import read_metrics

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
