"""What is installed, what is missing and how to get it, and whether it works."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import platform
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from steadyrl.base.machine import usable_cores

EXTRAS = {
    "box2d": ("Box2D", "LunarLander and Gymnasium's other Box2D environments"),
    "mujoco": ("mujoco", "InvertedPendulum, HalfCheetah, Swimmer and other MuJoCo environments"),
    "fast": ("envpool", "LunarLander about 2.5 times as fast"),
    "film": ("imageio-ffmpeg", "films as MP4, with `steadyrl watch`"),
    "tensorboard": ("tensorboardX", "`--log tensorboard`"),
    "wandb": ("wandb", "`--log wandb`: Weights & Biases"),
    "mlflow": ("mlflow-skinny", "`--log mlflow`"),
    "onnx": ("onnx", "policies as ONNX models, with `steadyrl export`"),
    "ray": ("ray", "runs on many machines, with `--on ray`"),
    "tune": ("optuna", "settings that are searched for, with `steadyrl tune`"),
}
"""Extra -> the package that it brings, which is also the module to import, and what it is for."""
MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """The state of one dependency, extra or trial."""

    name: str
    healthy: bool
    status: str
    """A version, or what is wrong."""
    remedy: str = ""
    """The command that fixes it."""
    essential: bool = False
    """Whether nothing works without it."""
    purpose: str = ""
    """What an extra is for."""


def examine() -> list[Finding]:
    """Check every dependency and extra, and try out what is installed."""
    needed = _requirements()
    core = [_dependency(name, versions) for name, (versions, extra) in needed.items() if extra is None]
    extras = [_extra(extra, *EXTRAS[extra], needed) for extra in EXTRAS]
    return [*core, *_trials(), *extras, _gymnax()]


def is_well(findings: Iterable[Finding]) -> bool:
    """Whether the core works; extras may be missing."""
    return all(finding.healthy for finding in findings if finding.essential)


def describe(findings: list[Finding]) -> str:
    """The findings as a table, and a conclusion."""
    width = max(len(finding.name) for finding in findings)
    blocks = [f"steadyrl {_version('steadyrl')}, Python {platform.python_version()}, {_machine()}"]
    for title, essential in (("needed", True), ("extras", False)):
        lines = [title]
        for finding in findings:
            if finding.essential is essential:
                mark = "ok" if finding.healthy else "--" if finding.status == MISSING else "!!"
                remedy = f": {finding.remedy}" if finding.remedy else ""
                lines.append(f"  {mark}  {finding.name:<{width}}  {finding.status}{remedy}")
                if finding.purpose:
                    lines.append(f"      {'':<{width}}  for {finding.purpose}")
        blocks.append("\n".join(lines))
    blocks.append(_conclusion(findings))
    return "\n\n".join(blocks)


def _conclusion(findings: list[Finding]) -> str:
    unusable = [finding.name for finding in findings if not finding.healthy]
    if not is_well(findings):
        needed = [finding.name for finding in findings if finding.essential and not finding.healthy]
        return f"Something needed does not work: {', '.join(needed)}."
    return f"The core works. Not usable: {', '.join(unusable)}." if unusable else "Everything works."


def _machine() -> str:
    usable = usable_cores()
    return f"{platform.system()} {platform.machine()}, {usable} CPU core{'s' if usable > 1 else ''}"


def _requirements() -> dict[str, tuple[str, str | None]]:
    """Package -> the versions we support, such as `>=1.4,<2`, and the extra that brings it; from our own metadata."""
    needed: dict[str, tuple[str, str | None]] = {}
    for line in importlib.metadata.requires("steadyrl") or []:
        found = re.match(r"([\w.-]+)(\[.*?\])?\s*([^;]*)(?:;.*extra == ['\"](\w+)['\"])?", line)
        # The first mention counts: gymnasium[box2d] names again what is needed anyway.
        if found and found[1] not in needed and found[1] != "steadyrl":
            versions = ",".join(sorted(found[3].strip().split(","), reverse=True))
            needed[found[1]] = (versions, found[4])
    return needed


def _dependency(package: str, versions: str) -> Finding:
    return _installed(package, package, versions, f"pip install '{package}{versions}'", essential=True)


def _extra(extra: str, package: str, purpose: str, needed: dict[str, tuple[str, str | None]]) -> Finding:
    versions = needed.get(package, ("", None))[0]
    finding = _installed(extra, package, versions, f"pip install 'steadyrl[{extra}]'")
    if finding.healthy:
        problem = _problem(_TRIALS_OF_EXTRAS.get(extra, lambda: importlib.import_module(package)))
        if problem:
            again = f"pip install --force-reinstall 'steadyrl[{extra}]'"
            finding = Finding(extra, False, f"{finding.status} is installed but does not work ({problem})", again)
    return dataclasses.replace(finding, purpose=purpose)


def _installed(name: str, package: str, versions: str, remedy: str, *, essential: bool = False) -> Finding:
    version = _version(package)
    if version is None:
        return Finding(name, False, MISSING, remedy, essential)
    if not _supports(versions, version):
        status = f"{package} {version} is installed, but {versions} is supported"
        return Finding(name, False, status, f"pip install '{package}{versions}'", essential)
    return Finding(name, True, version if name == package else f"{package} {version}", "", essential)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _supports(versions: str, version: str) -> bool:
    """Whether a version is in a range of the two kinds that we use, `>=` and `<`."""
    for bound in filter(None, versions.split(",")):
        found = re.fullmatch(r"(>=|<)([\d.]+)", bound)
        assert found is not None, versions
        own, other = _numbers(version), _numbers(found[2])
        if (own >= other) != (found[1] == ">="):
            return False
    return True


def _numbers(version: str) -> list[int]:
    """The leading numbers of a version, without zeros at the end: 2 and 2.0 are the same."""
    found = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


def _trials() -> list[Finding]:
    trials = {"JAX computes": _jax_computes, "maze plays": _maze_plays}
    findings = []
    for name, trial in trials.items():
        problem = _problem(trial)
        worked = f"yes, on {_devices()}" if trial is _jax_computes and not problem else "yes"
        findings.append(Finding(name, not problem, problem or worked, essential=True))
    return findings


def _devices() -> str:
    """What JAX computes on, such as "1 CPU device (cpu)"."""
    import jax

    devices = jax.devices()
    kinds = ", ".join(sorted({device.device_kind for device in devices}))
    return f"{len(devices)} {devices[0].platform.upper()} device{'s' if len(devices) > 1 else ''} ({kinds})"


def _gymnax() -> Finding:
    """No extra: its own requirements exclude the version of Gymnasium that we need, though it works with it."""
    from steadyrl.envs.jax_libraries import INSTALL_GYMNAX

    finding = _installed("gymnax", "gymnax", ">=1.0", INSTALL_GYMNAX)
    return dataclasses.replace(finding, purpose="environments in JAX, named gymnax:ID")


def _problem(trial: Callable[[], Any]) -> str:
    try:
        trial()
    except Exception as error:  # Whatever is wrong with an installation is reported; the other checks still run.
        return " ".join(f"{type(error).__name__}: {error}".split())
    return ""


def _jax_computes() -> None:
    import jax

    slope = float(jax.jit(jax.grad(lambda x: x**3))(2.0))
    if slope != 12:
        raise ArithmeticError(f"the slope of x**3 at 2 came out as {slope}, not 12")


def _maze_plays() -> None:
    from steadyrl.evaluation.evaluate import evaluate

    evaluate(lambda observation: 0, "steadyrl/GuardedMaze-v0", episodes=2)


def _mujoco_steps() -> None:
    mujoco = importlib.import_module("mujoco")
    ball = "<body><freejoint/><geom size='1'/></body>"
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{ball}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data)
    if not data.qvel[2] < 0:
        raise ArithmeticError("a ball in free fall did not fall")


_TRIALS_OF_EXTRAS: dict[str, Callable[[], Any]] = {
    "film": lambda: importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe(),
    "mlflow": lambda: importlib.import_module("mlflow"),
    "mujoco": _mujoco_steps,
}
"""Extras that are tried out by more than an import."""
