"""How often intervals over runs and episodes contain the true difference of two methods: docs/comparing.md.

    python -m studies.seed_intervals --trials 400

Both methods have the same mean. A return is the sum of an effect of the run, an effect of the episode on both methods,
an effect of the episode on its own method, and noise, all normal. "crossed" draws episodes once for all runs, as
`steadyrl.compare` does; "nested" draws them within each run.
"""

from __future__ import annotations

import argparse

import numpy as np

from steadyrl.evaluation.reported import REPORTED
from steadyrl.evaluation.seed_resamples import RESAMPLES, seed_intervals

CASES = (
    # Runs, episodes, and the standard deviations of: runs, episodes for both, episodes for one, noise.
    (5, 100, 1.0, 0.0, 0.0, 5.0),
    (5, 100, 1.0, 5.0, 0.0, 1.0),
    (5, 100, 0.2, 1.0, 3.0, 1.0),
)


def tables(case, rng):
    """The returns [S, n] of both methods."""
    S, n, of_run, of_both, of_one, noise = case
    shared = rng.normal(0, of_both, n)
    return [
        rng.normal(0, of_run, (S, 1)) + shared + rng.normal(0, of_one, n) + rng.normal(0, noise, (S, n))
        for _ in range(2)
    ]


def nested(A, B, rng):
    """The interval of the difference if episodes are drawn within each run."""
    S, n = A.shape
    means = [
        table[rng.integers(S, size=(RESAMPLES, S, 1)), rng.integers(n, size=(RESAMPLES, S, n))].mean(axis=(1, 2))
        for table in (A, B)
    ]
    return np.quantile(means[0] - means[1], [0.025, 0.975])


def coverage(case, trials, seed=0):
    """The shares of trials whose interval contains 0: crossed and nested."""
    rng, hits = np.random.default_rng(seed), np.zeros(2)
    for trial in range(trials):
        A, B = tables(case, rng)
        _, *crossed = seed_intervals(A, B, {"mean": REPORTED["mean"]}, trial).difference["mean"]
        hits += [low <= 0 <= high for low, high in (crossed, nested(A, B, rng))]
    return hits / trials


def main():
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=400)
    trials = parser.parse_args().trials
    print("runs, episodes, std of: run, episode for both, episode for one, noise; coverage: crossed, nested")
    for case in CASES:
        print(*case, *(f"{100 * share:.1f} %" for share in coverage(case, trials)), flush=True)


if __name__ == "__main__":
    main()
