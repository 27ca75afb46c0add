"""`steadyrl doctor`, here and on pretended installations."""

import importlib.metadata
import subprocess
import sys
from types import SimpleNamespace

import pytest

from steadyrl.cli import doctor
from steadyrl.cli.main import main


def installed(monkeypatch, **versions):
    """Pretend that these versions are installed, or None for a package that is not."""
    real = importlib.metadata.version

    def version(package):
        if package not in versions:
            return real(package)
        if versions[package] is None:
            raise importlib.metadata.PackageNotFoundError(package)
        return versions[package]

    monkeypatch.setattr(importlib.metadata, "version", version)


def finding(name):
    return next(found for found in doctor.examine() if found.name == name)


@pytest.fixture(autouse=True)
def no_trials(monkeypatch, request):
    """Imports of extras take seconds; the command's own test runs them."""
    if "trials" not in request.keywords:
        monkeypatch.setattr(doctor, "_trials", list)
        monkeypatch.setattr(doctor, "_TRIALS_OF_EXTRAS", dict.fromkeys(doctor.EXTRAS, lambda: None))


def test_this_machine_is_healthy():
    done = subprocess.run([sys.executable, "-m", "steadyrl", "doctor"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("Python", "CPU core", "gymnasium", "jax", "JAX computes", "yes, on ", "maze plays", *doctor.EXTRAS):
        assert name in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_a_missing_extra_comes_with_its_command(monkeypatch):
    installed(monkeypatch, mujoco=None)
    found = finding("mujoco")
    assert (found.healthy, found.status, found.remedy) == (False, "missing", "pip install 'steadyrl[mujoco]'")
    assert "mujoco" in doctor.describe(doctor.examine()).splitlines()[-1]


@pytest.mark.parametrize(("package", "version"), [("mujoco", "4.0.0"), ("mujoco", "3.5.9"), ("gymnasium", "2.0.0a1")])
def test_versions_out_of_range(monkeypatch, package, version):
    installed(monkeypatch, **{package: version})
    found = finding(package)
    assert not found.healthy
    assert version in found.status
    assert found.remedy.startswith(f"pip install '{package}>=")


def test_an_extra_that_does_not_work(monkeypatch):
    installed(monkeypatch, tensorboardX="2.6")

    def breaks():
        raise ImportError("libfoo.so:\nno such file")

    monkeypatch.setitem(doctor._TRIALS_OF_EXTRAS, "tensorboard", breaks)
    found = finding("tensorboard")
    assert found.status == "tensorboardX 2.6 is installed but does not work (ImportError: libfoo.so: no such file)"
    assert doctor.is_well([found])  # Only an extra.


def test_a_broken_core_is_status_1(monkeypatch, capsys):
    installed(monkeypatch, jax=None)
    with pytest.raises(SystemExit) as stop:
        main(["doctor"])
    assert stop.value.code == 1
    assert "Something needed does not work: jax." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("versions", "version", "supported"),
    [
        (">=1.4,<2", "1.4", True),
        (">=1.4,<2", "1.10.3", True),
        (">=1.4,<2", "1.3.9", False),
        (">=1.4,<2", "2", False),
        (">=1.4,<2", "2.0.0", False),
        (">=3.6", "3.6.0.post1", True),
        ("", "0.1", True),
    ],
)
def test_ranges(versions, version, supported):
    assert doctor._supports(versions, version) is supported


def test_every_extra_of_the_package_is_known():
    extras = set(importlib.metadata.metadata("steadyrl").get_all("Provides-Extra"))
    empty = {"report"}
    assert extras - {"all", "dev", "docs"} - empty == set(doctor.EXTRAS)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ([("cpu", "cpu")], "1 CPU device (cpu)"),
        ([("gpu", "NVIDIA H100"), ("gpu", "NVIDIA H100")], "2 GPU devices (NVIDIA H100)"),
        ([("gpu", "NVIDIA H100"), ("gpu", "NVIDIA A100")], "2 GPU devices (NVIDIA A100, NVIDIA H100)"),
    ],
)
def test_it_says_what_jax_computes_on(devices, expected, monkeypatch):
    import jax

    seen = [SimpleNamespace(platform=platform, device_kind=kind) for platform, kind in devices]
    monkeypatch.setattr(jax, "devices", lambda: seen)
    assert doctor._devices() == expected
