"""The settings of the experiment files: complete, and those that the paper prints."""

import dataclasses

import pytest

from steadyrl.agents import AGENTS
from steadyrl.runs.experiment import load_experiment, names


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("quick", [True, False])
def test_every_experiment_file_loads_and_writes_down_every_setting(name, quick):
    experiment = load_experiment(name, quick=quick)
    for method in experiment.methods:
        fields = {field.name for field in dataclasses.fields(AGENTS[method.agent].settings_class(method.settings))}
        assert method.settings.keys() == fields, f"{method.name}: no default may be hidden in code"


def test_a_sensitivity_study_may_change_other_settings_along():
    """MVP's step on the objective is its learning rate over lambda."""
    for method in load_experiment("maze").sensitivity_experiment().methods:
        if method.agent == "mvp":
            assert method.settings["policy_learning_rate"] / method.settings["risk_aversion"] == pytest.approx(1e-4)
            dual = -84.8 + 1 / (2 * method.settings["risk_aversion"])
            assert method.settings["initial_dual"] == pytest.approx(dual, abs=0.1)
        AGENTS[method.agent].settings_of(method.settings)


def test_curves_of_lambdas_have_the_printed_settings_and_lambdas():
    """The paper's appendix on the maze, and its figure of lambdas at goal reward 20."""
    experiment = load_experiment("maze")
    printed = {method.name: method.settings for method in experiment.methods}
    study = experiment.study_experiments()["lambda_curves"]
    single = {name: [0.1, 0.2, 0.4] for name in ("tamar", "mvp")}
    grid = {"mg_printed": [0.8, 1.0, 1.2], "mvo": [0.6, 0.8, 1.0, 1.2], **single}
    assert {name: [*values] for name, values in experiment.lambda_curves.values.items()} == grid
    assert [variant.options for variant in study.variants] == [{"goal_reward": 20}]
    assert (study.scale.seeds, study.scale.episodes) == (10, 400_000)
    for method in study.methods:
        name, value = method.name.split("=")
        other = {key for key, setting in method.settings.items() if setting != printed[name][key]}
        assert other <= {"risk_aversion", "initial_dual"}
        assert method.settings["risk_aversion"] == float(value)
        if name == "mvp":
            assert method.settings["initial_dual"] == pytest.approx(-84.8 + 1 / (2 * float(value)), abs=0.01)


def test_the_printed_maze_settings():
    """The paper's appendix on the maze, setting by setting."""
    methods = {method.name: method.settings for method in load_experiment("maze").methods}
    reuse = {"episodes_per_update": 50, "inner_updates": 10, "ratio_range": 0.5, "least_selected": 0.6}
    printed = {
        "mg_printed": {"policy_learning_rate": 1e-4, "value_learning_rate": 1e-2, "risk_aversion": 1.2, **reuse},
        "mvo": {"policy_learning_rate": 1e-5, "value_learning_rate": 1e-3, "risk_aversion": 1.0, **reuse},
        "tamar": {"policy_learning_rate": 1e-5, "moments_learning_rate": 1e-3, "threshold": 50, "risk_aversion": 0.1},
        "mvp": {"policy_learning_rate": 1e-5, "dual_learning_rate": 1e-5, "risk_aversion": 0.1},
        "mvpi": {"q_learning_rate": 5e-3, "risk_aversion": 0.2},
    }
    for name, values in printed.items():
        for key, value in {"gamma": 0.999, **values}.items():
            assert methods[name][key] == pytest.approx(value), (name, key)


@pytest.mark.parametrize(
    ("name", "rate", "low", "mg", "mvo"),
    [("lunar_lander", 7e-4, 7e-5, 0.6, 0.4), ("inverted_pendulum", 1e-4, 1e-5, 1.0, 0.6)],
)
def test_the_printed_settings_of_networks(name, rate, low, mg, mvo):
    """The paper's appendices on LunarLander and InvertedPendulum."""
    methods = {method.name: method.settings for method in load_experiment(name).methods}
    reuse = {"episodes_per_update": 30, "inner_updates": 10, "ratio_range": 0.5, "least_selected": 0.6}
    printed = {
        "reinforce": {"policy_learning_rate": rate, "value_learning_rate": 10 * rate},
        "mg_printed": {"policy_learning_rate": rate, "value_learning_rate": 10 * rate, "risk_aversion": mg, **reuse},
        "mvo": {"policy_learning_rate": low, "value_learning_rate": 10 * low, "risk_aversion": mvo, **reuse},
        "tamar": {
            "policy_learning_rate": low,
            "moments_learning_rate": 100 * low,
            "threshold": 50,
            "risk_aversion": 0.2,
        },
        "mvp": {"policy_learning_rate": low, "dual_learning_rate": low, "risk_aversion": 0.2},
    }
    assert methods["mg_printed"]["estimator"] == "paper"
    for method, values in printed.items():
        for key, value in {"gamma": 0.999, **values}.items():
            assert methods[method][key] == pytest.approx(value), (method, key)
        assert (methods[method]["hidden"], methods[method]["optimiser"]) == ([128, 128], "adam")


REPLAYING = [
    # Name, agent, hidden layers, learning rate, batch size, gamma.
    ("lunar_lander", "dqn", [128, 128], 7e-4, 64, 0.999),
    ("inverted_pendulum", "td3", [128, 128], 3e-4, 256, 0.999),
    *((name, "td3", [256, 256], 3e-4, 256, 0.99) for name in ("half_cheetah", "half_cheetah_distance")),
    *((name, "td3", [256, 256], 3e-4, 256, 0.99) for name in ("swimmer", "swimmer_distance")),
]


@pytest.mark.parametrize(("name", "agent", "hidden", "rate", "batch_size", "gamma"), REPLAYING)
def test_the_printed_settings_of_dqn_td3_and_mvpi(name, agent, hidden, rate, batch_size, gamma):
    """The paper's appendices, and for TD3 its own paper; 1e6 steps each."""
    experiment = load_experiment(name)
    methods = {method.name: method for method in experiment.methods}
    solver, mvpi = methods[agent], methods["mvpi"]
    printed = {"hidden": hidden, "learning_rate": rate, "batch_size": batch_size, "gamma": gamma}
    own = {"tau": 0.005, "policy_delay": 2, "exploration_noise": 0.1, "target_policy_noise": 0.2}
    expected = {**printed, **({**own, "target_noise_clip": 0.5, "buffer_size": 10**6} if agent == "td3" else {})}
    assert {key: solver.settings[key] for key in expected} == expected
    dual = {"initial_dual": 0.0, "dual_estimate": "returns", "episodes_per_iteration": 10}
    risk = {"solver": agent, "risk_aversion": 0.2, **dual}
    assert mvpi.settings == {**solver.settings, **risk}
    assert solver.settings["bootstrap_on_truncation"]
    assert solver.settings["gradient_steps"] == solver.settings["train_freq"], "one update a step"
    for method in (solver, mvpi):
        assert experiment.scale_of(method).budget == {"timesteps": 10**6}
        assert not method.quick


def test_a_budget_may_be_given_in_steps_or_episodes():
    def budgets(**given):
        experiment = load_experiment("lunar_lander", **given)
        return {method.name: experiment.scale_of(method).budget for method in experiment.methods}

    in_steps = {"dqn", "mvpi", "mvpi_rewards"}
    for given, steps, others in [
        ({"timesteps": 5000}, {"timesteps": 5000}, {"episodes": 20_000}),
        ({"episodes": 70}, {"episodes": 70}, {"episodes": 70}),
        ({}, {"timesteps": 10**6}, {"episodes": 20_000}),
        ({"quick": True}, None, {"episodes": 300}),
    ]:
        found = budgets(**given)
        shorter = {} if given.keys() & {"episodes", "quick"} else {"episodes": 4_000}
        assert steps is None or in_steps < found.keys()
        for name, budget in found.items():
            expected = steps if name in in_steps else others
            assert budget == (expected | shorter if "calibrated" in name else expected), name
    by_unit = load_experiment("lunar_lander", timesteps=5000).by_unit()
    assert {unit: {method.name for method in part.methods} & in_steps for unit, part in by_unit.items()} == {
        "episodes": set(),
        "timesteps": in_steps,
    }
    with pytest.raises(ValueError, match="no method of maze is trained for steps"):
        load_experiment("maze", timesteps=5)
    for wrong, message in [
        ({"episodes": 7, "timesteps": 7}, "not both"),
        ({"timesteps": 0}, "--timesteps 0: at least"),
    ]:
        with pytest.raises(ValueError, match=message):
            load_experiment("lunar_lander", **wrong)
    with pytest.raises(ValueError, match="dqn is not part of the quick scale"):
        load_experiment("lunar_lander", quick=True).only(["dqn"])
