"""Updates of recurrent policies from whole episodes: padding does not matter, and values know the past at the end."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from made_batches import Spaces, assert_updates_agree, padded_batch
from memory_envs import Noisy

import steadyrl
from steadyrl.agents.ppo_passes import PPOSteps
from steadyrl.training.batch import EpisodeBatch, batch_from_episodes
from steadyrl.training.engines import host

LENGTHS = np.array([14, 3, 9, 1, 5, 12, 7, 2, *range(3, 15), 4, 6, 8, 10])
SMALL = {"network": "gru", "hidden": (5, 4), "episodes_per_update": len(LENGTHS), "seed": 2}
VPG = {**SMALL, "inner_updates": 3, "policy_learning_rate": 1e-3, "normalise_observations": False}
PPO = {**SMALL, "inner_updates": 2, "minibatch_size": 7, "normalise_observations": False}
RISK = {"risk_aversion": 0.5}
TRAJECTORY = {**RISK, "credit": "trajectory"}
CASES = {
    "reinforce": (steadyrl.Reinforce, VPG),
    "mg": (steadyrl.MeanGini, {**VPG, **RISK, "mean": "vpg"}),
    "mvo": (steadyrl.MVO, {**VPG, **RISK, "mean": "vpg"}),
    "tamar": (steadyrl.Tamar, {**SMALL, **RISK}),
    "mvp": (steadyrl.MVP, {**SMALL, **RISK}),
    "mean risk": (steadyrl.MeanRisk, {**VPG, **TRAJECTORY, "mean": "vpg", "measure": "semideviation"}),
    "cvar": (steadyrl.CVaR, {**PPO, "alpha": 0.3}),
    "ppo": (steadyrl.PPO, PPO),
    "ppo, whole batch": (steadyrl.PPO, {**PPO, "minibatch_size": 0}),
    "ppo, shared trunk": (steadyrl.PPO, {**PPO, "shared_trunk": True}),
    "mg-ppo": (steadyrl.MeanGini, {**PPO, **RISK, "mean": "ppo"}),
    "mg-ppo by trajectory": (
        steadyrl.MeanGini,
        {**PPO, **TRAJECTORY, "mean": "ppo", "risk_ratios": "trajectory"},
    ),
    "mg-ppo with a dial": (
        steadyrl.MeanGini,
        {**PPO, "mean": "ppo", "risk_aversion": (0.0, 2.0), "lambdas_per_update": 3},
    ),
}
QUICK = {"reinforce", "ppo"}


def padded(batch, steps, fill):
    """With so many more steps of padding, and `fill` as what is observed and done in all of it."""

    def longer(x, value=0.0):
        x = np.concatenate([x, np.zeros((len(x), steps, *x.shape[2:]), x.dtype)], axis=1)
        mask = np.pad(batch.mask, ((0, 0), (0, steps))) > 0
        return np.where(mask.reshape(*mask.shape, *[1] * (x.ndim - 2)), x, np.asarray(value, x.dtype))

    discounts = batch.discounts[-1] * (batch.discounts[1] ** np.arange(1, steps + 1))
    return batch._replace(
        observations=longer(batch.observations, fill),
        actions=longer(batch.actions, fill),
        rewards=longer(batch.rewards),
        mask=longer(batch.mask),
        discounts=np.concatenate([batch.discounts, discounts]).astype(np.float32),
    )


@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in CASES]
)
def test_padding_does_not_matter(case):
    kind, settings = CASES[case]
    agent = kind(Spaces(), **settings)
    learner, given = agent.learner, padded_batch(agent, LENGTHS)
    short, long = (host._update(agent.algorithm, learner, one) for one in (given, padded(given, 20, 3.0)))
    assert_updates_agree(learner, short, long)
    for start, moved in zip(jax.tree.leaves(learner.theta), jax.tree.leaves(short[0].theta), strict=True):
        assert not np.array_equal(start, moved), "all layers learn"


def ppo_steps(agent, given):
    of_batch, rng = batch_from_episodes(given, agent.gamma), np.random.default_rng(4)
    old = agent.algorithm.log_prob(agent.learner.theta, of_batch)[..., 0]
    numbers = (jnp.asarray(rng.normal(size=given.mask.shape), jnp.float32) for _ in range(2))
    return PPOSteps(of_batch.observations, of_batch.actions, old, *numbers, of_batch.state_visits)


def test_padding_has_no_gradient():
    agent = steadyrl.PPO(Spaces(), **PPO)
    given, learner = padded_batch(agent, LENGTHS), agent.learner
    steps = ppo_steps(agent, given)
    nothing = lambda _: (jnp.zeros_like(steps.mask), ())  # noqa: E731

    def policy_loss(observations):
        return agent.algorithm.policy_loss(learner.theta, steps._replace(observations=observations), nothing)[0]

    def value_loss(observations):
        return agent.algorithm.value_loss(learner.phi, steps._replace(observations=observations), learner.theta)

    for loss in (policy_loss, value_loss):
        gradient = np.abs(jax.jit(jax.grad(loss))(steps.observations)).sum(axis=-1)
        np.testing.assert_array_equal(gradient[given.mask == 0], 0)
        assert np.all(gradient[given.mask > 0] > 0)


@pytest.mark.parametrize("shared_trunk", [False, True])
def test_values_at_the_end_know_the_whole_episode(shared_trunk):
    agent = steadyrl.PPO(Spaces(), **PPO, shared_trunk=shared_trunk)
    given, algorithm, learner = padded_batch(agent, LENGTHS), agent.algorithm, agent.learner
    V, last = jax.jit(algorithm.values_of_episodes)(learner, given)
    values = jax.jit(algorithm.values)
    assert V.shape == given.mask.shape
    for i, length in enumerate(LENGTHS):
        whole = np.concatenate([given.observations[i, :length], given.last_observations[i][None]])
        alone = values(learner.theta, learner.phi, jnp.asarray(whole))
        np.testing.assert_allclose([*V[i, :length], last[i]], alone, rtol=1e-4, atol=1e-6)


def test_minibatches_are_of_whole_episodes(monkeypatch):
    """Each pass takes each episode once, with all of its steps, which count alike in long and short minibatches."""
    agent, seen = steadyrl.PPO(Spaces(), **{**PPO, "inner_updates": 1, "target_kl": 0.0}), []
    policy_loss = type(agent.algorithm).policy_loss

    def recorded(self, theta, steps, risk_weights):
        jax.debug.callback(lambda x, mask: seen.extend(x[mask.sum(axis=1) > 0, 0, 0]), steps.observations, steps.mask)
        jax.debug.callback(lambda mask: seen_lengths.extend(mask.sum(axis=1)[mask.sum(axis=1) > 0]), steps.mask)
        jax.debug.callback(lambda shares: seen_shares.extend(shares[shares > 0]), steps.shares)
        return policy_loss(self, theta, steps, risk_weights)

    seen_lengths, seen_shares = [], []
    monkeypatch.setattr(type(agent.algorithm), "policy_loss", recorded)
    given = padded_batch(agent, LENGTHS)
    jax.block_until_ready(agent.algorithm.update(agent.learner, given))
    np.testing.assert_array_equal(np.sort(seen), np.sort(given.observations[:, 0, 0]))
    np.testing.assert_array_equal(np.sort(seen_lengths), np.sort(LENGTHS))
    parts = -(-len(LENGTHS) // PPO["minibatch_size"])
    np.testing.assert_allclose(seen_shares, np.full(LENGTHS.sum(), parts / LENGTHS.sum()), rtol=1e-6)


def test_engines_give_each_episode_one_row(monkeypatch):
    """Batches of recurrent policies are not packed; those of others are, which the second half shows."""
    monkeypatch.setattr(EpisodeBatch, "packed", None)
    make = partial(steadyrl.Reinforce, partial(Noisy, "choice"), hidden=(4,), episodes_per_update=3)
    assert make(network="gru").learn(total_episodes=3, progress_bar=False).episodes == 3
    with pytest.raises(TypeError):
        make().learn(total_episodes=3, progress_bar=False)
