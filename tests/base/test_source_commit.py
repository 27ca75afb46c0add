"""The commit that a run records."""

import json
import subprocess

import pytest

import steadyrl
from steadyrl.base.source_commit import source_commit

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b")


@pytest.fixture
def checkout(tmp_path):
    """A repository with a package in src/, committed."""
    package = tmp_path / "repository" / "src" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
        subprocess.run([*GIT, *arguments], cwd=tmp_path / "repository", check=True)
    return package


def head(package):
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=package, text=True).strip()


def test_the_commit_of_a_checkout(checkout):
    (checkout / "untracked.py").write_text("")
    assert source_commit(checkout) == head(checkout)


def test_changed_source_code_is_said(checkout):
    (checkout / "__init__.py").write_text("x = 1")
    assert source_commit(checkout) == head(checkout) + "+changes"


def test_an_installed_package_has_none_even_in_another_projects_repository(checkout):
    installed = checkout.parents[1] / ".venv" / "lib" / "python3" / "site-packages" / "steadyrl"
    installed.mkdir(parents=True)
    assert source_commit(installed) is None


def test_a_broken_repository_has_none(checkout):
    (checkout.parents[1] / ".git" / "HEAD").write_text("nonsense")
    assert source_commit(checkout) is None


def test_a_run_folder_has_it(tmp_path):
    steadyrl.Reinforce("steadyrl/GuardedMaze-v0").learn(total_episodes=50, progress_bar=False, out=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "config.json").read_text())["commit"] == source_commit()
