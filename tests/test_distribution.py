"""The wheel and the sdist: what is in them, and that the command runs in an environment that has only the wheel."""

import importlib.util
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import steadyrl

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
pytestmark = pytest.mark.slow


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def built(source, out, *kinds):
    """Without isolation: what building needs is in this environment, and no registry is asked."""
    for name in ("build", "hatchling"):
        if importlib.util.find_spec(name) is None:
            pytest.fail(f"{name} is not installed: pip install 'steadyrl[dev]'")
    run(sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", out, source)


def packaged():
    """The files of the package, as paths in a wheel."""
    files = [path for path in (SOURCE / "steadyrl").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(SOURCE).as_posix() for path in files}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    out = tmp_path_factory.mktemp("sdist")
    built(ROOT, out, "--sdist")
    (file,) = out.glob("*.tar.gz")
    return file


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """Built from the sdist, as `pip install steadyrl.tar.gz` does."""
    folder, out = tmp_path_factory.mktemp("unpacked"), tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    built(source, out, "--wheel")
    (file,) = out.glob("*.whl")
    return file


def test_names_have_the_version(sdist, wheel):
    assert sdist.name == f"steadyrl-{steadyrl.__version__}.tar.gz"
    assert wheel.name == f"steadyrl-{steadyrl.__version__}-py3-none-any.whl"


def test_the_wheel_has_all_of_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    within = {name for name in names if not name.startswith(f"steadyrl-{steadyrl.__version__}.dist-info/")}
    assert within == packaged()
    assert {"steadyrl/reports/page/assets/page.html", "steadyrl/runs/experiments/maze.toml"} <= within


def test_the_sdist_has_no_more_than_is_needed(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in packaged()} <= names
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"} <= names
    assert {name.partition("/")[0] for name in names} <= {
        *("src", "examples", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "PKG-INFO"),
        ".gitignore",
    }


def test_the_command_runs_where_only_the_wheel_is_installed(wheel, tmp_path):
    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    target = run(home / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel)
    # What steadyrl depends on, at the end of the path: the package itself comes from the wheel.
    Path(target, "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    python = home / "bin" / "python"
    where = run(python, "-c", "import steadyrl; print(steadyrl.__file__)", cwd=tmp_path)
    assert Path(where).is_relative_to(home)
    command = Path(target, "bin", "steadyrl").read_text().replace(sys.executable, str(python))
    (tmp_path / "steadyrl").write_text(command)
    assert run(python, tmp_path / "steadyrl", "--version", cwd=tmp_path) == f"steadyrl {steadyrl.__version__}"
    train = ["train", "steadyrl/GuardedMaze-v0", "--episodes", "50", "--no-progress", "--out", tmp_path / "run"]
    run(python, "-m", "steadyrl", *train, cwd=tmp_path)
    assert (tmp_path / "run" / "report.html").stat().st_size > 50_000
