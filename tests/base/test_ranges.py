"""Settings that are a number or a range."""

import json

import jax
import pytest

from steadyrl.agents.mean_gini import MeanGiniPPOSettings, MeanGiniSettings
from steadyrl.agents.mean_risk import MeanRiskSettings
from steadyrl.agents.settings import EnvKind

named = pytest.mark.parametrize


@named("given", [(0, 3), [0, 3.0], (0.0, 3)])
def test_two_numbers_are_a_range(given):
    ends = MeanGiniSettings.of({"risk_aversion": given}).risk_aversion
    assert ends == (0.0, 3.0)
    assert all(type(end) is float for end in ends)
    assert MeanRiskSettings.of({"risk_aversion": json.loads(json.dumps(ends))}).risk_aversion == ends


@named("text", ["0:3", " 0 : 3 ", "[0, 3]", "(0,3)", "0.0:3e0"])
def test_ways_to_write_a_range(text):
    assert MeanGiniSettings.of_text({"risk_aversion": text}).risk_aversion == (0.0, 3.0)


def test_a_number_is_a_number_as_before():
    settings = MeanGiniSettings.of_text({"risk_aversion": "1.5"})
    assert settings.risk_aversion == 1.5
    assert settings.levels is None
    assert 1.5 in jax.tree.leaves(settings)


def test_the_ends_are_arguments_of_compiled_programs():
    one, other = (MeanGiniSettings.of({"risk_aversion": ends}) for ends in ((0, 3), (0.5, 2)))
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert {0.5, 2.0} <= set(jax.tree.leaves(other))


@named(
    ("ends", "message"),
    [
        ((3, 0), r"risk_aversion=\(3, 0\): a range is two numbers, the lower one first."),
        ((1, 1), "the lower one first"),
        ((1,), "a range is two numbers"),
        ((0, 1, 2), "a range is two numbers"),
        ((-1, 2), r"risk_aversion=-1.0: it must be at least 0"),
        ((0, float("inf")), "it must be finite"),
        ((0, "3"), "risk_aversion=3: a number is needed"),
        ("high", r"risk_aversion=high: a number, or a range such as \(0, 3\) or 0:3, is needed."),
    ],
)
def test_what_is_no_range(ends, message):
    with pytest.raises(ValueError, match=message):
        MeanGiniSettings.of({"risk_aversion": ends})


@named("text", ["3:0", "0:", ":3", "0:1:2", "low:high", "[0]"])
def test_texts_that_are_no_range(text):
    with pytest.raises(ValueError, match="risk_aversion="):
        MeanGiniSettings.of_text({"risk_aversion": text})


def test_defaults_that_follow_from_a_range():
    network, maze = EnvKind(tabular=False), EnvKind(tabular=True, finite=True)
    for kind, env, plain, ranged in (
        (MeanGiniPPOSettings, network, 16, 32),
        (MeanGiniSettings, network, 20, 40),
        (MeanGiniSettings, maze, 50, 100),
    ):
        one, dialled = (kind.of({"risk_aversion": given}).resolve(env) for given in (1.0, (0, 3)))
        assert (one.episodes_per_update, dialled.episodes_per_update) == (plain, ranged)
        assert (one.returns_remembered, dialled.returns_remembered) == (plain, 0)


@named(
    ("settings", "message"),
    [
        ({"credit": "trajectory"}, "a range needs credit='step'"),
        ({"estimator": "paper"}, "a range needs credit='step'"),
        ({"returns_remembered": 10}, "Leave out returns_remembered=10"),
        ({"episodes_per_update": 16}, "at least 8. Set episodes_per_update=32"),
        ({"episodes_per_update": 43}, "Set episodes_per_update=40"),
        ({"episodes_per_update": 32, "lambdas_per_update": 5}, "Set episodes_per_update=40"),
        ({"lambdas_per_update": 2}, "lambdas_per_update=2: it must be at least 3"),
    ],
)
def test_settings_that_do_not_go_with_a_range(settings, message):
    with pytest.raises(ValueError, match=message):
        MeanGiniSettings.of({"risk_aversion": (0, 3), **settings}).resolve(EnvKind(tabular=False))
