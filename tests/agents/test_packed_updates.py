"""Updates from packed batches are updates from padded ones, up to rounding."""

import jax
import numpy as np
import pytest
from made_batches import Spaces, assert_updates_agree, padded_batch

import steadyrl
from steadyrl.training.engines import host

LENGTHS = np.array([150, 40, 31, 12, 64, 3, 33, 20, 25, 30, 10, 7, *range(32, 44)])
SMALL = {"hidden": (6,), "episodes_per_update": len(LENGTHS), "seed": 2, "normalise_observations": False}
VPG = {**SMALL, "inner_updates": 3, "policy_learning_rate": 1e-3}
PPO = {**SMALL, "mean": "ppo", "inner_updates": 2}
WHOLE, MINIBATCHES = {**PPO, "minibatch_size": 0}, {**PPO, "minibatch_size": 100}
RISK = {"risk_aversion": 0.5}
TRAJECTORY, STEP = {**RISK, "credit": "trajectory"}, {**RISK, "credit": "step"}
DIAL = {"risk_aversion": (0.0, 2.0), "lambdas_per_update": 3}

CASES = {
    "reinforce": (steadyrl.Reinforce, VPG),
    "mg": (steadyrl.MeanGini, {**VPG, **TRAJECTORY, "mean": "vpg", "risk_discount": 0.9}),
    "mg by step": (steadyrl.MeanGini, {**VPG, **STEP, "mean": "vpg"}),
    "mg by step with a dial": (steadyrl.MeanGini, {**VPG, **DIAL, "mean": "vpg"}),
    "mvo": (steadyrl.MVO, {**VPG, **RISK, "mean": "vpg"}),
    "tamar": (steadyrl.Tamar, {**SMALL, **RISK}),
    "mvp": (steadyrl.MVP, {**SMALL, **RISK}),
    "mean risk": (steadyrl.MeanRisk, {**VPG, **TRAJECTORY, "mean": "vpg", "measure": "semideviation"}),
    "ppo": (steadyrl.PPO, {name: value for name, value in WHOLE.items() if name != "mean"}),
    "ppo in minibatches": (steadyrl.PPO, {name: value for name, value in MINIBATCHES.items() if name != "mean"}),
    "mg-ppo": (steadyrl.MeanGini, {**WHOLE, **TRAJECTORY, "normalise_values": False}),
    "mg-ppo by trajectory": (steadyrl.MeanGini, {**WHOLE, **TRAJECTORY, "risk_ratios": "trajectory"}),
    "mg-ppo in minibatches": (steadyrl.MeanGini, {**MINIBATCHES, **TRAJECTORY, "risk_ratios": "trajectory"}),
    "mg-ppo by step": (steadyrl.MeanGini, {**MINIBATCHES, **STEP, "value_targets": "monte_carlo"}),
    "mg-ppo with a dial": (steadyrl.MeanGini, {**MINIBATCHES, **DIAL}),
    "mvp-ppo": (steadyrl.MVP, {**WHOLE, **RISK}),
    "cvar": (steadyrl.CVaR, {**MINIBATCHES, "alpha": 0.3}),
    "cvar, plain": (steadyrl.CVaR, {**VPG, "mean": "vpg", "alpha": 0.3, "estimator": "plain"}),
}
QUICK = {"mg", "tamar", "mg-ppo by trajectory", "mg-ppo in minibatches"}


def batches(agent):
    """A batch of episodes, padded and packed."""
    padded = padded_batch(agent, LENGTHS)
    packed = padded.packed()
    assert packed.mask.size < 0.6 * padded.mask.size
    return padded, packed


@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in CASES]
)
def test_packed_and_padded_updates_agree(case):
    kind, settings = CASES[case]
    agent = kind(Spaces(), **settings)
    algorithm, learner = agent.algorithm, agent.learner
    padded, packed = (host._update(algorithm, learner, batch) for batch in batches(agent))
    assert_updates_agree(learner, padded, packed)
    theta = zip(jax.tree.leaves(learner.theta), jax.tree.leaves(packed[0].theta), strict=True)
    assert any(not np.array_equal(*pair) for pair in theta)
