"""What is penalized: values of samples of returns, and the weights of their policy gradients.

To add a measure, write one file beside `semivariance.py` with its value and its utility, and add one line to
`MEASURES`: both are then checked against each other by the tests, `steadyrl.MeanRisk(env, measure="...")` trains with
it, and `steadyrl.evaluate(..., measures=["..."])` reports it.
"""

from steadyrl.base.names import split_number, unknown
from steadyrl.risk.cvar import CVAR, cvar
from steadyrl.risk.cvar_deviation import CVAR_DEVIATION, cvar_deviation
from steadyrl.risk.entropic import ENTROPIC_RISK, entropic_risk
from steadyrl.risk.gini import GINI, GINI_PAPER, gini_deviation, gini_weights, gini_weights_unbiased
from steadyrl.risk.inter_es_range import INTER_ES_RANGE, inter_es_range
from steadyrl.risk.inter_quantile_range import INTER_QUANTILE_RANGE, inter_quantile_range
from steadyrl.risk.mean_deviation import (
    MEAN_DEVIATION,
    MEAN_MEDIAN_DEVIATION,
    mean_deviation,
    mean_median_deviation,
)
from steadyrl.risk.measure import Law, LawMeasure, Measure, Order, ParametricMeasure, Properties, RiskMeasure, Sample
from steadyrl.risk.mvp import mvp
from steadyrl.risk.semivariance import SEMIDEVIATION, SEMIVARIANCE, semideviation, semivariance
from steadyrl.risk.tamar import tamar
from steadyrl.risk.variance import (
    STANDARD_DEVIATION,
    VARIANCE,
    double_sampling_weights,
    standard_deviation,
    variance,
    variance_weights,
)

MEASURES: dict[str, LawMeasure] = {
    "gini": GINI,
    "gini_deviation": GINI,
    "gini_paper": GINI_PAPER,
    "variance": VARIANCE,
    "standard_deviation": STANDARD_DEVIATION,
    "semivariance": SEMIVARIANCE,
    "semideviation": SEMIDEVIATION,
    "mean_deviation": MEAN_DEVIATION,
    "mean_median_deviation": MEAN_MEDIAN_DEVIATION,
    "inter_es_range": INTER_ES_RANGE,
    "inter_quantile_range": INTER_QUANTILE_RANGE,
    "cvar_deviation": CVAR_DEVIATION,
    "cvar": CVAR,
    "entropic_risk": ENTROPIC_RISK,
}
"""The measures by name, for agents and reports; those with a number have a default one."""


def measure_by_name(text: str) -> LawMeasure:
    """The measure that a text such as "semivariance", "cvar" or "cvar:0.2" names; the number is its alpha or beta."""
    name, number = split_number(text)
    if name not in MEASURES:
        raise ValueError(unknown("measure", name, MEASURES))
    measure = MEASURES[name]
    if number is None:
        return measure
    if not isinstance(measure, ParametricMeasure):
        raise ValueError(f"{text}: {name} has no number of its own. Write {name}.")
    return measure.at(number)


__all__ = [
    "MEASURES",
    "Law",
    "LawMeasure",
    "Measure",
    "Order",
    "ParametricMeasure",
    "Properties",
    "RiskMeasure",
    "Sample",
    "cvar",
    "cvar_deviation",
    "double_sampling_weights",
    "entropic_risk",
    "gini_deviation",
    "gini_weights",
    "gini_weights_unbiased",
    "inter_es_range",
    "inter_quantile_range",
    "mean_deviation",
    "mean_median_deviation",
    "measure_by_name",
    "mvp",
    "semideviation",
    "semivariance",
    "standard_deviation",
    "tamar",
    "variance",
    "variance_weights",
]
