"""One environment as a simulator: its own observations, untouched, and its faults in the words of the others."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gathering import gather
from gymnasium.spaces import Box, Dict, Tuple
from toy_envs import Counter, Faulty, length

from steadyrl.envs.simulator import SlotError
from steadyrl.rollouts.collector import FaultyEnvironmentError, Limits, iterate_steps
from steadyrl.rollouts.simulators.single import SingleEnvSimulator


class Idle:
    """Takes observations as they are, and always acts 0."""

    def features(self, observations):
        return observations

    def act(self, features, noise):
        return [0] * len(features)

    def to_space(self, actions):
        return actions


def play(env, seed, max_steps=9):
    return list(iterate_steps(SingleEnvSimulator(env), Idle, None, [seed], Limits("Toy", max_steps)))


@pytest.mark.parametrize("kind", Counter.spaces)
def test_steps_are_those_of_the_environment(kind):
    """Observations are compared in words, which tell types, shapes and the order of names."""
    env, seed = Counter(kind), 7
    expected = [(env.reset(seed=seed)[0], None)] + [env.step(0)[:2] for _ in range(length(seed))]
    steps = play(Counter(kind), seed)
    shown = [steps[0].observations[0], *(step.result.observations[0] for step in steps)]
    assert repr(shown) == repr([observation for observation, _ in expected])
    assert [step.result.rewards[0] for step in steps] == [reward for _, reward in expected[1:]]
    assert [step.result.truncated.tolist() for step in steps] == [[False]] * 3 + [[True]]
    assert not any(step.result.terminated[0] for step in steps)
    assert [step.result.episode_metrics for step in steps] == [{}] * 3 + [{0: {"seed_rate": 7.0}}]


@pytest.mark.parametrize("what", ["nan reward", "no number", "exception", "nan observation", "shape", "scalar"])
def test_faults_are_reported_as_elsewhere(what):
    errors = []
    for run in (lambda: play(Faulty(what), 7), lambda: gather(partial(Faulty, what), [7], max_steps=9)):
        with pytest.raises(FaultyEnvironmentError) as error:
            run()
        errors.append((str(error.value), type(error.value.__cause__)))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("wrap", "space"),
    [
        (lambda x: {"a": {"b": x}}, Dict({"a": Dict({"b": Box(0, 1, (2,))})})),
        (lambda x: ({"a": x}, 1), Tuple([Dict({"a": Box(0, 1, (2,))}), gym.spaces.Discrete(2)])),
    ],
    ids=["Dict", "Tuple"],
)
def test_numbers_inside_other_spaces_are_looked_at_too(wrap, space):
    class Nested(gym.Env):
        observation_space = space
        action_space = gym.spaces.Discrete(1)

        def reset(self, *, seed=None, options=None):
            return wrap(np.array([0, np.nan if seed else 1], np.float32)), {}

    simulator = SingleEnvSimulator(Nested())
    assert repr(simulator.reset([0])[0]) == repr(wrap(np.array([0, 1], np.float32)))
    with pytest.raises(SlotError, match="observation nan"):
        simulator.reset([1])


def test_the_environment_is_left_open():
    class Closing(Counter):
        closed = False

        def close(self):
            self.closed = True

    env = Closing()
    SingleEnvSimulator(env).close()
    assert not env.closed
