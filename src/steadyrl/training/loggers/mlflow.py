"""Metrics in MLflow."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import Any

from steadyrl.training.loggers import RunInfo, finite_metrics, require
from steadyrl.training.records import Record

SECONDS = 2.0
"""Between two calls of the tracking store, each of which takes tens of milliseconds."""
BATCH = 1000
"""Metrics that MLflow accepts in one call."""
ATTEMPTS = 60
"""At opening a SQLite database, a second apart. MLflow takes ten to create one, and two processes cannot at once."""


class MLflowLogger:
    """Logs to MLflow, with the number of timesteps as the step.

    The environment variables of MLflow apply, such as MLFLOW_TRACKING_URI. When a run is resumed in its run folder, the
    same MLflow run is continued. Metrics are sent every two seconds, and when training ends.

    Example: `agent.learn(200_000, loggers=[MLflowLogger("cart-pole", tracking_uri="http://localhost:5000")])`.

    Args:
        experiment: The name of the experiment; by default MLFLOW_EXPERIMENT_NAME, or else "steadyrl".
        tracking_uri: By default MLFLOW_TRACKING_URI, or else what MLflow chooses: `mlflow.db` in the current folder.
    """

    def __init__(self, experiment: str | None = None, tracking_uri: str | None = None) -> None:
        self._experiment, self._tracking_uri = experiment, tracking_uri
        self._client: Any = None

    @staticmethod
    def check_installed() -> Any:
        """The package, or an error that says how to get it."""
        return require("mlflow", "mlflow", "Logging to MLflow")

    def start(self, info: RunInfo) -> None:
        """See `Logger`."""
        mlflow, self._info, self._waiting, self._sent = self.check_installed(), info, list[Any](), time.monotonic()
        client, experiment_id = self._connect(mlflow)
        stored = info.stored_id("mlflow")
        if stored is None:
            self._run_id, self._logged = client.create_run(experiment_id, run_name=info.name).info.run_id, 0
            params = [mlflow.entities.Param(_valid(name), str(value)) for name, value in flatten(info.config).items()]
            client.log_batch(self._run_id, params=params)
        else:
            self._run_id, self._logged = stored, self._resume(client, stored)
        self._client = client

    def _connect(self, mlflow: Any) -> tuple[Any, str]:
        """A client and the id of the experiment, both created if needed; other processes may do so at the same time."""
        name = self._experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "steadyrl"
        uri = self._tracking_uri or mlflow.get_tracking_uri()
        attempts = 2
        if uri.startswith("sqlite"):
            require("alembic", "mlflow", "MLflow's SQLite store")
            attempts = ATTEMPTS
        while True:
            attempts -= 1
            try:
                # Not `mlflow.start_run`: it allows one active run in a process.
                client = mlflow.MlflowClient(tracking_uri=uri)
                found = client.get_experiment_by_name(name)
                return client, found.experiment_id if found is not None else client.create_experiment(name)
            except Exception:  # Of any kind: MLflow lets SQLite's through.
                if not attempts:
                    raise
                time.sleep(1)

    def _resume(self, client: Any, run_id: str) -> int:
        """Continue the run of that id; returns the number of episodes logged so far."""
        try:
            logged = client.get_run(run_id).data.metrics.get("episodes", 0)
            client.update_run(run_id, status="RUNNING")
        except self.check_installed().exceptions.MlflowException as error:
            raise ValueError(
                f"MLflow at {client.tracking_uri} cannot continue its run {run_id}: {error} "
                f"Set MLFLOW_TRACKING_URI as before, or remove {self._info.folder}/mlflow_run_id to start another."
            ) from error
        return int(logged)

    def log(self, record: Record) -> None:
        """See `Logger`. What the MLflow run holds already is skipped: after a crash, the last rounds are repeated."""
        if record["episodes"] <= self._logged:
            return
        metric, at = self.check_installed().entities.Metric, (int(1000 * record["time"]), record["timesteps"])
        values = {"episodes": record["episodes"], **finite_metrics(record)}
        self._waiting += [metric(_valid(name), float(value), *at) for name, value in values.items()]
        if time.monotonic() - self._sent >= SECONDS:
            self._send()

    def _send(self) -> None:
        self._info.store_id("mlflow", self._run_id)
        while self._waiting:
            self._client.log_batch(self._run_id, metrics=self._waiting[:BATCH])
            del self._waiting[:BATCH]
        self._sent = time.monotonic()

    def close(self) -> None:
        """Send the rest and finish the MLflow run; as failed or killed, if an error or an interrupt closes it."""
        if self._client is not None:
            if self._waiting:
                self._send()
            error, client = sys.exception(), self._client
            self._client = None
            status = "FINISHED" if error is None else "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"
            client.set_terminated(self._run_id, status)


def flatten(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"settings": {"gamma": 1}} as {"settings.gamma": 1}."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _valid(name: str) -> str:
    """A name with the characters that MLflow allows."""
    return re.sub(r"[^\w.\- :/]", "_", name)
