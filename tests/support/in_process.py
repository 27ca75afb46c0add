"""Sweeps and experiments in this process, for tests to which worker processes do not matter."""

from contextlib import contextmanager

import pytest

from steadyrl.runs.workers import JobResult, describe_error


def run_all(run, jobs, show):
    """As `steadyrl.runs.workers.run_all`, one job after the other."""
    results = []
    for number, job in enumerate(jobs):
        try:
            results.append(JobResult(run(job, lambda report, number=number: show(number, report))))
        except Exception as error:
            results.append(JobResult(error=describe_error(error)))
        show(number, results[-1].error)
    return results


@contextmanager
def trained_in_process():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steadyrl.runs.scheduler.run_all", run_all)
        patch.setattr("steadyrl.runs.final_evaluation.run_all", run_all)
        yield
