"""Small processes with random rewards, whose returns are known exactly at any discount, and updates of agents there."""

import dataclasses
from functools import cache
from typing import NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gradient_cases import Case, rows
from gymnasium.spaces import Discrete

from steadyrl.agents.risk_critic import RiskCritic
from steadyrl.exact.mdp import FiniteMDP
from steadyrl.training.batch import EpisodeBatch

STATES, ACTIONS, HORIZON = 5, 3, 8
REWARDS = (-1.0, 0.0, 3.0)
"""Three, so that there are at most 3^8 discounted returns: fewer than make the exact distribution round."""


class Model(NamedTuple):
    """A `FiniteModel` without metrics."""

    mdp: FiniteMDP

    def metrics(self, visits, ended):
        return {}


@cache
def small_mdp():
    """Each reward with either of two next states; two thirds of the episodes end before the horizon."""
    rng, shape = np.random.default_rng(0), (STATES, ACTIONS, 2 * len(REWARDS))
    return FiniteMDP(
        next_state=rng.integers(STATES, size=shape),
        reward=np.broadcast_to(REWARDS * 2, shape),
        ends=rng.random(shape) < 0.05,
        probability=rng.dirichlet(np.ones(shape[-1]) / 3, size=shape[:2]),
        initial=rng.dirichlet(np.ones(STATES)),
        horizon=HORIZON,
    )


@cache
def small_case(gamma, episodes=36_000):
    """At a policy that is not uniform."""
    return Case(small_mdp(), gamma, np.random.default_rng(9).normal(size=(STATES, ACTIONS)) / 2, episodes)


@cache
def line_case():
    """Ten states in a row; in each a sure reward of 1, or one of -1, 1 and 3 by lot, whose mean is the same."""
    S, shape = 10, (10, 2, 3)
    mdp = FiniteMDP(
        next_state=np.broadcast_to(np.minimum(np.arange(S) + 1, S - 1)[:, None, None], shape),
        reward=np.broadcast_to(np.array([[1, 1, 1], [-1, 1, 3]]), shape),
        ends=np.broadcast_to((np.arange(S) == S - 1)[:, None, None], shape),
        probability=np.full(shape, 1 / 3),
        initial=np.eye(S)[0],
        horizon=S,
    )
    return Case(mdp, 1.0, np.random.default_rng(1).normal(size=(S, 2)), episodes=20_000)


class SmallProcess(gym.Env):
    """Something to make agents for: its episodes are played by a `Case`."""

    def __init__(self, mdp):
        self.mdp = mdp
        self.observation_space, self.action_space = Discrete(mdp.n_states), Discrete(mdp.n_actions)

    @property
    def finite_model(self):
        return Model(self.mdp)


# Whole updates of agents, for any batch of episodes that a `Case` has played, `small_case` if none is given.

N = 5
"""Episodes in a batch."""
ONE_STEP = {"optimiser": "sgd", "policy_learning_rate": 1.0, "value_learning_rate": 1e-30, "inner_updates": 1}
PPO_STEP = {"mean": "ppo", "gae_lambda": 1.0, "normalise_advantages": False, "minibatch_size": 0}
PPO_STEP |= {"entropy_coefficient": 0.0, "max_gradient_norm": 1e9}


def arbitrary_state(critic, **known):
    """Of a `RiskCritic` with a table that has learned something wrong."""
    state = critic.init(jax.random.key(0))
    quantiles = np.random.default_rng(6).normal(size=np.shape(state.parameters))
    scale = state.scale._replace(mean=jnp.float32(2), mean_square=jnp.float32(9))
    return state._replace(parameters=jnp.asarray(quantiles, jnp.float32), scale=scale, **known)


def small_agent(kind, of, n, **settings):
    """The algorithm of an agent, and a learner at the policy of a `Case`, with arbitrary values and quantiles."""
    known = {field.name for field in dataclasses.fields(kind.settings_class(settings))}
    one_step = {name: value for name, value in ONE_STEP.items() if name in known}
    agent = kind(lambda: SmallProcess(of.mdp), gamma=of.gamma, episodes_per_update=n, **one_step, **settings)
    theta = jnp.asarray(of.logits, jnp.float32)
    phi = jnp.linspace(-1, 2, of.mdp.n_states) if isinstance(agent.learner.phi, jax.Array) else agent.learner.phi
    learner, critic = agent.learner._replace(theta=theta, phi=phi), agent.algorithm.critic
    if isinstance(critic, RiskCritic):
        learner = learner._replace(risk=arbitrary_state(critic))
    return agent.algorithm, learner


@jax.jit
def _moves(algorithm, learner, batches):
    return jax.vmap(lambda batch: algorithm.update(learner, batch)[0].theta - learner.theta)(batches)


def updates(kind, gamma, remembered=None, of=None, n=N, **settings):
    """[batches, S * A]: sum_it weight_it score_it / n, as an agent's update sums it.

    `remembered` is what its critic knows of earlier returns.
    """
    of = small_case(gamma) if of is None else of
    algorithm, learner = small_agent(kind, of, n, **settings)
    if remembered is not None:
        learner = learner._replace(risk=learner.risk._replace(**remembered))
    batches = jax.tree.map(lambda x: x.reshape(-1, n, *x.shape[1:]), of.batch)
    if algorithm.batch_kind == "batch":
        return rows(_moves(algorithm, learner, batches))
    steps, (count, horizon) = batches.steps, (len(batches.returns), of.mdp.horizon)
    episodes = EpisodeBatch(
        observations=steps.observations,
        actions=steps.pairs % of.mdp.n_actions,
        rewards=steps.rewards,
        mask=steps.mask,
        last_observations=jnp.zeros((count, n), int),
        terminated=jnp.ones((count, n), bool),
        discounts=jnp.broadcast_to(gamma ** jnp.arange(horizon), (count, horizon)),
    )
    # PPO's objective is a mean over steps.
    return rows(_moves(algorithm, learner, episodes)) * rows(batches.lengths.mean(axis=-1))
