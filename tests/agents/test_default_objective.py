"""What MeanGini ascends by default, with gamma below 1: its exact value by enumeration, and what it is not.

By default a step is credited with the rewards of both parts that follow it, discounted from that step on:
sum_k gamma^k r_{t+k} for the mean, and sum_k g^k rho_{t+k} for risk, where g is `risk_gamma` and rho are changes of the
utility of the projected return (docs/equations.md). So an update is, on average, the sum over t of the gradient of

    J_t = E[sum_{k >= t} gamma^(k-t) r_k + lambda g^(k-t) rho_k]

with respect to the policy at step t alone, the other episodes held fixed. Here J_t is computed from all combinations of
the trajectories of a small process.
"""

from functools import cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradient_cases import Case, assert_unbiased, directions
from small_process import PPO_STEP, updates

from steadyrl import MeanGini
from steadyrl.exact.mdp import FiniteMDP

named = pytest.mark.parametrize
GAMMA = 0.5
"""Its powers are multiples of 1 / 16 up to the horizon, so that the critic's 16 stops after the end of an episode are
exact."""
STATES, ACTIONS, OUTCOMES, HORIZON = 3, 2, 2, 4
N, LAMBDA = 3, 2.0
"""Episodes in a batch, the fewest that are allowed: all combinations of them are enumerated."""


@cache
def short_case():
    """In two of the states one outcome of each action ends the episode, so that lengths differ."""
    rng, shape = np.random.default_rng(4), (STATES, ACTIONS, OUTCOMES)
    ends = np.zeros(shape, bool)
    ends[rng.permutation(STATES)[:2], :, 1] = True
    mdp = FiniteMDP(
        next_state=rng.integers(STATES, size=shape),
        reward=rng.normal(0.5, 3, size=shape),
        ends=ends,
        probability=rng.dirichlet(np.full(OUTCOMES, 3.0), size=shape[:2]),
        initial=np.eye(STATES)[0],
        horizon=HORIZON,
    )
    return Case(mdp, GAMMA, rng.normal(size=(STATES, ACTIONS)), episodes=90_000)


@cache
def trajectories():
    """[m, T] states, actions, rewards and mask of every trajectory, and its probability less the policy's, [m]."""
    mdp, found = short_case().mdp, []

    def walk(state, probability, steps):
        for action, k in product(range(ACTIONS), range(OUTCOMES)):
            p = probability * mdp.probability[state, action, k]
            so_far = [*steps, (state, action, mdp.reward[state, action, k], 1)]
            if mdp.ends[state, action, k] or len(so_far) == HORIZON:
                found.append((so_far + [(0, 0, 0, 0)] * (HORIZON - len(so_far)), p))
            else:
                walk(mdp.next_state[state, action, k], p, so_far)

    walk(0, 1.0, [])
    states, actions, rewards, mask = np.moveaxis(np.array([steps for steps, _ in found]), -1, 0)
    return states.astype(int), actions.astype(int), rewards, mask, np.array([p for _, p in found])


def from_each_step(rewards, gamma):
    """[..., T]: sum_{k >= t} gamma^(k-t) reward_k."""
    total, sums = 0, []
    for t in reversed(range(rewards.shape[-1])):
        total = rewards[..., t] + gamma * total
        sums.insert(0, total)
    return np.stack(sums, axis=-1)


@cache
def credit(g):
    """[m, m^(N-1), T]: sum_{k >= t} g^(k-t) rho_k of an episode, for all that the N - 1 others of a batch may be."""
    rewards = trajectories()[2]
    m, others = len(rewards), np.array(list(product(range(len(rewards)), repeat=N - 1)))
    so_far = np.concatenate([np.zeros((m, 1)), rewards.cumsum(axis=1)], axis=1)
    to_come = np.concatenate([from_each_step(rewards, 1.0), np.zeros((m, 1))], axis=1)
    baseline, returns = to_come[others].mean(axis=1), rewards.sum(axis=1)[others]

    def of(i):
        projected = so_far[i] + baseline  # With g = 1 only the last one matters, which is the return.
        utility = -np.abs(projected[..., None] - returns[:, None]).mean(axis=-1)
        return from_each_step(np.diff(utility, axis=-1), g)

    return np.stack([of(i) for i in range(m)])


def likelihoods(policies):
    """[m]: of all trajectories, for policies [T, S, A] of each step."""
    states, actions, _, mask, others = trajectories()
    each = policies[jnp.arange(HORIZON), states, actions]
    return others * jnp.where(mask > 0, each, 1.0).prod(axis=-1)


def objectives(logits, of_others, g, risk_aversion, gamma):
    """[T]: J_t, for logits [T, S, A] of each step and logits [S, A] of the other episodes."""
    alone = likelihoods(jnp.broadcast_to(jax.nn.softmax(of_others), logits.shape))
    together = jnp.ones(1)
    for _ in range(N - 1):
        together = (together[:, None] * alone).ravel()
    risk = jnp.einsum("ikt,k->it", credit(g), together)
    mean = from_each_step(trajectories()[2], gamma)
    return likelihoods(jax.nn.softmax(logits)) @ (mean + risk_aversion * risk)


def ascent(logits, g, risk_aversion, gamma):
    """[S, A]: the sum over t of the gradient of J_t with respect to the policy at step t alone."""
    of_each_step = jnp.broadcast_to(logits, (HORIZON, *logits.shape))
    of_all = jax.jacrev(objectives)(of_each_step, logits, g, risk_aversion, gamma)
    return jnp.einsum("ttsa->sa", of_all)


def exact_ascent(g, risk_aversion=LAMBDA, gamma=GAMMA):
    with jax.enable_x64(True):
        return np.asarray(ascent(jnp.asarray(short_case().logits), g, risk_aversion, gamma))


PARTS = {"vpg": {"mean": "vpg"}, "ppo": PPO_STEP}
STEP = {"credit": "step", "risk_aversion": LAMBDA, "risk_gae_lambda": 1.0, "returns_remembered": 0}
REACH = {"default": ({}, GAMMA), "risk_gamma=1": ({"risk_gamma": 1.0}, 1.0)}
"""Settings -> g."""


@named("mean", PARTS)
@named("reach", REACH)
def test_each_step_is_credited_with_the_discounted_rewards_of_both_parts_that_follow_it(reach, mean):
    settings, g = REACH[reach]
    truth = exact_ascent(g=g)
    on = directions(truth)
    found = updates(MeanGini, GAMMA, of=short_case(), n=N, **PARTS[mean], **STEP, **settings)
    assert_unbiased(found @ on.T, truth, on, precision=0.03)


def risk_part(g):
    return (exact_ascent(g=g) - exact_ascent(g=g, risk_aversion=0.0)) / LAMBDA


def of_undiscounted_returns():
    of = short_case()
    return Case(of.mdp, 1.0, of.logits, of.episodes)


def test_with_risk_gamma_1_the_risk_part_is_minus_the_gradient_of_the_gini_deviation():
    truth = -of_undiscounted_returns().gradient("gini_deviation")
    np.testing.assert_allclose(risk_part(g=1.0), truth, atol=1e-12)


def test_with_the_default_risk_gamma_it_is_not():
    truth = -of_undiscounted_returns().gradient("gini_deviation")
    assert np.linalg.norm(risk_part(g=GAMMA) - truth) > 0.2 * np.linalg.norm(truth)


@named(
    ("gamma", "g", "risk_aversion", "exists"),
    [(1.0, 1.0, LAMBDA, True), (GAMMA, GAMMA, 0.0, False), (1.0, GAMMA, LAMBDA, False), (GAMMA, GAMMA, LAMBDA, False)],
    ids=["undiscounted", "mean", "risk", "default"],
)
def test_discounted_from_each_step_on_neither_part_is_the_gradient_of_a_function(gamma, g, risk_aversion, exists):
    """The derivative of a gradient is symmetric."""
    with jax.enable_x64(True):
        logits = jnp.asarray(short_case().logits)
        slope = jax.jacfwd(lambda logits: ascent(logits, g, risk_aversion, gamma))(logits)
    slope = np.asarray(slope).reshape(logits.size, logits.size)
    asymmetry = np.linalg.norm(slope - slope.T) / np.linalg.norm(slope + slope.T)
    assert asymmetry < 1e-12 if exists else asymmetry > 0.1
