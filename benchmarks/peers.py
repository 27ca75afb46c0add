"""The virtual environment of the libraries we measure ourselves against: what is in it, and running a script there.

    python benchmarks/peers.py  # makes `.venv-peers`, if it is not there as described here

What our own constraints.txt names has the same version there, so that both sides play the same simulators.
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
from typing import IO, Any, NoReturn

ROOT = Path(__file__).parents[1]
PEERS = ROOT / ".venv-peers"
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
    """Whether the environment is there, and as described above."""
    return READY.exists() and READY.read_text().split() == list(PACKAGES)


def install() -> None:
    """Make the environment, if it is not there."""
    if not installed():
        print(f"Installing {', '.join(PACKAGES)} into {PEERS.name} ...", flush=True)
        venv.create(PEERS, with_pip=True, clear=True)
        pip = [PEERS / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", CONSTRAINTS, *PACKAGES], check=True)
        READY.write_text("\n".join(PACKAGES) + "\n")


def run(*arguments: object, **options: Any) -> str:
    """What a script printed in that environment, once it is done; see `started`."""
    with started(*arguments, **options) as process:
        return process.rest()


@contextmanager
def started(
    *arguments: object, python: object = PEERS / "bin/python", threads: int | None = None
) -> Generator[Process, None, None]:
    """A script that runs in that environment, or with another `python`; `threads` for matrix products, or all cores.

    It runs in a folder of its own, where MuJoCo leaves its log.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            [str(python), "-W", "ignore", *map(str, arguments)],
            env=os.environ | (thread_limits(threads) if threads else {}),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
        )
        try:
            yield Process(process, complaints)
        except BaseException:
            process.kill()
            raise
        finally:
            process.communicate()


@dataclass(frozen=True)
class Process:
    """A script that can be talked to line by line. Its stderr (warnings of MuJoCo and others) is shown if it fails."""

    process: subprocess.Popen[str]
    complaints: IO[str]

    def answer(self, line: str = "") -> str:
        """The next line that it prints, after it is told `line`, if any."""
        if line:
            print(line, file=self.process.stdin, flush=True)
        assert self.process.stdout is not None
        answer = self.process.stdout.readline()
        if not answer:
            self._fail()
        return answer

    def rest(self) -> str:
        """All that it prints until it ends."""
        printed, _ = self.process.communicate()
        if self.process.returncode:
            self._fail()
        return printed

    def _fail(self) -> NoReturn:
        self.process.communicate()
        self.complaints.seek(0)
        raise RuntimeError(f"{self.process.args}: exit code {self.process.returncode}.\n{self.complaints.read()}")


def thread_limits(threads: int) -> dict[str, str]:
    """Variables that keep OpenMP, OpenBLAS and XLA to so many threads."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"), str(threads))
    if threads == 1:  # XLA knows one or all.
        limits["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return limits


if __name__ == "__main__":
    install()
