"""Early stopping: a rule from the scores of evaluations during training to the reason to stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class EarlyStopping:
    """Stop when the score has not improved for a number of evaluations, or when it has reached a target."""

    patience: int | None = None
    """Evaluations in a row without an improvement; None for any number."""
    min_improvement: float = 0.0
    """A score is an improvement if it exceeds the last one that was by more than this."""
    target: float | None = None
    risk_aversion: float = 0.0
    """The score is the mean return less this times the Gini deviation."""

    def __post_init__(self) -> None:
        if self.patience is not None and self.patience < 1:
            raise ValueError(f"patience={self.patience}: it counts evaluations. Pass at least 1.")
        if not 0 <= self.min_improvement < math.inf:
            raise ValueError(f"min_improvement={self.min_improvement}: it is at least 0, in units of the score.")
        if self.min_improvement and self.patience is None:
            raise ValueError(f"min_improvement={self.min_improvement}: it needs patience, a number of evaluations.")
        if self.patience is None and self.target is None:
            raise ValueError("early stopping: give patience, or a target score.")
        if self.target is not None and math.isnan(self.target):
            raise ValueError(f"target={self.target}: a score is a number.")

    def score(self, mean: float, gini_deviation: float) -> float:
        """Of an evaluation."""
        return mean - self.risk_aversion * gini_deviation

    def reason(self, scores: Sequence[float]) -> str | None:
        """Why to stop after these scores, in their order; None to train further."""
        if self.target is not None and scores and scores[-1] >= self.target:
            return f"the score {scores[-1]:.6g} has reached the target {self.target:.6g}"
        if self.patience is None or not scores:
            return None
        best, without = scores[0], 0
        for score in scores[1:]:
            if score > best + self.min_improvement:
                best, without = score, 0
            else:
                without += 1
        if without < self.patience:
            return None
        more = f" by more than {self.min_improvement:.6g}" if self.min_improvement else ""
        return f"the score has not improved on {best:.6g}{more} in {without} evaluations"
