"""Runs in environments of the user, `module:factory`: evaluated only if the user names them."""

import pytest
from report_runs import data_of, plots_of, text_of, train

from steadyrl import Reinforce
from steadyrl.cli.main import main
from steadyrl.envs.resolve import resolve
from steadyrl.reports.page import write_report

CODE = """
import gymnasium as gym

made = []

def make(goal_reward=20, **options):
    made.append((goal_reward, options))
    return gym.make("steadyrl/GuardedMaze-v0", goal_reward=goal_reward)

other = make
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Runs in two environments of a module, and one in ours."""
    (tmp_path / "own_mazes.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    runs = tmp_path / "runs"
    for name, env in (
        ("own", resolve("own_mazes:make", goal_reward=70)),
        ("other", resolve("own_mazes:other")),
        ("ours", resolve("steadyrl/GuardedMaze-v0")),
    ):
        train(runs / name, Reinforce, env, seeds=[0], episodes=50)
    made_by_tests().clear()
    return runs


def made_by_tests():
    import own_mazes

    return own_mazes.made


def distributions(page):
    """The methods whose return distributions are shown."""
    methods = data_of(page)["methods"]
    return sorted(methods[plot["m"]]["name"] for plot in plots_of(page, "bars"))


def test_without_a_name_one_line_says_what_to_type(root, capsys):
    main(["report", str(root), "--episodes", "20"])
    (line,) = capsys.readouterr().err.splitlines()
    typed = f"steadyrl report {root} --env own_mazes:make --env own_mazes:other"
    assert line.startswith("2 runs, not in the return distributions")
    assert typed in line
    assert "own/seed0, other/seed0" in line
    assert typed in text_of(root / "report.html")
    assert made_by_tests() == []
    assert distributions(root / "report.html") == ["ours"]


def test_a_named_environment_is_created_with_the_recorded_options(root, capsys):
    main(["report", str(root), "--episodes", "20", "--env", "own_mazes:make", "--no-films"])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("1 run, ")
    assert line.endswith("--env own_mazes:other): other/seed0")
    assert made_by_tests() == [(70, {})]
    assert distributions(root / "report.html") == ["ours", "own"]
    page = write_report(root, episodes=20, envs=["own_mazes:make", "own_mazes:other"])
    assert distributions(page) == ["other", "ours", "own"]
    assert "return distributions, because" not in text_of(page)


def test_stored_episodes_need_no_environment(root, monkeypatch):
    """A page that was written with the environment at hand, as at the end of a sweep, stored what it played."""
    write_report(root, episodes=20, envs=["own_mazes:make"])
    made_by_tests().clear()
    page = write_report(root, episodes=20)
    assert made_by_tests() == []
    assert distributions(page) == ["ours", "own"]


def test_an_environment_that_no_run_has_is_an_error(root, capsys):
    with pytest.raises(SystemExit):
        main(["report", str(root), "--env", "own_mazes:mak"])
    (line,) = capsys.readouterr().err.splitlines()
    assert "was trained in environment own_mazes:mak, but in: own_mazes:make, own_mazes:other" in line


def test_a_named_environment_that_fails_is_noted(root, tmp_path):
    (tmp_path / "own_mazes.py").write_text(CODE)
    import own_mazes

    own_mazes.make = None
    text = text_of(write_report(root, episodes=20, envs=["own_mazes:make"]))
    assert "1 run, environment own_mazes:make:" in text
    assert "Not in the return distributions: own/seed0" in text
