"""Type checkers and editors know the agents' settings."""

import dataclasses
import importlib.resources
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import steadyrl
from steadyrl.agents import AGENTS, MVPI, MeanGini, make_signatures, signatures

ROOT = Path(__file__).parents[2]
OWN = [kind for kind in AGENTS.values() if kind.__module__.startswith("steadyrl.")]


def keywords(kind):
    return typing.get_type_hints(getattr(signatures, f"{kind.__name__}Kwargs"))


def test_the_typed_signatures_are_up_to_date():
    assert make_signatures.PATH.read_text() == make_signatures.source(), "Run make signatures."


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.name)
def test_every_setting_and_alias_of_every_choice_is_typed(kind):
    expected = {"workers"}
    for settings in kind.settings_classes():
        for field in dataclasses.fields(settings):
            expected |= {field.name, *(a.name for a in field.metadata["aliases"] if not a.deprecated)}
    assert keywords(kind).keys() == expected


def test_the_types_of_settings():
    typed = keywords(MeanGini)
    assert typed["risk_aversion"] == float | tuple[float, float] | list[float]
    assert typed["policy_learning_rate"] == float | typing.Literal["auto"] | None, "its default is a rule"
    assert typed["ratio_range"] is float
    assert typed["inner_updates"] == typed["n_epochs"] == int | typing.Literal["auto"] | None, "an alias"
    assert typed["hidden"] == tuple[int, ...] | list[int] | typing.Literal["auto"] | None, "a rule, too"
    assert typed["mean"] == typing.Literal["vpg", "ppo"]
    assert typed["clip_range"] is float, "a setting with mean='ppo' alone"
    assert "time_out_ends" not in typed, "deprecated"
    assert keywords(MVPI)["solver"] == typing.Literal["q_learning", "dqn", "td3"]


CASES = [
    ('MeanGini("CartPole-v1", risk_aversion=1, seed=0, n_epochs=3, optimizer="adam", hidden=[64, 64])', ""),
    ('MeanGini("CartPole-v1", mean="ppo", clip_range=0.1, policy_learning_rate="auto", engine="gymnasium")', ""),
    ('MVPI("CartPole-v1", solver="dqn", exploration_steps=10)', ""),
    ('agent_class("mg")("CartPole-v1", **settings)', ""),
    ('MeanGini("CartPole-v1", risk_aversoin=1.0)', 'did you mean "risk_aversion"?'),
    ('MeanGini("CartPole-v1", risk_aversion=(0, 3)).at(1.2).predict(0)', ""),
    ('MeanGini("CartPole-v1", risk_aversion="high")', 'expected "float | tuple[float, float]'),
    ('MeanGini("CartPole-v1", mean="pppo")', "expected \"Literal['vpg', 'ppo']\""),
    ('MeanGini("CartPole-v1", seed="0")', 'expected "int"'),
    ('MeanGini("MlpPolicy", "CartPole-v1")', "Too many positional arguments"),
    *((f'{kind.__name__}("CartPole-v1", gamma=0.9)', "") for kind in OWN),
    *((f'{kind.__name__}("CartPole-v1", gamma="0.9")', 'expected "float"') for kind in OWN),
    *((f'{kind.__name__}("CartPole-v1", gama=0.9)', 'Unexpected keyword argument "gama"') for kind in OWN),
]


def test_mypy_finds_misspelled_settings_and_wrong_types(tmp_path):
    names = ", ".join(kind.__name__ for kind in OWN)
    head = f"from typing import Any\nfrom steadyrl import {names}\nfrom steadyrl.agents import agent_class\n"
    snippet = tmp_path / "typed_settings.py"
    snippet.write_text(head + "settings: dict[str, Any] = {}\n" + "".join(f"{line}\n" for line, _ in CASES))
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(snippet)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not found.stderr
    by_line = {}
    # By name alone: mypy's cache has the folder of an earlier run.
    for number, error in re.findall(rf"{snippet.name}:(\d+): error: (.*)", found.stdout):
        by_line.setdefault(int(number), []).append(error)
    for number, (line, expected) in enumerate(CASES, start=5):
        messages = " ".join(by_line.pop(number, []))
        assert expected in messages if expected else not messages, f"{line}: {messages or found.stdout}"
    assert not by_line


def test_the_package_is_marked_as_typed():
    assert importlib.resources.files(steadyrl).joinpath("py.typed").is_file()
