"""Other names of settings: those of Stable-Baselines3, deprecated ones, and names that are refused."""

import dataclasses

import numpy as np
import pytest
from crafted_files import craft

import steadyrl
from steadyrl.agents import DQN, MVPI, PPO, TD3, MeanGini, QLearning, Reinforce
from steadyrl.base.settings import canonical, types_of

MAZE = "steadyrl/GuardedMaze-v0"

pytestmark = pytest.mark.usefixtures("numpys_layers")

SB3 = [
    # Agent, settings in Stable-Baselines3's names, and in ours.
    (
        PPO,
        {"n_epochs": 3, "batch_size": 32, "ent_coef": 0.1, "vf_coef": 0.7, "max_grad_norm": 2.0, "learning_rate": 0.01},
        {
            "inner_updates": 3,
            "minibatch_size": 32,
            "entropy_coefficient": 0.1,
            "value_coefficient": 0.7,
            "max_gradient_norm": 2.0,
            "policy_learning_rate": 0.01,
        },
    ),
    (
        PPO,
        {"normalize_advantage": False, "log_std_init": -1.0, "optimizer": "sgd", "normalize_observations": True},
        {
            "normalise_advantages": False,
            "initial_log_std": -1.0,
            "optimiser": "sgd",
            "normalise_observations": True,
        },
    ),
    (PPO, {"normalize_advantages": False}, {"normalise_advantages": False}),
    (Reinforce, {"n_epochs": 3, "learning_rate": 0.01}, {"inner_updates": 3, "policy_learning_rate": 0.01}),
    (MeanGini, {"mean": "ppo", "batch_size": 8}, {"mean": "ppo", "minibatch_size": 8}),
    (QLearning, {"learning_rate": 0.01}, {"q_learning_rate": 0.01}),
    # Where the name is our own, it stays what it is.
    (DQN, {"batch_size": 8, "learning_rate": 0.1}, {"batch_size": 8, "learning_rate": 0.1}),
    (TD3, {"batch_size": 8, "learning_rate": 0.1}, {"batch_size": 8, "learning_rate": 0.1}),
    (MVPI, {"solver": "dqn", "batch_size": 8}, {"solver": "dqn", "batch_size": 8}),
]


@pytest.mark.parametrize(("kind", "theirs", "ours"), SB3)
def test_names_of_stable_baselines3_are_other_names(kind, theirs, ours):
    settings = kind.settings_of(theirs)
    assert settings == kind.settings_of(ours)
    assert {name: getattr(settings, name) for name in ours} == ours
    default = kind.settings_class(ours)()
    assert any(getattr(default, name) != value for name, value in ours.items()), "the values are not the defaults"


def test_other_names_are_known_on_the_command_line_too():
    kinds = types_of((PPO.Settings,))
    assert kinds["n_epochs"] is kinds["inner_updates"] is int
    assert kinds["ent_coef"] is float
    assert PPO.Settings.of_text({"n_epochs": "3", "ent_coef": "1e-3"}) == PPO.Settings.of(
        {"inner_updates": 3, "entropy_coefficient": 1e-3}
    )


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (MeanGini, {"longest_episode": 500}, {"max_episode_steps": 500}),
        (DQN, {"longest_episode": 500}, {"max_episode_steps": 500}),
        (PPO, {"time_out_ends": True}, {"bootstrap_on_truncation": False}),
        (PPO, {"time_out_ends": False}, {"bootstrap_on_truncation": True}),
        (QLearning, {"time_out_ends": True}, {"bootstrap_on_truncation": False}),
        (QLearning, {"time_out_ends": False}, {"bootstrap_on_truncation": True}),
    ],
)
def test_deprecated_names_are_converted_with_a_warning(kind, old, new):
    (name,), (now,) = old, new
    with pytest.warns(DeprecationWarning, match=f"^the setting {name} is now called {now}\\.$"):
        settings = kind.settings_of(old)
    assert settings == kind.settings_of(new)
    with pytest.warns(DeprecationWarning, match=name) as caught:
        kind(MAZE, **old, **({"hidden": (2,)} if kind is DQN else {}))
    assert [warning.filename for warning in caught] == [__file__], "it points at the line that has the old name"


def test_a_deprecated_name_without_a_value_chooses_the_rule():
    with pytest.warns(DeprecationWarning, match="time_out_ends"):
        assert QLearning(MAZE, time_out_ends=None).settings.bootstrap_on_truncation is False
    with pytest.warns(DeprecationWarning, match="time_out_ends"):
        assert QLearning("FrozenLake-v1", time_out_ends=None).settings.bootstrap_on_truncation is True


@pytest.mark.filterwarnings("ignore:the setting .* is now called")
@pytest.mark.parametrize(
    ("kind", "both", "message"),
    [
        (PPO, {"n_epochs": 3, "inner_updates": 3}, "inner_updates"),
        (PPO, {"inner_updates": 3, "n_epochs": 3}, "inner_updates"),
        (PPO, {"normalize_advantage": True, "normalize_advantages": True}, "normalise_advantages"),
        (QLearning, {"bootstrap_on_truncation": True, "time_out_ends": False}, "bootstrap_on_truncation"),
        (MeanGini, {"longest_episode": 5, "max_episode_steps": 5}, "max_episode_steps"),
    ],
)
def test_both_names_of_a_setting_are_an_error(kind, both, message):
    with pytest.raises(ValueError, match=f"another name of {message}, which is given too. Give one of them"):
        kind.settings_of(both)


@pytest.mark.parametrize("kind", [Reinforce, MeanGini, PPO])
def test_n_steps_gets_an_error_that_explains(kind):
    with pytest.raises(
        ValueError,
        match=r"^n_steps: there is no such setting, because dispersion is measured over whole episodes, so a batch is "
        r"a number of episodes, not of steps\. Set episodes_per_update\.$",
    ):
        kind(MAZE, n_steps=2048)


def test_a_bound_of_another_name_is_that_of_the_setting():
    with pytest.raises(ValueError, match="inner_updates=0: it must be at least 1"):
        PPO.settings_of({"n_epochs": 0})
    with pytest.raises(ValueError, match=r"inner_updates=2\.5: a whole number is needed"):
        PPO.settings_of({"n_epochs": 2.5})


def test_the_first_class_that_knows_a_name_decides():
    """To MeanGini with the vanilla policy gradient, batch_size is PPO's minibatch_size, for the error that says so."""
    assert canonical({"batch_size": 3}, (DQN.Settings, PPO.Settings)) == {"batch_size": 3}
    assert canonical({"batch_size": 3}, (Reinforce.Settings, PPO.Settings)) == {"minibatch_size": 3}
    with pytest.raises(ValueError, match="minibatch_size: it is a setting of mg with mean='ppo'"):
        MeanGini(MAZE, batch_size=3)


@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_file_of_version_0_1_is_loaded_without_a_warning(bootstrap, tmp_path):
    """Its settings have their old names. pytest makes an error of every warning."""
    agent = QLearning(MAZE, seed=3, bootstrap_on_truncation=bootstrap, max_episode_steps=321)
    agent.learner = agent.learner._replace(theta=agent.learner.theta.at[2].set(np.float32([1, 2, 3, 4])))
    agent.save(path := tmp_path / "old.steady")

    def to_old_names(header, arrays):
        header["format"], settings = 1, header["settings"]
        settings["longest_episode"] = settings.pop("max_episode_steps")
        settings["time_out_ends"] = not settings.pop("bootstrap_on_truncation")

    craft(path, to_old_names, digests=False)
    assert b"time_out_ends" in path.read_bytes()
    loaded = steadyrl.load(path)
    assert loaded.settings == agent.settings
    assert (loaded.settings.max_episode_steps, loaded.settings.bootstrap_on_truncation) == (321, bootstrap)
    np.testing.assert_array_equal(loaded.learner.theta, agent.learner.theta)
    assert "time_out_ends" not in dataclasses.asdict(loaded.settings)
