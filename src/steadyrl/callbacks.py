"""`steadyrl.callbacks`: see `steadyrl.evaluation.callbacks`."""

from steadyrl.evaluation.callbacks import CallEvery, EvaluateEvery, StopWhen

__all__ = ["CallEvery", "EvaluateEvery", "StopWhen"]
