"""Loggers: where metrics go besides the agent's history, as a table of plug-ins.

To add one, write a file beside `jsonl.py` with a class like those there, and add a line to `LOGGERS`.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from steadyrl.base.files import write_atomic
from steadyrl.base.names import choose
from steadyrl.training.algorithm import Trainee
from steadyrl.training.records import COUNTERS, Record

LOGGERS = {
    "jsonl": "steadyrl.training.loggers.jsonl:JSONLinesLogger",
    "tensorboard": "steadyrl.training.loggers.tensorboard:TensorBoardLogger",
    "wandb": "steadyrl.training.loggers.wandb:WandbLogger",
    "mlflow": "steadyrl.training.loggers.mlflow:MLflowLogger",
}
"""Name -> the class, which is imported when it is asked for."""


class RunInfo(NamedTuple):
    """What a logger may know of a run before it starts."""

    name: str
    folder: Path | None
    """The run folder, if there is one."""
    config: dict[str, Any]
    """Agent, environment, settings, seed, budget and versions."""

    def path(self, logger: str, file: str) -> Path:
        """A file in the run folder, for the logger by that name; an error if there is no run folder."""
        if self.folder is None:
            raise ValueError(f"loggers=['{logger}']: there is no run folder to write to. Add out=..., or pass a path.")
        return self.folder / file

    def stored_id(self, service: str) -> str | None:
        """The id that a tracking service gave to the run in this folder, if it was logged there before."""
        file = self._id_file(service)
        return file.read_text().strip() if file is not None and file.is_file() else None

    def store_id(self, service: str, run_id: str) -> None:
        """Keep that id in the run folder, if there is one, so that a resumed run is logged to the same place."""
        file = self._id_file(service)
        if file is not None and self.stored_id(service) != run_id:
            write_atomic(file, f"{run_id}\n".encode())

    def _id_file(self, service: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{service}_run_id"


class Logger(Protocol):
    """Logs one run at a time.

    If it has a method `start(info: RunInfo)`, that is called before the first record. Loggers in `LOGGERS` are made
    without arguments. Those with a true attribute `writes_files` write into the run folder.
    """

    def log(self, record: Record) -> None:
        """Log the metrics of the latest rounds; `record["episodes"]` and `record["timesteps"]` are its positions."""
        ...

    def close(self) -> None:
        """Flush and release everything, at the end of training or when it is interrupted."""
        ...


class _LoggerListener:
    """A listener of the training loop that passes on the records of one agent."""

    def __init__(self, logger: Logger, agent: Trainee) -> None:
        self._logger, self._agent = logger, agent

    def __call__(self, agents: Sequence[Trainee], records: Sequence[Sequence[Record]]) -> None:
        for agent, latest in zip(agents, records, strict=True):
            if agent is self._agent:
                for record in latest:
                    self._logger.log(record)


def logger_class(name: str) -> Any:
    """The logger by that name; an error that says how to install the package it needs, if that is missing."""
    module, _, attribute = choose("logger", name, LOGGERS).partition(":")
    kind = getattr(importlib.import_module(module), attribute)
    getattr(kind, "check_installed", lambda: None)()
    return kind


@contextmanager
def open_loggers(
    loggers: Sequence[str | Logger], infos: Sequence[RunInfo], agents: Sequence[Trainee]
) -> Iterator[list[_LoggerListener]]:
    """Listeners that log each of the agents with each of the loggers; closed at the end, however that comes.

    Args:
        loggers: Names in `LOGGERS`, or objects, which log a single agent.
        infos: What there is to know of each agent's run.
        agents: The agents that are trained.
    """
    objects = [logger for logger in loggers if not isinstance(logger, str)]
    for each in objects:
        if inspect.isclass(each) or not all(callable(getattr(each, method, None)) for method in ("log", "close")):
            raise TypeError(
                f"loggers=[{each!r}]: pass an object with the methods log(record) and close(), or a name: "
                f"{', '.join(LOGGERS)}."
            )
    if objects and len(agents) > 1:
        raise ValueError(f"loggers={objects}: an object logs one run. Name loggers to log several.")
    kinds = {logger: logger_class(logger) for logger in loggers if isinstance(logger, str)}
    with ExitStack() as stack:
        listeners = []
        for agent, info in zip(agents, infos, strict=True):
            for logger in loggers:
                opened = kinds[logger]() if isinstance(logger, str) else logger
                stack.callback(opened.close)
                if hasattr(opened, "start"):
                    opened.start(info)
                listeners.append(_LoggerListener(opened, agent))
        yield listeners


def finite_metrics(record: Record) -> Record:
    """The metrics of a record without its counters; without numbers that are infinite or NaN."""
    return {name: value for name, value in record.items() if name not in COUNTERS and math.isfinite(value)}


def require(package: str, extra: str, purpose: str) -> Any:
    """The package that a logger needs, or an error that says how to install it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{purpose} needs {package}, which is not installed: pip install 'steadyrl[{extra}]'"
        ) from None
