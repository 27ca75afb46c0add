"""help(), signatures and repr of agents."""

import inspect

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import steadyrl
from steadyrl.agents import AGENTS, DQN, MVPI, PPO, Agent, MeanGini, Reinforce

ENV = "steadyrl/GuardedMaze-v0"
OWN = [kind for kind in AGENTS.values() if kind.__module__.startswith("steadyrl.")]


def are_in_order(text, *parts):
    found = [text.index(part) for part in parts]
    return found == sorted(found)


def entry(kind, name):
    """What help says about a setting, on one line."""
    lines = kind.__doc__.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"{name} = "))
    body = []
    for line in lines[start + 1 :]:
        if not line.startswith("    "):
            break
        body.append(line.strip())
    return f"{lines[start]} | {' '.join(body)}"


def test_help_begins_with_what_users_set_first():
    text = MeanGini.__doc__
    assert are_in_order(
        text,
        "Maximizes E[R] - risk_aversion",
        "Example:",
        "agent = steadyrl.MeanGini(env, risk_aversion=",
        "Settings:",
        "\nrisk_aversion = ",
        "\npolicy_learning_rate = ",
        "\nnetwork = ",
        "\nhidden = ",
        "\nepisodes_per_update = ",
        "\ngamma = ",
        "Less common:",
        "\nmax_episode_steps = ",
        "\nratio_range = ",
        "Notes:",
        "Algorithm 1, line by line",
    )


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.name)
def test_help_is_wrapped_and_describes_every_setting_once(kind):
    lines = kind.__doc__.splitlines()
    assert max(map(len, lines)) <= 80
    entries = kind.__doc__.split("\n\nSettings:\n")[1].split("\n\nNotes:\n")[0].splitlines()
    heads = [line.split(" = ")[0] for line in entries if " = " in line and not line.startswith(" ")]
    names = [name for name in inspect.signature(kind).parameters if name != "env"]
    assert sorted(heads) == sorted(names)


def test_an_entry_has_bounds_choices_aliases_and_the_defaults_of_other_choices():
    assert "At least 0." in entry(MeanGini, "risk_aversion")
    assert "Default with mean='ppo': 16." in entry(MeanGini, "episodes_per_update")
    assert entry(MeanGini, "clip_range").endswith("Above 0. Only with mean='ppo'.")
    assert "Only with mean='vpg'." in entry(MeanGini, "ratio_range")
    assert "With mean='ppo': M: passes over" in entry(MeanGini, "inner_updates")
    assert entry(MeanGini, "inner_updates").endswith("Also n_epochs.")
    assert "Only with solver='dqn' or 'td3'." in entry(MVPI, "buffer_size")
    assert "Only" not in entry(PPO, "clip_range")


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.name)
def test_the_example_of_help_runs(kind, monkeypatch):
    code = inspect.cleandoc(kind.__doc__.split("Example:\n\n")[1].split("\n\nSettings:")[0])
    learned = []
    monkeypatch.setattr(Agent, "learn", lambda self, total_episodes: learned.append((type(self), total_episodes)))
    monkeypatch.setattr(steadyrl, "evaluate", lambda agent, env, episodes: episodes, raising=False)
    exec(code, {"steadyrl": steadyrl})
    assert learned == [(kind, 1_000)]


def test_the_signature_has_all_settings_as_keywords_with_types():
    parameters = inspect.signature(MeanGini).parameters
    assert list(parameters)[:5] == ["env", "seed", "engine", "workers", "risk_aversion"]
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in list(parameters.values())[1:])
    assert parameters["risk_aversion"].annotation == float | tuple[float, float]
    assert parameters["clip_range"].default == PPO.Settings().clip_range, "a setting with mean='ppo' alone"
    assert len(str(inspect.signature(MeanGini)).split("risk_aversion")[0]) < 80


def test_repr_has_environment_seed_changed_settings_and_training():
    agent = MeanGini(ENV, seed=3, risk_aversion=0.7, hidden=[8])
    assert repr(agent) == f"<MeanGini on {ENV}, seed 3, risk_aversion=0.7, hidden=(8,), untrained>"
    agent.episodes = 2_000
    assert repr(agent).endswith(", hidden=(8,), after 2,000 episodes>")
    agent.episodes = 1
    assert repr(agent).endswith("after 1 episode>")
    agent = Reinforce(ENV, episodes_per_update=Reinforce(ENV).settings.episodes_per_update)
    agent.learn(total_episodes=100, progress_bar=False)
    assert repr(agent) == f"<Reinforce on {ENV}, seed 0, after {agent.episodes} episodes>", "the default of a table"


def test_repr_leaves_out_what_follows_from_other_settings():
    assert repr(MeanGini(ENV, policy_learning_rate=0.5)) == (
        f"<MeanGini on {ENV}, seed 0, policy_learning_rate=0.5, untrained>"
    )
    assert "value_learning_rate=0.5" in repr(MeanGini(ENV, value_learning_rate=0.5))
    assert repr(MeanGini(ENV, mean="ppo")) == f"<MeanGini on {ENV}, seed 0, mean='ppo', untrained>"
    assert repr(MVPI("CartPole-v1")) == "<MVPI on CartPole-v1, seed 0, untrained>"
    assert repr(MVPI(ENV, solver="dqn", gamma=0.5)) == f"<MVPI on {ENV}, seed 0, solver='dqn', gamma=0.5, untrained>"


def test_repr_of_many_settings_is_short():
    names = ["gamma", "gae_lambda", "clip_range", "entropy_coefficient", "value_coefficient", "max_gradient_norm"]
    agent = MeanGini("CartPole-v1", mean="ppo", risk_aversion=0.123, ratio_bound=0.123, **dict.fromkeys(names, 0.123))
    assert repr(agent).endswith("entropy_coefficient=0.123, max_gradient_norm=0.123, 2 more settings, untrained>")


class Walk(gym.Env):
    observation_space, action_space = Box(-1, 1, (2,)), Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, True, False, {}

    def __str__(self):
        return "two\nlines"


class NoSpec(gym.Wrapper):
    @property
    def spec(self):
        raise RuntimeError("no spec")


def test_repr_without_an_id_and_without_an_environment(tmp_path):
    assert repr(MeanGini(Walk())) == repr(MeanGini(Walk)) == "<MeanGini on Walk, seed 0, untrained>"
    wrapped = gym.wrappers.TransformReward(gym.make("CartPole-v1"), lambda r: r)
    assert repr(DQN(wrapped)) == "<DQN on CartPole-v1, seed 0, untrained>"
    agent = MeanGini(Walk(), seed=1)
    agent.save(tmp_path / "walk.steady")
    loaded = steadyrl.load(tmp_path / "walk.steady")
    assert repr(loaded) == "<MeanGini without an environment, seed 1, untrained>"
    with pytest.raises(ValueError, match=r"no environment to play in: load it with load\(path, env="):
        loaded.play(2, seed=0)
    agent.env = NoSpec(Walk())
    assert repr(agent) == "<MeanGini on Walk, seed 1, untrained>"
    vector = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    assert repr(MeanGini(vector)) == "<MeanGini on CartPole-v1, seed 0, untrained>"


def test_repr_of_an_agent_that_failed_to_start():
    assert repr(MeanGini.__new__(MeanGini)) == "<MeanGini, not initialized>"
