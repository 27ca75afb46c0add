"""A run's metrics as TensorBoard events, beside its JSON lines."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

FOLDER = "tensorboard"
"""Where in a run's folder the events are."""
AXES = ("episodes", "timesteps")
"""Every metric is told by both, under `by_episodes/` and `by_timesteps/`."""
_NOT_METRICS = (*AXES, "iteration", "time")


def tensorboard_x() -> Any:
    """The package that writes events, or an error that says how to get it."""
    try:
        return importlib.import_module("tensorboardX")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "TensorBoard events need tensorboardX, which is not installed: pip install 'steadyrl[tensorboard]'"
        ) from None


class TensorBoard:
    """A listener of `learn_together` that writes the metrics of one agent; look at them with `tensorboard --logdir`."""

    def __init__(self, run_folder: Path, agent: Agent) -> None:
        self.folder, self.agent = run_folder / FOLDER, agent
        self._writer: Any = None

    def __call__(self, agents: Sequence[Agent], metrics: Sequence[Sequence[dict[str, Any]]]) -> None:
        """Write the latest records of this run's agent; the first ones open the file."""
        if self._writer is None:
            self._writer = tensorboard_x().SummaryWriter(str(self.folder))
        for agent, latest in zip(agents, metrics, strict=True):
            if agent is self.agent:
                for record in latest:
                    self._write(record)
        self._writer.flush()

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()

    def _write(self, record: dict[str, Any]) -> None:
        for name, value in record.items():
            if name not in _NOT_METRICS:
                for axis in AXES:
                    self._writer.add_scalar(f"by_{axis}/{name}", value, record[axis], walltime=record["time"])
