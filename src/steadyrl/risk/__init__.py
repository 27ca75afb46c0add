"""What is penalized: values of samples of returns, and the weights of their policy gradients.

To add a measure, write one file beside `cvar.py` with its value and its utility, and add one line to `MEASURES`: both
are then checked against the exact gradient by the tests, and `steadyrl.MeanRisk(env, measure="...")` trains with it.
"""

from steadyrl.risk.cvar import CVAR_10, cvar
from steadyrl.risk.gini import GINI, GINI_PAPER, gini_deviation, gini_weights, gini_weights_unbiased
from steadyrl.risk.measure import Law, Measure, Order, RiskMeasure, Sample
from steadyrl.risk.mvp import mvp
from steadyrl.risk.tamar import tamar
from steadyrl.risk.variance import (
    VARIANCE,
    double_sampling_weights,
    standard_deviation,
    variance,
    variance_weights,
)

MEASURES: dict[str, RiskMeasure] = {
    "gini": GINI,
    "gini_paper": GINI_PAPER,
    "variance": VARIANCE,
    "cvar": CVAR_10,
}
"""The measures an agent can be given by name."""

__all__ = [
    "MEASURES",
    "Law",
    "Measure",
    "Order",
    "RiskMeasure",
    "Sample",
    "cvar",
    "double_sampling_weights",
    "gini_deviation",
    "gini_weights",
    "gini_weights_unbiased",
    "mvp",
    "standard_deviation",
    "tamar",
    "variance",
    "variance_weights",
]
