"""The paper's settings, for tests of its algorithms: defaults are others, which learn in more environments."""

TABLE = {"gamma": 0.999, "optimiser": "sgd", "policy_learning_rate": 1e-4, "value_learning_rate": 1e-2}
TABLE |= {"episodes_per_update": 50, "mean": "vpg", "credit": "trajectory"}
"""MG, Algorithm 1, in the Guarded Maze."""
NETWORK = {"gamma": 0.999, "policy_learning_rate": 7e-4, "value_learning_rate": 7e-3, "initial_output_scale": 1.0}
NETWORK |= {"mean": "vpg", "credit": "trajectory"}
"""MG, Algorithm 1, in LunarLander."""
PPO = {"inner_updates": 5, "minibatch_size": 0, "policy_learning_rate": 3e-4, "value_learning_rate": 3e-4}
PPO |= {"entropy_coefficient": 0.01, "normalise_observations": False, "initial_output_scale": 1.0}
PPO |= {"value_targets": "monte_carlo", "normalise_values": False, "target_kl": 0.0}
PPO |= {"learning_rate_schedule": "constant"}
"""Algorithm 2 in HalfCheetah but for its risk part; that of MG takes credit="trajectory" as well."""
RISK_AVERSION = 1.2
