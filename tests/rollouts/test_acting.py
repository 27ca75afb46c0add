"""An actor in NumPy, apart from any environment."""

import warnings

import numpy as np

from steadyrl.rollouts.acting import Actor


class InvalidReport:
    """A policy that sets the processor's flag for invalid values, as OpenBLAS sometimes does without reason."""

    def act(self, parameters, inputs, noise):
        infinite = np.full(1, np.inf)
        np.subtract(infinite, infinite)
        return inputs


def test_reports_of_invalid_values_in_products_are_not_warnings():
    inputs = np.ones((3, 1), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        actions = Actor(InvalidReport(), None, None).act(inputs, None)
    assert (actions == inputs).all()
