"""A run is killed before each single operation that changes its folder: nothing is lost, and no bit is different."""

import pytest
from interrupted_runs import assert_same_runs, make_job
from killed_operations import train_killed

from steadyrl.reports.page.runs_found import find_runs
from steadyrl.runs.job import run_job
from steadyrl.training.run_folder import is_complete

ENOUGH = 200


@pytest.mark.slow
@pytest.mark.optimized
def test_killed_before_every_operation(tmp_path):
    whole = make_job("compiled", tmp_path / "whole", seeds=(5,))
    run_job(whole)
    for number in range(1, ENOUGH):
        job = make_job("compiled", tmp_path / str(number), seeds=(5,))
        if not train_killed("compiled", tmp_path / str(number), number):
            break
        (folder,) = job.folders
        if is_complete(folder):  # Killed before it could tidy up: everyone calls it complete.
            assert not [note for note in find_runs(folder)[1] if "incomplete" in note]
        run_job(job)
        assert_same_runs(job, whole)
        assert {path.name for path in folder.iterdir()} == {path.name for path in whole.folders[0].iterdir()}
    assert 15 < number < ENOUGH - 1
