"""Environments that return or raise anything, and the three simulators that run them."""

import gymnasium as gym
import numpy as np
from gathering import actor_for
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from steadyrl.rollouts.collector import Limits, collect, iterate_steps
from steadyrl.rollouts.simulators.gymnasium import GymnasiumSimulator
from steadyrl.rollouts.simulators.single import SingleEnvSimulator
from steadyrl.rollouts.simulators.vector import VectorEnvSimulator

SPACES = {
    "box": Box(-1, 1, (2,), np.float32),
    "discrete": Discrete(3),
    "dict": Dict({"a": Box(-1, 1, (1,), np.float32), "b": Discrete(2)}),
}


class Hostile(gym.Env):
    """Fine but for `reset_with` and `step_with`, which are called with what would have been returned."""

    action_space = Discrete(2)

    def __init__(self, reset_with=lambda result: result, step_with=lambda result: result, kind="box"):
        self.reset_with, self.step_with, self.kind = reset_with, step_with, kind
        self.observation_space = SPACES[kind]

    def observation(self):
        box = np.zeros(2, np.float32)
        return {"box": box, "discrete": 1, "dict": {"a": box[:1], "b": 1}}[self.kind]

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return self.reset_with((self.observation(), {}))

    def step(self, action):
        self.t += 1
        info = {"episode_metrics": {"fine_rate": 1.0}}
        return self.step_with((self.observation(), 1.0, self.t == 3, False, info))


class Idle:
    """Acts 0 whatever it sees."""

    def features(self, observations):
        return observations

    def act(self, features, noise):
        return [0] * len(features)

    def to_space(self, actions):
        return actions


def collected(simulator):
    actor = actor_for(simulator.observation_space, simulator.action_space)
    return collect(simulator, actor, [7], Limits("Toy", 20, first_episode=40))


def run_gymnasium(env):
    return collected(GymnasiumSimulator(env, None, 1))


def run_vector(env, mode=AutoresetMode.NEXT_STEP):
    return collected(VectorEnvSimulator(SyncVectorEnv([lambda: env], autoreset_mode=mode)))


def run_single(env):
    return list(iterate_steps(SingleEnvSimulator(env), Idle, None, [7], Limits("Toy", 20, first_episode=40)))


RUNS = {"gymnasium": run_gymnasium, "single": run_single, "vector": run_vector}
