"""How the package loads: fast, lazily, and known to Gymnasium."""

import subprocess
import sys

import pytest

import steadyrl


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("imports", ["import steadyrl, gymnasium", "import gymnasium, steadyrl"])
def test_importing_the_package_registers_the_environments(imports):
    made = python(f"{imports}; print(gymnasium.make('steadyrl/GuardedMaze-v0').observation_space)")
    assert made == "Discrete(36)"


HELP = """
import sys
sys.argv[1:] = ["--help"]
try:
    import steadyrl.__main__
except SystemExit:
    pass
"""


@pytest.mark.parametrize("code", ["import steadyrl", HELP])
def test_neither_the_package_nor_help_loads_anything_heavy(code):
    heavy = ("jax", "gymnasium", "scipy", "matplotlib")
    assert python(f"{code}\nimport sys; print([m for m in {heavy} if m in sys.modules])").endswith("[]")


def test_every_public_name_resolves_and_nothing_else_does():
    for name in steadyrl.__all__:
        assert getattr(steadyrl, name) is not None
        assert name in dir(steadyrl)
    with pytest.raises(AttributeError, match="no attribute 'MeanGinny'"):
        _ = steadyrl.MeanGinny
