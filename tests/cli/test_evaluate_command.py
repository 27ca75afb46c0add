"""What `steadyrl evaluate` and `steadyrl compare` print about what was played, and refuse before they play."""

import json

import gymnasium as gym
import pytest

import steadyrl
from steadyrl.cli.main import main
from steadyrl.evaluation import evaluate as evaluation

ENV = "steadyrl/GuardedMaze-v0"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Agents with different discounts: two that sample their actions, and one that does not."""
    monkeypatch.chdir(tmp_path)
    env = gym.make(ENV, goal_reward=40)
    steadyrl.MeanGini(env, gamma=0.999).learn(total_episodes=50, progress_bar=False).save("mg.steady")
    steadyrl.Reinforce(env, gamma=0.99).learn(total_episodes=50, progress_bar=False).save("reinforce.steady")
    steadyrl.DQN("CartPole-v1").save("dqn.steady")
    return tmp_path


def first_line(capsys, *arguments):
    main(["evaluate", *arguments])
    return capsys.readouterr().out.splitlines()[0]


def test_the_first_line_names_agent_environment_and_actions(runs, capsys):
    assert first_line(capsys, "mg.steady", "--episodes", "20") == (
        "mg of mg.steady (50 episodes) in steadyrl/GuardedMaze-v0 (goal_reward=40), "
        "20 episodes, actions sampled, seed 0"
    )
    assert first_line(capsys, "mg.steady", "--episodes", "20", "--env", ENV, "--deterministic", "--seed", "3") == (
        "mg of mg.steady (50 episodes) in steadyrl/GuardedMaze-v0, 20 episodes, actions deterministic, seed 3"
    )
    assert first_line(capsys, "dqn.steady", "--episodes", "2") == (
        "dqn of dqn.steady (0 episodes) in CartPole-v1, 2 episodes, actions deterministic, seed 0"
    )


def test_json_names_agent_environment_and_actions(runs, capsys):
    main(["evaluate", "mg.steady", "--episodes", "20", "--env-set", "goal_reward=30", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert (data["agent"], data["env"], data["deterministic"]) == ("mg", ENV, False)
    assert (data["path"], data["trained_episodes"], data["env_options"]) == ("mg.steady", 50, {"goal_reward": 30})


def test_compare_of_different_discounts(runs, capsys):
    arguments = ["compare", "mg.steady", "reinforce.steady", "--episodes", "20"]
    main(arguments)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "a: mg of mg.steady (50 episodes)",
        "b: reinforce of reinforce.steady (50 episodes)",
        "in steadyrl/GuardedMaze-v0 (goal_reward=40), 20 episodes each, actions sampled, seed 0",
    ]
    (note,) = [line for line in lines if line.startswith("Discounted returns are not compared")]
    assert note.endswith("such as --gamma 0.999.")
    main([*arguments, "--json"])
    data = json.loads(capsys.readouterr().out)
    assert data["discounted"] is None
    assert data["env"] == ENV
    assert [data[name]["agent"] for name in "ab"] == ["mg", "reinforce"]
    assert [data[name]["deterministic"] for name in "ab"] == [False, False]
    main([*arguments, "--gamma", "0.99", "--json"])
    assert json.loads(capsys.readouterr().out)["discounted"]["mean"]


@pytest.mark.parametrize(("picture", "message"), [("x.foo", "cannot be written as .foo"), (".", "is a folder")])
def test_a_picture_is_checked_before_anything_is_played(runs, picture, message, capsys, monkeypatch):
    monkeypatch.setattr(evaluation, "play_policy", lambda *_: pytest.fail("played"))
    with pytest.raises(SystemExit):
        main(["evaluate", "mg.steady", "--histogram", picture])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["evaluate", "compare", "report"])
def test_help_names_no_default_that_is_none(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "None" not in text
    assert "by default" in text


def test_measures_that_are_asked_for(runs, capsys):
    main(["evaluate", "mg.steady", "--episodes", "20", "--measures", "semivariance,cvar:0.2", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert data["measures"].keys() == {"semivariance", "cvar:0.2"}
    main(["compare", "mg.steady", "mg.steady", "--episodes", "20", "--measures", "semivariance"])
    assert "\nsemivariance " in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", "no.steady", "--measures", "semivarianc"])
    assert stop.value.code == 2
    assert "unknown measure 'semivarianc'. Did you mean 'semivariance'?" in capsys.readouterr().err
