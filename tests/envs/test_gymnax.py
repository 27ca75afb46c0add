"""Environments of gymnax, by name and as objects."""

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import steadyrl
from steadyrl.cli.main import main
from steadyrl.envs.description import describe_env, source_from
from steadyrl.envs.jax_env import jax_model
from steadyrl.envs.jax_libraries import as_jax_model
from steadyrl.envs.resolve import resolve
from steadyrl.training.run_folder import read_config, read_metrics

gymnax = pytest.importorskip("gymnax")


def test_environments_are_taken_as_they_are():
    env, params = gymnax.make("CartPole-v1")
    short = params.replace(max_steps_in_episode=20)
    assert as_jax_model(env).horizon == 500
    assert as_jax_model((env, short)).horizon == 20
    assert as_jax_model(env) == as_jax_model((env, params)) != as_jax_model((env, short))
    assert as_jax_model(gymnax.make("CartPole-v1")) == as_jax_model(env) != as_jax_model(gymnax.make("Pendulum-v1"))
    assert resolve("gymnax:CartPole-v1", max_steps_in_episode=20).jax_model.horizon == 20
    assert resolve(env).action_space == Discrete(2)


def test_time_limits_are_not_terminal_states():
    pendulum = resolve("gymnax:Pendulum-v1", max_steps_in_episode=2)
    pendulum.reset(seed=0)
    assert [pendulum.step(np.zeros(1, np.float32))[2:4] for _ in range(2)] == [(False, False), (False, True)]


def test_its_cart_is_gymnasiums():
    ours, theirs = resolve("gymnax:CartPole-v1"), gym.make("CartPole-v1").unwrapped
    state, _ = ours.reset(seed=0)
    theirs.reset(seed=0)
    theirs.state = tuple(map(float, state))
    for _ in range(60):
        *a, _ = ours.step(1)
        *b, _ = theirs.step(1)
        np.testing.assert_allclose(a[0], b[0], atol=1e-4)
        assert a[1:3] == b[1:3]
        if a[2]:
            return
    pytest.fail("the pole did not fall")


def test_names_are_recreated_from_a_file():
    described = describe_env(resolve("gymnax:Pendulum-v1", max_steps_in_episode=9))
    assert described == {"id": "gymnax:Pendulum-v1", "options": {"max_steps_in_episode": 9}}
    assert jax_model(source_from(described).env).horizon == 9


def test_the_command_trains_and_leaves_a_run_that_is_evaluated(tmp_path, capsys):
    out = tmp_path / "run"
    settings = ["--set", "hidden=[4]", "--set", "episodes_per_update=4", "--env-set", "max_steps_in_episode=20"]
    main(["train", "gymnax:CartPole-v1", "--agent", "mg", *settings, "--episodes", "8", "--seed", "3", "--no-progress",
          "--out", str(out)])  # fmt: skip
    assert f"steadyrl evaluate {out}" in capsys.readouterr().out
    config = read_config(out)
    assert config["env"] == {"id": "gymnax:CartPole-v1", "options": {"max_steps_in_episode": 20}}
    assert (config["engine"], read_metrics(out)[-1]["episodes"]) == ("jax", 8)
    main(["evaluate", str(out), "--episodes", "5", "--seed", "2", "--json"])
    report = json.loads(capsys.readouterr().out)
    agent = steadyrl.load(out / "checkpoint.steady")
    assert agent.episodes == 8
    assert report["mean"]["value"] == steadyrl.evaluate(agent, agent.env, episodes=5, seed=2).mean.value
    assert report["maximum"] <= 20


def test_unknown_names():
    with pytest.raises(ValueError, match=r"unknown gymnax environment 'CartPole-v2'\. Did you mean 'CartPole-v1'"):
        resolve("gymnax:CartPole-v2")
    with pytest.raises(ValueError, match="unknown option 'max_steps'"):
        resolve("gymnax:CartPole-v1", max_steps=3)
    with pytest.raises(
        ValueError, match=r"unknown gymnax environment 'Nonsense'\. gymnax has Acrobot-v1, .*Pendulum-v1"
    ):
        resolve("gymnax:Nonsense")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_steps_in_episode": "x"}, "option max_steps_in_episode='x': a whole number is needed, such as 500"),
        ({"max_steps_in_episode": 2.5}, "option max_steps_in_episode=2.5: a whole number is needed, such as 500"),
        ({"gravity": "low"}, "option gravity='low': a number is needed, such as 9.8"),
        ({"max_steps_in_episode": 0}, "horizon=0: a whole number of at least 1 step is needed"),
    ],
)
def test_parameters_that_are_no_numbers(options, message):
    with pytest.raises(ValueError, match=message):
        resolve("gymnax:CartPole-v1", **options)


def test_an_environment_that_gymnax_cannot_make(monkeypatch):
    def make(identifier):
        raise OSError("no network")

    monkeypatch.setattr(gymnax, "make", make)
    with pytest.raises(ValueError, match="gymnax:MNISTBandit-bsuite could not be created: OSError: no network"):
        resolve("gymnax:MNISTBandit-bsuite")


def test_versions_before_1():
    class Old:
        reset_env = step_env = default_params = None

    with pytest.raises(TypeError, match=r"gymnax before 1\.0"):
        as_jax_model(Old())
