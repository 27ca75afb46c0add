"""Updates from packed batches are updates from padded ones, up to rounding."""

import gymnasium as gym
import jax
import numpy as np
import pytest

import steadyrl
from steadyrl.rollouts.episodes import Episodes
from steadyrl.training.batch import EpisodeBatch
from steadyrl.training.dial import round_levels
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


class Spaces(gym.Env):
    observation_space, action_space = gym.spaces.Box(-1, 1, (3,)), gym.spaces.Box(-1, 1, (2,))


def batches(agent):
    """A batch of episodes, padded and packed."""
    n, T = len(LENGTHS), LENGTHS.max()
    mask, rng = (np.arange(T) < LENGTHS[:, None]).astype(float), np.random.default_rng(1)
    observations, actions = (rng.normal(size=(n, T, d)).astype(np.float32) for d in (3, 2))
    rewards = (rng.normal(size=(n, T)) + observations[..., 0] + rng.normal(size=(n, 1))) * mask
    last, terminated = rng.normal(size=(n, 3)).astype(np.float32), np.arange(n) % 3 > 0
    levels = round_levels(agent.algorithm, 5, n)
    if levels is not None:
        column = np.broadcast_to(levels[:, None, None], (n, T, 1))
        observations = np.concatenate([observations, column], axis=-1)
        last = np.concatenate([last, levels[:, None]], axis=-1)
    episodes = Episodes(observations, actions, rewards, mask, last, terminated, {})
    padded = EpisodeBatch.of(episodes, agent.gamma, lambda x: x, levels)
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
    assert padded[1].keys() == packed[1].keys()
    for name, value in padded[1].items():
        np.testing.assert_allclose(packed[1][name], value, rtol=2e-3, atol=2e-5, err_msg=name)
    assert int(padded[1]["updates"]) > 0
    for (path, start), expected, found in zip(
        jax.tree.leaves_with_path(learner), jax.tree.leaves(padded[0]), jax.tree.leaves(packed[0]), strict=True
    ):
        moved = np.abs(np.asarray(expected, float) - np.asarray(start, float)).max(initial=0)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=5e-3 * moved + 1e-7, err_msg=str(path))
    theta = zip(jax.tree.leaves(learner.theta), jax.tree.leaves(packed[0].theta), strict=True)
    assert any(not np.array_equal(*pair) for pair in theta)
