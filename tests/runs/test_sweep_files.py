"""Sweep and experiment files of unknown origin: whatever they hold, a sweep or one line that names the file."""

import datetime
import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyrl.cli.main import main
from steadyrl.runs import experiment
from steadyrl.runs.experiment import Experiment, load_experiment
from steadyrl.runs.sweep import MAX_RUNS, MAX_SEEDS, Sweep, seeds_of
from steadyrl.runs.sweep_file import read_sweep

START = "envs = ['CartPole-v1']\nagents = ['mg']\n"
DEEP = "x = " + "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DEEP, "is not TOML: it is nested too deeply."),
        ("envs = [[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]", "envs: it is nested too deeply"),
        ("a" * 10 + ".b" * 5000 + " = 1", "nested too deeply"),
        (f"x = {'9' * 5000}", "is not TOML: "),
        ("agents = 3", "agents: a list of names, or a table"),
        ("[agents]\nmg = [[1]]", "agents: a list of names, or a table"),
        ("envs = ['a']\nagents = ['mg', 'MeanGini']", "agents: mg is given twice"),
        ("envs = ['a', 'a']\nagents = ['mg']", "envs: a is given twice"),
        ("envs = ['a']\n[agents.mg]\nhidden = [[[8]]]", "agents.mg.hidden=[8]: whole numbers are needed"),
        (
            "envs = ['a']\n[agents.mg]\nrisk_aversion = [[1, 2], [3]]",
            "agents.mg.risk_aversion=(3,): a range is two numbers",
        ),
        ("envs = ['a']\n[agents.mg]\nrisk_aversion = 'x'", "agents.mg.risk_aversion=x: a number, or a range"),
        ("envs = ['a']\n[agents.mg]\nrisk_aversion = 1979-05-27", "agents: 1979-05-27: dates and times"),
        (f"envs = ['a']\n[agents.mg]\nrisk_aversion = {'9' * 400}", "agents: 9999"),
        ("envs = ['a']\n[agents.mg]\nseed = 1", "agents.mg: unknown setting 'seed'"),
        ("envs = ['a']\n[agents.mg]\nrisk_aversion = []", "risk_aversion: give it at least one value"),
        ("envs = ['a']\n[agents.mg]\nhidden = [[8], [8.0]]", "hidden: give it at least one value, and each once"),
        (START + "seeds = 1e39", "seeds: a whole number or a list of them"),
        (START + "seeds = -1", "seeds -1: at least 1 is needed"),
        (START + "seeds = 2.0", "seeds: a whole number or a list of them"),
        (START + "seeds = 1000000000000", "seeds 1000000000000: that would be 1,000,000,000,000 runs"),
        (START + "seeds = [1, 1]", "seeds: 1 is given twice"),
        (START + "seeds = [1, 'x']", "seeds: 'x': a seed is a whole number"),
        (START + "seeds = [1.0]", "seeds: 1.0: a seed is a whole number"),
        (START + "seeds = [true]", "seeds: True: a seed is a whole number"),
        (START + "seeds = [[1]]", "seeds: [1]: a seed is a whole number"),
        (START + "seeds = []", "seeds: name at least one"),
        (START + "episodes = 'x'", "episodes: a whole number from 1 to"),
        (START + "episodes = 0", "episodes: a whole number from 1 to"),
        (START + "timesteps = 10000000000000", "timesteps: a whole number from 1 to 1,000,000,000,000 is needed"),
        (START + "episodes = 1\ntimesteps = 1", "give episodes or timesteps, not both"),
        (START + "[env_settings]\nenv = 'x'", "env_settings: env cannot be the name of an option"),
        (START + "[env_settings]\nwhen = 07:32:00", "env_settings: 07:32:00: dates and times"),
        (START + "[env_settings]\na = []", "a: give it at least one value"),
        (START + "nonsense = 1", "unknown key 'nonsense'"),
    ],
)
def test_a_malformed_file_is_one_line_that_names_it(tmp_path, text, message):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"mine\.toml") as error:
        read_sweep(file)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("seeds", [MAX_SEEDS + 1, 10**9, 10**300])
def test_too_many_seeds_are_counted_and_not_listed(seeds):
    begun = time.monotonic()
    with pytest.raises(ValueError, match=f"that would be {seeds:,} runs"):
        seeds_of(seeds)
    assert time.monotonic() - begun < 1


@pytest.mark.parametrize("given_seeds", [True, 1.0, "3", None, math.nan, {}])
def test_seeds_are_a_number_or_a_list(given_seeds):
    with pytest.raises(ValueError, match="a whole number or a list of them is needed"):
        seeds_of(given_seeds)


def test_too_many_seeds_on_the_command_line(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["sweep", "CartPole-v1", "--seeds", "1e9", "--out", str(tmp_path / "out")])
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "seeds 1000000000: that would be 1,000,000,000 runs" in line


def test_the_number_of_runs_is_bounded_before_they_are_listed():
    values = list(range(1000))
    choices = {f"setting{index}": values for index in range(5)}
    factors = r"2 envs x 3 values of goal x agents with settings \(1,000,000,000,000,000 of mg, 1 of mvo\) x 4 seeds"
    with pytest.raises(ValueError, match=rf"has 24,000,000,000,000,024 runs: {factors}\. At most 100,000 "):
        Sweep(("a", "b"), {"mg": choices, "mvo": {}}, (0, 1, 2, 3), env_settings={"goal": [1, 2, 3]})
    with pytest.raises(ValueError, match="has 1,000,000,000 runs"):
        Sweep(("a",), {"mg": {}}, range(10**9))
    assert len(Sweep(("a",), {"mg": {}}, tuple(range(MAX_RUNS))).seeds) == MAX_RUNS


# Whatever the file holds

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(),
        st.floats(),
        TEXT,
        st.datetimes(),
        st.dates(),
        st.times(),
        st.sampled_from([0, 1, 3, -1, 10**12, 10**400, "mg", "CartPole-v1", "ppo"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)
NAMES = st.sampled_from(["risk_aversion", "hidden", "mean", "gamma", "network", "clip_range", "seed", "learning_rate"])
AGENTS = st.dictionaries(
    st.sampled_from(["mg", "MeanGini", "dqn", "mvpi", "x"]),
    st.dictionaries(NAMES | TEXT, VALUES, max_size=3) | VALUES,
    max_size=2,
)
FILES = st.fixed_dictionaries(
    {},
    optional={
        "envs": st.just(["CartPole-v1"]) | VALUES,
        "agents": st.just(["mg"]) | AGENTS | VALUES,
        "seeds": VALUES,
        "episodes": VALUES,
        "timesteps": VALUES,
        "engine": VALUES,
        "loggers": VALUES,
        "env_settings": st.dictionaries(TEXT, VALUES, max_size=2) | VALUES,
        "other": VALUES,
    },
)


def toml(value):
    """A value as TOML, with inline tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


@given(FILES)
def test_any_file_is_a_sweep_or_a_value_error(tmp_path_factory, data):
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_text("".join(f"{key} = {toml(value)}\n" for key, value in data.items()), encoding="utf-8")
    sweep = result_or_error(read_sweep, file)
    if isinstance(sweep, Sweep):
        assert sweep.cells(file.parent)
    else:
        assert str(file) in sweep
        assert len(sweep.splitlines()) == 1


def result_or_error(function, *arguments):
    """What the function returns, or the text of its ValueError."""
    try:
        return function(*arguments)
    except ValueError as error:
        return str(error)


# Experiments

TINY = {
    "title": "Tiny",
    "env": "steadyrl/GuardedMaze-v0",
    "evaluation_episodes": 10,
    "variants": [{"name": "goal 20", "options": {"goal_reward": 20}}],
    "figures": {"curves": [{"metric": "return", "label": "return"}]},
    "full": {"seeds": 2, "episodes": 100, "episodes_per_record": 50, "episodes_per_evaluation": 50},
    "quick": {"seeds": 1, "episodes": 100, "episodes_per_record": 50, "episodes_per_evaluation": 50},
    "methods": {
        "mg": {"agent": "mg", "title": "MG", "source": "printed", "quick": True, "settings": {"gamma": 0.9}},
    },
    "sweep": {
        **{"seeds": 1, "episodes": 100, "episodes_per_record": 50, "episodes_per_evaluation": 50},
        "setting": "risk_aversion",
        "values": {"mg": [0.5, {"risk_aversion": 1.0, "gamma": 0.9}]},
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of the experiments' files."""
    folder = tmp_path_factory.mktemp("experiments")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "_folder", lambda: folder)
        yield folder


def write_experiment(folder, data):
    text = "".join(f"{key} = {toml(value)}\n" for key, value in data.items())
    (folder / "tiny.toml").write_text(text, encoding="utf-8")


def changed(data, path, value):
    """With another value at the path of keys."""
    if not path:
        return value
    if isinstance(data, list):
        return [changed(data[0], path[1:], value), *data[1:]]
    return {**data, path[0]: changed(data.get(path[0], {}), path[1:], value)}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("title", 3, "title: text is needed, not 3"),
        ("nonsense", 3, "unknown key 'nonsense'"),
        ("evaluation_episodes", True, "evaluation_episodes: a whole number is needed, not True"),
        ("variants", 3, "variants: a list is needed"),
        ("variants.0", 3, "variants: a table is needed, not 3"),
        ("variants.0.options", 3, "variants.options: a table is needed, not 3"),
        ("variants.0.extra", 3, "variants: unknown key 'extra'"),
        ("full.seeds", 10**9, "full: seeds 1000000000: that would be 1,000,000,000 runs"),
        ("full.seeds", 0, "full: seeds 0: at least 1"),
        ("full.episodes", "x", "full.episodes: a whole number is needed, not 'x'"),
        ("full.episodes", 0, "full: episodes 0: a number from 1"),
        ("full", [], "full: a table is needed"),
        ("figures.curves", 3, "curves: a list is needed"),
        ("figures.curves.0.metric", [], "figures.curves.metric: text is needed"),
        ("methods", [], "methods: a table is needed"),
        ("methods.mg", 3, "methods.mg: a table is needed, not 3"),
        ("methods.mg.agent", "mgg", "methods.mg: unknown agent 'mgg'"),
        ("methods.mg.quick", 1, "methods.mg.quick: true or false is needed, not 1"),
        ("methods.mg.settings.gamma", "x", "methods.mg: gamma=x: a number is needed"),
        ("methods.mg.settings.nonsense", 1, "methods.mg: unknown setting 'nonsense'"),
        ("methods.mg.scale", {"timesteps": "x"}, "methods.mg.scale.timesteps: a whole number is needed"),
        ("sweep.setting", 3, "sweep.setting: text is needed"),
        ("sweep.values.mg", 3, "sweep.values.mg: a list is needed"),
        ("sweep.values.mg", [{"gamma": 1}], "sweep.values.mg: None: a number is needed"),
        ("sweep.values.mg", [[1]], "sweep.values.mg: [1]: a number is needed"),
        ("sweep.nonsense", 3, "sweep: unknown key 'nonsense'"),
    ],
)
def test_a_malformed_experiment_is_one_line_that_names_its_file(folder, path, value, message):
    write_experiment(folder, TINY)
    assert load_experiment("tiny").sensitivity_experiment() is not None
    write_experiment(folder, changed(TINY, path.split("."), value))
    with pytest.raises(ValueError, match=r"tiny\.toml") as error:
        load_experiment("tiny")
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_deep_experiment(folder):
    (folder / "tiny.toml").write_text(DEEP)
    with pytest.raises(ValueError, match=r"tiny.toml is not TOML: it is nested too deeply\."):
        load_experiment("tiny")


def test_too_many_seeds_of_an_experiment(folder):
    write_experiment(folder, TINY)
    with pytest.raises(ValueError, match="that would be 1,000,000,000 runs"):
        load_experiment("tiny", seeds=10**9)


PATHS = ["title", "variants", "variants.0", "variants.0.name", "full", "full.seeds", "full.timesteps", "figures"]
PATHS += ["figures.curves.0.so_far", "methods", "methods.mg", "methods.mg.settings", "methods.mg.settings.gamma"]
PATHS += ["methods.mg.scale", "sweep", "sweep.values", "sweep.values.mg", "sweep.setting", "engine", "quick"]


@given(st.sampled_from(PATHS), VALUES)
def test_any_experiment_file_is_an_experiment_or_a_value_error(folder, path, value):
    write_experiment(folder, changed(TINY, path.split("."), value))
    loaded = result_or_error(load_experiment, "tiny")
    assert isinstance(loaded, Experiment) or "tiny.toml" in loaded
