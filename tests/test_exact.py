"""`exact` against the enumeration of all trajectories, known values and simulation."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import lmoment, wasserstein_distance

from steadyrl import exact
from steadyrl.envs.guarded_maze.definition import Maze
from steadyrl.mdp import FiniteMDP

ALPHA = 0.3
START, SIDE = 30, 6
UP, DOWN, LEFT, RIGHT = range(4)


# The oracle: every trajectory, and measures by other formulas than those of `exact.measures`.


def every_trajectory(mdp, policy, gamma):
    """The returns and the probabilities of all trajectories."""
    found = []

    def walk(s, t, G, probability):
        for a in range(mdp.n_actions):
            for k in range(mdp.next_state.shape[2]):
                p = probability * policy[s, a] * mdp.probability[s, a, k]
                G_next = G + gamma**t * mdp.reward[s, a, k]
                if mdp.ends[s, a, k] or t + 1 == mdp.horizon:
                    found.append((G_next, p))
                else:
                    walk(mdp.next_state[s, a, k], t + 1, G_next, p)

    for s, p in enumerate(mdp.initial):
        walk(s, 0, 0.0, p)
    return np.array(found).T


def mean(x, p):
    return np.sum(x * p)


def variance(x, p):
    return np.sum(x**2 * p) - mean(x, p) ** 2


def gini_deviation(x, p):
    return 0.5 * np.sum(np.abs(x[:, None] - x) * p[:, None] * p)


def cvar(x, p):
    """Rockafellar and Uryasev: max_q q - E[(q - X)+] / alpha, attained at an atom."""
    return np.max(x - np.maximum(x[:, None] - x, 0) @ p / ALPHA)


MEASURES = {
    "mean": (mean, "mean"),
    "variance": (variance, "variance"),
    "gini_deviation": (gini_deviation, "gini_deviation"),
    "cvar": (cvar, exact.cvar(ALPHA)),
}


def random_mdp(seed, integer=False):
    """3 states, 2 actions, 2 outcomes. Where these lead is always the same, so that few programs are compiled."""
    rng = np.random.default_rng(seed)
    shape = (3, 2, 2)
    return FiniteMDP(
        next_state=[[[1, 2], [0, 1]], [[2, 2], [1, 0]], [[0, 1], [2, 0]]],
        reward=rng.integers(-2, 3, size=shape) if integer else rng.normal(size=shape),
        ends=[[[False, True], [False, False]], [[True, False], [False, False]], [[False, False], [False, True]]],
        probability=rng.dirichlet(np.ones(2), size=shape[:2]),
        initial=rng.dirichlet(np.ones(3)),
        horizon=4,
    )


def random_logits(seed):
    return np.random.default_rng(seed + 1000).normal(size=(3, 2))


def one_step(rewards, probabilities):
    """One state, one action, one step."""
    shape = (1, 1, len(rewards))
    return FiniteMDP(
        next_state=np.zeros(shape),
        reward=np.reshape(rewards, shape),
        ends=np.ones(shape),
        probability=np.reshape(probabilities, shape),
        initial=np.ones(1),
        horizon=1,
    )


# Against the oracle.


@pytest.mark.parametrize(("integer", "gamma"), [(True, 1.0), (True, 0.9), (False, 1.0), (False, 0.9)])
@pytest.mark.parametrize("seed", range(2))
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


@pytest.mark.parametrize(("grid", "gamma"), [(2, 0.9), (20, 0.9), (20, 1.0)])
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


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("name", MEASURES)
def test_gradients_are_exact(name, gamma):
    measure, objective = MEASURES[name]
    mdp, logits = random_mdp(5), random_logits(5)
    gradient = exact.gradient(objective, mdp, logits, gamma)
    np.testing.assert_allclose(gradient, finite_differences(measure, mdp, logits, gamma), rtol=0, atol=1e-8)
    # A softmax does not change when all logits of a state move together.
    np.testing.assert_allclose(gradient.sum(axis=-1), 0, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "grid", "tolerance"),
    [("mean", 20, 1e-8), ("variance", 20, 1e-8), ("cvar", 320, 5e-3), ("gini_deviation", 320, 5e-4)],
)
def test_gradients_on_a_grid(name, grid, tolerance):
    measure, objective = MEASURES[name]
    mdp, logits = random_mdp(6), random_logits(6)
    gradient = exact.gradient(objective, mdp, logits, 0.9, grid=grid)
    assert exact.return_distribution(mdp, softmax(logits, axis=-1), 0.9, grid=grid).error > 0
    np.testing.assert_allclose(gradient, finite_differences(measure, mdp, logits, 0.9), rtol=0, atol=tolerance)


def test_a_gradient_of_any_function():
    mdp, logits = random_mdp(7), random_logits(7)
    combined = exact.gradient(lambda x, p: exact.mean(x, p) - 1.2 * exact.gini_deviation(x, p), mdp, logits, gamma=1.0)
    E, D = (exact.gradient(name, mdp, logits, gamma=1.0) for name in ("mean", "gini_deviation"))
    np.testing.assert_allclose(combined, E - 1.2 * D, rtol=0, atol=1e-14)


# Known values.


def test_a_fair_coin():
    distribution = exact.return_distribution(one_step([0, 1], [0.5, 0.5]), [[1.0]], gamma=1.0)
    assert distribution.values.tolist() == [0, 1]
    assert distribution.probabilities.tolist() == [0.5, 0.5]
    assert (distribution.mean, distribution.variance, distribution.standard_deviation) == (0.5, 0.25, 0.5)
    assert distribution.gini_deviation == 0.25
    assert distribution.cvar(0.5) == 0
    # The lowest 0.8 are all of the zeros and 0.3 of the ones.
    assert distribution.cvar(0.8) == pytest.approx(0.3 / 0.8)
    assert distribution.cvar(1) == 0.5


def test_a_gradient_by_hand():
    # Action 1 pays 1 instead of 0, with probability p: E = p, V = D = p (1 - p), and dp/dlogit = p (1 - p).
    mdp = FiniteMDP(
        next_state=np.zeros((1, 2, 1)),
        reward=[[[0], [1]]],
        ends=np.ones((1, 2, 1)),
        probability=np.ones((1, 2, 1)),
        initial=[1],
        horizon=1,
    )
    p = 0.2
    logits = np.log([[1 - p, p]])
    slope = p * (1 - p) * np.array([[-1, 1]])
    np.testing.assert_allclose(exact.gradient("mean", mdp, logits, 1.0), slope)
    np.testing.assert_allclose(exact.gradient("variance", mdp, logits, 1.0), (1 - 2 * p) * slope)
    np.testing.assert_allclose(exact.gradient("gini_deviation", mdp, logits, 1.0), (1 - 2 * p) * slope)


def test_a_deterministic_process():
    # 0 -> 1 -> 2 -> end, paying 3, 5 and 7.
    mdp = FiniteMDP(
        next_state=[[[1]], [[2]], [[0]]],
        reward=[[[3]], [[5]], [[7]]],
        ends=[[[False]], [[False]], [[True]]],
        probability=np.ones((3, 1, 1)),
        initial=[1, 0, 0],
        horizon=10,
    )
    distribution = exact.return_distribution(mdp, np.ones((3, 1)), gamma=0.5)
    assert distribution.values.tolist() == [3 + 5 / 2 + 7 / 4]
    assert distribution.probabilities.tolist() == [1.0]
    assert (distribution.variance, distribution.gini_deviation, distribution.error) == (0, 0, 0)


def test_a_single_reward_before_the_end_is_exact_for_every_gamma():
    # -1 for each step, 10 for the last: whatever gamma, nothing needs rounding.
    mdp = FiniteMDP(
        next_state=np.zeros((1, 1, 2)),
        reward=[[[-1, 10]]],
        ends=[[[False, True]]],
        probability=[[[0.9, 0.1]]],
        initial=[1],
        horizon=50,
    )
    gamma = 0.97
    distribution = exact.return_distribution(mdp, [[1.0]], gamma, grid=2)
    t = np.arange(50)
    reached = -(1 - gamma**t) / (1 - gamma) + 10 * gamma**t
    never = -(1 - gamma**50) / (1 - gamma)
    order = np.argsort(np.append(reached, never))
    assert distribution.error == 0
    np.testing.assert_allclose(distribution.values, np.append(reached, never)[order], rtol=1e-13)
    np.testing.assert_allclose(distribution.probabilities, np.append(0.1 * 0.9**t, 0.9**50)[order], rtol=1e-12)


def test_rewards_in_tenths_are_a_lattice():
    # 0.1 + 0.2 is not 0.3 in floating-point numbers, but it is the same return.
    mdp = FiniteMDP(
        next_state=np.zeros((1, 1, 3)),
        reward=[[[0.1, 0.2, 0.3]]],
        ends=np.zeros((1, 1, 3)),
        probability=[[[0.2, 0.3, 0.5]]],
        initial=[1],
        horizon=300,
    )
    distribution = exact.return_distribution(mdp, [[1.0]], gamma=1.0)
    assert distribution.error == 0
    assert len(distribution.values) == 601
    np.testing.assert_allclose(distribution.values, np.arange(300, 901) / 10, rtol=1e-12)
    assert distribution.variance == pytest.approx(300 * 0.0061)


def test_returns_of_tiny_probability_under_the_uniform_policy_are_kept():
    # Action 0 goes on and pays 1; 4^-700 is less than the smallest floating-point number.
    shape = (1, 4, 1)
    mdp = FiniteMDP(
        next_state=np.zeros(shape),
        reward=[[[1], [0], [0], [0]]],
        ends=[[[False], [True], [True], [True]]],
        probability=np.ones(shape),
        initial=[1],
        horizon=700,
    )
    distribution = exact.return_distribution(mdp, [[1.0, 0, 0, 0]], gamma=1.0)
    assert (distribution.values[-1], distribution.probabilities[-1]) == (700, 1)


# The Guarded Maze.


def path_policy(moves):
    """Takes `moves` one after another from the start; uniform where they do not lead."""
    policy, cell = np.full((36, 4), 0.25), START
    for move in moves:
        policy[cell] = np.eye(4)[move]
        cell += {UP: -SIDE, DOWN: SIDE, LEFT: -1, RIGHT: 1}[move]
    return policy


@pytest.mark.parametrize(("goal", "white", "short"), [(20, 9.846, 11.869), (40, 29.647, 31.709)])
def test_the_two_paths_of_the_maze(goal, white, short):
    mdp = Maze(goal_reward=goal).mdp
    safe = exact.return_distribution(mdp, path_policy([UP] * 5 + [RIGHT] * 5 + [DOWN]), gamma=0.999)
    assert safe.mean == pytest.approx(white, abs=5e-4)
    assert (safe.variance, safe.gini_deviation, safe.error) == (0, 0, 0)
    risky = exact.return_distribution(mdp, path_policy([RIGHT] * 5 + [UP] * 4), gamma=0.999)
    assert risky.mean == pytest.approx(short, abs=5e-4)
    assert risky.variance == pytest.approx(155.86, abs=5e-3)
    assert risky.gini_deviation == pytest.approx(6.700, abs=5e-4)


def simulated_returns(mdp, policy, gamma, episodes, rng):
    s = rng.choice(mdp.n_states, size=episodes, p=mdp.initial)
    G, alive = np.zeros(episodes), np.ones(episodes, dtype=bool)
    for t in range(mdp.horizon):
        a = (rng.random((episodes, 1)) > np.cumsum(policy[s], axis=-1)[:, :-1]).sum(axis=-1)
        k = (rng.random((episodes, 1)) > np.cumsum(mdp.probability[s, a], axis=-1)[:, :-1]).sum(axis=-1)
        G += alive * gamma**t * mdp.reward[s, a, k]
        alive &= ~mdp.ends[s, a, k]
        s = mdp.next_state[s, a, k]
    return G


@pytest.mark.parametrize("gamma", [1.0, 0.999])
def test_the_maze_against_simulation(gamma):
    rng = np.random.default_rng(0)
    mdp, policy = Maze(goal_reward=20).mdp, softmax(rng.normal(size=(36, 4)), axis=-1)
    distribution = exact.return_distribution(mdp, policy, gamma)
    assert distribution.error == 0 if gamma == 1 else distribution.error < 0.1

    groups = simulated_returns(mdp, policy, gamma, 40_000, rng).reshape(100, 400)
    estimates = {
        "mean": groups.mean(axis=-1),
        "variance": groups.var(axis=-1, ddof=1),
        "gini_deviation": lmoment(groups, order=2, axis=-1),
    }
    for name, estimate in estimates.items():
        standard_error = estimate.std(ddof=1) / 10
        assert estimate.mean() == pytest.approx(getattr(distribution, name), abs=4 * standard_error), name


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
        ("sharpe", np.zeros((3, 2)), "objective='sharpe' is no measure .* mean, variance, gini_deviation"),
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
