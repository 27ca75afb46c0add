"""Methods in experiment files that take their settings from another."""

import re
import shutil
from importlib.resources import files

import pytest

from steadyrl.runs import experiment
from steadyrl.runs.experiment import load_experiment


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
