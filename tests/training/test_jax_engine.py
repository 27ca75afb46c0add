"""Training inside one program with a JAX environment: the episodes, their batch, and that nothing else matters."""

import itertools
from functools import partial
from types import SimpleNamespace

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from interrupted_runs import make_job
from jax_worlds import BraxLike, Coins, Counter, Slope, WarpLike

import steadyrl
from steadyrl.base.seeding import Stream, play_seeds, stream_key
from steadyrl.envs.jax_env import action_key, jax_model
from steadyrl.risk import gini_deviation
from steadyrl.rollouts import jax_play
from steadyrl.rollouts.collector import FaultyEnvironmentError
from steadyrl.rollouts.episodes import Episodes
from steadyrl.rollouts.jax_play import (
    PLAYED_TOGETHER,
    acting,
    episodes_together,
    observation_features,
    play,
    takes_states,
)
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


TABLE = {"episodes_per_update": 6, "seed": 2}
METHODS = {
    "ppo": partial(steadyrl.PPO, Counter(), seed=2, normalise_observations=True, **SMALL),
    "mvo": partial(steadyrl.MVO, Coins(4), risk_aversion=0.5, **TABLE),
    "mvo, ppo": partial(steadyrl.MVO, Counter(), mean="ppo", seed=2, **SMALL),
    "tamar": partial(steadyrl.Tamar, Coins(4), risk_aversion=0.5, threshold=0, initial_variance=1, **TABLE),
    "mvp": partial(steadyrl.MVP, Coins(4), risk_aversion=0.5, **TABLE),
    "mean_risk": partial(steadyrl.MeanRisk, Coins(4), measure="cvar_deviation", risk_aversion=0.5, **TABLE),
    "cvar": partial(steadyrl.CVaR, Counter(), seed=2, **SMALL),
}


@pytest.mark.parametrize("method", METHODS)
def test_the_update_is_that_of_the_host_engine(method):
    """Given the episodes that the program has played, with observations normalized before and counted after."""
    agent = METHODS[method]()
    assert agent.engine == "jax"
    before = agent.learner
    ((after, rounds),) = make_engine([agent]).advance(1, 10**6)
    n, T = agent.settings.n, jax_model(agent.env).horizon
    episodes = played(agent, [jax.random.fold_in(stream_key(2, Stream.EPISODES), i) for i in range(n)])
    np.testing.assert_allclose(episodes.rewards.sum(axis=1), rounds.returns[0], rtol=1e-6)
    moments = RunningMoments(*map(np.asarray, before.seen)) if before.seen else None
    batch = EpisodeBatch.of(episodes, agent.gamma, moments.normalize if moments else lambda observations: observations)
    batch = jax.tree.map(lambda x: x[:, :T] if np.ndim(x) > 1 and x.shape[1] == 16 else x, batch)
    batch = batch._replace(discounts=batch.discounts[:T])  # Without padding: minibatches are drawn from all places.
    expected, _ = _update(as_arrays(agent.algorithm), before, batch)
    seen = moments.update(episodes.observations[episodes.mask > 0]) if moments else ()
    close = partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-5)
    jax.tree.map(close, *map(without_keys, (after, expected._replace(seen=seen))))
    changed = jax.tree.map(lambda x, y: not np.array_equal(x, y), *map(without_keys, (after.theta, before.theta)))
    assert any(jax.tree.leaves(changed)), "it has learned"


def without_keys(tree):
    """The numbers of a learner."""
    keyless = (x for x in jax.tree.leaves(tree) if not jnp.issubdtype(jnp.asarray(x).dtype, jax.dtypes.prng_key))
    return [np.asarray(x) for x in keyless]


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


def test_a_state_may_have_parts_that_all_episodes_share():
    agents = [
        steadyrl.PPO(steadyrl.from_jax(env, horizon=5), hidden=(4,), episodes_per_update=4, seed=0)
        for env in (BraxLike(), WarpLike())
    ]
    for agent in agents:
        agent.learn(total_episodes=8, progress_bar=False)
    jax.tree.map(np.testing.assert_array_equal, agents[0].learner, agents[1].learner)
    plays = [agent.play(3, seed=1) for agent in agents]
    np.testing.assert_array_equal(plays[0].rewards, plays[1].rewards)


def test_episodes_are_played_in_parts_that_fit_in_memory(monkeypatch):
    """The parts have the episodes of one call, up to the rounding of products of other sizes."""
    agent = steadyrl.Reinforce(Counter(), seed=1, **SMALL)
    model, policy = jax_model(agent.env), agent.algorithm.policy
    whole = agent.play(10, seed=0)
    assert episodes_together(model, policy) == PLAYED_TOGETHER
    # A step: an observation of 5 numbers, 2 of the action, 2 random ones and the reward, and a key of 8 bytes.
    episode = model.horizon * (4 * (5 + 2 + 2 + 1) + 8)
    monkeypatch.setattr(jax_play, "BYTES_TOGETHER", 4 * episode + 1)
    assert episodes_together(model, policy) == 4
    parts = list(agent.play_in_jax(agent.env, play_seeds(0, 10)))
    assert [len(part.mask) for part in parts] == [4, 4, 2]
    lengths = whole.mask.sum(axis=1)
    assert [part.mask.shape[1] for part in parts] == [lengths[i : i + 4].max() for i in (0, 4, 8)]
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), agent.play(10, seed=0), whole)
    # How many are asked for makes no difference, to the last bit.
    few, many = (steadyrl.evaluate(agent, Counter(), episodes=n, seed=2).returns for n in (5, 10))
    assert len(set(many)) == 10
    np.testing.assert_array_equal(few, many[:5])
    monkeypatch.setattr(jax_play, "BYTES_TOGETHER", 1)
    assert episodes_together(model, policy) == 1, "one is always played"


@pytest.mark.parametrize(("horizon", "width", "expected"), [(500, 4, 64), (10**5, 100, 6), (10**5, 10**4, 1)])
def test_long_episodes_are_played_a_few_at_a_time(horizon, width, expected):
    space = Box(-1, 1, (width,))
    model = SimpleNamespace(observation_space=space, action_space=Discrete(2), horizon=horizon)
    model.reset = lambda key: (jnp.zeros(width), jnp.int32(0))
    policy = SimpleNamespace(jax_noise=lambda key: jax.random.gumbel(key, (2,)))
    assert episodes_together(model, policy) == expected


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
