"""Many MuJoCo episodes side by side against each of them alone in Gymnasium."""

from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("mujoco", reason="needs steadyrl[mujoco]")
pytest.importorskip("imageio", reason="needs steadyrl[mujoco]")

import mujoco

import steadyrl.envs  # noqa: F401  (registers steadyrl/...)
from steadyrl.envs.mujoco_env import MujocoTaskEnv
from steadyrl.envs.mujoco_task import Outcome, State
from steadyrl.simulators.fast_faces import fast_face
from steadyrl.simulators.mujoco_batch import MujocoBatch

ID = "steadyrl/InvertedPendulum-v0"
GAINS = np.array([0.72, 6.83, 0.92, 1.08])


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """MuJoCo writes a log into the working directory: the half cheetah's file has an attribute it calls deprecated."""
    monkeypatch.chdir(tmp_path)


def balance(seen, t):
    """Sways the cart back and forth through the noisy region."""
    return (seen @ GAINS + 0.05 * np.sin(t / 20)).astype(np.float32)[..., None]


def crawl(seen, t):
    """Six joints of the half cheetah, closed loop."""
    return np.clip(np.sin(t / 3 + np.arange(6)) - 0.3 * seen[..., 2:8], -1, 1).astype(np.float32)


def play_alone(env, seed, act):
    seen, _ = env.reset(seed=seed)
    played, over = [], False
    while not over:
        seen, paid, terminated, truncated, info = env.step(act(seen, len(played)))
        played.append((seen, paid, terminated, truncated))
        over = terminated or truncated
    return played, info["facts"]


def play_together(simulator, seeds, act):
    """The transitions of each episode, and its facts; every slot is stepped until its episode is over."""
    seen, slots, t = simulator.reset(seeds), np.arange(len(seeds)), 0
    played, facts = [[] for _ in seeds], {}
    while len(slots):
        steps = simulator.step(slots, act(seen, t))
        for k, slot in enumerate(slots):
            played[slot].append((steps.observations[k], steps.rewards[k], steps.terminated[k], steps.truncated[k]))
        facts |= steps.facts
        over = steps.terminated | steps.truncated
        slots, seen, t = slots[~over], steps.observations[~over], t + 1
    return played, [facts[slot] for slot in range(len(seeds))]


def assert_same(env, simulator, seeds, act):
    together, facts = play_together(simulator, seeds, act)
    for seed, mine, my_facts in zip(seeds, together, facts, strict=True):
        alone, their_facts = play_alone(env, seed, act)
        assert len(mine) == len(alone)
        for column in range(4):
            ours, theirs = ([step[column] for step in steps] for steps in (mine, alone))
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
        assert my_facts == pytest.approx(their_facts, abs=1e-12)
    return together, facts


def test_same_seed_and_actions_same_rewards_as_in_gymnasium():
    """Beyond the printed 500 steps, and beyond the first block of noise."""
    env = gym.make(ID, max_episode_steps=700)
    simulator = fast_face(env).make(3)
    together, facts = assert_same(env, simulator, [3, 2**32 - 1, 5], balance)
    assert [len(episode) for episode in together] == [700] * 3
    assert all(0.2 < fact["visiting_rate"] < 0.8 for fact in facts)
    assert simulator.idle_steps == 0


def test_episodes_end_when_they_fall_and_the_others_go_on():
    def uneven(seen, t):
        return np.where(seen[..., :1] > 0, balance(seen, t), np.float32(0))

    env = gym.make(ID, pay_failing_step=False)
    together, _ = assert_same(env, fast_face(env).make(8), range(8), uneven)
    assert len({len(episode) for episode in together}) > 2


def test_a_simulator_can_be_reset_with_fewer_episodes_and_other_seeds():
    env = gym.make(ID, max_episode_steps=40)
    simulator = fast_face(env).make(4)
    play_together(simulator, [1, 2, 3, 4], balance)
    assert_same(env, simulator, [7, 2], balance)


def test_observations_are_not_written_to_again():
    simulator = fast_face(gym.make(ID)).make(2)
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
    assert_same(env, fast_face(env).make(2), [0, 1], balance)
    assert env.unwrapped.model.opt.disableflags == before


@dataclass(frozen=True)
class Crawling:
    """Another task, with contacts, several joints, a reward of the way made, and noise that fades."""

    spread: float = 0.1

    def initial_offset(self, nq, nv, random):
        return State(random.uniform(-self.spread, self.spread, nq), self.spread * random.standard_normal(nv))

    def observe(self, state):
        return np.concatenate(state, axis=-1)

    def outcome(self, before, actions, after, seconds):
        x = after.qpos[:, 0]
        speed = (x - before.qpos[:, 0]) / seconds
        cost = 0.1 * np.square(actions).sum(axis=-1)
        return Outcome(np.abs(speed) - cost, np.zeros(len(x), bool), x < 0, 1 + np.abs(x))

    def facts(self, state, noisy_steps, steps):
        return {"distance": state.qpos[:, 0], "visiting_rate": noisy_steps / steps}


class CrawlingEnv(MujocoTaskEnv):
    TASK = Crawling


@pytest.mark.parametrize("threads", [1, 2])
def test_the_batch_serves_tasks_with_contacts(threads):
    """The half cheetah drifts by 0.9 within 100 steps if the solver forgets its last solution."""
    env = gym.wrappers.TimeLimit(CrawlingEnv("half_cheetah.xml", 5), 120)
    simulator = MujocoBatch(env.unwrapped, 3, 120, threads)
    _, facts = assert_same(env, simulator, [0, 1, 2], crawl)
    assert len({fact["distance"] for fact in facts}) == 3
    simulator.close()


def test_only_models_whose_geoms_cannot_touch_do_without_contacts():
    contacts_off = mujoco.mjtDisableBit.mjDSBL_CONTACT
    pendulum = MujocoBatch(gym.make(ID).unwrapped, 1, None)
    cheetah = MujocoBatch(CrawlingEnv("half_cheetah.xml", 5), 1, None)
    assert pendulum._model.opt.disableflags & contacts_off
    assert not cheetah._model.opt.disableflags & contacts_off


def test_wrong_numbers_of_seeds_are_refused():
    simulator = fast_face(gym.make(ID)).make(2)
    for seeds in ([], [1, 2, 3]):
        with pytest.raises(ValueError, match=f"{len(seeds)} seeds for a simulator of 2"):
            simulator.reset(seeds)


def test_drawing_on_a_screen_is_refused():
    env = gym.make(ID).unwrapped
    env.render_mode = "human"
    face = fast_face(env)
    assert isinstance(face.obstacle, ValueError)
    with pytest.raises(ValueError, match="human"):
        face.make(2)


def test_a_wrapper_that_may_change_the_environment_hides_the_fast_face():
    env = gym.make(ID)
    assert fast_face(env).engine == "mujoco"
    assert fast_face(gym.wrappers.TransformReward(env, lambda reward: 2 * reward)) is None
    assert fast_face(gym.make("CartPole-v1")) is None


def test_the_lowest_of_several_limits_counts():
    env = gym.wrappers.TimeLimit(gym.make(ID, max_episode_steps=50), 80)
    simulator = fast_face(env).make(1)
    played, _ = play_together(simulator, [0], balance)
    assert len(played[0]) == 50
    assert played[0][-1][2:] == (False, True)


def test_a_subclass_that_steps_in_its_own_way_has_no_fast_face():
    class Halved(CrawlingEnv):
        def step(self, action):
            return super().step(action / 2)

    assert Halved("half_cheetah.xml", 5).fast_face(None) is None
