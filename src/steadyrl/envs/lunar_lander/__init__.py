"""LunarLander with a noisy reward for landing on one side, and its EnvPool simulator."""
