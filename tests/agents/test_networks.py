"""Policies and value functions: JAX and NumPy agree, and distributions are what they say."""

import gymnasium as gym
import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax, softmax

from steadyrl.agents.networks import (
    MLP,
    ActionRange,
    Architecture,
    CategoricalNetwork,
    NormalNetwork,
    ProbabilityTable,
    SoftmaxTable,
    networks_for,
)

KEY = jax.random.key(0)


RNG = np.random.default_rng(0)
log_prob_and_entropy = jax.jit(lambda policy, *args: policy.log_prob_and_entropy(*args), static_argnums=0)


def random_layers(mlp):
    ends = zip(mlp.sizes[:-1], mlp.sizes[1:], strict=True)
    return [{"weight": RNG.normal(size=end), "bias": RNG.normal(size=end[1])} for end in ends]


def random_parameters(policy):
    """In NumPy, with the log standard deviation that the policy starts with."""
    layers = jax.tree.map(lambda x: (x / 2).astype(np.float32), random_layers(policy.mlp))
    if isinstance(policy, CategoricalNetwork):
        return layers
    return {"mean": layers, "log_std": np.full(policy.range.dimensions, policy.initial_log_std, np.float32)}


def normal(low, high, shape=None, log_std=-0.5):
    mlp = MLP((3, 16, len(low)))
    return NormalNetwork(mlp, ActionRange(tuple(low), tuple(high), shape or (len(low),), "float32"), log_std)


def test_an_mlp_is_the_same_in_jax_and_in_numpy():
    mlp = MLP((5, 7, 6, 2))
    layers = jax.tree.map(np.float32, random_layers(mlp))
    x = RNG.normal(size=(9, 5)).astype(np.float32)
    in_jax = jax.jit(mlp.__call__)(layers, x)
    np.testing.assert_allclose(mlp.apply_numpy(layers, x.copy()), in_jax, rtol=1e-5, atol=1e-5)
    by_hand = x.astype(float)
    for number, layer in enumerate(layers):
        by_hand = by_hand @ layer["weight"] + layer["bias"]
        by_hand = np.maximum(by_hand, 0) if number < 2 else by_hand
    np.testing.assert_allclose(in_jax, by_hand, rtol=1e-4, atol=1e-5)


def test_parameters_to_start_from():
    """Layers within one over the root of their inputs, and the log standard deviation of the settings."""
    policy = NormalNetwork(MLP((100, 400, 2)), ActionRange((-1, -3), (1, 5), (2,), "float32"), -0.7)
    parameters = policy.init(KEY)
    assert parameters["log_std"].tolist() == pytest.approx([-0.7, -0.7])
    layers = parameters["mean"]
    assert [layer["weight"].shape for layer in layers] == [(100, 400), (400, 2)]
    for layer, inputs in zip(layers, (100, 400), strict=True):
        for part in layer.values():
            assert 0.9 < np.abs(part).max() * inputs**0.5 <= 1 or part.size == 2
    assert not np.array_equal(layers[0]["weight"][0, :2], layers[1]["weight"][0])


def test_a_categorical_network_is_its_softmax():
    policy = CategoricalNetwork(MLP((3, 8, 4)), first=2)
    parameters = random_parameters(policy)
    x = RNG.normal(size=(5, 3)).astype(np.float32)
    logits = policy.mlp.apply_numpy(parameters, x)
    log_prob, _ = log_prob_and_entropy(policy, parameters, x, np.broadcast_to(np.arange(4), (5, 4)))
    np.testing.assert_allclose(log_prob, log_softmax(logits, axis=-1), rtol=1e-5, atol=1e-6)
    one = np.repeat(x[:1], 40_000, axis=0)
    drawn = policy.act(parameters, one, policy.noise(np.random.default_rng(2), 40_000))
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 40_000, softmax(logits[0]), atol=0.01)
    assert policy.act(parameters, one[:1], None) == int(logits[0].argmax())
    np.testing.assert_array_equal(policy.to_space(np.array([0, 3])), [2, 5])


@pytest.mark.parametrize("bounds", [([-1, -3], [1, 5]), ([-np.inf, 0], [np.inf, np.inf])], ids=["bounded", "open"])
def test_a_normal_network_is_its_density(bounds):
    policy = normal(*bounds)
    parameters = random_parameters(policy)
    x = RNG.normal(size=(6, 3)).astype(np.float32)
    mean = policy.mlp.apply_numpy(parameters["mean"], x)
    mean = np.tanh(mean) if policy.range.bounded else mean
    actions = RNG.normal(size=(6, 1, 2)).astype(np.float32)
    density = stats.norm.logpdf(actions, mean[:, None], np.exp(-0.5)).sum(axis=-1)
    np.testing.assert_allclose(log_prob_and_entropy(policy, parameters, x, actions)[0], density, rtol=1e-4, atol=1e-5)
    one = np.repeat(x[:1], 20_000, axis=0)
    drawn = policy.act(parameters, one, policy.noise(np.random.default_rng(2), 20_000))
    np.testing.assert_allclose(drawn.mean(axis=0), mean[0], atol=0.02)
    np.testing.assert_allclose(drawn.std(axis=0), np.exp(-0.5), atol=0.02)
    np.testing.assert_allclose(policy.act(parameters, x, None), mean, rtol=1e-4, atol=1e-5)


def test_actions_reach_the_environment_in_its_own_units_and_within_its_bounds():
    bounded = normal([-1, -3], [1, 5])
    np.testing.assert_allclose(bounded.to_space(np.array([[0, 0], [1, -1], [9, 0.5]])), [[0, 1], [1, -3], [1, 3]])
    half_open = normal([-np.inf, 0], [np.inf, np.inf])
    np.testing.assert_allclose(half_open.to_space(np.array([[-7, -2], [7, 2]])), [[-7, 0], [7, 2]])
    shaped = normal([-1] * 4, [1] * 4, shape=(2, 2)).to_space(np.zeros((3, 4)))
    assert shaped.shape == (3, 2, 2)
    assert shaped.dtype == np.float32


def test_tables_draw_from_their_rows():
    p = np.array([[0.1, 0.9, 0.0], [1.0, 0.0, 0.0]], np.float32)
    for policy, parameters in ((ProbabilityTable(2, 3), p), (SoftmaxTable(2, 3), np.log(np.maximum(p, 1e-30)))):
        noise = policy.noise(np.random.default_rng(0), 20_000)
        drawn = policy.act(parameters, np.zeros(20_000, int), noise)
        np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 20_000, p[0], atol=0.01)
        assert not policy.act(parameters, np.ones(100, int), noise[:100]).any()


def test_spaces_choose_the_network():
    box, images = gym.spaces.Box(-1, 1, (4,)), gym.spaces.Box(0, 255, (2, 3, 3), np.uint8)
    policy, value = networks_for(images, gym.spaces.Discrete(5, start=-2), Architecture("mlp", (32,)), 0.0)
    assert isinstance(policy, CategoricalNetwork)
    assert (policy.mlp.sizes, policy.first, value.mlp.sizes) == ((18, 32, 5), -2, (18, 32, 1))
    policy, _ = networks_for(box, gym.spaces.Box(-2, 3, (2, 1)), Architecture("mlp", ()), -1.0)
    assert isinstance(policy, NormalNetwork)
    assert policy.mlp.sizes == (4, 2)
    assert policy.range == ActionRange((-2, -2), (3, 3), (2, 1), "float32")


@pytest.mark.parametrize(
    "policy",
    [normal([-1, -3], [1, 5], log_std=-0.7), CategoricalNetwork(MLP((3, 8, 4)))],
    ids=["normal", "categorical"],
)
def test_the_entropy_is_the_mean_of_minus_log_pi(policy):
    parameters = random_parameters(policy)
    x = np.repeat(np.float32([[0.3, -1, 2]]), 40_000, axis=0)
    actions = policy.act(parameters, x, policy.noise(np.random.default_rng(0), len(x)))[:, None]
    log_prob, entropy = log_prob_and_entropy(policy, parameters, x, actions)
    assert entropy.shape == (40_000,)
    np.testing.assert_allclose(entropy[0], -np.mean(log_prob), atol=0.02)
    alone = jax.jit(policy.log_prob)(parameters, x, actions)
    np.testing.assert_allclose(alone, log_prob, rtol=1e-6, atol=1e-6)
