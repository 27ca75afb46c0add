"""The paper's settings, for tests of its algorithms: defaults are others, which learn in more environments."""

TABLE = {"gamma": 0.999, "optimiser": "sgd", "policy_learning_rate": 1e-4, "value_learning_rate": 1e-2}
TABLE |= {"episodes_per_update": 50}
"""Algorithm 1 in the Guarded Maze."""
NETWORK = {"gamma": 0.999, "policy_learning_rate": 7e-4, "value_learning_rate": 7e-3}
"""Algorithm 1 in LunarLander."""
PPO = {"inner_updates": 5, "minibatch_size": 0, "policy_learning_rate": 3e-4, "value_learning_rate": 3e-4}
PPO |= {"entropy_coefficient": 0.01, "normalise_observations": False}
"""Algorithm 2 in HalfCheetah."""
RISK_AVERSION = 1.2
