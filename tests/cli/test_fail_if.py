"""--fail-if and --returns: conditions for CI, and returns that were logged elsewhere."""

import json

import numpy as np
import pytest
from commands import refusal

import steadyrl
from steadyrl.cli.conditions import conditions_of, failures
from steadyrl.cli.main import main
from steadyrl.evaluation.returns_file import read_returns


@pytest.fixture
def run(tmp_path):
    steadyrl.Reinforce("steadyrl/GuardedMaze-v0").save(tmp_path / "agent.steady")
    return tmp_path / "agent.steady"


def status(*arguments):
    try:
        main(list(map(str, arguments)))
    except SystemExit as stop:
        return stop.code
    return 0


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("mean < 20", True),
        ("mean<20", True),
        ("mean <= 10", True),
        ("mean < 10", False),
        ("mean > 10", False),
        ("mean >= 1e1", True),
        ("mean == 10", True),
        ("mean != 10", False),
        ("mean < inf", True),
        ("cvar:0.2 > -5.5", True),
        ("risk > 1", True),  # Not a number: it passes nothing.
        ("risk <= 1", True),
    ],
)
def test_conditions(text, met):
    values = {"mean": 10.0, "cvar:0.2": -5.0, "risk": float("nan")}
    assert bool(failures(conditions_of([text], list(values)), values)) is met


@pytest.mark.parametrize(
    "text", ["mean", "mean < ", "< 3", "mean < x", "mean = 3", "mean < 3 < 4", "mean < nan", "", "__import__('os') < 1"]
)
def test_anything_else_is_refused_with_what_to_write(text):
    with pytest.raises(ValueError, match=r"write a name, one of .* such as 'cvar_10 < 20'|unknown name"):
        conditions_of([text], ["mean"])


def test_exit_status_of_evaluate(run, capsys):
    command = ["evaluate", run, "--episodes", 20]
    assert status(*command, "--fail-if", "mean > 1e6") == 0
    assert status(*command, "--fail-if", "mean > 1e6", "--fail-if", "cvar_10 <= maximum") == 2
    capsys.readouterr()
    assert status(*command, "--fail-if", "mean.low < 1e6", "--fail-if", "facts.goal_rate > 1", "--json") == 3
    printed = capsys.readouterr()
    (failed,) = json.loads(printed.out)["failed_conditions"]
    assert failed.startswith("mean.low < 1e6 (mean.low is ")
    assert printed.err == f"steadyrl: failed: {failed}\n"


def test_unknown_names_are_refused_before_anything_is_read(capsys):
    line = refusal(capsys, "evaluate", "none.steady", "--fail-if", "cvar10 < 20")
    assert line == (
        "steadyrl: --fail-if 'cvar10 < 20': unknown name 'cvar10'. Did you mean 'cvar_10'? Known: mean, "
        "standard_deviation, variance, gini_deviation, cvar_05, cvar_10, minimum, maximum; also with discounted. "
        "before it and .low or .high behind it."
    )


def test_unknown_episode_metrics_are_refused(run, capsys):
    line = refusal(capsys, "evaluate", run, "--episodes", 5, "--fail-if", "facts.goalrate < 1")
    assert "Did you mean 'facts.goal_rate'?" in line


def test_exit_status_of_compare(run, capsys):
    command = ["compare", run, run, "--episodes", 20]
    assert status(*command, "--fail-if", "mean != 0", "--fail-if", "b.facts.goal_rate > 1") == 0
    assert status(*command, "--fail-if", "a.minimum < 1e9") == 3
    assert "steadyrl: failed: a.minimum < 1e9 (a.minimum is " in capsys.readouterr().err


RETURNS = [3.0, -1.5, 20.0, 4.0]
FILES = {
    "one column": ("3\n-1.5\n20\n4\n", None),
    "a header": ("return\n3\n-1.5\n2e1\n\n4.0", None),
    "named": ("episode,return\n0,3\n1,-1.5\n2,20\n3,4\n", "return"),
    "by number": ("0;3\n1;-1.5\n2;20\n3;4\n", "2"),
    "monitor": ('#{"t_start": 1, "env_id": "None"}\nr,l,t\n3,9,0.1\n-1.5,9,1\n20,9,2\n4,9,3\n', "r"),
    "tabs, quotes and a byte order mark": ('\ufeff"l"\t"r"\n1\t"3"\n1\t-1.5\n1\t20\n1\t4\n', "r"),
}


@pytest.mark.parametrize("name", FILES)
def test_returns_of_a_file(name, tmp_path):
    text, column = FILES[name]
    (tmp_path / "log.csv").write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(read_returns(tmp_path / "log.csv", column), RETURNS)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", None, "log.csv is empty"),
        ("# nothing\n\n", None, "log.csv is empty"),
        ("return\n", None, "at least 2 are needed, and there are 0"),
        ("1\n", None, "at least 2 are needed, and there are 1"),
        ("1\nnan\n2\n", None, "line 2: a finite return is needed in column 1, and there is 'nan'"),
        ("r\n1\ninf\n2\n", None, "line 3: a finite return is needed in column r, and there is 'inf'"),
        ("r\n1\nten\n2\n", None, "there is 'ten'"),
        ("r,l\n1,2\n,3\n", "r", "line 3: a finite return is needed in column r, and there is nothing"),
        ("l,r\n1,2\n3\n", "r", "there is nothing"),
        ("r,l\n1,2\n3,4\n", None, r"has 2 columns \(r, l\): name that of the returns with --column"),
        ("reward,l\n1,2\n3,4\n", "rewards", "unknown column 'rewards'. Did you mean 'reward'?"),
    ],
)
def test_what_is_no_file_of_returns(text, column, message, tmp_path):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_returns(tmp_path / "log.csv", column)


def test_the_risk_of_logged_returns_is_that_of_the_episodes(tmp_path, capsys):
    report = steadyrl.evaluate(lambda seen: int(seen[2] > 0), "CartPole-v1", episodes=30)
    np.savetxt(tmp_path / "log.csv", report.returns, header="return", comments="")
    assert status("evaluate", "--returns", tmp_path / "log.csv", "--json", "--measures", "cvar:0.2") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["cvar_10"] == report.to_dict()["cvar_10"]
    assert data["returns_file"] == str(tmp_path / "log.csv")
    assert "cvar:0.2" in data["measures"]
    assert status("evaluate", "--returns", tmp_path / "log.csv", "--fail-if", "mean > 0") == 3


def test_nothing_is_played_with_logged_returns(run, tmp_path, capsys):
    (tmp_path / "log.csv").write_text("1\n2\n")
    assert "and a run: nothing is played" in refusal(capsys, "evaluate", run, "--returns", tmp_path / "log.csv")
    line = refusal(capsys, "evaluate", "--returns", tmp_path / "log.csv", "--gamma", "0.9")
    assert "and --gamma: nothing is played" in line
    assert "name a run folder" in refusal(capsys, "evaluate")
    assert "Leave it out" in refusal(capsys, "evaluate", run, "--column", "r")
    assert "there is no such file" in refusal(capsys, "evaluate", "--returns", tmp_path / "none.csv")
