"""Real learning with default settings."""

import pytest

import steadyrl
from steadyrl.agents import MeanGini, Reinforce


@pytest.mark.slow
@pytest.mark.optimized
@pytest.mark.parametrize(("kind", "timesteps"), [(Reinforce, 250_000), (MeanGini, 80_000)])
def test_solves_cartpole_with_default_settings(kind, timesteps):
    agent = kind("CartPole-v1", seed=0)
    agent.learn(total_timesteps=timesteps, progress_bar=False)
    report = steadyrl.evaluate(agent, "CartPole-v1", episodes=50)
    assert report.mean.value > 450
