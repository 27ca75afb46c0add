"""Learning-rate schedules: their factors, what they scale, and that runs are resumed exactly under them."""

import math

import jax
import numpy as np
import pytest
from interrupted_runs import CASES, Killed, assert_same_runs, make_job, raising_at

import steadyrl
from steadyrl.runs.job import run_job
from steadyrl.training.engines.engine import as_arrays
from steadyrl.training.run_folder import read_metrics
from steadyrl.training.schedule import FACTOR, Schedule, with_rates

MAZE = "steadyrl/GuardedMaze-v0"


@pytest.mark.parametrize(
    ("kind", "done", "factor"),
    [
        ("linear", 100, 1.0),
        ("linear", 150, 0.75),
        ("linear", 300, 0.0),
        ("linear", 320, 0.0),  # The last round may be longer than the budget.
        ("cosine", 100, 1.0),
        ("cosine", 200, 0.5),
        ("cosine", 150, (1 + math.sqrt(0.5)) / 2),
        ("cosine", 300, 0.0),
    ],
)
def test_factors(kind, done, factor):
    assert Schedule(kind, "episodes", 100, 200).factor_of(done, 7) == pytest.approx(factor, abs=1e-12)
    assert Schedule(kind, "timesteps", 100, 200).factor_of(7, done) == pytest.approx(factor, abs=1e-12)


def test_a_constant_schedule_is_none():
    assert Schedule("constant", "episodes", 0, 10).factor_of(5, 5) is None
    algorithm = steadyrl.PPO("CartPole-v1").algorithm
    assert with_rates(algorithm, None) is algorithm


@pytest.mark.parametrize(
    ("kind", "env", "settings", "scaled"),
    [
        (steadyrl.MeanGini, "CartPole-v1", {"mean": "vpg"}, {"policy_learning_rate", "value_learning_rate"}),
        (steadyrl.PPO, "CartPole-v1", {}, {"policy_learning_rate", "value_learning_rate"}),
        (steadyrl.DQN, "CartPole-v1", {"buffer_size": 10}, {"learning_rate"}),
        (steadyrl.TD3, "Pendulum-v1", {"buffer_size": 10}, {"learning_rate"}),
        (steadyrl.QLearning, MAZE, {}, {"q_learning_rate"}),
        (steadyrl.MVPI, MAZE, {"risk_aversion": 0.1}, {"q_learning_rate"}),
    ],
)
def test_what_is_scaled(kind, env, settings, scaled):
    """Step sizes of what acts and of values, and nothing else; the settings of the agent stay."""
    agent = kind(env, **settings)
    before, after = agent.algorithm.settings, with_rates(agent.algorithm, 0.25).settings
    changed = {name for name, value in vars(before).items() if getattr(after, name) != value}
    assert changed == scaled
    assert all(getattr(after, name) == 0.25 * getattr(before, name) for name in scaled)
    assert jax.tree.structure(as_arrays(agent.algorithm)) == jax.tree.structure(agent.algorithm)


def test_a_schedule_is_the_step_sizes_that_it_says(tmp_path):
    """Two rounds of a linear schedule over two rounds: the second one is made with half of the step size."""
    settings = {"optimiser": "sgd", "episodes_per_update": 10, "inner_updates": 1, "seed": 3, "risk_aversion": 0.0}
    scheduled = steadyrl.MeanGini(MAZE, learning_rate_schedule="linear", **settings)
    by_hand = steadyrl.MeanGini(MAZE, **settings)
    scheduled.learn(total_episodes=20, progress_bar=False)
    by_hand.learn(total_episodes=10, progress_bar=False)
    halved = steadyrl.MeanGini(
        MAZE,
        **settings,
        policy_learning_rate=by_hand.settings.policy_learning_rate / 2,
        value_learning_rate=by_hand.settings.value_learning_rate / 2,
    )
    halved.learner, halved.iterations, halved.episodes = by_hand.learner, 1, 10
    halved.learn(total_episodes=10, progress_bar=False)
    # Two programs: their rounding differs.
    assert np.allclose(scheduled.learner.theta, halved.learner.theta, rtol=1e-5, atol=1e-8)
    assert not np.allclose(scheduled.learner.theta, by_hand.learner.theta, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param("compiled", "cosine", marks=pytest.mark.optimized),
        ("dqn", "cosine"),
        pytest.param("gymnasium", "linear", marks=pytest.mark.slow),
    ],
)
def test_a_run_with_a_schedule_is_resumed_exactly(case, kind, tmp_path, monkeypatch):
    env, agent, settings, engine = CASES[case]
    monkeypatch.setitem(CASES, case, (env, agent, {**settings, "learning_rate_schedule": kind}, engine))
    whole, interrupted = make_job(case, tmp_path / "whole"), make_job(case, tmp_path / "interrupted")
    run_job(whole)
    with pytest.raises(Killed):
        run_job(interrupted, raising_at(3, Killed))
    run_job(interrupted)
    assert_same_runs(interrupted, whole)
    factors = [record[FACTOR] for record in read_metrics(whole.folders[0]) if FACTOR in record]
    assert len(factors) > 2
    assert factors == sorted(factors, reverse=True)
    assert 0 < factors[-1] < 0.5 < factors[0] <= 1


@pytest.mark.parametrize("kind", [pytest.param("constant", marks=pytest.mark.slow), "linear"])
def test_a_budget_of_timesteps_in_a_program_is_resumed_exactly(kind, tmp_path, monkeypatch):
    env, agent, settings, engine = CASES["compiled"]
    monkeypatch.setitem(CASES, "compiled", (env, agent, {**settings, "learning_rate_schedule": kind}, engine))
    whole, interrupted = (
        make_job("compiled", tmp_path / name, seeds=(5,), budget={"timesteps": 60_000}, evaluations=None)
        for name in ("whole", "interrupted")
    )
    run_job(whole)
    with pytest.raises(Killed):
        run_job(interrupted, raising_at(1, Killed))
    run_job(interrupted)
    a, b = whole.folders[0] / "checkpoint.steady", interrupted.folders[0] / "checkpoint.steady"
    assert a.read_bytes() == b.read_bytes()


def test_online_q_learning_takes_smaller_steps():
    settings = {"q_learning_rate": 0.5, "seed": 1, "update_after": "step", "exploration": 1.0, "final_exploration": 1.0}
    constant = steadyrl.QLearning("FrozenLake-v1", **settings).learn(total_episodes=200, progress_bar=False)
    falling = steadyrl.QLearning("FrozenLake-v1", learning_rate_schedule="linear", **settings)
    falling.learn(total_episodes=200, progress_bar=False)
    assert falling.timesteps == constant.timesteps  # The same episodes: all actions are random.
    assert not np.array_equal(falling.learner.theta, constant.learner.theta)
    # The last record covers episodes 150 to 199.
    assert falling.history[-1][FACTOR] == pytest.approx(1 - 174.5 / 200)


@pytest.mark.parametrize(
    ("kind", "env", "settings", "schedule"),
    [
        (steadyrl.PPO, "CartPole-v1", {}, "linear"),
        (steadyrl.MeanGini, "CartPole-v1", {}, "linear"),
        (steadyrl.CVaR, "CartPole-v1", {}, "linear"),
        (steadyrl.MeanGini, "CartPole-v1", {"mean": "vpg"}, "constant"),
        (steadyrl.MeanGini, "CartPole-v1", {"annealing_episodes": 100}, "constant"),
        (steadyrl.PPO, "CartPole-v1", {"learning_rate_schedule": "constant"}, "constant"),
        (steadyrl.MeanGini, MAZE, {"mean": "ppo"}, "constant"),
        (steadyrl.DQN, "CartPole-v1", {"buffer_size": 10}, "constant"),
    ],
)
def test_steps_of_ppo_with_a_network_fall_by_default(kind, env, settings, schedule):
    assert kind(env, **settings).settings.learning_rate_schedule == schedule


@pytest.mark.parametrize("episodes", [0, 10_000])
def test_the_schedule_of_an_agent_that_came_from_elsewhere_begins_at_1(episodes):
    """Like those of from_sb3, which were trained for episodes that no round of ours has played."""
    agent = steadyrl.PPO("CartPole-v1", hidden=(4,), episodes_per_update=2)
    agent.iterations, agent.episodes = 1, episodes
    agent.learn(total_episodes=4, progress_bar=False)
    assert agent.history[-1][FACTOR] == pytest.approx((1 + 1 / 2) / 2)  # Of two rounds in one record.


def test_two_ways_to_shrink_steps_are_refused():
    with pytest.raises(ValueError, match=r"annealing_episodes=100 already\. Leave out one of the two"):
        steadyrl.PPO("CartPole-v1", learning_rate_schedule="linear", annealing_episodes=100)


def test_an_unknown_schedule_is_refused():
    with pytest.raises(ValueError, match=r"learning_rate_schedule=exponential: it is one of constant, linear, cosine"):
        steadyrl.DQN("CartPole-v1", lr_schedule="exponential")
