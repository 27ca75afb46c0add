"""What commands say about themselves, and about options that they do not have."""

import pytest

import steadyrl
from steadyrl.cli.main import _commands, main


def printed(capsys, *arguments):
    """What a command prints that exits with status 0."""
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    assert stop.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize("command", _commands())
def test_help_names_real_defaults(command, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    text = printed(capsys, command, "--help")
    for odd in ("{None}", "default: None", "(default: )", "default: ''", "default: False"):
        assert odd not in " ".join(text.replace("│", " ").split())
    assert text.startswith(f"usage: steadyrl {command}")


def test_the_version(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"steadyrl {steadyrl.__version__}\n"


def test_help_is_a_line_for_each_command(capsys):
    text = printed(capsys, "--help")
    assert len(text.splitlines()) < 32
    for name, kind in _commands().items():
        assert f"\n  {name} " in text
        assert kind.__doc__.splitlines()[0].split(":")[0] in " ".join(text.split())


def test_no_command_gets_help_and_is_an_error(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
    assert "usage: steadyrl COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "CartPole-v1", "--risk-aversion", "0.5"], "Did you mean --set risk_aversion=0.5?"),
        (["train", "CartPole-v1", "--risk_aversion=0.5"], "Did you mean --set risk_aversion=0.5?"),
        (["train", "CartPole-v1", "--lam", "1"], "Did you mean --set risk_aversion=1?"),
        (["train", "CartPole-v1", "--lr", "1e-3"], "Did you mean --set policy_learning_rate=1e-3?"),
        (["train", "CartPole-v1", "--agent", "dqn", "--lr", "1e-3"], "Did you mean --set learning_rate=1e-3?"),
        (["train", "CartPole-v1", "--net-arch", "[64, 64]"], "Did you mean --set 'hidden=[64, 64]'?"),
        (["train", "CartPole-v1", "--gamma", "0.9"], "Did you mean --set gamma=0.9?"),
        (["train", "CartPole-v1", "--gamma", "--yes"], "Did you mean --set gamma=VALUE?"),
        (["sweep", "CartPole-v1", "--gamma", "0.9,1"], "Did you mean --set gamma=0.9,1?"),
        (["train", "CartPole-v1", "--episode", "5"], "--episode: train has no such option. Did you mean --episodes?"),
        (["train", "CartPole-v1", "--no-tensorboard"], "Did you mean --tensorboard?"),
        (["evaluate", "run", "--gama", "1"], "--gama: evaluate has no such option. Did you mean --gamma?"),
        (["doctor", "--fast"], "--fast: doctor has no such option. See steadyrl doctor --help."),
        (["--verbose"], "unknown command '--verbose'."),
    ],
)
def test_an_option_that_a_command_does_not_have(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_every_spelling_of_an_option_that_tyro_takes(monkeypatch):
    jobs, how = [], []
    monkeypatch.setattr(
        "steadyrl.runs.scheduler.train_all", lambda cells, *rest: jobs.extend(cells) or how.extend(rest) or []
    )
    monkeypatch.setattr("steadyrl.reports.sweep_table.print_cells", lambda cells: None)
    options = ["--agent", "mg", "--env-set=max_episode_steps=9", "--env_set", "render_mode=null", "--no-progress"]
    main(["sweep", "CartPole-v1", *options, "--checkpoint_every", "5", "--yes"])
    assert [job.env_options for job in jobs] == [{"max_episode_steps": 9, "render_mode": None}]
    assert how[1:] == ["local", None, False]
