"""What every other package builds on and that knows nothing of reinforcement learning."""
