"""`steadyrl train --resume-from`: options that contradict the run, its replay buffer, and what is printed when."""

import dataclasses

import pytest
from commands import refusal

from steadyrl.cli.main import main
from steadyrl.cli.train import Train
from steadyrl.training import checkpoint
from steadyrl.training.run_folder import is_complete, read_config

MAZE = "steadyrl/GuardedMaze-v0"
QUIET = ["--no-progress", "--no-page"]
SMALL = ["--set", "hidden=[4]", "--set", "learning_starts=10", "--set", "buffer_size=50"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def has_replay_buffer(folder):
    return checkpoint.has_replay_buffer(checkpoint.read(folder / "checkpoint.steady"))


def test_defaults_that_are_given_are_not_ignored(tmp_path, capsys):
    run = ["--agent", "reinforce", "--seed", "3", "--engine", "gymnasium"]
    main(["train", MAZE, *run, "--episodes", "20", "--out", "run", *QUIET])
    before = (tmp_path / "run" / "config.json").read_bytes()
    capsys.readouterr()
    resume = ["train", "--resume-from", "run", "--episodes", "40", *QUIET]
    for option, default in (("--agent", "mg"), ("--seed", "0"), ("--engine", "auto")):
        line = refusal(capsys, *resume, option, default)
        assert f"{option}: with --resume-from it is that of the run. Leave it out." in line
    assert (tmp_path / "run" / "config.json").read_bytes() == before
    main([*resume, *run])
    assert read_config(tmp_path / "run")["budget"] == {"episodes": 40}


def test_the_defaults_of_a_new_run(tmp_path, capsys):
    main(["train", MAZE, "--episodes", "20", *QUIET])
    config = read_config(tmp_path / "runs" / "GuardedMaze-v0-mg-seed0")
    assert (config["agent"], config["seed"], config["engine"]) == ("mg", 0, "compiled")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert all(f"by default {default}" in text for default in ("mg", "0", "auto"))
    given = {field.name: field.default for field in dataclasses.fields(Train)}
    assert given["agent"] is given["seed"] is given["engine"] is None


def test_the_agent_of_a_settings_file_is_named_in_errors(tmp_path, capsys):
    (tmp_path / "best.toml").write_text('agent = "reinforce"\n')
    options = ["--evaluate-every", "10", "--patience", "2", "--score", "mean_gini"]
    line = refusal(capsys, "train", MAZE, "--settings", "best.toml", *options)
    assert "reinforce has no risk_aversion" in line


def test_an_extension_keeps_the_replay_buffer_if_the_run_kept_it(tmp_path, monkeypatch):
    run = tmp_path / "run"
    options = ["--agent", "dqn", *SMALL, "--timesteps", "30", "--keep-replay-buffer"]
    main(["train", "CartPole-v1", *options, "--out", "run", *QUIET])
    main(["train", "--resume-from", "run", "--timesteps", "60", *QUIET])
    assert is_complete(run)
    assert has_replay_buffer(run)

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    for total in ("90", "120"):  # An extension that is interrupted, and a further one of it.
        with monkeypatch.context() as patch:
            patch.setattr("steadyrl.training.run.learn_together", interrupted)
            with pytest.raises(SystemExit):
                main(["train", "--resume-from", "run", "--timesteps", total, *QUIET])
        assert not is_complete(run)
    main(["train", "--resume-from", "run", "--timesteps", "120", *QUIET])
    assert is_complete(run)
    assert has_replay_buffer(run)
    assert [entry["keep_replay_buffer"] for entry in read_config(run)["extensions"]] == [True] * 3


def test_an_extension_is_announced_after_the_checks(capsys):
    main(["train", "CartPole-v1", "--agent", "dqn", *SMALL, "--timesteps", "30", "--out", "run", *QUIET])
    capsys.readouterr()
    line = refusal(capsys, "train", "--resume-from", "run", "--timesteps", "60", *QUIET)
    assert "saved without its replay buffer" in line
    huge = refusal(capsys, "train", "--resume-from", "run", "--timesteps", "2e9", *QUIET)
    assert "add --yes" in huge
