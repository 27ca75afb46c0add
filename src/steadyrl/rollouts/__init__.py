"""From an environment and a policy to whole episodes."""
