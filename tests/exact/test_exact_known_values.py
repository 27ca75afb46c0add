"""`exact` on distributions and gradients that are known, and in the Guarded Maze against simulation."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import lmoment
from trajectories import one_step

from steadyrl import exact
from steadyrl.envs.guarded_maze.definition import Maze
from steadyrl.exact.mdp import FiniteMDP

START, SIDE = 30, 6
UP, DOWN, LEFT, RIGHT = range(4)


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


@pytest.mark.parametrize(
    ("goal", "white", "short"), [(20, 9.846, 11.869), pytest.param(40, 29.647, 31.709, marks=pytest.mark.slow)]
)
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


@pytest.mark.parametrize("gamma", [pytest.param(1.0, marks=pytest.mark.slow), 0.999])
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
