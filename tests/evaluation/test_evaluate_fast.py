"""Agents of the mujoco engine are evaluated in the fast simulator, with the numbers of one episode at a time."""

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("mujoco", reason="needs steadyrl[mujoco]")
pytest.importorskip("imageio", reason="needs steadyrl[mujoco]")

from steadyrl import Reinforce, evaluate
from steadyrl.envs.mujoco.batch import MujocoBatch
from steadyrl.evaluation.play import SIDE_BY_SIDE

pytestmark = pytest.mark.usefixtures("numpys_layers")
CHEETAH = "steadyrl/HalfCheetah-v0"
STEPS = 60


@pytest.fixture(scope="module")
def agents(numpys_layers):
    """The same untrained policy in both engines; its layers are wide enough for products to depend on their size."""
    fast, plain = (Reinforce(cheetah(), hidden=(64, 64), engine=engine, seed=1) for engine in ("mujoco", "gymnasium"))
    return fast, plain


@pytest.fixture
def batches(monkeypatch):
    """The numbers of episodes in the steps of the fast simulator."""
    sizes, step = [], MujocoBatch.step

    def watched(self, slots, actions):
        sizes.append(len(slots))
        return step(self, slots, actions)

    monkeypatch.setattr(MujocoBatch, "step", watched)
    return sizes


def cheetah():
    return gym.make(CHEETAH, max_episode_steps=STEPS)


def test_without_noise_both_engines_give_the_same_numbers(agents, batches):
    fast, plain = (evaluate(agent, cheetah, episodes=6, deterministic=True) for agent in agents)
    assert batches == [6] * STEPS
    np.testing.assert_array_equal(fast.returns, plain.returns)
    np.testing.assert_array_equal(fast.discounted_returns, plain.discounted_returns)
    assert fast.facts == plain.facts
    assert len(set(fast.returns)) == 6


def test_more_episodes_leave_the_first_ones_as_they_were(agents, batches):
    many = evaluate(agents[0], cheetah, episodes=SIDE_BY_SIDE + 2)
    assert batches == [SIDE_BY_SIDE] * STEPS + [2] * STEPS
    few = evaluate(agents[0], cheetah, episodes=3)
    np.testing.assert_array_equal(few.returns, many.returns[:3])
    assert len(set(many.returns)) == SIDE_BY_SIDE + 2
    assert not np.array_equal(few.returns, evaluate(agents[0], cheetah, episodes=3, deterministic=True).returns)


def test_all_others_are_evaluated_one_by_one(agents, batches):
    fast, plain = agents
    evaluate(plain, cheetah, episodes=2)
    evaluate(lambda observation: np.zeros(6, np.float32), cheetah, episodes=2)
    # A wrapper may change the environment, and the simulator would not know.
    scaled = gym.wrappers.TransformReward(cheetah(), lambda reward: 1.0)
    np.testing.assert_array_equal(evaluate(fast, scaled, episodes=2).returns, [STEPS] * 2)
    assert batches == []


def test_errors_name_the_environment_that_is_evaluated(agents, monkeypatch):
    """Not the one that the agent was trained in."""
    monkeypatch.setattr("steadyrl.evaluation.play.MAX_STEPS", 5)
    env = gym.make("steadyrl/HalfCheetahDistance-v0")
    with pytest.raises(ValueError, match=r"^<.*HalfCheetahDistance-v0>>+: no end at step 5 of episode 0"):
        evaluate(agents[0], env, episodes=2)
