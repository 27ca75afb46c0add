"""Algorithm 2 against the plain NumPy reference, its risk part against the measures', and PPO as users have it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from maze_batches import MAZE, episode_batch, sampled_episodes, trained_agent, update
from reference import algorithm_2
from reference.algorithm_1 import gini_eta, leave_one_out
from wager import Wager

import steadyrl
from steadyrl.agents import MVO, MVP, PPO, MeanGini, Tamar
from steadyrl.agents.settings import EnvKind
from steadyrl.risk import Order, Sample
from steadyrl.training.minibatches import Minibatches
from steadyrl.training.returns import generalized_advantages

pytestmark = pytest.mark.usefixtures("numpys_layers")
N = 10
STEP = {"risk_ratios": "step", "normalise_advantages": False, "bootstrap_on_truncation": False}


def assert_metrics(metrics, expected, rtol=2e-3):
    assert metrics.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(metrics[name], value, rtol=rtol, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        ("paper", {"ratio_bound": 1.1, "risk_ratios": "trajectory"}),
        ("paper", {"ratio_bound": 2.0, "risk_ratios": "trajectory", "clip_range": 0.02}),
        ("unbiased", {**STEP, "clip_range": 0.005, "risk_aversion": 5.0}),
        ("unbiased", {**STEP, "max_gradient_norm": 1e-3}),
    ],
    ids=["as in the paper", "small clip range", "step by step", "shortened gradients"],
)
def test_the_update_is_algorithm_2(estimator, settings):
    common = {"mean": "ppo", "optimiser": "sgd", "policy_learning_rate": 0.5, "value_learning_rate": 0.05}
    agent, learner = trained_agent(MeanGini, estimator=estimator, **common, **settings)
    episodes = sampled_episodes(learner.theta, N, seed=0)
    assert not episodes.terminated.all()
    assert episodes.terminated.any()
    updated, metrics = update(agent.algorithm, learner, episode_batch(episodes, agent.gamma))
    theta, V = np.array(learner.theta, float), np.array(learner.phi, float)
    # With ratios by step, those of trajectories are 1, as the unbiased weights here need them.
    eta = {"paper": lambda R: gini_eta(R) / (N - 1), "unbiased": lambda R: leave_one_out(R) / (N - 2)}[estimator]
    expected, met = algorithm_2.update(theta, V, episodes, agent.settings, eta)
    if agent.settings.clip_range < 0.1:
        # Steps were clipped and steps were not, with and without risk turning the sign of their advantage.
        assert len(met) == 4 or agent.settings.risk_ratios == "trajectory"
        assert {clipped for clipped, _ in met} == {True, False}
    moved = theta - np.asarray(learner.theta)
    assert np.abs(moved).max() > 1e-4
    np.testing.assert_allclose(updated.theta - learner.theta, moved, atol=1e-3 * np.abs(moved).max())
    np.testing.assert_allclose(updated.phi, V, rtol=1e-4, atol=1e-3)
    assert_metrics(metrics, expected)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (MeanGini, {"estimator": "paper"}),
        (MVO, {}),
        (Tamar, {"initial_mean": -80.0, "initial_variance": 900.0}),
        (MVP, {"initial_dual": -70.0, "dual_learning_rate": 0.1}),
    ],
)
def test_the_risk_part_is_the_measures_own(kind, settings):
    """lambda rho_i weight_i / T in a sum over steps, so n times as much in their mean; rho is clipped at zeta."""
    agent = kind(MAZE, mean="ppo", risk_aversion=0.7, ratio_bound=1.5, risk_ratios="trajectory", **settings)
    R, log_ratios = jnp.float32([3, -50, 20, 7]), jnp.float32([0, 9, -1, 0.2])
    rho = jnp.float32([1, 1.5, np.exp(-1), np.exp(0.2)])
    weights, state = agent.risk_measure().weights(Sample(R, rho, jnp.ones(4, bool)), agent.learner.risk)
    found, after = agent.algorithm.risk_weights(agent.learner.risk, R, Order.of(R), log_ratios, jnp.float32(2.0))
    np.testing.assert_allclose(found, 0.7 * 4 * rho * weights / 2.0, rtol=1e-5)
    np.testing.assert_array_equal(jax.tree.leaves(after), jax.tree.leaves(state))
    if kind is MeanGini and settings:
        np.testing.assert_allclose(found, 0.7 * 4 * rho * gini_eta(np.array([3, -50, 20, 7])) / 3 / 2, rtol=1e-5)


@pytest.mark.slow
def test_steps_fall_linearly_to_a_tenth_in_the_second_half():
    """With one pass the moves of a batch are proportional to the step sizes, all but those of values; batches count."""
    common = {"mean": "ppo", "optimiser": "sgd", "inner_updates": 1, "credit": "trajectory"}
    constant, learner = trained_agent(MeanGini, **common)
    annealed, _ = trained_agent(MeanGini, **common, annealing_episodes=4 * constant.settings.n)
    batch = episode_batch(sampled_episodes(learner.theta, constant.settings.n, seed=0), constant.gamma)
    plain, _ = update(constant.algorithm, learner, batch)
    for updates, share in [(0, 1), (2, 1), (3, 0.55), (4, 0.1), (9, 0.1)]:
        moved, _ = update(annealed.algorithm, learner._replace(updates=jnp.int32(updates)), batch)
        assert moved.updates == updates + 1
        for name, rtol in (("theta", 1e-3), ("phi", 0.03)):  # Values take a step for each trajectory in turn.
            before = getattr(learner, name)
            expected = share * (getattr(plain, name) - before)
            np.testing.assert_allclose(getattr(moved, name) - before, expected, rtol=rtol, atol=3e-6)
    assert plain.updates == ()
    assert annealed.learner.updates == 0


def test_mvps_dual_goes_to_the_mean_alone():
    """With PPO for the mean, y* = E[G0]; with the vanilla policy gradient it also holds 1 / (2 lambda)."""
    agent = MVP(MAZE, mean="ppo", risk_aversion=0.1, dual_learning_rate=0.5)
    R = jnp.full(1, -70.0)
    _, y = agent.risk_measure().weights(Sample(R, jnp.ones(1), jnp.ones(1, bool)), jnp.float32(0))
    assert float(y) == -70.0


def tamar(**settings):
    """One episode for each batch, used three times; one program for all tests."""
    return Tamar(Wager, mean="ppo", inner_updates=3, hidden=(8,), **settings)


def test_running_estimates_count_a_batch_once_however_often_it_is_used():
    agent = tamar(moments_learning_rate=0.1, initial_mean=100.0)
    agent.learn(total_episodes=1, progress_bar=False)
    R = agent.history[0]["discounted_return"]
    np.testing.assert_allclose(agent.learner.risk.mean, 100 + 0.1 * (R - 100), rtol=1e-5)


def test_the_advantages_of_one_episode_are_not_centered():
    """Centered on the mean of a batch of one step, its advantage would be 0; the penalty here never comes."""
    agent = tamar(threshold=1e9, entropy_coefficient=0.0, seed=0)
    start = agent.learner.theta[-1]["bias"]
    agent.learn(total_episodes=1, progress_bar=False)
    assert np.abs(agent.learner.theta[-1]["bias"] - start).max() > 1e-5


def test_training_resumes_after_loading_bit_for_bit(tmp_path):
    agent = tamar(seed=1)
    agent.learn(total_episodes=10, progress_bar=False)
    agent.save(tmp_path / "agent.steady")
    loaded = steadyrl.load(tmp_path / "agent.steady", env=Wager)
    assert loaded.settings == agent.settings
    for each in (agent, loaded):
        each.learn(total_episodes=10, progress_bar=False)
    for x, y in zip(leaves(agent), leaves(loaded), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.slow
def test_learns_a_table_with_its_own_rates():
    agent = PPO(MAZE, seed=0).learn(total_episodes=500, progress_bar=False)
    assert agent.engine == "gymnasium"
    assert agent.history[-1]["goal_rate"] > agent.history[0]["goal_rate"] + 0.3


def test_advantages_of_hand_worked_numbers():
    rewards, values = jnp.float32([[1, 2, 4], [3, 0, 0]]), jnp.float32([[10, 20, 30], [5, 0, 0]])
    # delta = (1 + 10 - 10, 2 + 15 - 20, 4 - 30) and 3 - 5, with gamma 0.5; gamma lambda = 0.1.
    expected = [[1 - 0.3 - 0.26, -3 - 2.6, -26], [-2, 0, 0]]
    for gae in (generalized_advantages, jax.jit(generalized_advantages)):
        np.testing.assert_allclose(gae(rewards, values, 0.5, 0.2), expected, rtol=1e-6)
    # With lambda = 1 they are the rewards to go less the values.
    to_go = generalized_advantages(rewards, values, 0.5, 1.0)[0]
    np.testing.assert_allclose(to_go, [3 - 10, 4 - 20, 4 - 30], rtol=1e-6)


def test_minibatches_against_the_reference():
    """Two passes, each in parts of nearly equal size that together are all steps, in the order of the learner's key."""
    common = {"mean": "ppo", "optimiser": "sgd", "risk_ratios": "trajectory", "estimator": "paper", "inner_updates": 2}
    rates = {"policy_learning_rate": 0.5, "value_learning_rate": 0.05, "minibatch_size": 100}
    agent, learner = trained_agent(MeanGini, **common, **rates)
    episodes, s = sampled_episodes(learner.theta, N, seed=0), agent.settings
    padded = episode_batch(episodes, agent.gamma)
    updated, metrics = update(agent.algorithm, learner, padded)

    theta, V = np.array(learner.theta, float), np.array(learner.phi, float)
    batch = algorithm_2.make_batch(theta, V, episodes, s)
    rows = np.flatnonzero(np.ravel(padded.mask))  # From the padded steps to those of the reference.
    number = dict(zip(rows.tolist(), range(len(rows)), strict=True))
    key, every = jax.random.wrap_key_data(learner.key), []
    of, part_of = (jax.jit(function, static_argnums=2) for function in (Minibatches.of, Minibatches.part))
    for _ in range(2):
        k_order, key = jax.random.split(key)
        minibatches = of(k_order, np.ravel(padded.mask), 100)
        rho = algorithm_2.trajectory_ratios(theta, batch.steps, s.ratio_bound)
        eta = gini_eta(batch.R) / (N - 1)
        weights = (s.risk_aversion * N * rho * eta / batch.scale)[batch.steps.trajectory]
        used = []
        for k in range(int(minibatches.parts)):
            order, within = part_of(minibatches, k, 100)
            part = [number[row] for row in np.asarray(order)[np.asarray(within)].tolist()]
            used += part
            steps = algorithm_2.Steps(*(column[part] for column in batch.steps))
            gradient, latest, _ = algorithm_2.policy_gradient(theta, steps, weights[part], s)
            theta += s.policy_learning_rate * algorithm_2.shortened(gradient, s.max_gradient_norm)
            every.append({**latest, "value_loss": algorithm_2.fit_values(V, steps.s, steps.g, s)})
        assert sorted(used) == list(range(len(rows)))
    assert len(every) == 2 * -(-len(rows) // 100) > 10
    moved = theta - np.asarray(learner.theta)
    np.testing.assert_allclose(updated.theta - learner.theta, moved, atol=2e-3 * np.abs(moved).max())
    np.testing.assert_allclose(updated.phi, V, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(updated.key, jax.random.key_data(key))
    expected = {name: np.mean([one[name] for one in every]) for name in every[0]}
    expected |= {"explained_variance": batch.explained_variance, "updates": len(every)}
    assert_metrics(metrics, {**expected, "risk_weight_mean": eta.mean(), "risk_weight_std": eta.std()})


def leaves(agent):
    return [np.asarray(x) for x in jax.tree.leaves(agent.learner)]


def test_without_risk_aversion_it_is_ppo_bit_for_bit():
    common = {"hidden": (8,), "episodes_per_update": 25, "minibatch_size": 64, "inner_updates": 5, "seed": 4}
    neutral = PPO("CartPole-v1", **common)
    same = MeanGini("CartPole-v1", mean="ppo", risk_aversion=0.0, **common)
    for agent in (neutral, same):
        agent.learn(total_episodes=50, progress_bar=False)
    for x, y in zip(leaves(neutral), leaves(same), strict=True):
        np.testing.assert_array_equal(x, y)
    # In parts of at most 64 steps, in each of 5 passes; a mean over the two rounds of the record.
    updates, steps = neutral.history[-1]["updates"], neutral.timesteps / 2
    assert 5 * steps / 64 <= updates <= 5 * (steps / 64 + 1)


@pytest.mark.parametrize(
    ("settings", "best"),
    [
        pytest.param({"risk_aversion": 1e-9}, 1, id="neutral"),
        pytest.param({"risk_aversion": 2.0}, 0, id="averse"),
        pytest.param({"risk_aversion": 2.0, "credit": "trajectory"}, 0, id="averse by trajectories"),
        pytest.param(
            {"risk_aversion": 2.0, "credit": "trajectory", "risk_ratios": "trajectory", "minibatch_size": 16},
            0,
            id="averse by trajectories in minibatches",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_risk_aversion_decides_between_a_wager_and_a_sure_reward(settings, best):
    """D of the wager is 1, and E - lambda D of it 1 - lambda: worth less than a sure 0.5 for lambda above 0.5."""
    common = {"hidden": (8,), "episodes_per_update": 50, "policy_learning_rate": 0.01, "value_learning_rate": 0.01}
    common |= {"inner_updates": 3, "normalise_observations": False, "minibatch_size": 0}
    agent = MeanGini(Wager, mean="ppo", seed=0, **{**common, **settings}).learn(total_episodes=3000, progress_bar=False)
    chosen = agent.predict(np.zeros((400, 1), np.float32))[0]
    assert (chosen == best).mean() > 0.85


def test_defaults_with_networks():
    def settings(kind, **given):
        return kind.settings_of(given).resolve(EnvKind(tabular=False))

    assert [settings(kind, mean="ppo").risk_aversion for kind in (Tamar, MVP)] == [0.2, 0.2]
    assert settings(PPO).optimiser == PPO.settings_of({}).resolve(EnvKind(tabular=True)).optimiser == "adam"
    s = settings(PPO)
    assert (s.gamma, s.gae_lambda, s.entropy_coefficient, s.value_coefficient) == (0.99, 0.95, 0.01, 0.5)
    assert (s.clip_range, s.max_gradient_norm, s.inner_updates, s.n, s.hidden) == (0.2, 0.5, 10, 8, (256, 256))
    assert (s.policy_learning_rate, s.value_learning_rate) == (3e-4, 3e-4)
    assert (s.minibatch_size, s.normalise_observations, s.normalise_values) == (64, True, True)
    assert (s.value_targets, s.target_kl, s.initial_output_scale) == ("td_lambda", 0.05, 0.01)
    assert PPO.settings_of({}).resolve(EnvKind(tabular=True)).target_kl == 0
    real = PPO.settings_of({}).resolve(EnvKind(tabular=False, real_observations=False, real_actions=True))
    assert (real.entropy_coefficient, real.normalise_observations) == (0, False)
    for kind in (Tamar, MVP):
        s = settings(kind, mean="ppo")
        assert (s.n, s.inner_updates, s.policy_learning_rate, s.value_learning_rate) == (1, 1, 7e-5, 7e-5)
    assert settings(MVO, mean="ppo").policy_learning_rate == 7e-5
    assert settings(MeanGini).mean == "vpg"
    assert settings(MeanGini, **dataclasses.asdict(settings(MeanGini, mean="ppo"))) == settings(MeanGini, mean="ppo")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MeanGini(MAZE, clip_range=0.1), "clip_range: it is a setting of mg with mean='ppo'"),
        (lambda: MVP(MAZE, mean="ppo", clip_rnage=0.1), "Did you mean 'clip_range'"),
        (lambda: MeanGini(MAZE, mean="ppo", ratio_range=0.1), "ratio_range: it is a setting of mg with mean='vpg'"),
        (lambda: MeanGini(MAZE, mean=["ppo"]), "text is needed"),
        (lambda: MeanGini(MAZE, clip_rnage=0.1), "Did you mean 'clip_range'"),
        (lambda: MeanGini(MAZE, mean="trpo"), "mean=trpo: it is one of vpg, ppo"),
        (lambda: PPO(MAZE, minibatch_size=-1), "minibatch_size=-1: it must be at least 0"),
        (lambda: PPO(MAZE, risk_aversion=1.0), "unknown setting 'risk_aversion'"),
        (lambda: PPO(MAZE, engine="compiled"), "not PPO"),
    ],
)
def test_mistakes_get_an_error_that_helps(make, message):
    with pytest.raises(ValueError, match=message):
        make()
