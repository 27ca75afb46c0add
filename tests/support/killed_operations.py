"""Trains in a process of its own, which is killed right before one of the operations that change its run folder."""

import multiprocessing
import os
import signal
import sys

PRELOADED = ("steadyrl", "steadyrl.runs.job", "steadyrl.evaluation.evaluate", "interrupted_runs", __name__)
CHANGES = ("os.remove", "os.rename", "os.truncate", "os.mkdir", "os.rmdir")


def train_killed(case, folder, number):
    """Train a case of `interrupted_runs`; returns whether the process was killed before operation `number`.

    With JAX imported but not started, a fork is safe, and saves the seconds of the imports.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    process = context.Process(target=_train, args=(case, folder, number))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def _train(case, folder, number):
    from interrupted_runs import make_job

    from steadyrl.base.machine import enable_compilation_cache
    from steadyrl.runs.job import run_job

    enable_compilation_cache()
    operations = []

    def audit(event, arguments):
        changes = event in CHANGES or (event == "open" and _writes(arguments))
        if changes and str(arguments[0]).startswith(str(folder)):
            operations.append(event)
            if len(operations) == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(audit)
    run_job(make_job(case, folder, seeds=(5,)))


def _writes(arguments):
    _, mode, flags = arguments
    return any(letter in mode for letter in "wax+") if mode else bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
