"""Agents with credit by step: saved and loaded, without aversion, and while aversion rises."""

import jax
import numpy as np
import pytest

import steadyrl
from steadyrl import PPO, MeanGini

named = pytest.mark.parametrize
TWO_SIDES = {"env": "steadyrl/TwoSides-v0", "hidden": (4,), "episodes_per_update": 3, "inner_updates": 2, "seed": 3}


def same(one, other):
    """Whether all numbers of two learners are, or of parts of them."""
    return all(np.array_equal(x, y) for x, y in zip(*map(jax.tree.leaves, (one, other)), strict=True))


def close(one, other):
    """Whether they are but for the rounding of two different programs."""
    pairs = zip(*map(jax.tree.leaves, (one, other)), strict=True)
    return all(np.allclose(x, y, rtol=1e-5, atol=1e-7) for x, y in pairs)


@named(
    ("settings", "episodes"),
    [
        ({"env": "steadyrl/GuardedMaze-v0", "episodes_per_update": 10, "seed": 1}, 20),
        ({**TWO_SIDES, "learning_rate_schedule": "constant"}, 6),
    ],
    ids=["table, compiled", "network"],
)
def test_training_continues_after_loading_bit_for_bit(settings, episodes, tmp_path):
    agent, whole = MeanGini(**settings), MeanGini(**settings)
    table = agent.settings.network == "table"
    assert agent.settings.credit == "step"
    assert agent.engine == ("compiled" if table else "gymnasium")
    agent.learn(total_episodes=episodes, progress_bar=False)
    agent.save(tmp_path / "agent.steady")
    loaded = steadyrl.load(tmp_path / "agent.steady")
    assert same(agent.learner, loaded.learner)
    for each in (agent, loaded):
        each.learn(total_episodes=episodes, progress_bar=False)
    whole.learn(total_episodes=2 * episodes, progress_bar=False)
    assert same(agent.learner, loaded.learner)
    assert same(agent.learner, whole.learner)
    state = agent.learner.risk
    assert state.episodes == 2 * episodes
    assert state.known.sum() == agent.settings.returns_remembered == settings["episodes_per_update"]
    assert np.all(np.isfinite(state.returns))
    assert not same(state.parameters, MeanGini(**settings).learner.risk.parameters)
    assert {"risk_credit_std", "risk_critic_loss"} <= agent.history[-1].keys()


def test_without_risk_aversion_it_is_ppo_bit_for_bit():
    neutral, unaverse, averse = PPO(**TWO_SIDES), MeanGini(risk_aversion=0, **TWO_SIDES), MeanGini(**TWO_SIDES)
    for agent in (neutral, unaverse, averse):
        agent.learn(total_episodes=6, progress_bar=False)
    assert same(neutral.learner, unaverse.learner)
    assert neutral.history[-1].keys() == unaverse.history[-1].keys()
    assert not same(neutral.learner.theta, averse.learner.theta)


def test_aversion_rises_over_the_warmup():
    neutral, warming = PPO(**TWO_SIDES), MeanGini(risk_aversion=1, risk_warmup=6, **TWO_SIDES)
    critic, shares = warming.algorithm.critic, []
    for _ in range(3):
        shares.append(float(critic.readiness(warming.learner.risk)))
        warming.learn(total_episodes=3, progress_bar=False)
        neutral.learn(total_episodes=3, progress_bar=False)
        if len(shares) == 1:
            assert close(neutral.learner.theta, warming.learner.theta)
    assert shares == [0, 0.5, 1]
    assert not close(neutral.learner.theta, warming.learner.theta)
    at_once = MeanGini(risk_aversion=1, **TWO_SIDES)
    assert at_once.algorithm.critic.readiness(at_once.learner.risk) == 1
