"""When DQN and TD3 update, and how they explore."""

import jax
import numpy as np
import pytest
from scipy import stats
from tiny_off_policy import NEVER, SPACES, each_kind, learned, tiny
from toy_envs import BOX, NUMBERS, Diary, Walk

from steadyrl.agents import DQN, TD3
from steadyrl.training.replay_buffer import ReplayBuffer

pytestmark = pytest.mark.usefixtures("numpys_layers")


@pytest.mark.parametrize(
    "rhythm",
    [
        {},
        {"gradient_steps": 5},
        {"train_freq": 7, "gradient_steps": 1, "learning_starts": 20},
        {"train_freq": 1, "learning_starts": 10},
        {"learning_starts": 50, "buffer_size": 8},
    ],
)
def test_updates_come_every_few_steps_wherever_episodes_end(rhythm, monkeypatch):
    """One for each step by default, from what is in the replay buffer by then, and none before there is enough."""
    rounds, generators, sample = [], [], ReplayBuffer.sample

    def record(algorithm, learner, rows, timesteps):
        rounds.append((timesteps, rows))
        return learner, {}

    def record_and_sample(replay_buffer, generator, *shape):
        generators.append(generator.bit_generator.state["state"]["state"])
        return sample(replay_buffer, generator, *shape)

    monkeypatch.setattr("steadyrl.training.engines.replay._update", record)
    monkeypatch.setattr(ReplayBuffer, "sample", record_and_sample)
    agent = learned(DQN, 15, **rhythm)
    s, last = agent.settings, agent.timesteps
    enough = min(s.learning_starts, s.buffer_size)
    expected = [t for t in range(1, last + 1) if t % s.train_freq == 0 and t >= enough]
    assert [t for t, _ in rounds] == expected
    assert {rows.shape for _, rows in rounds} == {(s.gradient_steps, 4, agent.algorithm.layout.width)}
    assert s.gradient_steps == rhythm.get("gradient_steps", s.train_freq)
    ends = [record["timesteps"] for record in agent.history]
    assert set(expected) - set(ends), "some rounds are in the midst of an episode"
    for record, start in zip(agent.history, [0, *ends], strict=False):
        assert record["updates"] == s.gradient_steps * sum(start < t <= record["timesteps"] for t in expected)
    assert len(set(generators)) == len(rounds), "each round draws anew"


def test_an_update_changes_the_actions_from_the_next_step_on(monkeypatch):
    """Here each round makes another action the best, whether or not an episode ends there."""
    rounds = []

    def turn(algorithm, learner, rows, timesteps):
        rounds.append(timesteps)
        best = {**learner.theta[-1], "bias": 1e9 * np.eye(3, dtype=np.float32)[len(rounds) % 3]}
        return learner._replace(theta=[*learner.theta[:-1], best]), {}

    monkeypatch.setattr("steadyrl.training.engines.replay._update", turn)
    agent = learned(DQN, 15, exploration_initial_eps=0.0, exploration_final_eps=0.0, buffer_size=100)
    actions = agent.algorithm.layout.parts(agent.replay_buffer.rows, 0).actions[:, 0]
    made = np.searchsorted(rounds, np.arange(agent.timesteps), side="right")  # Rounds before each step.
    np.testing.assert_array_equal(actions[made > 0], made[made > 0] % 3)
    assert len(rounds) > 10


@each_kind
def test_every_update_is_made_and_recorded(kind):
    agent = learned(kind, 12)
    made = agent.timesteps // 3 * 3 - 3  # None at step 3, then three at 6, 9, ...
    optimiser = agent.learner.theta_optimiser if kind is DQN else agent.learner.phi_optimiser
    assert int(optimiser[0].count) == sum(record["updates"] for record in agent.history) == made > 20
    if kind is TD3:
        assert int(agent.learner.updates) == made
        assert int(agent.learner.theta_optimiser[0].count) == made // 2


def test_exploration_decreases_linearly_over_all_steps():
    agent = tiny(DQN, exploration_final_eps=0.1)
    rates = [agent.actor(exploring_at=t).parameters.epsilon for t in (0, 10, 20, 40, 1000)]
    np.testing.assert_allclose(rates, [1, 0.775, 0.55, 0.1, 0.1])
    assert agent.actor().parameters.epsilon == 0
    agent = tiny(DQN, exploration_initial_eps=0.6, exploration_final_eps=0.6)
    actor, seen = agent.actor(exploring_at=0), np.zeros((60_000, 2), np.float32)
    actions = actor.act(seen, actor.policy.noise(np.random.default_rng(0), len(seen)))
    best = agent.predict(seen[0])[0] - NUMBERS.start
    share = np.bincount(actions, minlength=3) / len(seen)
    np.testing.assert_allclose(share, np.where(np.arange(3) == best, 0.6, 0.2), atol=0.01)


def collected(kind, episodes, **settings):
    """An agent after episodes of 50 steps and more without an update, and the transitions in its replay buffer."""
    quiet = {"learning_starts": NEVER, "buffer_size": 2000, **settings}
    agent = learned(kind, episodes, env=Diary(Walk(SPACES[kind], more=50)), **quiet)
    return agent, agent.algorithm.layout.parts(agent.replay_buffer.rows, agent.timesteps)


def test_exploration_continues_from_episode_to_episode():
    """At first any action, in the end the best alone; the learned policy does not change."""
    agent, parts = collected(DQN, 15, exploration_steps=400, exploration_final_eps=0.0)
    other = parts.actions[:, 0] != agent.predict(parts.observations)[0] - NUMBERS.start
    assert agent.timesteps > 600
    assert other[:60].mean() == pytest.approx(2 / 3, abs=0.2)
    assert other[170:230].mean() == pytest.approx(1 / 3, abs=0.2)
    assert not other[404:].any()


def test_td3_starts_with_uniformly_random_actions():
    agent, parts = collected(TD3, 20)
    actions, taken = parts.actions, np.array([page[1] for page in agent.env.pages])
    for column in actions.T:
        assert stats.kstest(column, "uniform", (-1, 2)).pvalue > 1e-3
    assert np.abs(np.corrcoef(actions.T) - np.eye(4)).max() < 0.15
    assert np.abs(np.corrcoef(actions[:-1, 0], actions[1:, 0])[0, 1]) < 0.15
    assert (taken.shape, taken.dtype) == ((agent.timesteps, 2, 2), np.float32)
    assert all(map(BOX.contains, taken))
    width = BOX.high - BOX.low
    np.testing.assert_array_less((taken.min(axis=0) - BOX.low) / width, 0.02)
    np.testing.assert_array_less((BOX.high - taken.max(axis=0)) / width, 0.02)


@pytest.mark.parametrize("noise", [0.3, 2.0, 0.0])
def test_then_td3_adds_noise_to_its_action_within_the_bounds(noise):
    agent = tiny(TD3, env=Walk(BOX, more=50), learning_starts=60, train_freq=60, exploration_noise=noise)
    agent.learner = agent.learner._replace(theta=jax.tree.map(np.zeros_like, agent.learner.theta))
    actor, seen = agent.actor(exploring_at=60), np.ones((4000, 2), np.float32)
    actions = actor.act(seen, actor.policy.noise(np.random.default_rng(0), len(seen)))
    bound = stats.norm.cdf(-1 / noise) if noise else 0.0  # Whatever is beyond a bound is on it.
    for end in (-1, 1):
        assert (actions == end).mean() == pytest.approx(bound, abs=0.015)
    assert np.abs(actions).max() <= 1
    inside = actions[np.abs(actions) < 1]
    if noise:
        assert stats.kstest(inside, stats.truncnorm(-1 / noise, 1 / noise, scale=noise).cdf).pvalue > 1e-3
    else:
        assert not inside.any()


def test_td3_counts_the_steps_of_all_episodes_until_it_starts():
    """Learning starts at step 100; the policy is that of the start, for no round of updates comes."""
    agent, parts = collected(TD3, 4, learning_starts=100, train_freq=NEVER, exploration_noise=0.0)
    own = agent.actor().act(parts.observations, None)
    ends = np.cumsum([record["length"] for record in agent.history]).astype(int)
    first = next(end for end in ends if end >= 100)
    assert (np.abs(parts.actions - own).max(axis=1) > 1e-3)[:first].all()
    np.testing.assert_allclose(parts.actions[first:], own[first:], atol=1e-6)
    assert first < agent.timesteps
