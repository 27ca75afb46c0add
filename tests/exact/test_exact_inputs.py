"""What `exact` takes and returns: policies in 32 bits, results in 64, and errors that help."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax
from trajectories import one_step, random_logits, random_mdp

from steadyrl import exact


def test_a_policy_in_32_bits_is_normalised():
    mdp, logits = random_mdp(10), random_logits(10)
    distribution = exact.return_distribution(mdp, jax.nn.softmax(jnp.asarray(logits, dtype=jnp.float32)), 1.0)
    assert distribution.probabilities.sum() == pytest.approx(1, abs=1e-14)


def test_a_changed_process_is_not_mistaken_for_the_old_one():
    mdp = one_step([0, 1], [0.5, 0.5])
    assert exact.return_distribution(mdp, [[1.0]], 1.0).mean == 0.5
    mdp.reward[...] = [0, 2]
    assert exact.return_distribution(mdp, [[1.0]], 1.0).mean == 1.0


def test_results_have_64_bits_and_the_setting_stays_off():
    mdp, logits = random_mdp(11), random_logits(11)
    distribution = exact.return_distribution(mdp, softmax(logits, axis=-1), 0.9)
    gradient = exact.gradient("gini_deviation", mdp, logits, 0.9)
    assert distribution.values.dtype == distribution.probabilities.dtype == gradient.dtype == np.float64
    assert all(isinstance(x, float) for x in (distribution.mean, distribution.cvar(0.1), distribution.error))
    assert not jax.config.jax_enable_x64
    assert jnp.ones(1).dtype == jnp.float32


# Errors.

EVEN = [[0.5, 0.5]] * 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": np.full((3, 3), 1 / 3)}, r"policy has shape \(3, 3\), but the process has 3 states and 2 act"),
        ({"policy": [0.5, 0.5]}, r"policy has shape \(2,\)"),
        ({"policy": [*EVEN[:2], [0.5, 0.6]]}, r"policy\[2\] is \[0.5, 0.6\]: .* sum to 1"),
        ({"policy": [*EVEN[:2], [-0.5, 1.5]]}, r"policy\[2\] is \[-0.5, 1.5\]: .* at least 0"),
        ({"policy": [EVEN, [*EVEN[:2], [np.nan, 1]]]}, r"policy\[1, 2\] is \[nan, 1.0\]"),
        ({"gamma": 0.0}, "gamma=0.0: a discount factor lies in"),
        ({"gamma": 1.1}, "gamma=1.1"),
        ({"gamma": np.nan}, "gamma=nan"),
        ({"grid": 1}, "grid=1: .* at least 2"),
    ],
)
def test_wrong_input_to_return_distribution(change, message):
    with pytest.raises(ValueError, match=message):
        exact.return_distribution(**{"mdp": random_mdp(0), "policy": EVEN, "gamma": 0.9, **change})


@pytest.mark.parametrize(
    ("objective", "logits", "message"),
    [
        ("sharpe", np.zeros((3, 2)), "unknown measure 'sharpe'. Known: .* gini_deviation, .* mean, .* variance"),
        ("mean", np.zeros((2, 2)), r"logits has shape \(2, 2\)"),
        ("mean", np.full((3, 2), -np.inf), "logits holds NaN or infinity"),
    ],
)
def test_wrong_input_to_gradient(objective, logits, message):
    with pytest.raises(ValueError, match=message):
        exact.gradient(objective, random_mdp(0), logits, gamma=0.9)


@pytest.mark.parametrize("alpha", [0, 1.5, np.nan])
def test_wrong_level_of_cvar(alpha):
    with pytest.raises(ValueError, match=f"alpha={alpha}"):
        exact.cvar(alpha)
