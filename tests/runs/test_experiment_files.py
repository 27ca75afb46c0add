"""Methods in experiment files that take their settings from another."""

import dataclasses
import re
import shutil
import tomllib
from importlib.resources import files
from pathlib import Path

import gymnasium as gym
import pytest

from steadyrl import MeanGini
from steadyrl.runs import experiment
from steadyrl.runs.experiment import load_experiment

ROOT = Path(__file__).parents[2]


@pytest.fixture
def file_with(tmp_path, monkeypatch):
    """A function that appends text to a copy of LunarLander's file and makes it the experiment "copy"."""
    shutil.copy(files("steadyrl.runs") / "experiments" / "lunar_lander.toml", tmp_path / "copy.toml")
    monkeypatch.setattr(experiment, "_folder", lambda: tmp_path)

    def append(text):
        with (tmp_path / "copy.toml").open("a") as file:
            file.write(text)

    return append


def method(lines):
    return f'\n[methods.other]\nagent = "mvpi"\ntitle = "Other"\nsource = "chosen"\nquick = false\n{lines}\n'


def test_what_a_method_leaves_out_is_as_in_the_other(file_with):
    file_with(method('like = "mvpi"\nsettings = { risk_aversion = 0.7 }'))
    methods = {one.name: one for one in load_experiment("copy").methods}
    assert methods["other"].settings == {**methods["mvpi"].settings, "risk_aversion": 0.7}
    assert methods["other"].scale == methods["mvpi"].scale


def test_a_scale_of_its_own(file_with):
    file_with(method('like = "mvpi"\nscale = { timesteps = 7 }'))
    methods = {one.name: one for one in load_experiment("copy").methods}
    assert methods["other"].scale == {"timesteps": 7}
    assert methods["other"].settings == methods["mvpi"].settings


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ('like = "mvpii"', "methods.other.like: unknown method with settings of its own 'mvpii'"),
        ('like = "other"', "methods.other.like: unknown method with settings of its own 'other'"),
        ("like = 3", "methods.other.like: text is needed, not 3."),
        ('like = "mvpi"\nsettings = 3', "methods.other.settings: a table is needed, not 3."),
        ('like = "reinforce"', "methods.other: "),
    ],
)
def test_errors_name_the_method(file_with, lines, problem):
    file_with(method(lines))
    with pytest.raises(ValueError, match=f"copy.toml: {re.escape(problem)}"):
        load_experiment("copy")


def test_seeds_begin_where_the_scale_says(file_with, tmp_path):
    file_with(method('like = "mvpi"\nscale = { first_seed = 200 }'))
    cells = load_experiment("copy", seeds=3).only(["other", "dqn"]).cells(tmp_path)
    assert {name: [run.seed for run in job.runs] for (_, name), job in cells.items()} == {
        "dqn": [0, 1, 2],
        "other": [200, 201, 202],
    }


def test_studies_have_the_seeds_that_are_given_and_no_more_episodes():
    for given, episodes in ((500, (500, 500)), (50_000, (30_000, 50_000)), (None, (30_000, 400_000))):
        studies = load_experiment("maze", seeds=3, episodes=given).studies.values()
        assert tuple(study.scale.episodes for study in studies) == episodes
        assert {study.scale.seeds for study in studies} == {3}
    assert load_experiment("maze", quick=True).studies == {}


def test_a_study_of_an_unknown_variant_is_an_error(file_with):
    file_with(
        '[lambda_curves]\nvariants = ["Mars"]\nseeds = 1\nepisodes = 9\nepisodes_per_record = 1\n'
        'episodes_per_evaluation = 1\nsetting = "risk_aversion"\nvalues = { mvo = [0.1] }\n'
    )
    with pytest.raises(ValueError, match=r"copy.toml: lambda_curves.variants: unknown variant 'Mars'"):
        load_experiment("copy")


def test_seeds_that_calibrated_settings_were_searched_on_are_not_reported(tmp_path):
    for name in ("lunar_lander", "inverted_pendulum", "half_cheetah", "swimmer", "swimmer_distance"):
        cells = load_experiment(name).cells(tmp_path)
        assert min(run.seed for (_, method), job in cells.items() if "calibrated" in method for run in job.runs) == 200
    cells = load_experiment("maze").cells(tmp_path)
    assert [run.seed for run in cells["goal 20", "mg_by_step"].runs] == [*range(200, 210)]


def test_credit_by_step_in_the_maze_has_the_settings_that_were_searched():
    plan = tomllib.loads((ROOT / "benchmarks/learning/step_credit.toml").read_text())["domains"]
    (method,) = load_experiment("maze").only(["mg_by_step"]).methods
    for goal in (20, 40):
        searched = {**plan[f"maze_{goal}"]["shared"], **plan[f"maze_{goal}"]["methods"]["MG by step"]}
        agent = MeanGini(gym.make("steadyrl/GuardedMaze-v0", goal_reward=goal), seed=0, **searched)
        # A table has no hidden layers, and the maze ends its episodes itself.
        used = {**dataclasses.asdict(agent.settings), "hidden": [], "max_episode_steps": 100}
        assert method.settings == used
