"""Faulty environments: whatever the policy, the error is the one that training raises."""

from functools import partial

import numpy as np
import pytest
from gathering import gather
from gymnasium.spaces import Discrete
from toy_envs import Faulty

from steadyrl import Reinforce
from steadyrl.base.seeding import EvaluationStream, evaluation_stream_seed
from steadyrl.evaluation.evaluate import evaluate
from steadyrl.rollouts.collector import FaultyEnvironmentError

SEEDS = [evaluation_stream_seed(0, EvaluationStream.EPISODES, index) for index in range(2)]
FAULTS = ("nan reward", "infinite reward", "no number", "exception", "nan observation", "infinite observation", "shape")


class Predictor:
    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return 0, None


def agent_for(env):
    return Reinforce(env, hidden=(4,))


POLICIES = {"function": lambda env: lambda observation: 0, "predict": lambda env: Predictor(), "agent": agent_for}


def error_in_training(env):
    with pytest.raises(FaultyEnvironmentError) as error:
        gather(env, SEEDS, max_steps=9, network="table" if isinstance(env().observation_space, Discrete) else "mlp")
    return str(error.value).removeprefix("Toy: ")


@pytest.mark.parametrize("policy", POLICIES)
def test_errors_are_those_of_training(policy, monkeypatch):
    monkeypatch.setattr("steadyrl.evaluation.play.MAX_STEPS", 9)
    env = partial(Faulty, wrong_seed=SEEDS[1])
    cases = [*(partial(env, fault) for fault in FAULTS), *(partial(env, fault, at=0) for fault in FAULTS[3:])]
    cases += [partial(env, "nan observation", at=5), partial(env, "no end"), partial(env, "outside", space=Discrete(4))]
    for case in cases:
        faulty = case()
        with pytest.raises(FaultyEnvironmentError) as error:
            evaluate(POLICIES[policy](faulty), faulty, episodes=2)
        assert str(error.value) == f"{faulty}: {error_in_training(case)}"
    fine = env("nothing")
    np.testing.assert_array_equal(evaluate(POLICIES[policy](fine), fine, episodes=2).returns, [0, 0])


def test_the_error_names_episode_step_and_cause():
    with pytest.raises(FaultyEnvironmentError) as error:
        evaluate(lambda observation: 0, Faulty("exception", wrong_seed=SEEDS[1]), episodes=2)
    text = f"step raised KeyError: 'broken sensor' at step 3 of episode 1 (seed {SEEDS[1]}). Fix the environment."
    assert str(error.value).endswith(text)
    assert isinstance(error.value.__cause__, KeyError)


def test_a_mistake_of_the_policy_is_not_blamed_on_the_environment():
    def clumsy(observation):
        raise KeyError("my own")

    with pytest.raises(KeyError, match="my own"):
        evaluate(clumsy, Faulty("nothing"), episodes=2)
