"""The virtual environment of the libraries that we compare with, and processes that run there.

    python -m benchmarks.peers.environment   # makes .venv-peers, unless it is there with these versions

What our own constraints.txt names has the same version there, so that both sides use the same simulators.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import venv
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".venv-peers"
PYTHON = PEERS / "bin/python"
CONSTRAINTS = ROOT / "constraints.txt"
PACKAGES = (
    "stable-baselines3==2.9.2",
    "sbx-rl==0.28.0",
    "torch==2.13.0",
    "jax==0.10.2",
    "flax==0.12.8",
    "tfp-nightly==0.26.0.dev20261027",  # SBX's distributions.
    "gymnasium[box2d,mujoco]==1.4.0",
    "mujoco==3.17.0",
    "Box2D==2.3.10",
)
READY = PEERS / ".ready"


def installed() -> bool:
    """Whether the environment is there, with these versions."""
    return READY.exists() and READY.read_text().split() == list(PACKAGES)


def install() -> None:
    """Make the environment, if it is not there."""
    if not installed():
        print(f"Installing {', '.join(PACKAGES)} into {PEERS.name} ...", flush=True)
        venv.create(PEERS, with_pip=True, clear=True)
        pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", CONSTRAINTS, *PACKAGES], check=True)
        READY.write_text("\n".join(PACKAGES) + "\n")


def run(module: str, *arguments: object, python: object = PYTHON, threads: int | None = None) -> str:
    """What a module prints, once it has ended; see `start`."""
    with start(module, *arguments, python=python, threads=threads) as process:
        return process.read_all()


@contextmanager
def start(
    module: str, *arguments: object, python: object = PYTHON, threads: int | None = None
) -> Generator[Process, None, None]:
    """A module that runs in that environment, or with another `python`; `threads` for matrix products, or all cores.

    It runs in a folder of its own, where MuJoCo leaves its log.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | (thread_limits(threads) if threads else {})
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [str(python), "-W", "ignore", "-m", module, *map(str, arguments)],
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            yield Process(process, errors)
        except BaseException:
            process.kill()
            raise
        finally:
            process.communicate()


@dataclass(frozen=True)
class Process:
    """A process that answers line by line. Its stderr (warnings of MuJoCo and others) is shown if it fails."""

    process: subprocess.Popen[str]
    errors: IO[str]

    def ask(self, line: str) -> str:
        """Send a line; the next line that it prints."""
        print(line, file=self.process.stdin, flush=True)
        return self.read_line()

    def read_line(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self._fail()
        return line

    def read_all(self) -> str:
        """Everything that it prints until it ends."""
        printed, _ = self.process.communicate()
        if self.process.returncode:
            self._fail()
        return printed

    def _fail(self) -> NoReturn:
        self.process.communicate()
        self.errors.seek(0)
        raise RuntimeError(f"{self.process.args}: exit code {self.process.returncode}.\n{self.errors.read()}")


def thread_limits(threads: int) -> dict[str, str]:
    """Variables that keep OpenMP, OpenBLAS and XLA to so many threads."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"), str(threads))
    if threads == 1:  # XLA knows one or all.
        limits["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return limits


if __name__ == "__main__":
    install()
