"""Models of Stable-Baselines3 as agents. Nothing here imports it, nor torch: their objects are read as they come."""
