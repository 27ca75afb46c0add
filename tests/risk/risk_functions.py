"""Every function of `steadyrl.risk` on samples of returns, and samples to try them on."""

import numpy as np
import pytest

from steadyrl import risk

VALUES = {
    "gini_deviation": risk.gini_deviation,
    "variance": risk.variance,
    "standard_deviation": risk.standard_deviation,
    "semivariance": risk.semivariance,
    "semideviation": risk.semideviation,
    "mean_deviation": risk.mean_deviation,
    "mean_median_deviation": risk.mean_median_deviation,
    "inter_es_range": lambda returns: risk.inter_es_range(returns, 0.3),
    "inter_quantile_range": risk.inter_quantile_range,
    "inter_quantile_range, plain": lambda returns: risk.inter_quantile_range(returns, 0.2, band=0),
    "cvar_deviation": lambda returns: risk.cvar_deviation(returns, 0.3),
    "cvar": lambda returns: risk.cvar(returns, 0.3),
    "entropic_risk": lambda returns: risk.entropic_risk(returns, 0.7),
}
WEIGHTS = {
    "gini_weights": risk.gini_weights,
    "gini_weights_unbiased": risk.gini_weights_unbiased,
    "double_sampling_weights": risk.double_sampling_weights,
    "variance_weights": risk.variance_weights,
}
FUNCTIONS = {**VALUES, **WEIGHTS}
DISPERSIONS = {name: value for name, value in VALUES.items() if name not in ("cvar", "entropic_risk")}
SYMMETRIC = {name: value for name, value in DISPERSIONS.items() if not name.startswith(("semi", "cvar"))}
"""Of -R as of R."""
BY_RETURN_ALONE = {name: weights for name, weights in WEIGHTS.items() if name != "double_sampling_weights"}
"""The weights that know a trajectory by its return; double sampling knows it by its place in the batch, too."""

named = pytest.mark.parametrize
every_function = named("name", FUNCTIONS)
every_value = named("name", VALUES)
every_weight = named("name", WEIGHTS)


def samples():
    """Small and large, with ties, all equal, and already sorted either way."""
    rng = np.random.default_rng(0)
    yield from ([0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0, 2.0], [5.0, 5.0, 5.0, 5.0], [1.0, 4.0, 1.0, 4.0, 4.0])
    yield from (rng.normal(size=n) for n in (2, 3, 10, 51))
    yield from (rng.integers(0, 4, size=n).astype(float) for n in (5, 30))
    yield np.sort(rng.exponential(size=12))
    yield -np.sort(rng.exponential(size=13))


every_sample = named("returns", list(samples()), ids=lambda returns: f"n{len(returns)}")
three_or_more = named("returns", [R for R in samples() if len(R) > 2], ids=lambda returns: f"n{len(returns)}")
