"""A run that was interrupted ends as if it had not been: the same parameters and the same metrics, bit for bit."""

import dataclasses

import pytest
from interrupted_runs import CASES, Killed, assert_same_runs, make_job, raising_at

from steadyrl.runs.job import run_job
from steadyrl.runs.scheduler import pending_jobs
from steadyrl.training.run_folder import is_complete, resume_files


# Whole trainings in one program take longer than compiling it.
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.optimized] if CASES[case][3] == "compiled" else []) for case in CASES],
)
def test_a_run_ends_the_same_wherever_it_was_interrupted(case, tmp_path):
    whole, interrupted = make_job(case, tmp_path / "whole"), make_job(case, tmp_path / "interrupted")
    run_job(whole)
    for call in (3, 1):  # In the third round; then in the first one after resuming.
        with pytest.raises(Killed):
            run_job(interrupted, raising_at(call, Killed))
        assert all(resume_files(folder) and not is_complete(folder) for folder in interrupted.folders)
    assert run_job(interrupted)[0].episodes >= whole.plan.total
    assert_same_runs(interrupted, whole)
    assert run_job(interrupted) == []


def test_a_budget_of_timesteps(tmp_path):
    whole, interrupted = (
        make_job("dqn", tmp_path / name, budget={"timesteps": 300}) for name in ("whole", "interrupted")
    )
    run_job(whole)
    with pytest.raises(Killed):
        run_job(interrupted, raising_at(4, Killed))
    run_job(interrupted)
    assert_same_runs(interrupted, whole)


@pytest.mark.optimized
def test_runs_of_one_program_need_not_have_stopped_together(tmp_path):
    """One has a checkpoint that the other has not, and a third has none; the width of the program stays the same."""
    whole, interrupted = (
        make_job("compiled", tmp_path / name, seeds=(5, 7, 9), vmap_width=5, threads=1)
        for name in ("whole", "interrupted")
    )
    run_job(whole)
    for run, call in zip(interrupted.runs, (2, 3), strict=False):
        with pytest.raises(Killed):
            run_job(dataclasses.replace(interrupted, runs=(run,)), raising_at(call, Killed))
    assert [[run.seed for run in job.runs] for job in pending_jobs([interrupted])] == [[5], [7], [9]]
    run_job(interrupted)
    assert_same_runs(interrupted, whole)
