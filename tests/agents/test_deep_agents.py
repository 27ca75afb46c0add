"""Agents with networks: the same algorithms as with tables, in any Gymnasium environment."""

import dataclasses

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium import spaces

import steadyrl
from steadyrl.agents import MeanGini, Reinforce, Tamar
from steadyrl.envs.spaces import as_batch
from steadyrl.rollouts.normalization import RunningMoments
from steadyrl.training.batch import padded_length

MAZE = "steadyrl/GuardedMaze-v0"
CARTPOLE = {"env": "CartPole-v1", "hidden": (8,), "episodes_per_update": 25}
"""Small, and the same in most tests here: every other size would be compiled."""

pytestmark = pytest.mark.usefixtures("numpys_layers")


class Target(gym.Env):
    """One step: the reward is how near the action is to a target that the observation says; probes one bug a time."""

    def __init__(self, action_space, observation_space=None, reveal=lambda target: np.float32([target])):
        self.action_space = action_space
        self.observation_space = observation_space or spaces.Box(-1, 1, (1,))
        self.reveal = reveal

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.target = int(self.np_random.integers(2))
        return self.reveal(self.target), {}

    def step(self, action):
        if isinstance(self.action_space, spaces.Discrete):
            reward = float(action - self.action_space.start == self.target)
        else:
            wanted = 2.0 if self.target else 0.5
            reward = -float(np.mean((action - wanted) ** 2))
        return self.reveal(self.target), reward, True, False, {}


def leaves(agent):
    return [np.asarray(x) for x in jax.tree.leaves(agent.learner)]


def test_a_linear_network_on_one_hot_states_learns_what_the_table_learns():
    """In the first update, the only one with delta = 0: the gradient by a network's weights is the table's."""
    common = {"seed": 3, "engine": "gymnasium", "optimiser": "sgd", "ratio_range": 0.0, "episodes_per_update": 50}
    common |= {"mean": "vpg", "credit": "trajectory"}
    rates = {"policy_learning_rate": 0.01, "value_learning_rate": 1e-6}
    table = MeanGini(MAZE, **common, **rates)
    linear = MeanGini(MAZE, network="mlp", hidden=(), **common, **rates)
    zeros = jax.tree.map(lambda x: x * 0, (linear.learner.theta, linear.learner.phi))
    linear.learner = linear.learner._replace(theta=zeros[0], phi=zeros[1])
    for agent in (table, linear):
        agent.learn(total_episodes=50, progress_bar=False)
        assert agent.history[0]["updates"] == 1
    assert np.abs(table.learner.theta).max() > 1e-3
    (layer,) = linear.learner.theta
    np.testing.assert_allclose(layer["weight"], table.learner.theta, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(layer["bias"], np.sum(table.learner.theta, axis=0), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("action_space", "observation_space", "reveal"),
    [
        (spaces.Discrete(2), spaces.Box(-1, 1, (2, 1, 2)), lambda t: np.full((2, 1, 2), t, np.float32)),
        (spaces.Discrete(2, start=-1), spaces.Discrete(4, start=5), lambda t: 5 + t),
        (
            spaces.Discrete(2),
            spaces.Dict({"a": spaces.Box(-9, 9, (2,)), "b": spaces.Discrete(2)}),
            lambda t: {"a": np.zeros(2, np.float32), "b": t},
        ),
    ],
    ids=["Box of three dimensions", "Discrete that do not start at 0", "Dict"],
)
def test_learns_from_every_kind_of_observation(action_space, observation_space, reveal):
    make = lambda: Target(action_space, observation_space, reveal)  # noqa: E731
    agent = Reinforce(make, hidden=(16,), policy_learning_rate=0.01, gamma=1.0, seed=0)
    agent.learn(total_episodes=1500, progress_bar=False)
    assert agent.history[-1]["return"] > 0.8
    for target in (0, 1):
        action, _ = agent.predict(reveal(target), deterministic=True)
        assert action_space.contains(action)
        assert action - action_space.start == target


@pytest.mark.slow
@pytest.mark.optimized
@pytest.mark.parametrize(
    "action_space",
    [spaces.Box(-1, 3, (1,)), spaces.Box(-np.inf, np.inf, (1, 2), np.float64)],
    ids=["asymmetric", "unbounded"],
)
def test_learns_real_valued_actions(action_space):
    settings = {"policy_learning_rate": 0.01, "gamma": 1.0, "initial_log_std": -1.0, "episodes_per_update": 50}
    agent = Reinforce(lambda: Target(action_space), hidden=(16,), seed=0, **settings)
    agent.learn(total_episodes=4000, progress_bar=False)
    for target, wanted in ((0, 0.5), (1, 2.0)):
        action, _ = agent.predict(np.float32([target]), deterministic=True)
        assert action_space.contains(action)
        np.testing.assert_allclose(action, np.full(action_space.shape, wanted), atol=0.35)
    batch, _ = agent.predict(np.float32([[0], [1], [1]]))
    assert batch.shape == (3, *action_space.shape)
    assert all(action_space.contains(action) for action in batch)


@pytest.mark.parametrize(("kind", "normalise"), [(MeanGini, False), (Tamar, True)])
def test_training_resumes_after_loading_bit_for_bit(kind, normalise, tmp_path):
    agent = kind(**CARTPOLE, seed=2, normalise_observations=normalise)
    agent.learn(total_episodes=50, progress_bar=False)
    agent.save(tmp_path / "agent.steady")
    loaded = steadyrl.load(tmp_path / "agent.steady")
    for each in (agent, loaded):
        each.learn(total_episodes=50, progress_bar=False)
    for one, other in zip(leaves(agent), leaves(loaded), strict=True):
        np.testing.assert_array_equal(one, other)
    observations = np.random.default_rng(0).normal(size=(36, 4)).astype(np.float32)
    np.testing.assert_array_equal(
        agent.predict(observations, deterministic=True)[0], loaded.predict(observations, deterministic=True)[0]
    )
    assert not normalise or float(loaded.learner.seen.count) == loaded.timesteps
    clock = ("time", "seconds_collecting", "seconds_updating")
    last, other = ({k: v for k, v in each.history[-1].items() if k not in clock} for each in (agent, loaded))
    assert last == other


def test_same_seed_same_bits():
    runs = [MeanGini(**CARTPOLE, seed=s).learn(total_episodes=50, progress_bar=False) for s in (5, 5, 6)]
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(runs[0].learner)]
    assert ".risk.known" in names  # It says how many returns are remembered, not which.
    for name, one, same, other in zip(names, *map(leaves, runs), strict=True):
        np.testing.assert_array_equal(one, same, err_msg=name)
        assert one.ndim == 0 or name == ".risk.known" or not np.array_equal(one, other), name


def test_the_episodes_of_every_round_differ():
    agent = MeanGini(**CARTPOLE, seed=0, policy_learning_rate=1e-30, value_learning_rate=1e-30)
    agent.learn(total_episodes=150, progress_bar=False)
    assert len({record["return"] for record in agent.history}) == len(agent.history) == 3


def test_returns_are_recorded_undiscounted_and_their_dispersion_both_ways():
    agent = MeanGini(**CARTPOLE, seed=0, gamma=0.5)
    agent.learn(total_episodes=25, progress_bar=False)
    (record,) = agent.history
    assert record["return"] == record["length"] > 10
    assert record["discounted_return"] == pytest.approx(2, abs=0.01)
    assert record["gini_deviation"] < 0.01 < 1 < record["undiscounted_gini_deviation"]


def test_lengths_are_padded_to_a_few():
    padded = [padded_length(T) for T in range(1, 5000)]
    assert all(longer >= T for T, longer in enumerate(padded, 1))
    assert len(set(padded)) == 14
    assert max(longer / T for T, longer in enumerate(padded, 1) if T > 128) <= 1.5


def test_observations_are_normalized_by_their_running_moments():
    rng = np.random.default_rng(0)
    x = rng.normal([5, -2], [3, 0.1], size=(1000, 2)).astype(np.float32)
    seen = RunningMoments.empty(2)
    np.testing.assert_allclose(seen.normalize(x), np.clip(x, -10, 10), rtol=1e-6)
    for part in np.array_split(x, 7):
        seen = seen.update(part)
    np.testing.assert_allclose(seen.mean, x.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(seen.variance, x.var(axis=0), rtol=1e-4)
    np.testing.assert_allclose(seen.normalize(x).std(axis=0), 1, rtol=1e-3)
    assert seen.normalize(np.float32([[1e6, 0]]))[0, 0] == 10


def test_defaults_depend_on_what_is_learned():
    table, network = MeanGini(MAZE).settings, MeanGini("CartPole-v1").settings
    vpg = MeanGini("CartPole-v1", mean="vpg").settings
    assert (table.network, table.optimiser, table.policy_learning_rate) == ("table", "adam", 0.0015)
    assert table.value_learning_rate == pytest.approx(0.015)
    assert (vpg.network, vpg.optimiser, vpg.policy_learning_rate) == ("mlp", "adam", 7e-4)
    assert vpg.value_learning_rate == pytest.approx(7e-3)
    assert (network.network, network.optimiser, network.policy_learning_rate) == ("mlp", "adam", 3e-4)
    assert network.value_learning_rate == 3e-4
    assert (table.mean, network.mean) == ("vpg", "ppo")
    assert (table.episodes_per_update, vpg.episodes_per_update, network.episodes_per_update) == (50, 20, 16)
    assert (table.risk_critic_learning_rate, network.risk_critic_learning_rate) == (0.02, 1e-3)
    assert Tamar("CartPole-v1").settings.policy_learning_rate == 7e-5
    assert MeanGini("CartPole-v1", **dataclasses.asdict(network)).settings == network


NESTED = spaces.Dict(
    [
        ("z", spaces.Box(-9, 9, (1,))),
        ("a", spaces.Dict([("b", spaces.Discrete(2)), ("a", spaces.Box(0, 1, (1,)))])),
    ]
)


def nested(target):
    return {"z": np.float32([7]), "a": {"b": target, "a": np.float32([0.5])}}


def test_a_dict_keeps_its_order_from_learning_through_a_file_to_acting(tmp_path):
    agent = Reinforce(lambda: Target(spaces.Discrete(2), NESTED, nested), hidden=(16,), seed=0)
    agent.learn(total_episodes=40, progress_bar=False)
    agent.save(tmp_path / "a.steady")
    loaded = steadyrl.load(tmp_path / "a.steady")
    assert list(loaded.observation_space) == ["z", "a"]
    expected = np.float32([[7, 0, 1, 0.5]])
    for each in (agent, loaded):
        rows, shape = as_batch(each.observation_space, nested(1))
        np.testing.assert_array_equal(rows, expected)
        assert shape == ()
        assert each.predict(nested(1))[0] in (0, 1)
    collected = agent.play(20, seed=0).observations[:, 0]
    assert any((row == expected[0]).all() for row in collected)
    two = {"z": np.ones((2, 1), np.float32), "a": {"b": np.array([0, 1]), "a": np.ones((2, 1), np.float32)}}
    assert agent.predict(two)[0].shape == (2,)
    other = spaces.Dict([("a", NESTED["a"]), ("z", NESTED["z"])])
    with pytest.raises(ValueError, match="same spaces"):
        steadyrl.load(tmp_path / "a.steady", env=lambda: Target(spaces.Discrete(2), other, nested))


def test_a_network_can_be_chosen_where_a_table_would_be_compiled():
    assert MeanGini(MAZE, network="mlp").engine == "gymnasium"
    with pytest.raises(ValueError, match="only tables are compiled"):
        MeanGini(MAZE, network="mlp", engine="compiled")
    with pytest.raises(ValueError, match="normalise_observations"):
        MeanGini(MAZE, normalise_observations=True)


def test_training_resumes_in_another_engine_where_its_own_is_not_supported(tmp_path):
    agent = MeanGini(**{**CARTPOLE, "env": gym.make_vec("CartPole-v1", num_envs=2)})
    assert agent.learn(total_episodes=25, progress_bar=False).engine == "vector"
    agent.save(tmp_path / "a.steady")
    assert steadyrl.load(tmp_path / "a.steady").env is None
    single = steadyrl.load(tmp_path / "a.steady", env="CartPole-v1")
    assert single.engine == "gymnasium"
    assert single.learn(total_episodes=25, progress_bar=False).episodes == 50
    single.save(tmp_path / "b.steady")
    assert steadyrl.load(tmp_path / "b.steady", env=gym.make_vec("CartPole-v1", num_envs=2)).engine == "vector"


def test_a_factory_must_make_a_new_environment_each_time():
    env = gym.make("CartPole-v1")
    with pytest.raises(ValueError, match=r"the same .* twice"):
        Reinforce(lambda: env, episodes_per_update=3).learn(total_episodes=3, progress_bar=False)
