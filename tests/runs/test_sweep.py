"""Sweeps: what is combined, what is kept, what fails, and what users get wrong."""

import os
from pathlib import Path

import pytest
from long_sweep import run_names

import steadyrl
from steadyrl.base.files import lock_folder
from steadyrl.cli.main import main
from steadyrl.runs.sweep import MAX_NAME, Sweep, choices_of_text, folder_name, split
from steadyrl.runs.sweep_file import read_sweep
from steadyrl.training.run_folder import is_complete, read_config

MAZE = "steadyrl/GuardedMaze-v0"
QUICK = ["--episodes", "100", "--seeds", "2"]


@pytest.mark.slow
def test_every_combination_has_a_run_in_a_folder_named_by_it(tmp_path, capsys):
    out = tmp_path / "out"
    command = ["sweep", MAZE, "--agents", "mg,reinforce", "--set", "risk_aversion=0.3,0.6", *QUICK, "--out", str(out)]
    main(command)
    printed = capsys.readouterr()
    methods = ["mg,risk_aversion=0.3", "mg,risk_aversion=0.6", "reinforce"]
    assert run_names(out) == [f"GuardedMaze-v0/{method}/seed{seed}" for method in methods for seed in (0, 1)]
    for method in methods:
        assert method in printed.out
    assert "2/2" in printed.out
    assert "6 of 6 runs" in printed.err
    config = read_config(out / "GuardedMaze-v0/mg,risk_aversion=0.6/seed1")
    assert (config["settings"]["risk_aversion"], config["seed"]) == (0.6, 1)
    assert (config["budget"], config["threads"], config["vmap_width"]) == ({"episodes": 100}, 1, 5)

    bits = {name: (out / name / "checkpoint.steady").read_bytes() for name in run_names(out)}
    lost = out / "GuardedMaze-v0/mg,risk_aversion=0.6/seed1/checkpoint.steady"
    lost.unlink()
    main([*command[:-4], "--seeds", "3", "--out", str(out)])  # One is lost, and three are new.
    assert "Kept 5 finished runs" in capsys.readouterr().out
    assert len(run_names(out)) == 9
    assert all((out / name / "checkpoint.steady").read_bytes() == before for name, before in bits.items())


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_a_sweep_from_a_file(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text(f"""
        envs = ["{MAZE}", "CartPole-v1"]
        seeds = [4, 7]
        timesteps = 300
        [agents.MeanGini]
        risk_aversion = [0.5, 1]
        mean = "ppo"
        [agents.ppo]
        hidden = [8, 8]
        [env_settings]
        max_episode_steps = [20, 30]
    """)
    sweep = read_sweep(file)
    assert sweep == Sweep(
        envs=(MAZE, "CartPole-v1"),
        agents={"mg": {"risk_aversion": [0.5, 1], "mean": ["ppo"]}, "ppo": {"hidden": [[8, 8]]}},
        seeds=(4, 7),
        budget={"timesteps": 300},
        env_settings={"max_episode_steps": [20, 30]},
    )
    cells = sweep.cells(tmp_path)
    assert len(cells) == 2 * 2 * 3
    assert len({folder for cell in cells for folder in cell.folders}) == 2 * len(cells)
    assert str(cells[2].folders[0]).endswith("GuardedMaze-v0,max_episode_steps=20/ppo,hidden=8x8/seed4")
    out = tmp_path / "out"
    # Options of the command override the file.
    main(
        ["sweep", str(file), "--agents", "ppo", "--env-set", "max_episode_steps=20", "--seeds", "1", "--out", str(out)]
    )
    names = [f"{env},max_episode_steps=20/ppo,hidden=8x8/seed0" for env in ("CartPole-v1", "GuardedMaze-v0")]
    assert run_names(out) == names
    assert steadyrl.load(out / names[0] / "checkpoint.steady").timesteps >= 300
    assert read_config(out / names[1])["settings"]["hidden"] == [8, 8]
    assert "2 of 2 runs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("risk_aversion=0.3,1", [0.3, 1.0]),
        ("hidden=64,64", [(64, 64)]),
        ("hidden=[64,64],[8]", [(64, 64), (8,)]),
        ("hidden=(64,64), (8)", [(64, 64), (8,)]),
        ("mean=vpg,ppo", ["vpg", "ppo"]),
        ("normalise_observations=true,false", [True, False]),
    ],
)
def test_values_are_parsed_by_the_type_of_their_setting(text, values):
    name, given = text.split("=")
    assert choices_of_text(["mg"], {name: given}) == {"mg": {name: values}}


def test_values_may_be_lists_of_lists():
    assert split("1, [[2,3],[4]],{5,6}") == ["1", "[[2,3],[4]]", "{5,6}"]


def test_names_of_folders_are_plain_and_short():
    assert folder_name("mg", {"a": 0.1, "b": (1, 2)}) == "mg,a=0.1,b=1x2"
    odd, long = folder_name("mg", {"a": "x/y z"}), folder_name("mg", {"a": "x" * 300})
    assert set("/ ").isdisjoint(odd)
    assert len(long) <= MAX_NAME
    assert odd != folder_name("mg", {"a": "x-y z"})
    assert long != folder_name("mg", {"a": "x" * 301})
    assert folder_name("mg", {"a": "x" * 300, "b": 1}, ["b"]).startswith("mg,b=1-")


def test_the_same_settings_have_the_same_folder():
    assert (
        folder_name("mg", {"b": 1.0, "a": (2.0, 0.5)}) == folder_name("mg", {"a": (2, 0.5), "b": 1}) == "mg,a=2x0.5,b=1"
    )
    assert folder_name("mg", {"a": True}) == "mg,a=True"
    assert folder_name("mg", {"a": 1e300}) == "mg,a=1e+300"
    long = {"b": "x" * 300, "a": 1.0}
    assert folder_name("mg", long) == folder_name("mg", {"a": 1, "b": "x" * 300})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--agents", "mgg"], "unknown agent 'mgg'. Did you mean 'mg'?"),
        (["--set", "risk_aversoin=1,2"], "unknown setting 'risk_aversoin'. Did you mean 'risk_aversion'?"),
        (["--set", "lambda=1,2"], "Did you mean 'risk_aversion'?"),
        (
            ["--set", "risk_aversion=1,much"],
            "risk_aversion=much: a number, or a range such as (0, 3) or 0:3, is needed",
        ),
        (["--set", "gamma=0.9,2"], "gamma=2.0: it must be at most 1"),
        (["--set", "risk_aversion=1,1"], "risk_aversion: give it at least one value, and each once"),
        (["--env-set", "goal_rewrad=1"], "Did you mean 'goal_reward'?"),
        (["--on", "rai"], "unknown place 'rai'. Did you mean 'ray'?"),
        (["--address", "auto"], "Add --on ray"),
        (["--checkpoint-every", "-1"], "--checkpoint-every -1.0: at least 0 seconds"),
        (["--seeds", "0"], "seeds 0: at least 1"),
        (["--episodes", "0"], "at least 1"),
        (["--episodes", "1", "--timesteps", "1"], "not both"),
        (["--log", "tensorbord"], "unknown logger 'tensorbord'. Did you mean 'tensorboard'?"),
        (["--log", "jsonl,mlfow"], "unknown logger 'mlfow'. Did you mean 'mlflow'?"),
        ([MAZE], "name each once"),
        (["other/GuardedMaze-v0"], "two of them would share a folder"),
        (["CartPole-v7"], "CartPole-v1"),
        (["nope:Env-v0"], "there is no module 'nope'"),
        (["nowhere.toml"], "name one file, or environments"),
    ],
)
def test_a_mistake_gets_one_line_and_writes_nothing(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["sweep", MAZE, *arguments])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("env = ['x']", "unknown key 'env'. Did you mean 'envs'?"),
        ("envs = ['CartPole-v1']", "agents: name at least one"),
        ("agents = ['mg']", "envs: name at least one"),
        ("envs = ['CartPole-v1']\n[agents.mg]\nrisk_aversoin = 1", "Did you mean 'risk_aversion'?"),
        ("envs = [", "is not TOML"),
        ("envs = 'CartPole-v1'", "envs: a list of names"),
        ("envs = [1]", "envs: a list of names"),
        ("agents = 'mg'", "agents: a list of names, or a table"),
        ("[agents]\nmg = 3", "agents: a list of names, or a table"),
        ("agents = ['mgg']", "unknown agent 'mgg'. Did you mean 'mg'?"),
        ("seeds = 'all'", "seeds: a whole number or a list of them"),
        ("seeds = true", "seeds: a whole number or a list of them"),
        ("envs = ['CartPole-v1']\nagents = ['mg']\nseeds = [0, -3]", "seeds: -3: a seed is a whole number from 0"),
        ("engine = 3", "engine: a name is needed"),
        ("env_settings = 3", "env_settings: a table"),
        ("episodes = 1.5", "episodes: a whole number"),
        ("loggers = 'jsonl'", "loggers: a list of names"),
        ("envs = ['CartPole-v1']\nagents = ['mg']\nloggers = ['jsnl']", "unknown logger 'jsnl'. Did you mean 'jsonl'?"),
    ],
)
def test_a_mistake_in_a_file_gets_one_line(text, message, tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["sweep", str(file), "--episodes", "10", "--out", str(tmp_path / "out")])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert not (tmp_path / "out").exists()


BREAKING = """
import gymnasium as gym
from gymnasium.spaces import Box, Discrete

class Breaking(gym.Env):
    observation_space, action_space = Box(0, 1, (1,)), Discrete(2)

    episodes = 0

    def __init__(self, breaks=False):
        self.breaks = breaks

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        Breaking.episodes += 1
        return [0.5], {}

    def step(self, action):
        if self.breaks and self.episodes > 60:
            raise RuntimeError("the wheel came off")
        return [0.5], 1.0, bool(self.np_random.random() < 0.2), False, {}
"""


@pytest.mark.usefixtures("in_process")
def test_failures_are_listed_and_the_others_are_trained(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "breaking.py").write_text(BREAKING)
    command = ["sweep", "breaking:Breaking", "--env-set", "breaks=true,false", "--agents", "reinforce"]
    command += ["--set", "hidden=8", *QUICK, "--out", "out"]
    with pytest.raises(SystemExit) as stop:
        main(command)
    assert stop.value.code == 1
    printed = capsys.readouterr()
    failures = [line for line in printed.err.splitlines() if "the wheel came off" in line]
    assert len(failures) == 2
    assert "2 failed" in printed.err
    log = Path(failures[0].split("Log: ")[1])
    assert "in step" in log.read_text()
    assert "0/2" in printed.out
    assert "2/2" in printed.out
    complete = [folder for folder in Path("out").rglob("seed*") if is_complete(folder)]
    assert len(complete) == 2
    main([*command[:2], "--env-set", "breaks=false", *command[4:]])
    assert "Kept 2 finished runs" in capsys.readouterr().out


def test_two_sweeps_cannot_share_a_folder(tmp_path, capsys):
    out = tmp_path / "out"
    with lock_folder(out), pytest.raises(SystemExit) as stop:
        main(["sweep", MAZE, *QUICK, "--out", str(out)])
    assert stop.value.code == 2
    assert "another process is at work in it" in capsys.readouterr().err
    assert os.listdir(out) == []
