"""Agents that learn for a range of lambdas, and the agents for one lambda that come out of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steadyrl
from steadyrl import MeanGini, MeanRisk
from steadyrl.rollouts.acting import Actor, with_levels
from steadyrl.rollouts.collector import Limits, collect
from steadyrl.rollouts.simulators.choose import simulator_for
from steadyrl.training.acting import make_actor
from steadyrl.training.dial import level_of

named = pytest.mark.parametrize
MAZE, TWO_SIDES, CARTPOLE = "steadyrl/GuardedMaze-v0", "steadyrl/TwoSides-v0", "CartPole-v1"
RANGE = {"risk_aversion": (0, 3), "seed": 3}
SMALL = {"hidden": (4,), "episodes_per_update": 24, "lambdas_per_update": 3, "inner_updates": 2}
CASES = {
    "table, compiled": (MeanGini, {"env": MAZE}, 200),
    "table": (MeanGini, {"env": MAZE, "engine": "gymnasium", "mean": "ppo", "inner_updates": 1}, 64),
    "real actions": (MeanGini, {"env": TWO_SIDES, "learning_rate_schedule": "constant", **SMALL}, 48),
    "choices, another measure": (MeanRisk, {"env": CARTPOLE, "mean": "vpg", "measure": "cvar", **SMALL}, 48),
}


SLOW = ("table", "choices, another measure")
"""Other combinations of the same parts: their programs are compiled in the long tests alone."""


def made(case):
    kind, settings, _ = CASES[case]
    return kind(**settings, **RANGE)


@pytest.fixture(scope="module")
def agents():
    """Every case, trained once."""
    trained = {}

    def get(case):
        if case not in trained:
            trained[case] = made(case).learn(total_episodes=CASES[case][2], progress_bar=False)
        return trained[case]

    return get


def shaken(agent):
    """The agent with other parameters, as if it was trained."""
    rng = np.random.default_rng(2)

    def moved(tree):
        return jax.tree.map(lambda x: x + jnp.asarray(rng.normal(size=x.shape) / 3, x.dtype), tree)

    learner, risk = agent.learner, agent.learner.risk
    risk = risk._replace(parameters=moved(risk.parameters))
    phi = (
        learner.phi._replace(layers=moved(learner.phi.layers)) if hasattr(learner.phi, "layers") else moved(learner.phi)
    )
    agent.learner = learner._replace(theta=moved(learner.theta), phi=phi, risk=risk)
    return agent


def same(one, other):
    return all(np.array_equal(x, y) for x, y in zip(*map(jax.tree.leaves, (one, other)), strict=True))


@named("case", [pytest.param(case, marks=[pytest.mark.slow] if case in SLOW else []) for case in CASES])
def test_the_same_seed_gives_the_same_bits_also_after_loading(case, agents, tmp_path):
    """One agent learns at once, the other is saved and loaded halfway."""
    kind, settings, episodes = CASES[case]
    other = kind(**settings, **RANGE)
    other.learn(total_episodes=episodes // 2, progress_bar=False).save(tmp_path / "half.steady")
    loaded = kind.load(tmp_path / "half.steady")
    assert loaded.settings == other.settings
    assert loaded.risk_aversion_range == (0.0, 3.0)
    loaded.learn(total_episodes=episodes // 2, progress_bar=False)
    assert loaded.episodes == agents(case).episodes
    assert same(loaded.learner, agents(case).learner)
    assert not same(loaded.learner.theta, kind(**settings, **RANGE).learner.theta)


@named("case", CASES)
@named("risk_aversion", [0, 1.2, 3.0])
def test_policy_and_critics_at_a_lambda_are_those_of_the_dialled_agent(case, risk_aversion):
    agent = shaken(made(case))
    one, rng = agent.at(risk_aversion), np.random.default_rng(0)
    old, new, level = agent.algorithm, one.algorithm, np.full(50, level_of(risk_aversion), np.float32)
    table = agent.settings.network == "table"
    seen = rng.integers(36, size=50) if table else rng.normal(size=(50, old.policy.mlp.sizes[0] - 1)).astype(np.float32)
    actions = rng.normal(size=(50, 1, 1)) if hasattr(old.policy, "range") else rng.integers(2, size=(50, 1))
    given, times = jnp.asarray(with_levels(seen, level, table)), jnp.asarray(rng.random(50), jnp.float32)
    pairs = [
        (p.log_prob(learner.theta, jnp.asarray(x), jnp.asarray(actions)), v(learner.phi, jnp.asarray(x)))
        for p, v, learner, x in (
            (old.policy, old.value, agent.learner, given),
            (new.policy, new.value, one.learner, seen),
        )
    ]
    for own, its in zip(*pairs, strict=True):
        np.testing.assert_allclose(own, its, rtol=2e-4, atol=2e-4)
    if risk_aversion:
        before = old.critic.network(agent.learner.risk.parameters, given, times)
        after = new.critic.network(one.learner.risk.parameters, jnp.asarray(seen), times)
        np.testing.assert_allclose(before, after, rtol=2e-4, atol=2e-4)
        assert one.learner.risk.known.size == one.settings.returns_remembered == agent.settings.n


def test_actions_are_those_that_are_taken_in_training():
    agent = shaken(made("choices, another measure"))
    observations = np.random.default_rng(1).normal(size=(200, 4)).astype(np.float32)
    for risk_aversion in (0.0, 0.5, 3.0):
        levels = np.full(200, level_of(risk_aversion), np.float32)
        actor = make_actor(agent.algorithm, agent.learner, agent.observation_space, levels=levels)
        expected = actor.to_space(actor.act(actor.features(observations), None))
        assert np.mean(agent.at(risk_aversion).predict(observations, deterministic=True)[0] == expected) > 0.98


@named("case", ["table, compiled", "real actions"])
def test_an_agent_at_a_lambda_is_an_ordinary_agent(case, agents, tmp_path):
    one = agents(case).at(1.2)
    assert one.settings.risk_aversion == 1.2
    assert one.risk_aversion_range is None
    assert one.episodes == agents(case).episodes
    assert one.env_kind == agents(case).env_kind
    report = steadyrl.evaluate(one, one.env, episodes=10)
    one.save(tmp_path / "one.steady")
    loaded = steadyrl.load(tmp_path / "one.steady")
    assert np.array_equal(steadyrl.evaluate(loaded, one.env, episodes=10).returns, report.returns)
    assert np.array_equal(loaded.play(5, seed=1).rewards, one.play(5, seed=1).rewards)
    if case == "table, compiled":  # The other one takes long to compile.
        before = jax.tree.map(np.array, agents(case).learner.theta)
        loaded.learn(total_episodes=1, progress_bar=False)
        assert loaded.episodes == one.episodes + one.settings.n
        assert same(agents(case).learner.theta, before), "the agent that it comes from stays as it was"


def test_before_a_lambda_is_chosen_there_is_no_policy(agents):
    agent = agents("table, compiled")
    for use in (
        lambda: agent.predict(0),
        lambda: agent.play(2, seed=0),
        lambda: agent.probabilities(),
        lambda: steadyrl.evaluate(agent, MAZE, episodes=2),
    ):
        with pytest.raises(ValueError, match=r"all risk_aversion from 0 to 3.* use agent.at\(1.5\)"):
            use()


@named("given", [-0.1, 3.01, float("nan"), "1", None, True])
def test_lambdas_outside_of_the_range(given, agents):
    with pytest.raises(ValueError, match="risk_aversion was from 0 to 3 in training"):
        agents("table, compiled").at(given)


def test_agents_without_a_dial_have_no_other_lambda():
    for agent in (MeanGini(MAZE, risk_aversion=1.0), steadyrl.Reinforce(MAZE)):
        assert agent.risk_aversion_range is None
        with pytest.raises(ValueError, match=rf"at\(1\): {agent.name} was not trained for a range of lambdas"):
            agent.at(1)


def test_evaluations_during_training_are_at_a_lambda():
    every = steadyrl.callbacks.EvaluateEvery(100, episodes=2, criterion="mean_gini", risk_aversion=1.2, verbose=False)
    MeanGini(MAZE, **RANGE).learn(total_episodes=200, callback=every, progress_bar=False)
    assert len(every.reports) == 2
    with pytest.raises(ValueError, match=r"pass EvaluateEvery"):
        MeanGini(MAZE, **RANGE).learn(
            total_episodes=200, callback=steadyrl.callbacks.EvaluateEvery(100), progress_bar=False
        )


def test_episodes_that_end_early_keep_their_levels():
    """The rows of a batch thin out while it is played: those that remain must keep their own lambda."""
    agent = MeanGini(CARTPOLE, mean="vpg", **SMALL, **RANGE)
    seen = []
    policy = agent.algorithm.policy
    actor = make_actor(agent.algorithm, agent.learner, agent.observation_space)

    class Watching:
        def noise(self, generator, steps):
            return policy.noise(generator, steps)

        def act(self, parameters, observations, noise):
            seen.append(observations[:, -1].copy())
            return policy.act(parameters, observations, noise)

        def to_space(self, actions):
            return policy.to_space(actions)

    levels = np.linspace(0, 1, 6, dtype=np.float32)
    simulator = simulator_for("gymnasium", agent.source, 4)
    watched = Actor(Watching(), actor.parameters, agent.observation_space, None, levels)
    episodes = collect(simulator, watched, [11, 12, 13, 14, 15, 16], Limits("CartPole", 1000))
    simulator.close()
    lengths = episodes.mask.sum(axis=1).astype(int)
    assert len(set(lengths)) > 2
    expected = [
        levels[first : first + 4][lengths[first : first + 4] > t]
        for first in (0, 4)
        for t in range(lengths[first : first + 4].max())
    ]
    assert len(seen) == len(expected)
    assert all(np.array_equal(one, other) for one, other in zip(seen, expected, strict=True))
