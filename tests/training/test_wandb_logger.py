"""Weights & Biases: what is recorded, and where a resumed run is logged."""

import math
import sys

import pytest
from logged_runs import CONFIG, MAZE, info, interrupt_after, maze, record

from steadyrl.runs.job import Job, RunSpec, run_job
from steadyrl.training.loggers.wandb import WandbLogger
from steadyrl.training.run import Plan
from steadyrl.training.run_folder import read_metrics

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
