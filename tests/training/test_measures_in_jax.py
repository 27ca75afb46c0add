"""Every registered measure trains inside one program with a JAX environment."""

from functools import partial

import jax
import numpy as np
import pytest
from jax_worlds import Coins

import steadyrl
from steadyrl.risk import MEASURES

TRAIN = {"episodes_per_update": 20, "seed": 2}


def trained(measure, risk_aversion):
    agent = steadyrl.MeanRisk(Coins(4), measure=measure, risk_aversion=risk_aversion, **TRAIN)
    agent.learn(total_episodes=40, progress_bar=False)
    assert (agent.engine, agent.episodes) == ("jax", 40)
    return np.concatenate([np.ravel(x) for x in jax.tree.leaves(agent.learner.theta)])


@pytest.fixture(scope="module")
def neutral():
    return trained("variance", 0.0)


@pytest.mark.parametrize("measure", MEASURES)
def test_a_measure_trains(measure, neutral):
    """With a lambda of 0 all measures learn the same, and with another one something else."""
    close = partial(np.allclose, rtol=1e-5, atol=1e-6)
    assert close(trained(measure, 0.0), neutral)
    averse = trained(measure, 0.5)
    assert np.isfinite(averse).all()
    assert not close(averse, neutral)
