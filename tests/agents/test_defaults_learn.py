"""What agents reach with their defaults; `benchmarks/learning/defaults.py` has all cases with more seeds."""

import pytest

from benchmarks.learning import defaults

pytestmark = pytest.mark.slow
CASES = [("FrozenLake-v1", agent) for agent in ("REINFORCE", "MG with PPO", "Q-learning")]
CASES += [("FrozenLake-v1, not slippery", agent) for agent in ("REINFORCE", "Q-learning")]


@pytest.mark.parametrize(("env", "agent"), CASES)
def test_frozen_lake(env, agent):
    assert defaults.run(env, agent, seed=0)["evaluation"] > defaults.TABLES[env][2]


@pytest.mark.parametrize("env", ["Taxi-v4", "CliffWalking-v1"])
def test_q_learning(env):
    assert defaults.run(env, "Q-learning", seed=0)["evaluation"] > defaults.TABLES[env][2]


def test_ppo_in_pendulum():
    assert defaults.run("Pendulum-v1", "PPO", seed=0)["evaluation"] > defaults.NETWORKS["Pendulum-v1"]
