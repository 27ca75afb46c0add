"""Agents in the Guarded Maze in the midst of training, and batches of their episodes, to update by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from paper_settings import PPO, TABLE

from steadyrl.agents.vpg import VPGSettings
from steadyrl.envs.guarded_maze import Maze
from steadyrl.rollouts.compiled import sample_episodes
from steadyrl.training.batch import Batch, EpisodeBatch, batch_from_episodes

MAZE = "steadyrl/GuardedMaze-v0"


def trained_agent(kind, seed=0, **settings):
    """An agent with a table, and a learner whose policy and values are not those it started with.

    Settings are the paper's: steps of SGD, which are proportional to the gradient.
    """
    paper = {"gamma": TABLE["gamma"], "optimiser": TABLE["optimiser"]}
    of_some = {name: {**TABLE, **PPO}[name] for name in ("credit", "value_targets", "normalise_values", "target_kl")}
    known = {field.name for field in dataclasses.fields(kind.settings_class(settings))}
    paper |= {name: value for name, value in of_some.items() if name in known}
    if issubclass(kind.Settings, VPGSettings):
        rate = settings.get("policy_learning_rate", TABLE["policy_learning_rate"])
        paper |= {"policy_learning_rate": rate, "value_learning_rate": 100 * rate}
    agent = kind(MAZE, **{**paper, **settings})
    rng = np.random.default_rng(seed)
    theta, phi = jnp.asarray(rng.normal(size=(36, 4)), jnp.float32), jnp.asarray(rng.normal(size=36) * 10, jnp.float32)
    has_values = isinstance(agent.learner.phi, jax.Array)
    return agent, agent.learner._replace(theta=theta, **({"phi": phi} if has_values else {}))


def sampled_episodes(theta, n, seed):
    """Episodes of the policy `theta`."""
    return sample_episodes(Maze(), jax.nn.softmax(theta), n, jax.random.key(seed))


def episode_batch(episodes, gamma):
    """Padded as the host engine pads them."""
    return EpisodeBatch.of(episodes, gamma, lambda x: x)


def by_steps(episodes, gamma):
    """The batch step by step, as the host engine makes it."""
    return jax.jit(batch_from_episodes)(episode_batch(episodes, gamma), gamma)


def by_pairs(episodes, gamma):
    """The same batch pair by pair, as the compiled engine makes it."""
    steps = jax.tree.map(np.asarray, by_steps(episodes, gamma))
    n, states, actions = len(steps.returns), steps.observations, steps.actions[..., 0]
    where = (np.arange(n)[:, None], states, actions)
    visits, g = np.zeros((2, n, 36, 4), np.float32)
    np.add.at(visits, where, steps.visits[..., 0])
    np.add.at(g, where, steps.rewards_to_go[..., 0])
    sums = visits.sum(axis=-1), g.sum(axis=-1)
    in_order = steps.steps._replace(pairs=4 * states + actions)
    return Batch(None, None, visits, g, steps.returns, steps.lengths, steps.squared_rewards_to_go, *sums, in_order)


@jax.jit
def update(algorithm, learner, batch):
    """One update; agents that differ in numbers alone share its compiled program."""
    return algorithm.update(learner, batch)
