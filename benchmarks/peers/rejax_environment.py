"""The virtual environment of Rejax: it needs gymnax before 1.0, and we gymnax 1.x.

python -m benchmarks.peers.rejax_environment   # makes .venv-rejax, unless it is there with these versions
"""

from __future__ import annotations

import subprocess
import venv

from benchmarks.peers.environment import ROOT

REJAX = ROOT / ".venv-rejax"
PYTHON = REJAX / "bin/python"
PACKAGES = ("rejax==0.1.3", "gymnax==0.0.9", "jax==0.10.2", "flax==0.12.8")
READY = REJAX / ".ready"


def install() -> None:
    """Make the environment, if it is not there."""
    if READY.exists() and READY.read_text().split() == list(PACKAGES):
        return
    print(f"Installing {', '.join(PACKAGES)} into {REJAX.name} ...", flush=True)
    venv.create(REJAX, with_pip=True, clear=True)
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *PACKAGES], check=True)
    READY.write_text("\n".join(PACKAGES) + "\n")


if __name__ == "__main__":
    install()
