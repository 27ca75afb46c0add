"""Options of environments as text, and runs that nobody can want."""

import io
import subprocess
import sys

import gymnasium as gym
import pytest
from commands import refusal as fails

from steadyrl.cli.arguments import HUGE, confirm_budget
from steadyrl.cli.main import main
from steadyrl.envs.options import checked_options

LAKE = "FrozenLake-v1"


@pytest.fixture
def jobs(monkeypatch):
    """Jobs that would be trained."""
    jobs = []
    monkeypatch.setattr("steadyrl.runs.job.run_job", lambda job, listeners: jobs.append(job) or [])
    monkeypatch.setattr("steadyrl.runs.scheduler.train_all", lambda cells, *_: jobs.extend(cells) or [])
    monkeypatch.setattr("steadyrl.reports.sweep_table.print_cells", lambda cells: None)
    return jobs


@pytest.mark.parametrize(("text", "value"), [("False", False), ("false", False), ("True", True), ("0", 0)])
def test_switches_of_environments(text, value, jobs):
    main(["train", LAKE, "--env-set", f"is_slippery={text}"])
    main(["sweep", LAKE, "--env-set", f"is_slippery={text}"])
    assert [job.env_options for job in jobs] == [{"is_slippery": value}] * 2
    assert jobs[0].make_agents()[0].env.unwrapped.spec.kwargs["is_slippery"] == value


@pytest.mark.parametrize("command", ["train", "sweep"])
@pytest.mark.parametrize(
    ("env", "option", "message"),
    [
        (LAKE, "is_slippery=no", f"environment {LAKE}: is_slippery=no: true or false is needed."),
        ("FrozenLake", "is_slippery='False'", "is_slippery=False: true or false is needed."),
        ("gymnasium.envs.toy_text:FrozenLakeEnv", "is_slippery=off", "is_slippery=off: true or false is needed."),
        (LAKE, f"desc={'[' * 100_000}", f"--env-set desc={'[' * 37}...: it is nested too deeply."),
        (LAKE, "success_rate=1e999", "--env-set success_rate=1e999: the number is too large."),
    ],
)
def test_values_that_no_option_means(command, env, option, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, command, env, "--env-set", option)
    assert list(tmp_path.iterdir()) == []


def test_options_are_compared_with_their_defaults(monkeypatch):
    spec = gym.envs.registration.EnvSpec("Own-v0", entry_point=lambda size=3, **options: None, kwargs={"fast": True})
    monkeypatch.setitem(gym.registry, "Own-v0", spec)
    options = checked_options("Own-v0", {"size": 1e1, "rate": 1e1, "name": "no"})
    assert options == {"size": 10, "rate": 10.0, "name": "no"}
    assert [type(value) for value in options.values()] == [int, float, str]
    with pytest.raises(ValueError, match="fast=no: true or false is needed"):
        checked_options("Own-v0", {"fast": "no"})
    assert checked_options("Unknown-v0", {"fast": "no"}) == {"fast": "no"}


@pytest.mark.parametrize("command", ["train", "sweep"])
@pytest.mark.parametrize(("option", "unit"), [("--episodes", "episodes"), ("--timesteps", "timesteps")])
def test_huge_runs_are_confirmed(command, option, unit, jobs, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    line = fails(capsys, command, "CartPole-v1", option, "1e10")
    assert f"{option} 10,000,000,000 {unit}: at " in line
    assert line.endswith("and most environments are slower. Lower it, or add --yes.")
    assert jobs == []
    main([command, "CartPole-v1", option, "1e10", "--yes"])
    main([command, "CartPole-v1", option, str(HUGE[unit])])
    assert [job.plan.budget[unit] for job in jobs] == [10**10, HUGE[unit]]


@pytest.mark.parametrize(
    ("answer", "goes"), [("y\n", True), ("Yes\n", True), ("\n", False), ("n\n", False), ("", False)]
)
def test_a_terminal_is_asked(answer, goes, capsys, monkeypatch):
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    if goes:
        confirm_budget({"episodes": 10**9}, yes=False)
    else:
        with pytest.raises(ValueError, match="not confirmed"):
            confirm_budget({"episodes": 10**9}, yes=False)
    assert "1,000,000,000 episodes: at 10,000 a second that takes 28 hours" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--episodes", "--timesteps"])
@pytest.mark.parametrize("text", ["1e39", "9" * 5000, str(2**53 + 1), "1e999"])
def test_budgets_that_cannot_be_counted(option, text, capsys):
    for command in ("train", "sweep"):
        with pytest.raises(SystemExit) as stop:
            main([command, "CartPole-v1", option, text, "--yes"])
        assert stop.value.code == 2
        assert "at most 2**53" in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_budgets_of_files_are_bounded_too():
    with pytest.raises(ValueError, match=r"at most 2\*\*53"):
        confirm_budget({"timesteps": 10**39}, yes=True)


def test_seeds_out_of_bounds(capsys):
    assert "a seed is a whole number from 0" in fails(capsys, "train", "CartPole-v1", "--seed", "9999999999999")
    with pytest.raises(SystemExit):
        main(["train", "CartPole-v1", "--seed", "9" * 30])
    assert "is too large" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("hidden=", "hidden=[] for none"),
        ("hidden=999999999999999999999", "it must be at most 2147483647"),
        ("hidden=100000,100000", "GB of memory, and this machine has"),
    ],
)
def test_networks_that_nobody_can_want(setting, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, "train", "CartPole-v1", "--set", setting)
    assert message in fails(capsys, "sweep", "CartPole-v1", "--set", setting)
    assert list(tmp_path.iterdir()) == []


def test_nothing_heavy_is_imported_before_a_command_is_known():
    code = "import sys, steadyrl.cli.main; print({'jax', 'numpy', 'gymnasium', 'tyro'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(("given", "expected"), [(0, False), (1, True), (True, True)])
def test_switches_take_0_and_1(given, expected):
    assert checked_options("FrozenLake-v1", {"is_slippery": given}) == {"is_slippery": expected}


@pytest.mark.parametrize("given", [[], 2, "no", None])
def test_switches_take_nothing_else(given):
    with pytest.raises(ValueError, match=r"is_slippery=.*: true or false is needed"):
        checked_options("FrozenLake-v1", {"is_slippery": given})
