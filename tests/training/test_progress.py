"""Progress: the bar of a terminal, the lines of a log."""

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

import steadyrl
from steadyrl.cli.main import main
from steadyrl.runs.jobs_table import JobsTable
from steadyrl.training import progress
from steadyrl.training.progress import LineTimer, ProgressReporter, Speed, TrainingProgress, make_bar, shows_bars

ENV = "steadyrl/GuardedMaze-v0"
RECORD = {"return": 12.34, "undiscounted_gini_deviation": 4.5, "goal_rate": 0.5, "entropy": 0.25}


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now.seconds)
    return now


@pytest.fixture
def terminal(monkeypatch):
    """Standard error as a terminal of a width."""

    def open_terminal(width):
        screen = io.StringIO()
        screen.isatty = lambda: True
        console = Console(file=screen, width=width, force_terminal=True, color_system=None, _environ={})
        monkeypatch.setattr("steadyrl.training.progress.Console", lambda **_: console)
        monkeypatch.setattr("steadyrl.runs.jobs_table.Console", lambda **_: console)
        return screen

    return open_terminal


def trainee(engine="gymnasium", **counts):
    counts = {"episodes": 0, "timesteps": 0, "replay_buffer": None} | counts
    return SimpleNamespace(name="mg", engine=engine, **counts)


def last_row(screen):
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", screen.getvalue()).replace("\r", "\n")
    return [line for line in plain.splitlines() if line.strip()][-1]


def play(bar, agent, clock, seconds, episodes, timesteps):
    clock.seconds += seconds
    agent.episodes += episodes
    agent.timesteps += timesteps
    bar([agent], [[RECORD]])


def test_a_log_gets_a_line_now_and_then(clock, capsys):
    agent = trainee()
    with TrainingProgress("mg", "episodes", 20_000, [agent], lines=True) as bar:
        assert capsys.readouterr().err == "mg: 0 of 20,000 episodes, playing the first episodes\n"
        play(bar, agent, clock, 4, 500, 9000)
        play(bar, agent, clock, 4, 500, 9000)
        assert capsys.readouterr().err == ""
        play(bar, agent, clock, 4, 500, 9000)  # 12 seconds.
        line = "mg: 1,500 of 20,000 episodes (7 %), return 12.3, GD 4.5, goal 50 %, entropy 0.25, 2,250 steps/s"
        assert capsys.readouterr().err == f"{line}, about 2 min left\n"
        play(bar, agent, clock, 2, 2000, 9000)  # 10 % more.
        assert "mg: 3,500 of 20,000 episodes (17 %)" in capsys.readouterr().err
        play(bar, agent, clock, 0.1, 2000, 9000)
        assert capsys.readouterr().err == ""
        play(bar, agent, clock, 1, 14_500, 9000)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("mg: 20,000 of 20,000 episodes (100 %), return 12.3")
    assert "left" not in lines[0]


def test_python_gets_the_last_line_alone(capsys):
    agent = steadyrl.MeanGini(ENV)
    agent.learn(total_episodes=200)
    printed = capsys.readouterr()
    assert printed.err.startswith("mg: 200 of 200 episodes (100 %), return ")
    assert (printed.err.count("\n"), printed.out) == (1, "")
    agent.learn(total_episodes=50, progress_bar=False)
    assert capsys.readouterr().err == ""


def test_train_prints_lines_unless_told_otherwise(tmp_path, capsys):
    main(["train", ENV, "--episodes", "100", "--out", str(tmp_path / "a")])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "mg: 0 of 100 episodes, compiling"
    assert lines[-1].startswith("mg: 100 of 100 episodes (100 %), return ")
    assert len(lines) <= 4
    main(["train", ENV, "--episodes", "100", "--out", str(tmp_path / "b"), "--no-progress"])
    assert capsys.readouterr().err == ""


def test_a_resumed_run_counts_from_its_start(clock, capsys):
    agent = trainee(episodes=500, timesteps=9000)
    with TrainingProgress("mg", "episodes", 1000, [agent], done=500, lines=True) as bar:
        play(bar, agent, clock, 20, 100, 1000)
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "mg: 500 of 1,000 episodes, playing the next episodes"
    assert last.startswith("mg: 600 of 1,000 episodes (60 %)")
    assert last.endswith("50 steps/s, about 80 s left")


def test_when_a_line_is_due(clock):
    timer = LineTimer()
    for seconds, fraction, due in [(0.5, 0.5, False), (0.6, 0.5, True), (9, 0.55, False), (1, 0.55, True)]:
        clock.seconds += seconds
        assert timer.is_due(fraction) is due


def test_speed_leaves_out_the_time_of_the_compiler(clock):
    on_host, compiled = Speed(0, 0), Speed(0, 0, compiled=True)
    clock.seconds += 50
    for speed in (on_host, compiled):
        speed.add(10, 100)
    assert (on_host.steps_per_second, on_host.seconds_left(20)) == (2, 100)
    assert (compiled.steps_per_second, compiled.seconds_left(20)) == (0, None)
    clock.seconds += 1
    for speed in (on_host, compiled):
        speed.add(20, 200)
        assert (speed.steps_per_second, speed.seconds_left(20), speed.seconds_left(0)) == (100, 2, None)


def test_speed_is_that_of_the_last_half_minute(clock):
    speed = Speed(0, 0)
    for second in range(200):
        clock.seconds += 1
        speed.add(second, second * (10 if second < 100 else 1))
    assert speed.steps_per_second == 1


@pytest.mark.parametrize(
    ("agent", "note"),
    [
        (trainee("compiled"), "compiling"),
        (trainee(), "playing the first episodes"),
        (trainee(episodes=7), "playing the next episodes"),
    ],
)
def test_the_first_rounds_are_called_what_they_are(agent, note, terminal):
    screen = terminal(100)
    with TrainingProgress("mg", "episodes", 20_000, [agent]):
        pass
    assert last_row(screen).rstrip().endswith(f"0/20,000 ep {note}")
    reports = []
    ProgressReporter(reports.append, "episodes", 100, [agent])
    assert reports[0]["note"] == [note]


def test_steps_of_the_first_episode_are_counted_where_they_are_stored(terminal):
    screen, agent = terminal(100), trainee(replay_buffer=SimpleNamespace(added=50))
    with TrainingProgress("dqn", "timesteps", 20_000, [agent]):
        agent.replay_buffer.added = 1284
    assert last_row(screen).rstrip().endswith("0/20,000 steps playing the first episodes: 1,234 steps")


@pytest.mark.parametrize(
    ("width", "cells", "shown"),
    [
        (80, 10, "8,000/20,000 ep 12 s left, 9,000 steps/s, return 12.3, GD 4.5"),
        (140, 30, "8,000/20,000 ep 12 s left, 9,000 steps/s, return 12.3, GD 4.5, goal 50 %, entropy 0.25"),
    ],
)
def test_the_bar_uses_the_width(width, cells, shown, terminal, clock):
    screen, agent = terminal(width), trainee()
    with TrainingProgress("mg", "episodes", 20_000, [agent]) as bar:
        for _ in range(8):
            play(bar, agent, clock, 1, 1000, 9000)
    row = last_row(screen)
    assert row.startswith("mg ")
    assert row.rstrip().endswith(shown)
    assert row.index("8,000/") == len("mg ") + cells + 1
    assert len(row) <= width


@pytest.mark.parametrize("width", [30, 80, 140])
def test_a_row_stays_on_its_line(width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    bar = make_bar(console)
    note = [f"metric {number}" for number in range(30)]
    bar.add_task("a [title] " * 20, total=10**9, completed=10**8, count="100,000,000/1,000,000,000 steps", note=note)
    console.print(bar.get_renderable())
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert width < 80 or (len(lines) == 1 and lines[0].startswith("a [title] "))


def test_bars_are_for_terminals(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert not shows_bars(Console(file=io.StringIO()))
    screen = io.StringIO()
    screen.isatty = lambda: True
    assert shows_bars(Console(file=screen, _environ={"TERM": "xterm"}))
    assert not shows_bars(Console(file=screen, _environ={"TERM": "dumb"}))


def test_a_log_that_nobody_reads_does_not_end_training(clock, monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Closed())
    agent = trainee()
    with TrainingProgress("mg", "episodes", 10, [agent], lines=True) as bar:
        play(bar, agent, clock, 20, 1, 1)
    assert agent.episodes > 0


def jobs_of(*runs):
    return [SimpleNamespace(title=f"job {number}", runs=range(count)) for number, count in enumerate(runs)]


def report(done, steps_per_second=100.0):
    note = ["return 1.0"]
    return {"done": done, "total": 100, "unit": "ep", "note": note, "steps_per_second": steps_per_second}


def test_a_log_of_many_jobs_gets_lines_about_all_of_them(clock, capsys):
    with JobsTable(jobs_of(1, 1, 2), runs=5) as table:  # One was complete before.
        table.show(0, report(0))
        table.show(1, report(50))  # Resumed.
        clock.seconds += 5
        assert capsys.readouterr().err == ""
        clock.seconds += 5
        table.show(0, report(50, 200.0))
        assert capsys.readouterr().err == "all: 2 of 5 runs (40 %), 2 jobs running, 300 steps/s, about 60 s left\n"
        table.show(0, None)
        table.show(1, "ValueError: no")
        table.show(2, report(50))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["job 0: done", "job 1: failed"]
    assert lines[2].startswith("all: 4 of 5 runs (80 %), 100 steps/s, about ")


def test_many_jobs_can_be_silent(clock, capsys):
    with JobsTable(jobs_of(1, 1), runs=2, silent=True) as table:
        clock.seconds += 50
        table.show(0, report(10))
        table.show(0, None)
        table.show(1, "ValueError: no")
    assert capsys.readouterr().err == "job 1: failed\n"


def test_the_table_of_many_jobs(terminal, clock):
    screen = terminal(100)
    with JobsTable(jobs_of(1, 1), runs=2) as table:
        table.show(0, report(0))
        clock.seconds += 10
        table.show(0, report(50))
        table._bar.refresh()
        assert last_row(screen).rstrip().endswith("50/100 ep  return 1.0")
    assert last_row(screen).startswith("all ")
    assert last_row(screen).rstrip().endswith("0.5/2 runs 30 s left, 100 steps/s")
