"""Runs that were broken off end as if they had never been: the same parameters, the same metrics, bit for bit."""

import errno
import json
import os
import signal
import subprocess
import sys

import pytest

import steadyrl
from steadyrl import replay_engine
from steadyrl.checkpoints import Checkpoints
from steadyrl.cli import main
from steadyrl.engines import HostEngine
from steadyrl.folder_lock import locked
from steadyrl.interrupts import BrokenOffError, uninterrupted
from steadyrl.job import Job, carry_out
from steadyrl.report.runs_found import find_runs
from steadyrl.runs import agent_file, is_complete, read_config, resume_files

MAZE = "steadyrl/GuardedMaze-v0"
SMALL = {
    "hidden": (8,),
    "learning_starts": 40,
    "batch_size": 8,
    "train_freq": 6,
    "gradient_steps": 3,
    "buffer_size": 90,
}
EPISODIC = {"hidden": (8,), "episodes_per_update": 25}
CASES = {
    # Every family of agents, and every engine.
    "mg": ("CartPole-v1", "mg", EPISODIC, "gymnasium"),
    "mg with ppo": ("CartPole-v1", "mg", {**EPISODIC, "mean": "ppo"}, "gymnasium"),
    "ppo": ("Pendulum-v1", "ppo", {**EPISODIC, "normalise_observations": True}, "gymnasium"),
    "mvo": ("CartPole-v1", "mvo", EPISODIC, "gymnasium"),
    "tamar": ("CartPole-v1", "tamar", {"hidden": (8,)}, "gymnasium"),
    "mvp": ("CartPole-v1", "mvp", {"hidden": (8,)}, "gymnasium"),
    "dqn": ("CartPole-v1", "dqn", SMALL, "gymnasium"),
    "td3": ("steadyrl/InvertedPendulum-v0", "td3", SMALL, "gymnasium"),
    "mvpi with dqn": ("CartPole-v1", "mvpi", {**SMALL, "episodes_per_iteration": 3}, "gymnasium"),
    "mvpi with td3": ("steadyrl/InvertedPendulum-v0", "mvpi", {**SMALL, "episodes_per_iteration": 3}, "gymnasium"),
    "compiled mg": (MAZE, "mg", {}, "compiled"),
    "compiled mvpi": (MAZE, "mvpi", {}, "compiled"),
    "compiled q_learning": (MAZE, "q_learning", {}, "compiled"),
    "q_learning in gymnasium": ("FrozenLake-v1", "q_learning", {}, "gymnasium"),
    "lunar_lander": ("steadyrl/LunarLander-v0", "mg", {"hidden": (8,), "episodes_per_update": 40}, "gymnasium"),
    "envpool": ("steadyrl/LunarLander-v0", "mg", {"hidden": (8,), "episodes_per_update": 40}, "envpool"),
    "mujoco": ("steadyrl/InvertedPendulum-v0", "ppo", EPISODIC, "mujoco"),
}


class Killed(BaseException):
    """As good as `kill -9` for what is on disk: nobody is prepared for it."""


def job(case, folder, **more):
    env, agent, settings, engine = CASES[case]
    seeds = more.pop("seeds", (5, 7) if engine == "compiled" else (5,))
    # Three records at least.
    episodes = 14 if "buffer_size" in settings else 2500 if engine == "compiled" else 180
    fields = {
        "folders": tuple(folder / f"seed{seed}" for seed in seeds),
        "budget": {"episodes": episodes},
        "evaluations": {"every": episodes // 3, "episodes": 2},
        "episodes_per_record": episodes // 5,
        "checkpoint_seconds": 0,
    }
    return Job(env, agent, seeds, title=case, settings=settings, engine=engine, **{**fields, **more})


def killed_at(call):
    """For `carry_out`: a listener that is the end of it at its so-manieth call, when metrics are already written."""
    calls = []

    def kill(agents, metrics):
        calls.append(metrics)
        if len(calls) == call:
            raise Killed

    return lambda agents, runs: [kill]


def without_clock(path):
    clocks = ("time", "seconds_collecting", "seconds_updating")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [{name: value for name, value in record.items() if name not in clocks} for record in records]


def assert_same_runs(one, other):
    for a, b in zip(one.folders, other.folders, strict=True):
        assert is_complete(a)
        assert (a / "checkpoint.steady").read_bytes() == (b / "checkpoint.steady").read_bytes()
        for file in ("metrics.jsonl", "evaluations.jsonl"):
            assert without_clock(a / file) == without_clock(b / file)
            assert len(without_clock(a / file)) > 2
        assert not resume_files(a)
        assert read_config(a).keys() == read_config(b).keys()


@pytest.mark.parametrize("case", CASES)
def test_a_run_ends_the_same_wherever_it_was_broken_off(case, tmp_path):
    whole, broken = job(case, tmp_path / "whole"), job(case, tmp_path / "broken")
    carry_out(whole)
    for call in (3, 1):  # In the third round; then in the first of what was left.
        with pytest.raises(Killed):
            carry_out(broken, killed_at(call))
        assert all(resume_files(folder) and not is_complete(folder) for folder in broken.folders)
    assert carry_out(broken)[0].episodes >= whole.budget["episodes"]
    assert_same_runs(broken, whole)
    assert carry_out(broken) == []


def test_a_budget_of_steps_goes_on_too(tmp_path):
    whole, broken = (job("dqn", tmp_path / name, budget={"timesteps": 300}) for name in ("whole", "broken"))
    carry_out(whole)
    with pytest.raises(Killed):
        carry_out(broken, killed_at(4))
    carry_out(broken)
    assert_same_runs(broken, whole)


def test_runs_that_learn_together_need_not_stop_together(tmp_path):
    """One has a checkpoint that the other has not, and a third one has nothing; lanes of the program stay the same."""
    whole, broken = (job("compiled mg", tmp_path / name, seeds=(5, 7, 9), lanes=5) for name in ("whole", "broken"))
    carry_out(whole)
    for seed, call in ((5, 2), (7, 3)):
        with pytest.raises(Killed):
            carry_out(broken.only([seed]), killed_at(call))
    assert [part.seeds for part in broken.left(broken.agents()[0])] == [(5,), (7,), (9,)]
    carry_out(broken)
    assert_same_runs(broken, whole)


DYING = """
import os, signal, sys
from steadyrl import checkpoint, runs
written, whole = [], os.fsync
def fsync(file):
    written.append(file)
    if len(written) == {number}:
        os.kill(os.getpid(), signal.SIGKILL)
    whole(file)
os.fsync = fsync
from steadyrl.cli import main
main({arguments!r})
"""


def test_killed_in_the_middle_of_writing(tmp_path):
    """`kill -9` at each of the moments at which a file is not yet whole, in one run after the other."""
    arguments = [
        "train",
        "CartPole-v1",
        "--agent",
        "dqn",
        "--episodes",
        "9",
        "--checkpoint-every",
        "0",
        "--no-progress",
    ]
    arguments += [f"--set={name}={','.join(map(str, v)) if name == 'hidden' else v}" for name, v in SMALL.items()]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled")}
    partials = 0
    for number in (3, 5, 2, 1000):
        code = DYING.format(number=number, arguments=[*arguments, "--out", str(broken)])
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert done.returncode == (0 if number == 1000 else -signal.SIGKILL), done.stderr
        partials += len(list(broken.glob(".*.partial")))
    assert partials > 0
    code = DYING.format(number=1000, arguments=[*arguments, "--out", str(whole)])
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment)
    assert (broken / "checkpoint.steady").read_bytes() == (whole / "checkpoint.steady").read_bytes()
    assert without_clock(broken / "metrics.jsonl") == without_clock(whole / "metrics.jsonl")
    assert sorted(path.name for path in broken.iterdir()) == sorted(path.name for path in whole.iterdir())


def test_a_full_disk_leaves_the_last_checkpoint_whole(tmp_path, monkeypatch):
    whole, broken = job("dqn", tmp_path / "whole"), job("dqn", tmp_path / "broken")
    carry_out(whole)
    writes, write = [], os.fsync

    def full(file):
        writes.append(file)
        if len(writes) > 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(file)

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(BrokenOffError) as stop:
        carry_out(broken)
    monkeypatch.undo()
    assert "could not be written: No space left on device." in str(stop.value)
    assert f"until the last checkpoint is saved in {broken.folders[0]}" in str(stop.value)
    assert len(str(stop.value).splitlines()) == 1
    assert len(resume_files(broken.folders[0])) == 1
    carry_out(broken)
    assert_same_runs(broken, whole)


def test_half_a_line_of_metrics_is_taken_back(tmp_path, monkeypatch):
    """Where a disk is full, also the last line may be written in part."""
    from steadyrl import runs

    path = tmp_path / "metrics.jsonl"
    runs._append(path, "whole\n")
    real = type(path).open

    class Half:
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

    monkeypatch.setattr(type(path), "open", lambda self, mode: Half(real(self, mode)))
    with pytest.raises(OSError, match=r"metrics.jsonl could not be written: No space left on device\."):
        runs._append(path, "half of this\n")
    monkeypatch.undo()
    assert path.read_text() == "whole\n"


def test_an_unwritable_folder_is_said_in_one_line(tmp_path, capsys):
    place = tmp_path / "file"
    place.touch()
    with pytest.raises(SystemExit) as stop:
        main(["train", MAZE, "--episodes", "50", "--out", str(place / "run"), "--no-progress"])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert f"{place / 'run'} cannot be made: Not a directory. Choose another --out." in line


def test_a_stopped_run_goes_on_and_says_so(tmp_path, capsys):
    arguments = ["train", MAZE, "--episodes", "2500", "--no-progress", "--out"]
    main([*arguments, str(tmp_path / "whole")])
    broken = job(
        "compiled mg", tmp_path, seeds=(0,), folders=(tmp_path / "run",), evaluations=None, episodes_per_record=1
    )
    with pytest.raises(KeyboardInterrupt) as stop:
        carry_out(broken, lambda agents, runs: [raising_at(2, KeyboardInterrupt)])
    assert "until the last checkpoint is saved in" in str(stop.value)
    assert "The same command goes on from there." in str(stop.value)
    capsys.readouterr()
    main(["evaluate", str(tmp_path / "run"), "--episodes", "5"])
    assert "is not complete: this is its agent after" in capsys.readouterr().err
    assert find_runs(tmp_path / "run")[1] == {"under way or stopped: not trained to the end": ["."]}
    main([*arguments, str(tmp_path / "run")])
    assert "Going on in" in capsys.readouterr().err
    assert (tmp_path / "run/checkpoint.steady").read_bytes() == (tmp_path / "whole/checkpoint.steady").read_bytes()
    main([*arguments, str(tmp_path / "run")])
    assert "complete already" in capsys.readouterr().out


def raising_at(call, kind):
    calls = []

    def listener(agents, metrics):
        calls.append(1)
        if len(calls) == call:
            raise kind

    return listener


def test_two_processes_are_not_in_one_folder(tmp_path, capsys):
    out = tmp_path / "run"
    code = f"""
import sys
from pathlib import Path
from steadyrl.folder_lock import locked
with locked(Path({str(out)!r})):
    print("in", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "in\n"
        with pytest.raises(SystemExit) as stop:
            main(["train", MAZE, "--episodes", "50", "--out", str(out), "--no-progress"])
        other.stdin.close()
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "another process is at work in it" in line
    assert list(out.iterdir()) == []
    with locked(out):
        pass


def test_a_run_of_another_version_is_left_alone(tmp_path, capsys):
    out = tmp_path / "run"
    command = ["train", MAZE, "--episodes", "50", "--out", str(out), "--no-progress"]
    main(command)
    config = json.loads((out / "config.json").read_text())
    config["versions"]["jax"] = "0.1"
    (out / "config.json").write_text(json.dumps(config))
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(command)
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "other versions (jax 0.1, here " in line
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert steadyrl.load(out / "checkpoint.steady").episodes == 50


@pytest.mark.parametrize("name", ["config.json", "checkpoint.steady", "metrics.jsonl"])
def test_what_is_not_a_runs_is_left_alone(name, tmp_path, capsys):
    (tmp_path / name).write_text('{"mine": 1}')
    (tmp_path / "error.txt").write_text("mine too")
    with pytest.raises(SystemExit) as stop:
        main(["train", MAZE, "--episodes", "50", "--out", str(tmp_path), "--no-progress"])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "Choose another --out" in line
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        name: '{"mine": 1}',
        "error.txt": "mine too",
    }


def test_an_agent_that_says_nothing_of_its_end_is_left_alone(tmp_path):
    """Folders written before runs could go on have such ones."""
    old = job("compiled mg", tmp_path)
    carry_out(old)
    agent = steadyrl.load(old.folders[0] / "checkpoint.steady")
    agent.save(old.folders[0] / "checkpoint.steady")
    before = (old.folders[0] / "checkpoint.steady").read_bytes()
    with pytest.raises(FileExistsError, match="already holds an agent, but nothing to go on from"):
        carry_out(old)
    assert (old.folders[0] / "checkpoint.steady").read_bytes() == before


@pytest.mark.parametrize("place", ["_first", "_alone"])
def test_an_interrupt_between_acting_and_taking_note_leaves_no_trace(place, tmp_path, monkeypatch):
    whole, broken = job("dqn", tmp_path / "whole"), job("dqn", tmp_path / "broken")
    carry_out(whole)
    calls, real = [], getattr(replay_engine, place)

    def interrupted(learner):
        calls.append(1)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return real(learner)

    monkeypatch.setattr(replay_engine, place, interrupted)
    with pytest.raises(KeyboardInterrupt):
        carry_out(broken)
    carry_out(broken)
    assert_same_runs(broken, whole)


def test_an_environment_that_fails_once_changes_nothing(tmp_path, monkeypatch):
    whole, broken = job("tamar", tmp_path / "whole"), job("tamar", tmp_path / "broken")
    carry_out(whole)
    calls, real = [], HostEngine._round

    def fails_once(self, learner, k):
        calls.append(k)
        if calls.count(73) == 1 and k == 73:
            raise RuntimeError("the wheel came off")
        return real(self, learner, k)

    monkeypatch.setattr(HostEngine, "_round", fails_once)
    with pytest.raises(BrokenOffError, match=r"the wheel came off.* in 50 episodes is saved"):
        carry_out(broken)
    assert "fails_once" in (broken.folders[0] / "error.txt").read_text()
    assert "failed, as its error.txt tells: not trained to the end" in find_runs(tmp_path / "broken")[1]
    carry_out(broken)
    assert not (broken.folders[0] / "error.txt").exists()
    assert_same_runs(broken, whole)


def test_the_agent_of_a_run_that_goes_on_is_its_latest(tmp_path):
    broken = job("dqn", tmp_path)
    with pytest.raises(BrokenOffError):
        carry_out(broken, lambda agents, runs: [raising_at(4, RuntimeError)])
    (folder,) = broken.folders
    assert agent_file(folder) == folder / "checkpoint.steady"
    with pytest.raises(Killed):
        carry_out(broken, killed_at(5))
    assert steadyrl.load(agent_file(folder)).episodes == max(resume_files(folder))


@pytest.mark.parametrize("seconds", ["nan", "-1", "inf"])
def test_checkpoints_come_at_some_time(seconds, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["train", MAZE, "--checkpoint-every", seconds, "--out", str(tmp_path / "run")])
    assert "--checkpoint-every" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_checkpoints_take_little_of_the_time(monkeypatch):
    """By their own rule, whatever one costs: here 3 seconds, where a round takes 1."""
    now, writes = [0.0], []

    class Costly:
        class agent:  # noqa: N801
            iterations = 0

        def keep(self):
            now[0] += 3
            writes.append(now[0])

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    checkpoints = Checkpoints([Costly()])
    while now[0] < 10_000:
        now[0] += 1
        checkpoints([], [])
    assert len(writes) > 20
    assert 3 * len(writes) / now[0] < 0.02


@pytest.fixture
def heeding_ctrl_c():
    """Whoever runs the tests in the background may have told all children to ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeding_ctrl_c")
def test_signals_wait_until_all_is_noted():
    noted = []

    def work(signals):
        with uninterrupted():
            for _ in range(signals):
                os.kill(os.getpid(), signal.SIGINT)
            noted.append(signals)
        noted.append("after")

    with pytest.raises(KeyboardInterrupt):
        work(1)
    assert noted == [1]
    with pytest.raises(KeyboardInterrupt):
        work(2)
    assert noted == [1]
    work(0)
    assert noted == [1, 0, "after"]
