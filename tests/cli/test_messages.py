"""Commands and calls that messages suggest: they can be pasted, they work, and they are short."""

import shlex

import gymnasium as gym
import numpy as np
import pytest

import steadyrl
from steadyrl.cli.main import main
from steadyrl.envs.spaces import as_batch, check_spaces

ENV = "steadyrl/GuardedMaze-v0"


@pytest.fixture
def train(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *options: main(["train", ENV, "--no-progress", "--set", "episodes_per_update=10", *options])


def test_paths_are_quoted(train, capsys):
    train("--episodes", "10", "--out", "my runs/a")
    printed = capsys.readouterr().out
    assert printed.endswith("Its risk: steadyrl evaluate 'my runs/a'\n")
    main(shlex.split(printed.splitlines()[-1].split("steadyrl ")[1]))


@pytest.mark.usefixtures("train")
def test_a_sweep_says_where_it_is_saved(monkeypatch, capsys):
    monkeypatch.setattr("steadyrl.runs.scheduler.train_all", lambda cells, *_: [])
    monkeypatch.setattr("steadyrl.reports.sweep_table.print_cells", lambda cells: None)
    main(["sweep", ENV, "--out", "my runs"])
    assert capsys.readouterr().out.endswith("Saved in my runs.\n")


@pytest.mark.parametrize(
    ("installed", "line"),
    [
        (None, "Events: tensorboard --logdir 'my run/tensorboard' (first: pip install tensorboard)"),
        ("/bin/tensorboard", "Events: tensorboard --logdir 'my run/tensorboard'"),
    ],
)
def test_how_to_view_events(installed, line, train, monkeypatch, capsys):
    monkeypatch.setattr("shutil.which", lambda name: installed)
    train("--episodes", "10", "--tensorboard", "--out", "my run")
    assert line in capsys.readouterr().out.splitlines()


def test_a_larger_budget_gets_a_way_to_train_more(train, capsys):
    train("--episodes", "20", "--out", "run")
    with pytest.raises(SystemExit):
        train("--episodes", "50", "--out", "run")
    error = capsys.readouterr().err
    assert (
        "run already holds a run with other budget (episodes 20, here 50). Choose another --out, or remove it." in error
    )
    command = "steadyrl train --resume-from run --episodes 50"
    assert f" Or extend that run: {command}." in error
    main([*command.split()[1:], "--no-progress", "--no-page"])
    assert steadyrl.load("run").episodes == 50


@pytest.mark.parametrize("options", [["--episodes", "10"], ["--timesteps", "900"], ["--episodes", "50", "--seed", "1"]])
def test_other_runs_get_none(options, train, capsys):
    train("--episodes", "20", "--out", "run")
    with pytest.raises(SystemExit):
        train(*options, "--out", "run")
    assert "in Python" not in capsys.readouterr().err


@pytest.mark.parametrize("size", [900, 10_000])
def test_large_spaces_are_shortened(size):
    bounds = np.linspace(0, 1, size, dtype=np.float32)
    large, discrete = gym.spaces.Box(-bounds - 1, bounds), gym.spaces.Discrete(2)
    for spaces in (
        (gym.spaces.Tuple([large] * 20 + [gym.spaces.Text(1)]), discrete),
        (large, gym.spaces.Tuple([large])),
    ):
        with pytest.raises(ValueError, match="is not supported") as error:
            check_spaces(*spaces)
        assert len(str(error.value)) < 400
    with pytest.raises(ValueError, match=rf"is not in Box\(shape=\({size},\), dtype=float32\)") as error:
        as_batch(large, np.zeros(size + 1))
    assert len(str(error.value)) < 400
