"""Whole episodes: which ones, what is in them, and errors of faulty environments."""

from functools import partial

import gymnasium as gym
import jax
import numpy as np
import pytest
from gathering import SEEDS, actor_for, assert_same, gather, is_fair
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import seeding
from toy_envs import LONG, SHORT, Counter, Faulty, Gamble, length

from steadyrl.agents import Reinforce
from steadyrl.rollouts.acting import BLOCK
from steadyrl.rollouts.collector import FaultyEnvironmentError
from steadyrl.rollouts.simulators.gymnasium import GymnasiumSimulator
from steadyrl.training.engines import host
from steadyrl.training.loop import make_engine

NORMAL = Box(-2, 2, (2,), np.float32)


@pytest.mark.parametrize("slots", [16, 5, 1])
def test_returns_are_distributed_as_they_are_whatever_episodes_last(slots):
    seeds = list(range(400))
    returns = gather(Gamble, seeds, slots, network="table").rewards.sum(axis=1)
    assert is_fair(returns)
    # More than fair: the very episodes that the seeds stand for.
    heads = [seeding.np_random(seed)[0].random() < 0.5 for seed in seeds]
    np.testing.assert_array_equal(returns, np.where(heads, LONG, SHORT))


def test_the_first_to_finish_would_not_be():
    """What the collector must not do, on the same environment: 16 of them, until 16 episodes are over, 25 times."""
    returns = []
    for batch in range(25):
        envs = [Gamble() for _ in range(16)]
        for slot, env in enumerate(envs):
            env.reset(seed=batch * 16 + slot)
        paid, finished = np.zeros(16), []
        while len(finished) < 16:
            for slot, env in enumerate(envs):
                _, reward, over, _, _ = env.step(0)
                paid[slot] += reward
                if over:
                    finished.append(paid[slot])
                    env.reset()
                    paid[slot] = 0
        returns += finished[:16]
    assert len(returns) == 400
    assert not is_fair(returns)


@pytest.mark.parametrize("slots", [6, 4, 1])
def test_episodes_hold_what_happened(slots):
    episodes = gather(Counter, slots=slots)
    lengths = [length(seed) for seed in SEEDS]
    t = np.arange(max(lengths))
    mask = t < np.array(lengths)[:, None]
    np.testing.assert_array_equal(episodes.mask, mask)
    np.testing.assert_array_equal(episodes.observations[..., 0], t * mask)
    np.testing.assert_array_equal(episodes.observations[..., 1], np.array(SEEDS)[:, None] * mask)
    np.testing.assert_array_equal(episodes.rewards, (t + episodes.actions / 10) * mask)
    np.testing.assert_array_equal(episodes.actions * ~mask, 0)
    np.testing.assert_array_equal(episodes.last_observations, np.transpose([lengths, SEEDS]))
    np.testing.assert_array_equal(episodes.terminated, [seed % 2 == 0 for seed in SEEDS])
    np.testing.assert_array_equal(episodes.episode_metrics["seed_rate"], SEEDS)
    assert len(np.unique(episodes.actions[mask])) == 3
    assert (episodes.observations.dtype, episodes.rewards.dtype) == (np.float32, np.float64)


def test_observations_of_all_kinds_become_numbers():
    mask = gather(Counter).mask.astype(bool)
    t, seed, odd = (
        x[mask] for x in np.broadcast_arrays(np.arange(4), *(np.array(SEEDS)[:, None] % m for m in (99, 2)))
    )
    image = gather(partial(Counter, "image")).observations
    np.testing.assert_allclose(image[mask], np.stack([t, seed], axis=1) / 255, rtol=1e-6)
    numbered = gather(partial(Counter, "discrete")).observations
    np.testing.assert_array_equal(numbered[mask], np.eye(6)[t])
    named = gather(partial(Counter, "dict"))
    # In the order of their names, as gymnasium.spaces.flatten has them.
    np.testing.assert_array_equal(named.observations[mask], np.stack([seed, 1 - odd, odd, t], axis=1))
    np.testing.assert_array_equal(named.last_observations[0], [4, 1, 0, length(4)])


def test_tables_see_the_number_of_a_state():
    seeds = [3, 5]
    episodes = gather(Gamble, seeds, network="table")
    assert episodes.observations.shape == episodes.rewards.shape
    assert np.issubdtype(episodes.observations.dtype, np.integer)


class Free(gym.Env):
    """Takes any numbers within bounds, shows them again, and lasts for longer than a block of random numbers."""

    observation_space, action_space = Box(-2, 2, (2,), np.float32), NORMAL

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.full(2, seed / 100, np.float32), {}

    def step(self, action):
        assert action in self.action_space
        self.t += 1
        return action, float(action.sum()), False, self.t == BLOCK + 5, {}


def test_the_environment_gets_actions_clipped_and_the_learner_gets_them_as_they_were_drawn():
    episodes = gather(Free)
    beyond = np.abs(episodes.actions) > 1
    assert beyond.any()
    assert not beyond.all()
    clipped = 2 * np.clip(episodes.actions, -1, 1)
    np.testing.assert_array_equal(episodes.observations[:, 1:], clipped[:, :-1])
    np.testing.assert_array_equal(episodes.last_observations, clipped[:, -1])


@pytest.mark.parametrize("env", [Counter, Free])
def test_the_same_seeds_give_the_same_bits(env):
    assert_same(gather(env), gather(env))
    assert not np.array_equal(gather(env).actions, gather(env, [seed + 4 for seed in SEEDS]).actions)


def test_an_episode_does_not_depend_on_its_neighbours():
    together = gather(Free)
    for row, seed in enumerate(SEEDS):
        alone = gather(Free, [seed])
        # Products of matrices of other sizes may be rounded otherwise.
        np.testing.assert_allclose(alone.actions[0], together.actions[row], rtol=0, atol=1e-5)


def test_waves_change_nothing_but_rounding():
    for slots in (1, 2, 4, 5):
        assert_same(gather(Counter, slots=slots), gather(Counter))


def test_the_likeliest_actions_follow_from_what_is_seen():
    episodes = gather(Free, deterministic=True)
    likeliest = actor_for(Free.observation_space, Free.action_space).act(episodes.observations.reshape(-1, 2), None)
    np.testing.assert_allclose(episodes.actions.reshape(-1, 2), likeliest, rtol=0, atol=1e-6)


def test_environments_are_made_when_they_are_needed_and_closed():
    closed = []

    class Closing(Counter):
        def close(self):
            closed.append(self)

    env = Closing()
    simulator = GymnasiumSimulator(env, Closing, 3)
    assert simulator.reset([1, 2]).shape == (2, 2)
    simulator.reset([1, 2, 3])
    simulator.close()
    assert len(closed) == 2
    assert env not in closed
    assert GymnasiumSimulator(env, None, 3).size == 1


FAULTS = {
    "nan reward": "reward nan",
    "infinite reward": "reward -inf",
    "nan observation": "observation nan",
    "infinite observation": "observation inf",
    "no number": "reward 'much' that is not a number",
    "exception": "step raised KeyError: 'broken sensor'",
    "shape": r"observation of shape \(3,\) that is not in Box",
    "scalar": r"observation of shape \(\) that is not in Box",
}


@pytest.mark.parametrize("slots", [3, 1])
@pytest.mark.parametrize("what", FAULTS)
def test_a_faulty_environment_is_named_with_episode_and_step(what, slots):
    with pytest.raises(FaultyEnvironmentError, match=rf"^Toy: {FAULTS[what]}.* at step 3 of episode 1 \(seed 7\)\."):
        gather(partial(Faulty, what), [6, 7, 8], slots)
    gather(partial(Faulty, what), [6, 8], slots)


def test_the_last_observation_is_looked_at_too():
    with pytest.raises(FaultyEnvironmentError, match="observation nan at step 5"):
        gather(partial(Faulty, "nan observation", at=5), [7])


def test_faults_of_reset_are_at_step_0():
    for what in ("exception", "nan observation", "shape"):
        with pytest.raises(FaultyEnvironmentError, match=r"at step 0 of episode 1 \(seed 7\)"):
            gather(partial(Faulty, what, at=0), [6, 7])


@pytest.mark.parametrize("network", ["mlp", "table"])
def test_a_state_that_does_not_exist(network):
    """NumPy would take -1 for the last."""
    with pytest.raises(
        FaultyEnvironmentError, match=r"observation -1 that is not in Discrete\(4\) at step 3 of episode 0"
    ):
        gather(partial(Faulty, "outside", space=Discrete(4)), [7], network=network)


def test_an_episode_without_end_is_an_error_that_says_what_to_do():
    with pytest.raises(FaultyEnvironmentError, match=r"no end at step 9 of episode 0 \(seed 6\).*max_episode_steps"):
        gather(partial(Faulty, "no end"), [6, 7], max_steps=9)
    assert gather(partial(Faulty, "none"), [6, 7], max_steps=5).mask.sum() == 10


class BreaksDown(Counter):
    """Raises in the 61st episode."""

    episodes = 0

    def reset(self, **options):
        type(self).episodes += 1
        return super().reset(**options)

    def step(self, action):
        if type(self).episodes > 60:
            raise OSError("out of fuel")
        return super().step(action)


def learning(env, episodes):
    agent = Reinforce(env, episodes_per_update=4, hidden=(4,), seed=3)
    agent.learn(total_episodes=episodes, progress_bar=False)
    return agent


def test_what_was_learned_before_the_fault_is_kept(tmp_path):
    BreaksDown.episodes = 0
    agent = Reinforce(BreaksDown(), episodes_per_update=4, hidden=(4,), seed=3)
    with pytest.raises(FaultyEnvironmentError, match=r"BreaksDown.*OSError: out of fuel at step 1 of episode 60 "):
        agent.learn(total_episodes=100, progress_bar=False)
    assert (agent.iterations, agent.episodes, len(agent.history)) == (12, 48, 1)  # In whole records.
    jax.tree.map(np.testing.assert_array_equal, agent.learner, learning(Counter(), 48).learner)
    agent.save(tmp_path / "agent")


gym.register("toys/Counter-v0", Counter, max_episode_steps=9, disable_env_checker=True)


@pytest.mark.parametrize("env", [Counter, "toys/Counter-v0", Counter()], ids=["factory", "id", "env"])
def test_agents_say_how_they_collected(env):
    agent = learning(env, 8)
    assert agent.engine == "gymnasium"
    assert make_engine([agent])._simulator.size == (1 if isinstance(env, gym.Env) else 4)
    assert agent.history[-1]["idle_steps"] == 0
    assert agent.history[-1]["seconds_collecting"] > 0


def test_lengths_are_rounded_up_so_that_few_programs_are_compiled():
    class Random(Counter):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed % 977, options=options)

        def step(self, action):
            self.t += 1
            return self.observation(), 0.0, self.t >= 17 + self.seed % 8, False, {}

    before = host._update._cache_size()
    agent = learning(Random, 96)
    assert len({metrics["length"] for metrics in agent.history}) > 1
    assert host._update._cache_size() - before == 1
