"""The calibrated methods of the experiment files: those that step_credit.toml found."""

import dataclasses

import gymnasium as gym
import pytest

import steadyrl
from benchmarks.learning.step_credit import PLAN, settings_of
from steadyrl.runs.experiment import load_experiment, names

SEARCHED = {"inverted_pendulum": "inverted_pendulum_rising"}
"""Experiment -> the domain of step_credit.toml that its settings are from, if that is not called alike."""


@pytest.mark.parametrize("domain", [name for name in names() if name != "maze"])
@pytest.mark.parametrize(("method", "agent"), [("ppo_calibrated", steadyrl.PPO), ("mg_calibrated", steadyrl.MeanGini)])
def test_settings_are_those_of_the_search(domain, method, agent):
    searched = SEARCHED.get(domain, domain)
    of_domain = PLAN["domains"][searched]["methods"]
    words = ["PPO"] if agent is steadyrl.PPO else ["MG by step"]
    words += ["constant steps"] if "PPO, constant steps" in of_domain else []
    words += ["risk_gamma=1"] if agent is steadyrl.MeanGini and domain != "inverted_pendulum" else []
    planned = ", ".join(words)
    experiment = load_experiment(domain)
    (found,) = (each.settings for each in experiment.methods if each.name == method)
    made = agent(gym.make(PLAN["domains"][searched]["env"]), **settings_of(searched, planned))
    given = agent.settings_of(found)
    assert dataclasses.asdict(given) == dataclasses.asdict(made.settings)
