"""A limit instead of a lambda: with runs on disk, resumed, and by real training in the maze."""

import json
import signal
import subprocess
import sys
import time

import pytest
from commands import refusal
from long_sweep import results, run_names

import steadyrl
from steadyrl.cli.main import main
from steadyrl.runs import final_evaluation
from steadyrl.training.run_files import START
from steadyrl.training.run_folder import read_config, resume_files

MAZE = "steadyrl/GuardedMaze-v0"
QUICK = {"episodes": 100, "evaluation_episodes": 20, "lambdas": 4, "progress": False}


@pytest.mark.usefixtures("in_process")
def test_runs_within_a_bracket_begin_with_the_policies_at_its_ends(tmp_path, capsys):
    # An untrained policy has a Gini deviation of about 20: no end of this bracket decides anything by itself.
    call = {"at_most": 15, "risk_aversion": "0:2", "settings": {"risk_warmup": 30}, "out": tmp_path, **QUICK}
    found = steadyrl.calibrate(MAZE, **call)
    assert [point.risk_aversion for point in found.tried[:2]] == [0, 2]
    names = run_names(tmp_path)
    warm = [name for name in names if "from=" in name]
    cold = set(names) - set(warm)
    assert warm
    assert not any((tmp_path / name / START).exists() for name in cold)
    assert {read_config(tmp_path / name)["settings"]["risk_warmup"] for name in cold} == {30}
    for name in warm:
        assert read_config(tmp_path / name)["budget"] == {"episodes": 50}
        assert len(read_config(tmp_path / name)["warm_start"]) == 64
        assert read_config(tmp_path / name)["settings"]["risk_warmup"] == 0
    data = json.loads((tmp_path / "calibration.json").read_text())
    assert data["limit"] == {"measure": "gini_deviation", "bound": 15.0, "at_most": True}
    assert len(data["points"]) == len(found.tried)
    before = results(tmp_path)
    capsys.readouterr()
    assert steadyrl.calibrate(MAZE, **call).tried == found.tried
    assert "To train" not in capsys.readouterr().out
    assert results(tmp_path) == before


@pytest.mark.usefixtures("in_process")
def test_what_is_found_can_be_used_and_shown(tmp_path, capsys):
    main(["calibrate", MAZE, "--mean-at-least", "-1000", "--episodes", "100", "--lambdas", "3", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "mean at least -1000: lambda" in printed
    assert max(map(len, printed[printed.index("\nmean at") :].splitlines()[:8])) <= 80
    path = printed.rsplit("steadyrl evaluate ", 1)[1].strip()
    assert steadyrl.load(path).episodes == 100
    assert "<h2>Calibration</h2>" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "calibration.png").is_file()


@pytest.mark.usefixtures("in_process")
def test_it_says_plainly_that_a_limit_is_not_reached(tmp_path, capsys):
    command = ["calibrate", MAZE, "--cvar-10-at-least", "9", "--risk-aversion", "0:0.5", "--episodes", "100"]
    command += ["--lambdas", "3"]
    with pytest.raises(SystemExit) as stop:
        main([*command, "--out", str(tmp_path)])
    assert stop.value.code == 1
    printed = capsys.readouterr().out
    assert "CVaR 10 % at least 9: not reached." in printed
    assert "None of the 3 lambdas tried, up to 0.5, reaches it" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "give a limit"),
        (["--gini-at-most", "1", "--std-at-most", "2"], "give one limit"),
        (["--gini-at-most", "-1"], "never below 0"),
        (["--mean-at-least", "25"], "no policy reaches it in this environment, where the best possible is 12"),
        (
            ["--gini-at-most", "5", "--agent", "reinforce"],
            "has no risk aversion to calibrate. Choose one of mean_risk, mg",
        ),
        (["--gini-at-most", "5", "--agent", "mvp"], "it must be above 0"),
        (["--gini-at-most", "5", "--risk-aversion", "2:1"], "low end 2 is not below"),
        (["--gini-at-most", "5", "--set", "risk_aversion=1"], "give it as --risk-aversion"),
        (["--gini-at-most", "5", "--lambdas", "1"], "at least 2"),
        (["--gini-at-most", "5", "--precision", "0"], "between 0 and 1"),
        (["--gini-at-most", "5", "--warm-budget", "2"], "from 0 to 1"),
        (["--gini-at-most", "5", "--seeds", "0"], "at least 1"),
    ],
)
def test_mistakes_are_refused_before_anything_is_trained(options, reason, capsys, tmp_path):
    out = tmp_path / "out"
    assert reason in refusal(capsys, "calibrate", MAZE, *options, "--out", out)
    assert not out.exists()


def test_a_bracket_in_python_is_checked():
    for bracket in ((2.0, 1.0), (-1.0, 1.0), (0.0, float("inf")), "2:1", "0:1:3", 1.0, (1.0,), [None, 1]):
        with pytest.raises(ValueError, match=r"^risk_aversion.*(not below|at least 0|such as 0:2|not a number)"):
            steadyrl.calibrate(MAZE, at_most=5, risk_aversion=bracket)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"measure": "bogus"}, "unknown measure 'bogus'"),
        ({"measure": "cvar:0.2"}, "unknown measure 'cvar:0.2'"),
        ({"measure": "inter_quantile_range", "alpha": 0.6}, "alpha"),
        ({"measure": "gini", "alpha": 0.5}, "alpha"),
        ({"measure": "cvar", "beta": 0.5}, "beta"),
    ],
)
def test_settings_of_a_measure_are_checked_before_lambda_0_is_trained(settings, reason, tmp_path):
    """Lambda 0 does not need the measure, so its training would not notice."""
    calls = {
        "calibrate": lambda out: steadyrl.calibrate(MAZE, "mean_risk", at_most=5, settings=settings, out=out),
        "auto": lambda out: steadyrl.frontier(MAZE, agents={"mean_risk": settings}, auto=True, out=out),
        "range": lambda out: steadyrl.frontier(MAZE, agents={"mean_risk": settings}, risk_aversion="0:1:2", out=out),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=reason):
            call(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("in_process")
def test_runs_that_fail_are_left_out_as_long_as_one_of_a_lambda_remains(tmp_path, monkeypatch, capsys):
    real = final_evaluation._evaluate_run

    def fails(job, run):
        if run.seed == 0:
            raise ValueError("no luck")
        real(job, run)

    monkeypatch.setattr(final_evaluation, "_evaluate_run", fails)
    call = {"at_least": -1000, "measure": "mean", "out": tmp_path, **QUICK, "lambdas": 2}
    found = steadyrl.calibrate(MAZE, seeds=2, **call)
    assert all(point.runs[0].endswith("seed1") for point in found.tried)
    assert "Left out: " in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"lambda 0: .*no luck.* The same command tries again\."):
        steadyrl.calibrate(MAZE, seeds=1, **call)


@pytest.mark.slow
@pytest.mark.optimized
@pytest.mark.usefixtures("in_process")
def test_a_killed_search_is_resumed_exactly(tmp_path):
    """The one that is killed trains in processes of its own, the others in this one."""
    command = ["calibrate", MAZE, "--gini-at-most", "5", "--episodes", "6000", "--evaluation-episodes", "50"]
    command += ["--lambdas", "3", "--checkpoint-every", "0", "--risk-aversion", "0:2"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    main([*command, "--out", str(whole)])
    started = [sys.executable, "-m", "steadyrl", *command, "--out", str(killed)]
    process = subprocess.Popen(started, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 600
    # In the middle of a run that began with a trained policy.
    while not any(resume_files(start.parent) for start in killed.rglob(START)):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    main([*command, "--out", str(killed)])
    assert results(killed) == results(whole)
    read = lambda out: json.loads((out / "calibration.json").read_text())["points"]  # noqa: E731
    assert read(killed) == read(whole)


@pytest.mark.slow
@pytest.mark.optimized
@pytest.mark.usefixtures("in_process")
def test_the_maze_by_training(tmp_path):
    """Limit 5: the white path. Limit 8: the risk-neutral policy, through the red cell."""
    options = {"episodes": 30_000, "progress": False, "lambdas": 3, "out": tmp_path}
    white = steadyrl.calibrate(MAZE, at_most=5, **options)
    assert white.found
    assert white.risk_aversion > 0.2976
    assert white.report.facts["white_path_rate"] > 0.7
    assert white.report.facts["red_visit_rate"] < 0.05
    assert white.report.gini_deviation.high <= 5
    neutral = steadyrl.calibrate(MAZE, at_most=8, **options)
    assert neutral.risk_aversion == 0
    assert neutral.report.facts["red_visit_rate"] > 0.9
    assert neutral.report.mean.high > 11
