"""Training inside one program with a JAX environment: the episodes, their batch, and that nothing else matters."""

import itertools
from functools import partial

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from interrupted_runs import make_job
from jax_worlds import BraxLike, Coins, Counter, Slope

import steadyrl
from steadyrl.base.seeding import Stream, play_seeds, stream_key
from steadyrl.envs.jax_env import action_key, jax_model
from steadyrl.risk import gini_deviation
from steadyrl.rollouts.collector import FaultyEnvironmentError
from steadyrl.rollouts.episodes import Episodes
from steadyrl.rollouts.jax_play import acting, observation_features, play, takes_states
from steadyrl.rollouts.normalization import RunningMoments
from steadyrl.runs.scheduler import pending_jobs
from steadyrl.training.batch import EpisodeBatch
from steadyrl.training.engines.engine import as_arrays
from steadyrl.training.engines.host import _update
from steadyrl.training.loop import make_engine

SMALL = {"hidden": (4,), "episodes_per_update": 6, "inner_updates": 2}


def returns_of_coins(tosses):
    """The law of the return of a policy that chooses evenly: return -> probability."""
    law = {}

    def walk(t, heads, R, p):
        if t == tosses or heads == 2:
            law[round(R, 6)] = law.get(round(R, 6), 0) + p
            return
        walk(t + 1, 0, R + 0.4, p / 2)
        walk(t + 1, heads + 1, R + 1, p / 4)
        walk(t + 1, 0, R, p / 4)

    walk(0, 0, 0.0, 1.0)
    return law


def test_returns_have_the_law_of_the_environment():
    law = returns_of_coins(3)
    values, p = np.array(list(law)), np.array(list(law.values()))
    assert p.sum() == 1
    agent = steadyrl.Reinforce(Coins(3), episodes_per_update=4)
    assert agent.engine == "jax"
    report = steadyrl.evaluate(agent, Coins(3), episodes=4000, seed=1)
    found = {value: np.mean(np.abs(report.returns - value) < 1e-4) for value in values}
    for value, probability in law.items():
        error = 4 * np.sqrt(probability * (1 - probability) / 4000)
        assert found[value] == pytest.approx(probability, abs=error)
    exact = 0.5 * sum(q * r * abs(x - y) for (x, q), (y, r) in itertools.product(law.items(), repeat=2))
    assert report.gini_deviation.low <= exact <= report.gini_deviation.high
    # Heads with 1/4 at each step: two in a row at the second step, or at the third after none.
    assert report.facts["two_heads_rate"] == pytest.approx(1 / 16 + 3 / 4 / 16, abs=0.02)


def test_the_engine_plays_what_single_steps_play():
    """Episode i of round k comes from the run's seed and its number; the batch is learned from as it was played."""
    agent = steadyrl.Reinforce(Counter(), seed=3, **SMALL)
    ((_, rounds),) = make_engine([agent]).advance(2, 10**6)
    env, policy = steadyrl.from_jax(Counter()), agent.algorithm.policy
    actor = agent.actor()
    for i in range(6):
        key = jax.random.fold_in(stream_key(3, Stream.EPISODES), i)
        observation, _ = env.reset(options={"key": key})
        rewards, over = [], False
        while not over:
            features = actor.features(np.concatenate([x.reshape(1, -1) for x in parts(observation)], axis=1))
            noise = policy.jax_noise(action_key(key, len(rewards)))
            action = policy.to_space(policy.act(actor.parameters, actor.inputs(features), np.asarray(noise)))
            observation, reward, terminated, truncated, info = env.step(action[0])
            rewards.append(reward)
            over = terminated or truncated
        assert rounds.lengths[0, i] == len(rewards)
        np.testing.assert_allclose(rounds.returns[0, i], sum(rewards), rtol=1e-5)
        discounted = sum(0.99**t * r for t, r in enumerate(rewards))
        np.testing.assert_allclose(rounds.discounted_returns[0, i], discounted, rtol=1e-5)
        np.testing.assert_allclose(rounds.episode_metrics["total"][0, i], info["episode_metrics"]["total"], rtol=1e-5)
    assert not np.array_equal(rounds.returns[0], rounds.returns[1])


def parts(observation):
    """What `envs.spaces.flat` makes of an observation of `Counter`: in the order of the space, pixels from 0 to 1."""
    more, odd, steps = (np.asarray(observation[name], np.float32) for name in ("more", "odd", "steps"))
    return more / 255, np.eye(2, dtype=np.float32)[int(odd)], steps


def same(a, b):
    return jax.tree.all(jax.tree.map(lambda x, y: np.array_equal(np.asarray(x), np.asarray(y)), a, b))


@pytest.mark.parametrize(
    "make",
    [
        partial(
            steadyrl.MeanGini,
            Counter(),
            mean="ppo",
            minibatch_size=8,
            normalise_observations=True,
            learning_rate_schedule="constant",
            **SMALL,
        ),
        partial(steadyrl.MeanGini, Coins(4), mean="vpg", credit="trajectory", episodes_per_update=6),
    ],
    ids=["network, ppo, by step", "table, vpg, by trajectory"],
)
def test_any_split_into_calls_gives_the_same_bits(make):
    whole, split = make(seed=1), make(seed=1)
    whole.learn(total_episodes=36, progress_bar=False)
    for episodes in (6, 12, 18):
        split.learn(total_episodes=episodes, progress_bar=False)
    assert same(whole.learner, split.learner)
    assert (whole.timesteps, whole.episodes) == (split.timesteps, 36)


def test_seeds_together_are_those_alone():
    """The same bits for the same width, whatever the other agents; to rounding, whatever the width."""
    make = partial(steadyrl.MeanGini, Counter(), mean="vpg", credit="trajectory", risk_aversion=0.5, **SMALL)
    three, two, alone = ([make(seed=s) for s in seeds] for seeds in ((0, 1, 2), (2, 5), (1,)))
    for agents, width in ((three, 2), (two, 2), (alone, 1)):
        steadyrl.learn_together(agents, total_episodes=18, progress_bar=False, vmap_width=width)
    assert same(three[2].learner, two[0].learner)
    assert alone[0].timesteps == three[1].timesteps
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-5), three[1].learner.theta, alone[0].learner.theta
    )


def test_the_update_is_that_of_the_host_engine():
    """Given the episodes that the program has played, with observations normalized before and counted after."""
    agent = steadyrl.PPO(Counter(), seed=2, normalise_observations=True, **SMALL)
    before = agent.learner
    ((after, rounds),) = make_engine([agent]).advance(1, 10**6)
    episodes = played(agent, [jax.random.fold_in(stream_key(2, Stream.EPISODES), i) for i in range(6)])
    np.testing.assert_allclose(episodes.rewards.sum(axis=1), rounds.returns[0], rtol=1e-6)
    moments = RunningMoments(*map(np.asarray, before.seen))
    batch = EpisodeBatch.of(episodes, agent.gamma, moments.normalize)
    batch = jax.tree.map(lambda x: x[:, :6] if np.ndim(x) > 1 and x.shape[1] == 16 else x, batch)
    batch = batch._replace(discounts=batch.discounts[:6])  # Without padding: minibatches are drawn from all places.
    expected, _ = _update(as_arrays(agent.algorithm), before, batch)
    seen = moments.update(episodes.observations[episodes.mask > 0])
    for ours, theirs in ((after.theta, expected.theta), (after.phi, expected.phi), (after.seen, seen)):
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-5), ours, theirs)


def played(agent, keys):
    """Episodes of an agent, as the host engine collects them."""
    policy, model = agent.algorithm.policy, jax_model(agent.env)

    @jax.jit
    def play_all(learner, keys):
        features = observation_features(model.observation_space, takes_states(policy))
        plays = play(model, acting(policy, learner.theta, learner.seen, None), keys, features, policy.jax_noise)
        return plays, plays.mask

    one = jax.tree.map(lambda x: jnp.asarray(x)[None], (agent.learner, jnp.stack(keys)))
    plays, mask = jax.tree.map(lambda x: np.asarray(x)[0], play_all(*one))
    return Episodes(
        plays.observations, plays.actions, plays.rewards.astype(np.float64), mask.astype(np.float64),
        plays.last_observations, plays.terminated, plays.episode_metrics,
    )  # fmt: skip


@pytest.mark.slow
def test_learning_ends_where_it_should():
    """The best action is 0.5."""
    agent = steadyrl.PPO(Slope(), hidden=(8,), episodes_per_update=64, policy_learning_rate=0.01, seed=0)
    agent.learn(total_episodes=64 * 60, progress_bar=False)
    assert float(agent.predict(np.ones(1, np.float32), deterministic=True)[0][0]) == pytest.approx(0.5, abs=0.1)


@pytest.mark.slow
def test_cartpole_of_gymnax_is_learned():
    pytest.importorskip("gymnax")
    agent = steadyrl.PPO("gymnax:CartPole-v1", hidden=(64, 64), seed=0)
    agent.learn(total_episodes=400, progress_bar=False)
    assert steadyrl.evaluate(agent, "gymnax:CartPole-v1", episodes=64).mean.value > 450


def test_an_agent_is_saved_and_loaded_and_evaluated_as_elsewhere(tmp_path):
    env = BraxLike()
    with pytest.raises(FaultyEnvironmentError, match="horizon of 1000 is above max_episode_steps=50"):
        steadyrl.PPO(env, max_episode_steps=50, hidden=(4,)).learn(total_episodes=8, progress_bar=False)
    short = steadyrl.from_jax(env, horizon=5)
    agent = steadyrl.Reinforce(short, seed=1, **SMALL).learn(total_episodes=12, progress_bar=False)
    agent.save(tmp_path / "a.steady")
    loaded = steadyrl.load(tmp_path / "a.steady", env=short)
    assert loaded.engine == "jax"
    assert same(loaded.learner, agent.learner)
    few, many = (steadyrl.evaluate(loaded, short, episodes=n, seed=2).returns for n in (5, 70))
    np.testing.assert_array_equal(few, many[:5])
    assert gini_deviation(many) > 0
    played = agent.play(5, seed=0, deterministic=True)
    assert played.rewards.shape == (5, 5)
    # Every step of an episode is that of the seed, also where any function chooses the actions.
    zero = steadyrl.evaluate(lambda observation: np.zeros(1, np.float32), short, episodes=3, seed=2)
    first = [short.reset(seed=s)[0][0] for s in play_seeds(0, 5)]
    np.testing.assert_allclose(played.observations[:, 0, 0], first, rtol=1e-6)
    assert np.all(zero.returns <= 0)


def test_methods_that_step_on_the_host():
    wrapped = gym.wrappers.TimeLimit(steadyrl.from_jax(Counter()), 3)
    assert steadyrl.PPO(wrapped, hidden=(4,)).engine == "gymnasium"
    assert steadyrl.DQN(Coins(3), hidden=(4,)).engine == "gymnasium"
    learner = steadyrl.QLearning(Coins(3)).learn(total_episodes=20, progress_bar=False)
    assert (learner.engine, learner.episodes) == ("gymnasium", 20)
    with pytest.raises(ValueError, match=r"only policy gradients, .* are compiled together with a JAX environment"):
        steadyrl.DQN(Coins(3), hidden=(4,), engine="jax")
    with pytest.raises(ValueError, match="is not a JAX environment, or is wrapped"):
        steadyrl.PPO(wrapped, hidden=(4,), engine="jax")


def test_runs_of_a_sweep_share_a_program(tmp_path):
    job = make_job("jax", tmp_path, seeds=range(7))
    assert [[run.seed for run in part.runs] for part in pending_jobs([job])] == [[0, 1, 2, 3, 4], [5, 6]]


class Broken(Slope):
    """Its rewards are not numbers from the start."""

    def step(self, key, state, action):
        observation, state, reward, over = super().step(key, state, action)
        return observation, state, jnp.log(reward), over


def test_faulty_rewards_and_metrics_are_named():
    agent = steadyrl.Reinforce(Broken(), hidden=(4,), episodes_per_update=3)
    with pytest.raises(FaultyEnvironmentError, match=r"a reward or an action in episode 0 .* is not a number"):
        agent.learn(total_episodes=3, progress_bar=False)
    reserved = Slope()
    reserved.episode_metrics = lambda state: {"return": state}
    with pytest.raises(FaultyEnvironmentError, match="'return' has the name of something that training records"):
        steadyrl.PPO(reserved, hidden=(4,)).learn(total_episodes=8, progress_bar=False)


@pytest.mark.slow
def test_a_dial_is_played_at_its_levels():
    agent = steadyrl.MeanGini(Coins(3), risk_aversion=(0, 2), seed=0)
    agent.learn(total_episodes=2 * agent.settings.n, progress_bar=False)
    assert agent.engine == "jax"
    with pytest.raises(ValueError, match=r"use agent\.at\(1\)"):
        agent.play(2, seed=0)
    chosen = agent.at(1.0)
    assert chosen.play(4, seed=0).rewards.shape[0] == 4
