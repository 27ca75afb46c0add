"""Environments by the name of what makes them, in the library and on the command line."""

import sys

import gymnasium as gym
import numpy as np
import pytest

import steadyrl
from steadyrl.cli.main import main
from steadyrl.envs.description import describe_env
from steadyrl.envs.resolve import resolve
from steadyrl.training.run_folder import read_config

MODULE = '''
import gymnasium as gym
from gymnasium import spaces


class Coin(gym.Env):
    """Three steps that pay a draw times the stake. Breaks after so many episodes of all copies together."""

    observation_space = spaces.Discrete(3)
    action_space = spaces.Discrete(2)
    played = 0

    def __init__(self, stake=1.0, breaks_after=10**9):
        self.stake, self.breaks_after = stake, breaks_after

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        Coin.played += 1
        return 0, {}

    def step(self, action):
        if Coin.played > self.breaks_after:
            raise RuntimeError("the coin rolled away")
        self.t += 1
        return self.t % 3, float(self.stake * action * self.np_random.random()), self.t == 3, False, {}

    class Inner:
        make = lambda: Coin(stake=5.0)


def make(stake=2.0):
    return gym.wrappers.TimeLimit(Coin(stake), 10)


def passes_on(**options):
    return Coin(**options)


def makes_nothing():
    return None


def breaks():
    raise KeyError("oops")


number = 3
gym.register("{name}-v0", entry_point=Coin)
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module in the current directory."""
    name = f"coins_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE.replace("{name}", name))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    gym.registry.pop(f"{name}-v0", None)
    sys.modules.pop(name, None)


def test_a_class_or_function_makes_the_environment(module):
    assert resolve(f"{module}:Coin", stake=4.0).stake == 4
    assert resolve(f"{module}:Coin.Inner.make").stake == 5
    env = resolve(f"{module}:make")
    assert isinstance(env, gym.wrappers.TimeLimit)
    assert describe_env(env) == {"id": f"{module}:make", "options": {}}
    assert describe_env(resolve(f"{module}:make", stake=3)) == {"id": f"{module}:make", "options": {"stake": 3}}
    # What is wrapped afterwards is another environment.
    assert describe_env(gym.wrappers.TimeLimit(env, 2)) is None


def test_gymnasiums_own_way_to_name_a_module(module):
    env = resolve(f"{module}:{module}-v0", stake=7.0)
    assert env.unwrapped.stake == 7
    assert describe_env(env) == {"id": f"{module}:{module}-v0", "options": {"stake": 7.0}}


def test_the_latest_version_is_meant_if_none_is_given(recwarn):
    assert resolve("CartPole").spec.id == "CartPole-v1"
    assert not recwarn


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("{m}:mak", {}, "unknown factory in {m} 'mak'. Did you mean 'make'?"),
        ("{m}:number", {}, "number in {m} is a int. Name a class or function"),
        ("{m}:breaks", {}, "could not be created: KeyError: 'oops'"),
        ("{m}:makes_nothing", {}, "it returned None, not a gymnasium.Env"),
        ("{m}:make", {"stak": 1}, "unknown option 'stak'. Did you mean 'stake'? Known: stake."),
        ("{m}:passes_on", {"stak": 1}, "unknown option 'stak'. Did you mean 'stake'?"),
        ("{m}:Other-v0", {}, "unknown environment 'Other-v0'"),
        ("{m}.py:make", {}, "name the module, not its file: {m}:make"),
        ("{m}:", {}, "name a module and"),
        ("steadyrl/GuardedMaze-v0", {"layout": [1]}, "layout is list, not text"),
        ("steadyrl/GuardedMaze-v0", {"goal_rewrad": 1}, "Did you mean 'goal_reward'?"),
        ("CartPole-v1", {"suton_barto": 1}, "unknown option 'suton_barto'. Did you mean 'sutton_barto_reward'?"),
        ("maze", {}, "Did you mean 'steadyrl/GuardedMaze-v0'?"),
        ("cartpole-v7", {}, "Did you mean 'CartPole-v1'?"),
        ("ALE/Pong-v5", {}, "Install ale-py, and name its module too: ale_py:ALE/Pong-v5"),
        ("else/Where-v0", {}, "MODULE:else/Where-v0"),
        ("xyzzy", {}, "your own as module:factory"),
        ("my env", {}, "is not an id"),
    ],
)
def test_mistakes(module, name, options, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        resolve(name.format(m=module), **options)
    assert message.format(m=module) in str(error.value)


def test_modules_that_cannot_be_imported(module, tmp_path):
    with pytest.raises(ModuleNotFoundError, match=r"there is no module 'nope'. Run this where nope.py is"):
        resolve("nope:Env-v0")
    (tmp_path / "wants_more.py").write_text("import not_to_be_found")
    with pytest.raises(ModuleNotFoundError, match=r"wants_more imports a missing module: .*not_to_be_found"):
        resolve("wants_more:make")
    (tmp_path / "divides.py").write_text("1 / 0")
    with pytest.raises(ValueError, match="importing divides failed: ZeroDivisionError"):
        resolve("divides:make")


def train(module, *more):
    main(["train", module, "--episodes", "100", "--no-progress", "--out", "run", *more])


def test_a_run_folder_records_its_environment(module, tmp_path, capsys):
    """But it is only made if the user names it: a file does not choose what code runs."""
    train(f"{module}:make", "--env-set", "stake=3")
    assert read_config(tmp_path / "run")["env"] == {"id": f"{module}:make", "options": {"stake": 3}}
    assert steadyrl.load(tmp_path / "run").env is None
    assert f"steadyrl evaluate run --env {module}:make --env-set stake=3" in capsys.readouterr().out
    for command in (["evaluate", "run"], ["compare", "run", "run"]):
        with pytest.raises(SystemExit):
            main([*command, "--episodes", "5"])
        assert f"If you trust it, name it: --env {module}:make --env-set stake=3" in capsys.readouterr().err
        main([*command, "--episodes", "5", "--env", f"{module}:make", "--env-set", "stake=3"])
        assert "5 episodes" in capsys.readouterr().out


def test_an_error_in_the_environment_keeps_what_was_learned(module, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        train(f"{module}:Coin", "--env-set", "breaks_after=70")
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(f"steadyrl: {module}:Coin: ")
    assert "the coin rolled away" in line
    assert "40 episodes is saved in run" in line
    assert steadyrl.load(tmp_path / "run" / "checkpoint.steady").episodes == 40
    assert "in step" in (tmp_path / "run" / "error.txt").read_text()


def test_an_error_before_anything_is_learned_leaves_no_run(module, tmp_path, capsys):
    with pytest.raises(SystemExit):
        train(f"{module}:Coin", "--env-set", "breaks_after=7")
    assert "Nothing had been learned yet" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_the_library_takes_the_same_names(module):
    report = steadyrl.evaluate(lambda observation: 1, f"{module}:Coin", episodes=5)
    np.testing.assert_array_less(0, report.returns)


@pytest.mark.parametrize(("name", "extra"), [("LunarLander-v3", "box2d"), ("HalfCheetah-v5", "mujoco")])
def test_a_missing_package_comes_with_its_command(name, extra, monkeypatch):
    def missing(*_, **__):
        raise gym.error.DependencyNotInstalled("install it yourself")

    monkeypatch.setattr(gym, "make", missing)
    with pytest.raises(ModuleNotFoundError, match=rf"{name} needs {extra}.*pip install 'steadyrl\[{extra}\]'"):
        resolve(name)
    with pytest.raises(ModuleNotFoundError, match="install it yourself"):
        resolve("CartPole-v1")
