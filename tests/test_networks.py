"""Policies and value functions: JAX and NumPy agree, and distributions are what they say."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from steadyrl.networks import (
    MLP,
    ActionRange,
    CategoricalNetwork,
    NormalNetwork,
    ProbabilityTable,
    SoftmaxTable,
    networks_for,
)

KEY = jax.random.key(0)


def in_numpy(parameters):
    return jax.tree.map(np.asarray, parameters)


def normal(low, high, shape=None, log_std=-0.5):
    mlp = MLP((3, 16, len(low)))
    return NormalNetwork(mlp, ActionRange(tuple(low), tuple(high), shape or (len(low),), "float32"), log_std)


def test_an_mlp_is_the_same_in_jax_and_in_numpy():
    mlp = MLP((5, 7, 6, 2))
    layers = mlp.init(KEY)
    x = np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)
    np.testing.assert_allclose(mlp.in_numpy(in_numpy(layers), x), mlp(layers, jnp.asarray(x)), rtol=1e-5, atol=1e-6)
    by_hand = x.astype(float)
    for number, layer in enumerate(in_numpy(layers)):
        by_hand = by_hand @ layer["weight"] + layer["bias"]
        by_hand = np.maximum(by_hand, 0) if number < 2 else by_hand
    np.testing.assert_allclose(mlp(layers, jnp.asarray(x)), by_hand, rtol=1e-4, atol=1e-5)


def test_layers_start_within_one_over_the_root_of_their_inputs():
    layers = MLP((100, 400, 1)).init(KEY)
    for layer, inputs in zip(layers, (100, 400), strict=True):
        for part in layer.values():
            assert 0.9 < np.abs(part).max() * inputs**0.5 <= 1 or part.size == 1
    assert not np.array_equal(layers[0]["weight"][:1], layers[1]["weight"][:1])


def test_a_categorical_network_is_its_softmax():
    policy = CategoricalNetwork(MLP((3, 8, 4)), first=2)
    parameters = policy.init(KEY)
    x = jnp.asarray(np.random.default_rng(1).normal(size=(5, 3)), jnp.float32)
    logits = policy.mlp(parameters, x)
    every = jnp.broadcast_to(jnp.arange(4), (5, 4))
    np.testing.assert_allclose(policy.log_prob(parameters, x, every), jax.nn.log_softmax(logits), rtol=1e-5, atol=1e-6)
    one = np.repeat(np.asarray(x[:1]), 40_000, axis=0)
    drawn = policy.act(in_numpy(parameters), one, policy.noise(np.random.default_rng(2), 40_000))
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 40_000, jax.nn.softmax(logits[0]), atol=0.01)
    assert policy.act(in_numpy(parameters), one[:1], None) == int(logits[0].argmax())
    np.testing.assert_array_equal(policy.to_space(np.array([0, 3])), [2, 5])


@pytest.mark.parametrize("bounds", [([-1, -3], [1, 5]), ([-np.inf, 0], [np.inf, np.inf])], ids=["bounded", "open"])
def test_a_normal_network_is_its_density(bounds):
    policy = normal(*bounds)
    parameters = policy.init(KEY)
    assert parameters["log_std"].tolist() == [-0.5, -0.5]
    x = jnp.asarray(np.random.default_rng(1).normal(size=(6, 3)), jnp.float32)
    mean = np.asarray(policy.mlp(parameters["mean"], x))
    mean = np.tanh(mean) if policy.range.bounded else mean
    actions = np.random.default_rng(3).normal(size=(6, 1, 2)).astype(np.float32)
    density = stats.norm.logpdf(actions, mean[:, None], np.exp(-0.5)).sum(axis=-1)
    np.testing.assert_allclose(policy.log_prob(parameters, x, jnp.asarray(actions)), density, rtol=1e-4)
    one = np.repeat(np.asarray(x[:1]), 20_000, axis=0)
    drawn = policy.act(in_numpy(parameters), one, policy.noise(np.random.default_rng(2), 20_000))
    np.testing.assert_allclose(drawn.mean(axis=0), mean[0], atol=0.02)
    np.testing.assert_allclose(drawn.std(axis=0), np.exp(-0.5), atol=0.02)
    np.testing.assert_allclose(policy.act(in_numpy(parameters), np.asarray(x), None), mean, rtol=1e-4, atol=1e-5)


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
    policy, value = networks_for(images, gym.spaces.Discrete(5, start=-2), "mlp", (32,), 0.0)
    assert isinstance(policy, CategoricalNetwork)
    assert (policy.mlp.sizes, policy.first, value.mlp.sizes) == ((18, 32, 5), -2, (18, 32, 1))
    policy, _ = networks_for(box, gym.spaces.Box(-2, 3, (2, 1)), "mlp", (), -1.0)
    assert isinstance(policy, NormalNetwork)
    assert policy.mlp.sizes == (4, 2)
    assert policy.range == ActionRange((-2, -2), (3, 3), (2, 1), "float32")


@pytest.mark.parametrize(
    "policy",
    [normal([-1, -3], [1, 5], log_std=-0.7), CategoricalNetwork(MLP((3, 8, 4)))],
    ids=["normal", "categorical"],
)
def test_the_entropy_is_the_mean_of_minus_log_pi(policy):
    parameters = policy.init(KEY)
    x = np.repeat(np.float32([[0.3, -1, 2]]), 40_000, axis=0)
    drawn = policy.act(in_numpy(parameters), x, policy.noise(np.random.default_rng(0), len(x)))
    log_pi, entropy = policy.log_prob_and_entropy(parameters, jnp.asarray(x), jnp.asarray(drawn)[:, None])
    assert entropy.shape == (40_000,)
    np.testing.assert_allclose(entropy[0], -np.mean(log_pi), atol=0.02)
    np.testing.assert_array_equal(log_pi, policy.log_prob(parameters, jnp.asarray(x), jnp.asarray(drawn)[:, None]))
