"""Runs for a range of lambdas on the command line."""

import json

import pytest

import steadyrl
from steadyrl.cli.main import main
from steadyrl.runs.sweep import choices_of_text

ENV = "steadyrl/GuardedMaze-v0"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["train", ENV, "--set", "risk_aversion=0:3", "--episodes", "100", "--out", "run", "--no-progress"])
    return tmp_path / "run"


def test_a_run_is_trained_recorded_and_evaluated_at_a_lambda(run, capsys):
    assert json.loads((run / "config.json").read_text())["settings"]["risk_aversion"] == [0.0, 3.0]
    assert steadyrl.load(run).risk_aversion_range == (0.0, 3.0)
    capsys.readouterr()
    for option in ("--risk-aversion", "--at"):
        main(["evaluate", "run", option, "1.2", "--episodes", "5"])
        assert capsys.readouterr().out.startswith("mg of run (100 episodes, at lambda 1.2) in steadyrl/GuardedMaze-v0")
    main(["evaluate", "run", "--at", "0.5", "--episodes", "5", "--json"])
    assert json.loads(capsys.readouterr().out)["risk_aversion"] == 0.5
    main(["compare", "run", "run", "--at-a", "0", "--at-b", "3", "--episodes", "5"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["a: mg of run (100 episodes, at lambda 0)", "b: mg of run (100 episodes, at lambda 3)"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "use agent.at(1.5), or --at 1.5 on the command line"),
        (["--at", "4"], "at(4.0): risk_aversion was from 0 to 3 in training"),
    ],
)
def test_what_evaluate_says_of_a_range(run, arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(["evaluate", "run", *arguments])
    assert message in capsys.readouterr().err


def test_a_range_is_one_value_of_a_sweep():
    choices = choices_of_text(["mg"], {"risk_aversion": "0.5,0:3,[1, 2]"})
    assert choices == {"mg": {"risk_aversion": [0.5, (0, 3), (1, 2)]}}
