"""Vector environments that users bring: the same episodes as from separate environments, whatever resets them."""

from functools import partial

import gymnasium as gym
import jax
import numpy as np
import pytest
from gathering import SEEDS, assert_same, gather, gather_from, is_fair
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from toy_envs import Counter, Faulty, Gamble, length

from steadyrl.agents import Reinforce
from steadyrl.envs.source import Source
from steadyrl.rollouts.collector import FaultyEnvironmentError
from steadyrl.rollouts.simulators.choose import simulator_for
from steadyrl.rollouts.simulators.envpool import EnvPoolSimulator
from steadyrl.rollouts.simulators.vector import VectorEnvSimulator
from steadyrl.training.loop import make_engine

MODES = list(AutoresetMode)


def sync(make, size, mode=AutoresetMode.NEXT_STEP):
    return SyncVectorEnv([make] * size, autoreset_mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", Counter.spaces)
@pytest.mark.parametrize("size", [6, 4])
def test_episodes_are_those_of_separate_environments(mode, kind, size):
    env = partial(Counter, kind)
    assert_same(gather_from(VectorEnvSimulator(sync(env, size, mode))), gather(env, slots=size))


@pytest.mark.parametrize("mode", MODES)
def test_returns_are_distributed_as_they_are_whatever_episodes_last(mode):
    seeds = list(range(400))
    episodes = gather_from(VectorEnvSimulator(sync(Gamble, 16, mode)), seeds, "table")
    assert is_fair(episodes.rewards.sum(axis=1))
    assert_same(episodes, gather(Gamble, seeds, 16, network="table"))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_environments_in_other_processes(mode):
    env = AsyncVectorEnv([Counter] * 2, context="spawn", autoreset_mode=mode)
    assert_same(gather_from(VectorEnvSimulator(env), SEEDS[:3]), gather(Counter, SEEDS[:3], 2))
    env.close()


@pytest.mark.parametrize("mode", MODES)
def test_steps_that_do_not_count_are_counted(mode):
    simulator = VectorEnvSimulator(sync(Counter, 3, mode))
    gather_from(simulator, [4, 3])
    assert [length(4), length(3)] == [1, 4]
    assert simulator.idle_steps == 3 * 4 - (1 + 4)
    gather_from(simulator, [7, 3, 11])
    assert simulator.idle_steps == 7


def test_metrics_that_only_some_episodes_report_are_an_error():
    class Forgetful(Counter):
        def step(self, action):
            *step, info = super().step(action)
            return *step, {} if self.seed == 7 else info

    with pytest.raises(ValueError, match=r"episode 1 ended with the metrics \[\]"):
        gather_from(VectorEnvSimulator(sync(Forgetful, 2)), [3, 7])


def test_one_seed_for_all_where_a_vector_environment_takes_no_more():
    def balanced(seeds):
        env = gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")
        return gather_from(VectorEnvSimulator(env), seeds)

    episodes = balanced([1, 2, 3])
    assert_same(episodes, balanced([1, 2, 3]))
    assert not np.array_equal(episodes.observations[:, 0], balanced([1, 2, 4]).observations[:, 0])
    np.testing.assert_array_equal(episodes.rewards, episodes.mask)
    assert episodes.terminated.all()
    assert (np.abs(episodes.last_observations[:, 2]) > 0.2).all()


SOME = r"at step 3 of one of the episodes 0 to 2\."
SURE = r"at step 3 of episode 1 \(seed 7\)\."


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("nan reward", f"reward nan {SURE}"),
        ("nan observation", f"observation nan {SURE}"),
        ("exception", f"step raised KeyError: 'broken sensor' {SOME}"),
        ("shape", f"step raised ValueError.*{SOME}"),
    ],
)
def test_faults_are_located_as_exactly_as_they_are_known(what, message, mode):
    with pytest.raises(FaultyEnvironmentError, match=f"^Toy: {message}"):
        gather_from(VectorEnvSimulator(sync(partial(Faulty, what), 3, mode)), [6, 7, 8])


def test_faults_of_the_last_observation_and_of_reset():
    with pytest.raises(FaultyEnvironmentError, match=r"shape \(3,\).* at step 5 of episode 1 \(seed 7\)"):
        gather_from(VectorEnvSimulator(sync(partial(Faulty, "shape", at=5), 3, AutoresetMode.SAME_STEP)), [6, 7, 8])
    with pytest.raises(FaultyEnvironmentError, match=r"reset raised KeyError.* at step 0 of one of"):
        gather_from(VectorEnvSimulator(sync(partial(Faulty, "exception", at=0), 2)), [6, 7])


def test_agents_learn_in_vector_environments():
    settings = {"episodes_per_update": 4, "hidden": (4,), "seed": 3}
    agent = Reinforce(sync(Counter, 4), **settings).learn(total_episodes=8, progress_bar=False)
    same = Reinforce(Counter, **settings).learn(total_episodes=8, progress_bar=False)
    assert agent.engine == "vector"
    assert agent.history[-1]["return"] == same.history[-1]["return"]
    assert sum(metrics["idle_steps"] for metrics in agent.history) > 0
    with pytest.raises(ValueError, match="'vector'"):
        Reinforce(sync(Counter, 4), engine="gymnasium")


def pool(name, size, **options):
    envpool = pytest.importorskip("envpool", reason="needs steadyrl[fast]")
    return envpool.make_gymnasium(name, num_envs=size, seed=5, **options)


def test_a_pool_of_environments_keeps_its_episodes_apart():
    simulator = EnvPoolSimulator(pool("FrozenLake-v1", 5))
    episodes = gather_from(simulator, list(range(12)), "table")
    states = np.concatenate([episodes.observations, episodes.last_observations[:, None]], axis=1)
    assert (states[:, 0] == 0).all()
    for row, last in enumerate(episodes.mask.sum(axis=1).astype(int)):
        way = np.append(states[row, :last], episodes.last_observations[row])
        assert set(np.abs(np.diff(way))) <= {0, 1, 4}
        assert way[-1] in {5, 7, 11, 12, 15} or not episodes.terminated[row]
    assert len(np.unique(episodes.mask.sum(axis=1))) > 3
    assert simulator.idle_steps == 0


def test_a_pool_plays_whole_episodes_of_boxes():
    episodes = gather_from(EnvPoolSimulator(pool("Catch-v0", 3)), list(range(8)))
    assert episodes.rewards.shape == (8, 9)
    assert episodes.mask.all()
    np.testing.assert_array_equal(np.abs(episodes.rewards).sum(axis=0), [0] * 8 + [8])
    assert episodes.terminated.all()
    # A ball that falls by a row with each step: in 10 rows of 5.
    where = episodes.observations.reshape(8, 9, 10, 5)
    assert all((where[:, t, t].sum(axis=-1) == 1).all() for t in range(9))
    # A paddle that goes where its own episode's action sends it.
    paddle = where[:, :, 9].argmax(axis=-1)
    np.testing.assert_array_equal(paddle[:, 1:], np.clip(paddle[:, :-1] + episodes.actions[:, :-1] - 1, 0, 4))


def test_a_pool_takes_real_numbers():
    episodes = gather_from(EnvPoolSimulator(pool("InvertedPendulum-v4", 3)))
    assert episodes.actions.shape == (*episodes.rewards.shape, 1)
    np.testing.assert_array_equal(episodes.rewards, episodes.mask)
    assert (np.abs(episodes.last_observations[:, 1]) > 0.2).all()


def test_agents_learn_in_a_pool_and_come_out_the_same_from_the_same_pool():
    def learned():
        agent = Reinforce(pool("FrozenLake-v1", 4), episodes_per_update=6, seed=3)
        return agent.learn(total_episodes=12, progress_bar=False)

    agent = learned()
    assert agent.engine == "vector"
    assert isinstance(make_engine([agent])._simulator, EnvPoolSimulator)
    assert agent.history[-1]["idle_steps"] == 0
    assert [m["length"] for m in agent.history] == [m["length"] for m in learned().history]
    assert agent.episodes == 12


def test_a_pool_that_answers_for_the_quickest_is_refused():
    with pytest.raises(ValueError, match=r"batch_size=2.*quickest"):
        Reinforce(pool("InvertedPendulum-v4", 4, batch_size=2))


def test_the_simulator_follows_from_the_environment():
    source = Source.of(sync(Counter, 2))
    assert isinstance(simulator_for("vector", source, 9), VectorEnvSimulator)
    assert simulator_for("vector", source, 9).size == 2


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_resumes_bit_for_bit(mode, tmp_path):
    """From its file, in vector environments made anew; run folders name environments, and cannot name these."""

    def agent():
        return Reinforce(sync(Counter, 2, mode), episodes_per_update=4, hidden=(4,), seed=3)

    whole, broken = agent(), agent()
    whole.learn(total_episodes=40, progress_bar=False)
    broken.learn(total_episodes=20, progress_bar=False)
    broken.save(tmp_path / "agent.steady")
    again = Reinforce.load(tmp_path / "agent.steady", env=sync(Counter, 2, mode))
    again.learn(total_episodes=20, progress_bar=False)
    assert again.engine == "vector"
    assert (again.episodes, again.timesteps) == (whole.episodes, whole.timesteps)
    jax.tree.map(np.testing.assert_array_equal, again.learner, whole.learner)
