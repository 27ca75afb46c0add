"""Measures as agents use them: running estimates, weights that contain the mean, numbers as leaves, one's own."""

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import algorithm_1

from steadyrl import risk
from steadyrl.agents import MeanRisk
from steadyrl.base.seeding import training_episode_seed
from steadyrl.risk import MEASURES, RiskMeasure, Sample
from steadyrl.rollouts.collector import Limits, collect
from steadyrl.rollouts.simulators.choose import simulator_for

named = pytest.mark.parametrize


def one(R):
    return Sample(jnp.array([R]), jnp.ones(1), jnp.ones(1, bool))


def test_tamar_by_hand_over_two_episodes():
    measure = risk.tamar(threshold=1.0, learning_rate=0.1)
    # J = V = 0, so nothing exceeds the threshold yet; then J = 0.1 * 4 and V = 0.1 * (16 - 0 - 0).
    weights, state = measure.weights(one(4.0), measure.initial_state)
    assert weights == 0
    np.testing.assert_allclose(state, (0.4, 1.6), rtol=1e-6)
    # -2 (1.6 - 1) (2^2 - 2 * 0.4 * 2), with the old J and V; then both move from there.
    weights, state = measure.weights(one(2.0), state)
    np.testing.assert_allclose(weights, -1.2 * 2.4, rtol=1e-6)
    np.testing.assert_allclose(state, (0.4 + 0.1 * 1.6, 1.6 + 0.1 * (4 - 0.16 - 1.6)), rtol=1e-6)


def test_tamar_averages_over_the_selected():
    measure = risk.tamar(threshold=1.0, learning_rate=0.1, mean=1.0, spread=3.0)
    sample = Sample(jnp.array([4.0, 100, 2]), jnp.ones(3), jnp.array([True, False, True]))
    weights, state = measure.weights(sample, measure.initial_state)
    np.testing.assert_allclose(weights, [-4 * (16 - 8) / 2, 0, -4 * (4 - 4) / 2], rtol=1e-6)
    np.testing.assert_allclose(state, (1 + 0.1 * 2, 3 + 0.1 * (10 - 1 - 3)), rtol=1e-6)


def test_tamar_rests_at_the_true_moments():
    R = np.array([1.0, 4, 4, 7])
    measure = risk.tamar(threshold=1.0, learning_rate=0.5, mean=4.0, spread=4.5)
    _, state = measure.weights(Sample(R, np.ones(4), np.ones(4, bool)), measure.initial_state)
    np.testing.assert_allclose(state, (4, 4.5), rtol=1e-6)
    assert measure.value(R) == pytest.approx((6 - 1) ** 2)
    assert risk.tamar(threshold=100.0, learning_rate=0.5).value(R) == 0


def test_mvp_by_hand_over_two_episodes():
    measure = risk.mvp(risk_aversion=0.5, learning_rate=0.1)
    # y moves first: 0.1 * (2 * 3 + 2 - 0) = 0.8, and then the policy by 2 y R - R^2.
    weights, y = measure.weights(one(3.0), measure.initial_state)
    np.testing.assert_allclose((weights[0], y), (2 * 0.8 * 3 - 9, 0.8), rtol=1e-6)
    weights, y = measure.weights(one(1.0), y)
    np.testing.assert_allclose((weights[0], y), (2 * 1.04 - 1, 0.8 + 0.1 * (2 + 2 - 1.6)), rtol=1e-6)
    assert measure.contains_mean


def test_mvp_beside_another_mean_part():
    measure = risk.mvp(risk_aversion=0.5, learning_rate=0.1, with_mean=False)
    weights, y = measure.weights(one(3.0), measure.initial_state)
    np.testing.assert_allclose((weights[0], y), (2 * 0.6 * 3 - 9, 0.6), rtol=1e-6)
    assert not measure.contains_mean


@named(("with_mean", "rest"), [(True, 4 + 1 / (2 * 0.5)), (False, 4)])
def test_mvp_rests_at_its_best_dual(with_mean, rest):
    measure = risk.mvp(risk_aversion=0.5, learning_rate=0.1, dual=rest, with_mean=with_mean)
    sample = Sample(jnp.array([1.0, 4, 100, 7]), jnp.ones(4), jnp.array([True, True, False, True]))
    weights, y = measure.weights(sample, measure.initial_state)
    np.testing.assert_allclose(y, rest, rtol=1e-6)
    np.testing.assert_allclose(weights, [(2 * rest - 1) / 3, (8 * rest - 16) / 3, 0, (14 * rest - 49) / 3], rtol=1e-5)


@named(
    ("measure", "same_program", "other_program"),
    [
        (risk.tamar(1.0, 0.1), risk.tamar(2.0, 0.3, mean=-4.0, spread=5.0), risk.mvp(0.5, 0.1)),
        (risk.mvp(0.5, 0.1), risk.mvp(0.2, 0.3, dual=-4.0), risk.mvp(0.5, 0.1, with_mean=False)),
        *((measure, dataclasses.replace(measure), risk.tamar(1.0, 0.1)) for measure in MEASURES.values()),
    ],
)
def test_the_numbers_of_a_measure_are_arguments_of_a_compiled_program(measure, same_program, other_program):
    structure = jax.tree.structure(measure)
    assert structure == jax.tree.structure(same_program)
    assert hash(structure) == hash(jax.tree.structure(same_program))
    assert structure != jax.tree.structure(other_program)
    sample = Sample(jnp.array([1.0, 4.0, -2.0, 7.0]), jnp.ones(4), jnp.ones(4, bool))
    weights = jax.jit(lambda measure: measure.weights(sample, measure.initial_state))
    for one in (measure, same_program):
        for found, expected in zip(
            jax.tree.leaves(weights(one)), jax.tree.leaves(one.weights(sample, one.initial_state)), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert weights._cache_size() == 1


def expected_loss_weights(sample, state):
    return -jnp.maximum(-sample.returns, 0) * sample.where / sample.count, state


EXPECTED_LOSS = RiskMeasure(
    value=lambda returns: np.maximum(-np.asarray(returns), 0).mean(axis=-1),
    utility=lambda returns, law: -jnp.maximum(-returns, 0),
    weights=expected_loss_weights,
)
"""E[max(0, -R)]: its gradient needs no more than the mean of max(0, -R_i) score_i."""


def test_a_new_measure_is_one_line_of_registration(monkeypatch):
    monkeypatch.setitem(MEASURES, "expected_loss", EXPECTED_LOSS)
    n, risk_aversion, rate = 10, 0.7, 1e-3
    settings = {"episodes_per_update": n, "inner_updates": 1, "policy_learning_rate": rate, "optimiser": "sgd"}
    settings |= {"credit": "trajectory"}
    agent = MeanRisk(
        "steadyrl/GuardedMaze-v0", measure="expected_loss", risk_aversion=risk_aversion, engine="gymnasium", **settings
    )
    agent.learn(total_episodes=n, progress_bar=False)

    # What REINFORCE makes of the agent's first episodes, and what the measure's weights add.
    steps = algorithm_1.steps_of(first_episodes("steadyrl/GuardedMaze-v0", agent, n))
    theta, V, uniform = np.zeros((36, 4)), np.zeros(36), np.full((36, 4), 0.25)
    neutral = {**dataclasses.asdict(agent.settings), "risk_aversion": 0.0, "estimator": "paper"}
    algorithm_1.update(theta, V, steps, SimpleNamespace(**neutral))
    added = np.zeros((36, 4))
    for episode in steps:
        s, a, r = (np.array(column) for column in zip(*episode, strict=True))
        loss = max(0, -algorithm_1.rewards_to_go(r, agent.gamma)[0])
        added -= rate * risk_aversion * loss / n * algorithm_1.score(uniform, s, a, np.ones(len(s)))
    assert np.max(np.abs(added)) > 0.01
    np.testing.assert_allclose(agent.learner.theta, theta + added, rtol=1e-3, atol=1e-5)

    agent.learn(total_episodes=3 * n, progress_bar=False)
    assert agent.episodes == 4 * n
    assert np.all(np.isfinite(agent.learner.theta))


def first_episodes(env, agent, n):
    """The episodes of the agent's first round: those of an untrained agent with the same seeds."""
    untrained = type(agent)(env, **{**dataclasses.asdict(agent.settings), "measure": "gini"}, engine="gymnasium")
    seeds = [training_episode_seed(agent.seed, i) for i in range(n)]
    simulator = simulator_for("gymnasium", untrained.source, n)
    return collect(simulator, untrained.actor(), seeds, Limits(env, agent.settings.max_episode_steps))


def test_an_unknown_measure():
    with pytest.raises(ValueError, match="gini"):
        MeanRisk("steadyrl/GuardedMaze-v0", measure="ginni")
