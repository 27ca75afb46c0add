"""`exact` against the enumeration of all trajectories, and identities."""

import dataclasses

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import wasserstein_distance
from trajectories import (
    ALPHA,
    VALUES,
    cvar,
    every_trajectory,
    gini_deviation,
    inter_quantile_range,
    mean,
    one_step,
    random_logits,
    random_mdp,
    variance,
)

from steadyrl import exact

# Against the enumeration.


# Where rewards are whole numbers, each seed has other returns that coincide, and is compiled for them.
@pytest.mark.parametrize(
    ("seed", "integer", "gamma"),
    [
        (0, True, 1.0),
        pytest.param(0, True, 0.9, marks=pytest.mark.slow),
        (0, False, 1.0),
        (0, False, 0.9),
        (1, False, 1.0),
        (1, False, 0.9),
    ],
)
def test_short_processes_are_exact(seed, integer, gamma):
    mdp, policy = random_mdp(seed, integer), softmax(random_logits(seed), axis=-1)
    x, p = every_trajectory(mdp, policy, gamma)
    distribution = exact.return_distribution(mdp, policy, gamma)

    assert distribution.error == 0.0
    expected, which = np.unique(np.round(x, 9), return_inverse=True)
    np.testing.assert_allclose(distribution.values, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(distribution.probabilities, np.bincount(which, p), rtol=0, atol=1e-15)
    assert distribution.mean == pytest.approx(mean(x, p), abs=1e-12)
    assert distribution.variance == pytest.approx(variance(x, p), abs=1e-12)
    assert distribution.standard_deviation == pytest.approx(np.sqrt(variance(x, p)), abs=1e-12)
    assert distribution.gini_deviation == pytest.approx(gini_deviation(x, p), abs=1e-12)
    assert distribution.cvar(ALPHA) == pytest.approx(cvar(x, p), abs=1e-12)
    for name, value in VALUES.items():
        assert distribution.measure(name) == pytest.approx(value(x, p), abs=1e-12), name
    assert distribution.measure(f"inter_quantile_range:{ALPHA}") == pytest.approx(inter_quantile_range(x, p), abs=1e-5)


@pytest.mark.parametrize(("grid", "gamma"), [pytest.param(2, 0.9, marks=pytest.mark.slow), (20, 0.9)])
@pytest.mark.parametrize("seed", range(4))
def test_a_grid_is_within_its_error(seed, grid, gamma):
    mdp, policy = random_mdp(seed), softmax(random_logits(seed), axis=-1)
    x, p = every_trajectory(mdp, policy, gamma)
    distribution = exact.return_distribution(mdp, policy, gamma, grid=grid)
    error = distribution.error

    assert error > 0
    assert wasserstein_distance(x, distribution.values, p, distribution.probabilities) <= error + 1e-12
    assert distribution.probabilities.sum() == pytest.approx(1, abs=1e-14)
    assert distribution.mean == pytest.approx(mean(x, p), abs=1e-12)
    assert distribution.variance == pytest.approx(variance(x, p), abs=1e-12)
    assert -1e-12 <= distribution.gini_deviation - gini_deviation(x, p) <= error
    assert -1e-12 <= cvar(x, p) - distribution.cvar(ALPHA) <= error / (2 * ALPHA)


def test_a_finer_grid_is_better():
    mdp, policy = random_mdp(0), softmax(random_logits(0), axis=-1)
    x, p = every_trajectory(mdp, policy, 0.9)
    D = gini_deviation(x, p)
    coarse, fine = (exact.return_distribution(mdp, policy, 0.9, grid=grid) for grid in (20, 320))
    # The error goes with the distance of the points, what it does to D with its square.
    assert coarse.error > 4 * fine.error
    assert coarse.gini_deviation - D > 16 * (fine.gini_deviation - D) > 0


def finite_differences(measure, mdp, logits, gamma, step=1e-5):
    slopes = np.zeros_like(logits)
    for index in np.ndindex(logits.shape):
        shift = np.zeros_like(logits)
        shift[index] = step
        above, below = (
            measure(*every_trajectory(mdp, softmax(z, axis=-1), gamma)) for z in (logits + shift, logits - shift)
        )
        slopes[index] = (above - below) / (2 * step)
    return slopes


@pytest.mark.parametrize("gamma", [pytest.param(1.0, marks=pytest.mark.slow), 0.9])
@pytest.mark.parametrize("name", VALUES)
def test_gradients_are_exact(name, gamma):
    mdp, logits = random_mdp(5), random_logits(5)
    gradient = exact.gradient(name, mdp, logits, gamma)
    np.testing.assert_allclose(gradient, finite_differences(VALUES[name], mdp, logits, gamma), rtol=0, atol=1e-8)
    # A softmax does not change when all logits of a state move together.
    np.testing.assert_allclose(gradient.sum(axis=-1), 0, atol=1e-14)


def test_the_gradient_of_the_inter_quantile_range():
    # Of its own values, which are compared with quantiles above.
    mdp, logits, name = random_mdp(5), random_logits(5), f"inter_quantile_range:{ALPHA}"
    shifts = 1e-5 * np.eye(logits.size).reshape(-1, *logits.shape)
    above, below = (
        exact.return_distribution(mdp, softmax(logits + sign * shifts, axis=-1), 0.9).measure(name) for sign in (1, -1)
    )
    slopes = (above - below).reshape(logits.shape) / 2e-5
    assert np.linalg.norm(slopes) > 0.1
    np.testing.assert_allclose(exact.gradient(name, mdp, logits, 0.9), slopes, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "grid", "tolerance"),
    [
        ("mean", 320, 1e-8),
        ("variance", 320, 1e-8),
        ("standard_deviation", 320, 1e-8),
        (f"cvar:{ALPHA}", 320, 5e-3),
        ("gini_deviation", 320, 5e-4),
    ],
)
def test_gradients_on_a_grid(name, grid, tolerance):
    mdp, logits = random_mdp(6), random_logits(6)
    gradient = exact.gradient(name, mdp, logits, 0.9, grid=grid)
    assert exact.return_distribution(mdp, softmax(logits, axis=-1), 0.9, grid=grid).error > 0
    np.testing.assert_allclose(gradient, finite_differences(VALUES[name], mdp, logits, 0.9), rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ["standard_deviation", "semideviation"])
def test_without_dispersion_there_is_no_gradient(name):
    mdp = one_step([4.0, 4.0], [0.5, 0.5])
    np.testing.assert_array_equal(exact.gradient(name, mdp, np.zeros((1, 1)), 1.0), 0)
    assert exact.return_distribution(mdp, np.ones((1, 1)), 1.0).measure(name) == 0


def test_names_without_a_number_have_the_default_one():
    mdp, policy = random_mdp(5), softmax(random_logits(5), axis=-1)
    distribution = exact.return_distribution(mdp, policy, 0.9)
    assert distribution.measure("cvar") == distribution.cvar(0.1)
    assert distribution.measure("inter_quantile_range") == distribution.measure(exact.inter_quantile_range(0.25))
    with pytest.raises(ValueError, match="semivariance:2: semivariance has no number of its own"):
        distribution.measure("semivariance:2")


def test_a_gradient_of_any_function():
    mdp, logits = random_mdp(7), random_logits(7)
    combined = exact.gradient(lambda x, p: exact.mean(x, p) - 1.2 * exact.gini_deviation(x, p), mdp, logits, gamma=0.9)
    E, D = (exact.gradient(name, mdp, logits, gamma=0.9) for name in ("mean", "gini_deviation"))
    np.testing.assert_allclose(combined, E - 1.2 * D, rtol=0, atol=1e-14)


# Identities.


def test_scaling_and_shifting_rewards():
    gamma = 0.9
    mdp = random_mdp(8)
    mdp = dataclasses.replace(mdp, ends=np.zeros_like(mdp.ends))
    policy = softmax(random_logits(8), axis=-1)
    X = exact.return_distribution(mdp, policy, gamma)
    scaled = exact.return_distribution(dataclasses.replace(mdp, reward=3 * mdp.reward), policy, gamma)
    shifted = exact.return_distribution(dataclasses.replace(mdp, reward=mdp.reward + 5), policy, gamma)
    assert scaled.mean == pytest.approx(3 * X.mean)
    assert scaled.variance == pytest.approx(9 * X.variance)
    assert scaled.gini_deviation == pytest.approx(3 * X.gini_deviation)
    assert shifted.mean == pytest.approx(X.mean + 5 * np.sum(gamma ** np.arange(mdp.horizon)))
    assert shifted.variance == pytest.approx(X.variance)
    assert shifted.gini_deviation == pytest.approx(X.gini_deviation)


@pytest.mark.parametrize("grid", [None, 20])
def test_batches_of_policies(grid):
    mdp = random_mdp(9)
    policies = np.random.default_rng(9).dirichlet(np.ones(2), size=(2, 4, 3))
    batch = exact.return_distribution(mdp, policies, 0.9, grid=grid)
    assert batch.probabilities.shape == (2, 4, len(batch.values))
    for index in np.ndindex(2, 4):
        single = exact.return_distribution(mdp, policies[index], 0.9, grid=grid)
        np.testing.assert_array_equal(batch.values, single.values)
        np.testing.assert_array_equal(batch.probabilities[index], single.probabilities)
        assert batch.error[index] == single.error
        for name in ("mean", "variance", "standard_deviation", "gini_deviation"):
            assert getattr(batch, name)[index] == pytest.approx(getattr(single, name), abs=1e-14)
        assert batch.cvar(ALPHA)[index] == pytest.approx(single.cvar(ALPHA), abs=1e-14)
