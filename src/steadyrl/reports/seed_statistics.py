"""What many seeds say together: the interquartile mean over seeds, with a bootstrap interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steadyrl.evaluation.risk_report import CONFIDENCE, Estimate
from steadyrl.evaluation.seed_resamples import interquartile_mean

MIN_SEEDS = 3
"""With fewer seeds there is no interval."""
COVERAGE = {3: 74, 4: 88, 5: 90, 8: 93}
"""Number of seeds -> in how many % of samples of normal values the nominal 95 % interval covers their mean."""
CONCLUSIVE_SEEDS = 5
"""With fewer seeds an interval decides nothing."""
RESAMPLES = 4000


def iqm_over_seeds(values: NDArray[np.float64]) -> Estimate:
    """The interquartile mean of a value for each seed, with its 95 % percentile interval; of few seeds, none (NaN).

    Of fewer than four seeds it is the mean.
    """
    value = float(interquartile_mean(values))
    if len(values) < MIN_SEEDS or not np.isfinite(values).all():
        return Estimate(value, np.nan, np.nan)
    drawn = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(interquartile_mean(values[drawn]), [tail, 1 - tail])
    return Estimate(value, float(low), float(high))
