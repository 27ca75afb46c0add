"""Agents with network="gru": settings, files, engines, what is refused, and tasks that need a memory."""

from functools import partial

import jax
import numpy as np
import pytest
from jax_worlds import Counter
from memory_envs import Noisy, Recall, cart_without_velocities
from space_envs import Bright, Steer

import steadyrl
from steadyrl.agents.networks import GRU, MLP
from steadyrl.agents.networks.description import with_network_described
from steadyrl.cli.main import main
from steadyrl.runs.search_space import default_space

SMALL = {"network": "gru", "hidden": (6,), "episodes_per_update": 4, "inner_updates": 2}


def test_settings():
    s = steadyrl.PPO("CartPole-v1", network="gru").settings
    assert (s.network, s.hidden, s.normalise_observations) == ("gru", (64,), True)
    assert (s.episodes_per_update, s.minibatch_size) == (8, 2)
    described = steadyrl.MeanGini("CartPole-v1", network={"kind": "gru", "hidden": (7, 6), "activation": "tanh"})
    policy, value = described.algorithm.policy.mlp, described.algorithm.value.mlp
    assert policy == GRU(MLP((4, 7, 18), "tanh"), 6, 2)
    assert value == GRU(MLP((4, 7, 18), "tanh"), 6, 1)
    assert type(described.algorithm.critic.network.mlp) is MLP, "the critic of the risk part has no memory"
    assert steadyrl.Tamar("CartPole-v1", network="gru", mean="ppo").settings.minibatch_size == 0
    assert default_space(steadyrl.PPO("CartPole-v1", network="gru"))["minibatch_size"].choices == (1, 2, 4, 8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: steadyrl.PPO("CartPole-v1", network="gru", minibatch_size=64), "it counts whole episodes, of which a"),
        (lambda: steadyrl.PPO("CartPole-v1", network="gru", hidden=()), "the last of the hidden layers is the GRU"),
        (
            lambda: steadyrl.PPO("CartPole-v1", network="gru", layer_norm=True),
            "layer_norm=True: it is for dense",
        ),
        (lambda: steadyrl.PPO(Bright, network="gru"), "network='gru': it has no convolutions"),
        (
            lambda: steadyrl.PPO(Counter, network="gru", engine="jax"),
            "engine='jax': only policy gradients, and",
        ),
        (lambda: steadyrl.DQN("CartPole-v1", network="gru"), "Only policy gradients have recurrent ones."),
        (lambda: steadyrl.DQN("CartPole-v1", network={"kind": "gru"}), "Only policy gradients have recurrent ones."),
        (lambda: steadyrl.TD3(Steer, network="gru"), "Only policy gradients have recurrent ones."),
        (lambda: steadyrl.MVPI("CartPole-v1", network="gru"), "Only policy gradients have recurrent ones."),
        (lambda: steadyrl.QLearning("FrozenLake-v1", network="gru"), "unknown setting 'network'"),
    ],
)
def test_what_is_not_supported(make, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_no_tables():
    with pytest.raises(TypeError, match="has learned a network, which has no table"):
        steadyrl.PPO("FrozenLake-v1", **SMALL).probabilities()


@pytest.mark.parametrize("kind", [steadyrl.Reinforce, pytest.param(steadyrl.MeanGini, marks=pytest.mark.slow)])
def test_saved_and_loaded(kind, tmp_path):
    env = partial(Noisy, "number")
    agent = kind(env, seed=1, **SMALL).learn(total_episodes=4, progress_bar=False)
    agent.save(tmp_path / "agent")
    again = steadyrl.load(tmp_path / "agent", env=env)
    reports = [steadyrl.evaluate(one, env, episodes=3) for one in (agent, again)]
    np.testing.assert_array_equal(reports[0].returns, reports[1].returns)
    for one in (agent, again):
        one.learn(total_episodes=4, progress_bar=False)
    jax.tree.map(np.testing.assert_array_equal, agent.learner, again.learner)


@pytest.mark.slow
def test_workers_change_nothing():
    here, there = (
        steadyrl.PPO(partial(Noisy, "number"), seed=1, workers=workers, **SMALL).learn(
            total_episodes=8, progress_bar=False
        )
        for workers in (0, 2)
    )
    jax.tree.map(np.testing.assert_array_equal, here.learner, there.learner)


def test_jax_environments_are_stepped_from_outside():
    agent = steadyrl.PPO(Counter, **SMALL)
    assert agent.engine == "gymnasium"
    agent.learn(total_episodes=4, progress_bar=False)
    assert steadyrl.evaluate(agent, Counter, episodes=2).returns.size == 2


@pytest.mark.slow
def test_a_lambda_of_a_range():
    agent = steadyrl.MeanGini(
        partial(Noisy, "number"),
        **{**SMALL, "episodes_per_update": 24},
        risk_aversion=(0, 1),
        lambdas_per_update=3,
        normalise_observations=False,
    )
    agent.learn(total_episodes=24, progress_bar=False)
    x, level = np.random.default_rng(0).normal(size=(5, 1)).astype(np.float32), np.log1p(0.5)
    inputs = np.concatenate([x, np.full((5, 1), level, np.float32)], axis=1)
    policy = agent.algorithm.policy
    means = np.tanh(policy.mlp(agent.learner.theta["mean"], inputs))
    at, state = agent.at(0.5), None
    for observation, mean in zip(x, means, strict=True):
        action, state = at.predict(observation, state, deterministic=True)
        np.testing.assert_allclose(action, mean, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_the_command_line(tmp_path, capsys):
    command = ["train", "CartPole-v1", "--agent", "reinforce", "--episodes", "4", "--no-progress", "--no-page"]
    sizes = ["--set", "hidden=6", "--set", "episodes_per_update=4"]
    main([*command, "--set", "network=gru", *sizes, "--out", str(tmp_path / "run")])
    capsys.readouterr()
    main(["evaluate", str(tmp_path / "run"), "--episodes", "3"])
    assert "mean" in capsys.readouterr().out


def test_a_description_on_the_command_line():
    pairs = {"network": '{"kind": "gru", "hidden": [6]}'}
    described = with_network_described(pairs, cart_without_velocities().observation_space)
    assert steadyrl.PPO.settings_class({}).of_text(described).network == "gru"
    assert described["hidden"] == "[6]"


def test_films(tmp_path):
    agent = steadyrl.PPO("CartPole-v1", **SMALL)
    film = steadyrl.film(agent, "CartPole-v1", tmp_path / "film.gif", episodes=3, which="best", seconds=1, width=64)
    assert film.recordings[0].length > 5


@pytest.mark.slow
def test_a_policy_that_remembers():
    """The first of up to 6 observations decides which action is right in the end."""
    settings = {"seed": 0, "episodes_per_update": 32, "policy_learning_rate": 5e-3}
    rates = {}
    for network in ("gru", "mlp"):
        agent = steadyrl.PPO(Recall, network=network, hidden=(16,), **settings)
        agent.learn(total_episodes=1600, progress_bar=False)
        rates[network] = steadyrl.evaluate(agent, Recall, episodes=200).mean.value
    assert rates["gru"] > 0.95
    assert rates["mlp"] < 0.65


@pytest.mark.slow
@pytest.mark.optimized
def test_cartpole_without_velocities():
    """The same budget for all; without a memory, returns stay near 50 (docs/networks.md)."""
    dense = {"hidden": (64, 64)}
    cases = {"gru": (steadyrl.PPO, "gru"), "mlp": (steadyrl.PPO, dense), "mg": (steadyrl.MeanGini, "gru")}
    returns = {}
    for name, (kind, network) in cases.items():
        agent = kind(cart_without_velocities, network=network, seed=0)
        agent.learn(total_timesteps=50_000, progress_bar=False)
        returns[name] = steadyrl.evaluate(agent, cart_without_velocities, episodes=30).mean.value
    assert returns["mlp"] < 90
    assert returns["gru"] > 250
    assert returns["mg"] > 130
