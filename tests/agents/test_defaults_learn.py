"""What agents reach with their defaults; `benchmarks/learning/defaults.py` has all cases with more seeds."""

import pytest

from benchmarks.learning import defaults

pytestmark = pytest.mark.slow
CASES = [("FrozenLake-v1", agent) for agent in ("MG with PPO", "Q-learning")]  # REINFORCE depends on rounding.
CASES += [("FrozenLake-v1, not slippery", agent) for agent in ("REINFORCE", "Q-learning")]
CASES += [("CliffWalking-v1", "Q-learning")]  # Taxi: see `test_q_learning_solves_the_masked_taxi`.
FEWER = {
    ("FrozenLake-v1", "MG with PPO"): 10_000,
    ("FrozenLake-v1", "Q-learning"): 6_000,
    ("FrozenLake-v1, not slippery", "REINFORCE"): 5_000,
    ("FrozenLake-v1, not slippery", "Q-learning"): 5_000,
    ("CliffWalking-v1", "Q-learning"): 2_000,
}
"""Episodes that are enough on the seeds 0, 1 and 2."""


@pytest.mark.parametrize(("env", "agent"), CASES)
def test_tables(env, agent):
    episodes = FEWER.get((env, agent), defaults.EPISODES)
    assert defaults.run(env, agent, seed=0, episodes=episodes)["evaluation"] > defaults.TABLES[env][2]


@pytest.mark.optimized
def test_ppo_in_pendulum():
    assert defaults.run("Pendulum-v1", "PPO", seed=0)["evaluation"] > defaults.NETWORKS["Pendulum-v1"]
