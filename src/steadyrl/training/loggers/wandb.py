"""Metrics in Weights & Biases."""

from __future__ import annotations

import os
import sys
from typing import Any

from steadyrl.training.loggers import RunInfo, finite_metrics, require
from steadyrl.training.records import Record


class WandbLogger:
    """Logs to Weights & Biases, with the number of timesteps as the step.

    The environment variables of wandb apply, such as WANDB_MODE=offline, WANDB_ENTITY or WANDB_DIR. When a run is
    resumed in its run folder, the same W&B run is continued.

    Example: `agent.learn(200_000, loggers=[WandbLogger(project="cart-pole", tags=["risk"])])`.

    Args:
        project: By default WANDB_PROJECT, or else "steadyrl".
        **options: Further arguments of `wandb.init`, such as `entity`, `group`, `name` or `tags`.
    """

    def __init__(self, project: str | None = None, **options: Any) -> None:
        self._options = options if project is None else {"project": project, **options}
        self._run: Any = None

    @staticmethod
    def check_installed() -> Any:
        """The package, or an error that says how to get it."""
        return require("wandb", "wandb", "Logging to Weights & Biases")

    def start(self, info: RunInfo) -> None:
        """See `Logger`."""
        defaults = {
            "project": os.environ.get("WANDB_PROJECT", "steadyrl"),
            "name": os.environ.get("WANDB_NAME", info.name),
            "config": info.config,
            "reinit": "create_new",  # Several agents may be trained, and logged, in one process.
        }
        run_id = info.stored_id("wandb")
        resumed = {} if run_id is None else {"id": run_id, "resume": "allow"}
        self._info, self._run = info, self.check_installed().init(**{**defaults, **self._options, **resumed})

    def log(self, record: Record) -> None:
        """See `Logger`. What the W&B run holds already is skipped: after a crash, the last rounds are repeated.

        The run's id is stored now rather than at the start: if nothing is ever logged, nothing is to be continued.
        """
        self._info.store_id("wandb", self._run.id)
        if record["timesteps"] >= self._run.step:
            metrics = {"episodes": record["episodes"], **finite_metrics(record)}
            self._run.log(metrics, step=record["timesteps"])

    def close(self) -> None:
        """Finish the W&B run; as failed, if it is closed because of an error or an interrupt."""
        if self._run is not None:
            run, self._run = self._run, None
            run.finish(exit_code=int(sys.exception() is not None))
