"""Many MuJoCo episodes side by side against each of them alone in Gymnasium."""

import os

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("mujoco", reason="needs steadyrl[mujoco]")
pytest.importorskip("imageio", reason="needs steadyrl[mujoco]")

import mujoco
from side_by_side import assert_same, play_together

import steadyrl.envs  # noqa: F401  (registers steadyrl/...)
from steadyrl.envs.fast_simulator import fast_simulator
from steadyrl.envs.mujoco.batch import MujocoBatch
from steadyrl.envs.mujoco.half_cheetah import HalfCheetahEnv

ID = "steadyrl/InvertedPendulum-v0"
GAINS = np.array([0.72, 6.83, 0.92, 1.08])


def balance(seen, t):
    """Sways the cart back and forth through the noisy region."""
    return (seen @ GAINS + 0.05 * np.sin(t / 20)).astype(np.float32)[..., None]


def crawl(seen, t):
    """Six joints of the half cheetah, closed loop."""
    return np.clip(np.sin(t / 3 + np.arange(6)) - 0.3 * seen[..., 3:9], -1, 1).astype(np.float32)


def test_same_seed_and_actions_same_rewards_as_in_gymnasium():
    """Beyond the printed 500 steps, and beyond the first block of noise."""
    env = gym.make(ID, max_episode_steps=700)
    simulator = fast_simulator(env).make(3)
    together, metrics = assert_same(env, simulator, [3, 2**32 - 1, 5], balance)
    assert [len(episode) for episode in together] == [700] * 3
    assert all(0.2 < one["visiting_rate"] < 0.8 for one in metrics)
    assert simulator.idle_steps == 0


def test_episodes_end_when_they_fall_and_the_others_go_on():
    def uneven(seen, t):
        return np.where(seen[..., :1] > 0, balance(seen, t), np.float32(0))

    env = gym.make(ID, pay_failing_step=False)
    together, _ = assert_same(env, fast_simulator(env).make(8), range(8), uneven)
    assert len({len(episode) for episode in together}) > 2


def test_a_simulator_can_be_reset_with_fewer_episodes_and_other_seeds():
    env = gym.make(ID, max_episode_steps=40)
    simulator = fast_simulator(env).make(4)
    play_together(simulator, [1, 2, 3, 4], balance)
    assert_same(env, simulator, [7, 2], balance)


def test_observations_are_not_written_to_again():
    simulator = fast_simulator(gym.make(ID)).make(2)
    start = simulator.reset([0, 1])
    first = simulator.step([0, 1], np.ones((2, 1), np.float32)).observations
    kept = start.copy(), first.copy()
    simulator.step([0, 1], np.ones((2, 1), np.float32))
    simulator.reset([4, 5])
    np.testing.assert_array_equal([start, first], kept)


def test_the_model_of_the_environment_is_used_and_left_alone():
    """What a user changed in the model counts."""
    env = gym.make(ID, max_episode_steps=60)
    env.unwrapped.model.opt.gravity[2] = -3.0
    before = env.unwrapped.model.opt.disableflags
    assert_same(env, fast_simulator(env).make(2), [0, 1], balance)
    assert env.unwrapped.model.opt.disableflags == before


def test_the_number_of_threads_changes_no_bit():
    """The half cheetah drifts by 0.9 within 100 steps if the solver forgets its last solution."""

    def play(threads):
        played, metrics = play_together(MujocoBatch(HalfCheetahEnv(), 5, 120, threads), range(5), crawl)
        return np.array([[seen for seen, *_ in episode] for episode in played]), metrics

    seen, metrics = play(1)
    seen_with_three, metrics_with_three = play(3)
    np.testing.assert_array_equal(seen, seen_with_three)
    assert metrics == metrics_with_three
    assert len({one["distance"] for one in metrics}) == 5


def test_models_that_may_sleep_are_served():
    env = gym.wrappers.TimeLimit(HalfCheetahEnv(), 40)
    env.unwrapped.model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_SLEEP
    assert_same(env, fast_simulator(env).make(2), [0, 1], crawl)


def test_there_are_as_many_threads_as_cores_or_episodes(monkeypatch):
    def threads(size):
        return MujocoBatch(gym.make(ID).unwrapped, size, None)._physics.nthread

    for wanted, used in (("1", 1), ("3", 3), ("9", 4)):
        monkeypatch.setenv("NPROC", wanted)
        assert threads(4) == used
    for nonsense in ("", "0", "many"):
        monkeypatch.setenv("NPROC", nonsense)
        assert threads(1024) == len(os.sched_getaffinity(0))


def test_only_models_whose_geoms_cannot_touch_do_without_contacts():
    contacts_off = mujoco.mjtDisableBit.mjDSBL_CONTACT
    pendulum = MujocoBatch(gym.make(ID).unwrapped, 1, None)
    cheetah = MujocoBatch(HalfCheetahEnv(), 1, None)
    assert pendulum._physics.model.opt.disableflags & contacts_off
    assert not cheetah._physics.model.opt.disableflags & contacts_off


def test_wrong_numbers_of_seeds_are_refused():
    simulator = fast_simulator(gym.make(ID)).make(2)
    for seeds in ([], [1, 2, 3]):
        with pytest.raises(ValueError, match=f"{len(seeds)} seeds for a simulator of 2"):
            simulator.reset(seeds)


def test_drawing_on_a_screen_is_refused():
    env = gym.make(ID).unwrapped
    env.render_mode = "human"
    fast = fast_simulator(env)
    assert isinstance(fast.unsupported, ValueError)
    with pytest.raises(ValueError, match="human"):
        fast.make(2)


def test_a_wrapper_that_may_change_the_environment_hides_the_fast_simulator():
    env = gym.make(ID)
    assert fast_simulator(env).engine == "mujoco"
    assert fast_simulator(gym.wrappers.TransformReward(env, lambda reward: 2 * reward)) is None
    assert fast_simulator(gym.make("CartPole-v1")) is None


def test_the_lowest_of_several_limits_counts():
    env = gym.wrappers.TimeLimit(gym.make(ID, max_episode_steps=50), 80)
    simulator = fast_simulator(env).make(1)
    played, _ = play_together(simulator, [0], balance)
    assert len(played[0]) == 50
    assert played[0][-1][2:] == (False, True)


def test_a_subclass_that_steps_in_its_own_way_has_no_fast_simulator():
    class Halved(HalfCheetahEnv):
        def step(self, action):
            return super().step(action / 2)

    assert Halved().fast_simulator(None) is None
