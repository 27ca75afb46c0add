"""Settings describe and check themselves."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest

from steadyrl.agents import AGENTS, MeanGini
from steadyrl.agents.dqn import DQNSettings
from steadyrl.agents.mean_gini import MeanGiniSettings
from steadyrl.agents.ppo_settings import PPOSettings
from steadyrl.agents.settings import EnvKind
from steadyrl.agents.tamar import TamarSettings
from steadyrl.base.settings import Rule, Settings, setting


def test_values_are_checked_and_kept():
    settings = MeanGiniSettings.of({"risk_aversion": 2, "episodes_per_update": np.int64(10), "gamma": np.float32(0.5)})
    assert (settings.risk_aversion, settings.episodes_per_update, settings.gamma) == (2.0, 10, 0.5)
    assert type(settings.risk_aversion) is float
    assert type(settings.episodes_per_update) is int
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.gamma = 1.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gama": 1}, "unknown setting 'gama'. Did you mean 'gamma'?"),
        ({"lam": 1}, "unknown setting 'lam'. Did you mean 'risk_aversion'?"),
        ({"net_arch": [64]}, "unknown setting 'net_arch'. Did you mean 'hidden'?"),
        ({"policy_kwargs": {}}, "unknown setting 'policy_kwargs'. Did you mean 'hidden'?"),
        ({"gamma": 0}, "gamma=0.0: it must be above 0. Discount factor"),
        ({"gamma": 1.01}, "gamma=1.01: it must be at most 1"),
        ({"gamma": "high"}, "gamma=high: a number is needed"),
        ({"gamma": float("nan")}, "gamma=nan: it must be finite"),
        ({"inner_updates": 2.5}, "inner_updates=2.5: a whole number is needed. M: the most updates"),
        ({"inner_updates": True}, "inner_updates=True: a whole number is needed"),
        ({"value_learning_rate": 0}, "must be above 0"),
        ({"normalise_observations": 1}, "normalise_observations=1: true or false is needed"),
        ({"estimator": 3}, "estimator=3: text is needed"),
        ({"hidden": 64}, "hidden=64: a list is needed"),
        ({"hidden": (64, 2.5)}, "hidden=2.5: whole numbers are needed"),
        ({"gamma": None}, "gamma=None: a number is needed"),
        ({"estimator": "best"}, "estimator=best: it is one of unbiased, paper"),
    ],
)
def test_errors_say_what_is_wrong_and_what_would_be_right(values, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        MeanGiniSettings.of(values)
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["lam", "lambda", "n_epochs"])
def test_a_name_from_elsewhere_that_has_no_counterpart_gets_no_hint(name):
    with pytest.raises(ValueError, match=f"unknown setting '{name}'. Known: "):
        DQNSettings.of({name: 1})


def test_names_from_elsewhere_in_python():
    with pytest.raises(ValueError, match=r"unknown setting 'lam'\. Did you mean 'risk_aversion'"):
        MeanGini("steadyrl/GuardedMaze-v0", lam=1)


def test_texts_from_the_command_line():
    pairs = {"gamma": "0.9", "inner_updates": "3", "value_learning_rate": "none", "estimator": "paper"}
    settings = MeanGiniSettings.of_text(pairs)
    expected = MeanGiniSettings(gamma=0.9, inner_updates=3, value_learning_rate=None, estimator="paper")
    assert settings == expected
    assert MeanGiniSettings.of_text({"value_learning_rate": "1e-3"}).value_learning_rate == 1e-3
    with pytest.raises(ValueError, match="inner_updates=three: a whole number is needed"):
        MeanGiniSettings.of_text({"inner_updates": "three"})
    with pytest.raises(ValueError, match="Did you mean 'inner_updates'"):
        MeanGiniSettings.of_text({"inner_update": "3"})


def test_every_setting_has_a_sentence():
    every = {kind.Settings for kind in AGENTS.values()}
    every |= {settings for kind in AGENTS.values() for settings in kind.settings_by_choice.values()}
    for settings in every:
        for field in dataclasses.fields(settings):
            assert field.metadata["sentence"].endswith(".")


def test_rules_are_resolved_once_from_other_settings_and_the_environment():
    calls = []

    def double(s, env):
        calls.append(env)
        return 2 * s.base

    @dataclass(frozen=True)
    class Own(Settings):
        base: float = setting(Rule(lambda s, env: 10.0 if env == "table" else 1.0, "by env"), "Any.")
        derived: float = setting(Rule(double, "twice the base"), "Any.")

    settings = Own()
    assert (repr(settings.base), repr(settings.derived)) == ("by env", "twice the base")
    resolved = settings.resolve("table")
    assert (resolved.base, resolved.derived, calls) == (10.0, 20.0, ["table"])
    assert resolved.resolve("network") == resolved, "what is resolved does not change"
    assert len(calls) == 1
    assert Own(base=3).resolve("network").derived == 6.0
    assert Own(derived=7).resolve("network") == Own(base=1.0, derived=7.0)
    # None and "auto" choose the rule.
    assert Own(derived=None) == Own(derived="auto") == Own()


@pytest.mark.parametrize(
    ("kind", "given", "tabular", "expected"),
    [
        (MeanGiniSettings, {}, True, {"policy_learning_rate": 0.01, "value_learning_rate": 0.1, "network": "table"}),
        (MeanGiniSettings, {}, False, {"policy_learning_rate": 7e-4, "value_learning_rate": 7e-3, "network": "mlp"}),
        (MeanGiniSettings, {"network": "mlp"}, True, {"value_learning_rate": 7e-3, "optimiser": "adam"}),
        (MeanGiniSettings, {"policy_learning_rate": 0.02}, True, {"value_learning_rate": 0.2, "optimiser": "adam"}),
        (MeanGiniSettings, {"value_learning_rate": 0.3}, False, {"value_learning_rate": 0.3}),
        (MeanGiniSettings, {}, False, {"episodes_per_update": 20}),
        (PPOSettings, {"policy_learning_rate": 0.02}, False, {"value_learning_rate": 0.02}),
        (TamarSettings, {"policy_learning_rate": 0.5}, False, {"moments_learning_rate": 50.0}),
        (DQNSettings, {"train_freq": 7}, False, {"gradient_steps": 7}),
        (DQNSettings, {"gradient_steps": 3}, False, {"gradient_steps": 3}),
    ],
)
def test_the_rules_of_the_agents(kind, given, tabular, expected):
    settings = kind.of(given).resolve(EnvKind(tabular=tabular))
    found = {name: getattr(settings, name) for name in expected}
    assert found == {name: pytest.approx(v) if isinstance(v, float) else v for name, v in expected.items()}
    assert not any(isinstance(value, Rule) for value in dataclasses.asdict(settings).values())


def test_in_a_known_finite_mdp_episodes_are_many_and_steps_small():
    settings = MeanGiniSettings.of({}).resolve(EnvKind(tabular=True, finite=True))
    assert (settings.episodes_per_update, settings.policy_learning_rate) == (50, 0.0015)
    assert settings.value_learning_rate == pytest.approx(0.015)


def test_whether_to_bootstrap_depends_on_the_environment():
    for finite in (True, False):
        settings = DQNSettings().resolve(EnvKind(tabular=True, finite=finite))
        assert settings.bootstrap_on_truncation is not finite


def test_the_description_has_every_default_and_shows_rules_as_text():
    lines = {line.split(" = ")[0]: line for line in MeanGiniSettings.describe().splitlines()}
    assert lines.keys() == {field.name for field in dataclasses.fields(MeanGiniSettings)}
    assert "policy_learning_rate = 0.0007; 0.01 for a table, 0.0015 in a finite MDP " in lines["policy_learning_rate"]
    assert "value_learning_rate = 10 times the policy's" in MeanGini.__doc__
    assert lines["risk_aversion"].startswith("risk_aversion = 0.5  ")
    assert "Rule(" not in MeanGiniSettings.describe()
