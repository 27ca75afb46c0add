"""The recurrent network itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steadyrl.agents.networks import GRU
from steadyrl.agents.networks.gru_states import gru_states, next_state


def random_layers(network, seed=0):
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda x: rng.normal(size=x.shape).astype(np.float32), network.init(jax.random.key(0)))


def sequence_numpy(network, layers, x):
    """[..., T, inputs] to [..., T, outputs], step by step."""
    state, outputs = np.zeros((*x.shape[:-2], network.state_size), np.float32), []
    for t in range(x.shape[-2]):
        output, state = network.step_numpy(layers, x[..., t, :], state)
        outputs.append(output)
    return np.stack(outputs, axis=-2)


@pytest.mark.parametrize("options", [{}, {"activation": "tanh", "layer_norm": True, "orthogonal": True}])
@pytest.mark.parametrize("hidden", [(5,), (7, 5)])
def test_numpy_acts_as_jax_learns(hidden, options):
    network = GRU.of(3, hidden, 2, **options)
    layers = random_layers(network)
    x = np.random.default_rng(1).normal(size=(4, 30, 3)).astype(np.float32)
    learned = network(layers, x)
    assert learned.shape == (4, 30, 2)
    np.testing.assert_allclose(sequence_numpy(network, layers, x), learned, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(network(layers, x[1]), learned[1], rtol=2e-5, atol=2e-6)


def test_the_equations():
    """Gate by gate, in 64 bits, with the sigmoid as it is usually written."""
    network = GRU.of(2, (3,), 1)
    (inputs, recurrent, last), x = random_layers(network), np.random.default_rng(2).normal(size=(6, 2))
    W, b, U, c = inputs["weight"], inputs["bias"], recurrent["weight"], recurrent["bias"]
    h, expected = np.zeros(3), []
    for row in x:
        reset, update = (1 / (1 + np.exp(-(row @ W[:, k] + b[k] + h @ U[:, k]))) for k in (slice(0, 3), slice(3, 6)))
        candidate = np.tanh(row @ W[:, 6:] + b[6:] + reset * (h @ U[:, 6:] + c))
        h = (1 - update) * candidate + update * h
        expected.append(h @ last["weight"] + last["bias"])
    np.testing.assert_allclose(network([inputs, recurrent, last], x.astype(np.float32)), expected, rtol=1e-4)


def test_orthogonal_start():
    *_, recurrent, last = GRU.of(3, (8,), 2, orthogonal=True).init(jax.random.key(0), output_scale=0.1)
    for gate in np.split(np.asarray(recurrent["weight"]), 3, axis=1):
        np.testing.assert_allclose(gate @ gate.T, np.eye(8), atol=1e-5)
    np.testing.assert_allclose(last["weight"].T @ last["weight"], 0.01 * np.eye(2), atol=1e-6)


def test_an_input_can_be_fixed():
    network, smaller = GRU.of(3, (6, 4), 2), GRU.of(2, (6, 4), 2)
    layers = random_layers(network)
    x = np.random.default_rng(3).normal(size=(9, 2)).astype(np.float32)
    with_level = np.concatenate([x, np.full((9, 1), 0.7, np.float32)], axis=1)
    fixed = smaller(network.with_input_fixed(layers, -1, 0.7), x)
    np.testing.assert_allclose(fixed, network(layers, with_level), rtol=1e-4, atol=1e-5)


def test_outputs_depend_on_the_past_alone():
    network = GRU.of(1, (4,), 1)
    layers, x = random_layers(network), jnp.linspace(-1, 1, 8)[:, None]
    jacobian = jax.jacobian(lambda x: network(layers, x)[:, 0])(x)[..., 0]
    np.testing.assert_array_equal(np.triu(jacobian, 1), 0)
    assert np.all(np.tril(jacobian)[np.tril_indices(8)] != 0)


def test_the_gradient_is_that_of_the_plain_loop():
    rng = np.random.default_rng(6)
    given = tuple(jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in [(11, 3, 12), (4, 12), (4,)])
    towards = jnp.asarray(rng.normal(size=(11, 3, 4)), jnp.float32)

    def plain(entering, weight, bias):
        state, states = jnp.zeros((3, 4)), []
        for row in entering:
            state = next_state(state, row, weight, bias)
            states.append(state)
        return jnp.stack(states)

    value, expected = jax.value_and_grad(lambda x: (plain(*x) * towards).sum())(given)
    found_value, found = jax.value_and_grad(lambda x: (gru_states(*x) * towards).sum())(given)
    np.testing.assert_allclose(found_value, value, rtol=1e-5)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
