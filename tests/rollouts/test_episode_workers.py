"""Episodes played in worker processes: the same bits, deaths, errors, and no process left over."""

import dataclasses
import os
import pickle
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from gathering import actor_for, assert_same
from toy_envs import Faulty, Gamble
from worker_envs import Drift, Fated, Mortal, ends_its_process, unlicensed

from steadyrl.rollouts import workers as workers_module
from steadyrl.rollouts.acting import ROWS, Blocks, of_episodes
from steadyrl.rollouts.collector import FaultyEnvironmentError, Limits, collect
from steadyrl.rollouts.normalization import RunningMoments
from steadyrl.rollouts.simulators.gymnasium import GymnasiumSimulator
from steadyrl.rollouts.workers import EpisodeWorkers

SEEDS = [11, 3, 42, 8, 5, 99, 23]
LIMITS = Limits("Toy", 1000, first_episode=70)
SUPPORT = Path(__file__).parents[1] / "support"


def in_blocks(actor, seeds):
    return dataclasses.replace(actor, blocks=Blocks.of(np.arange(len(seeds))))


def here(make, actor, seeds=SEEDS, limits=LIMITS):
    return collect(GymnasiumSimulator(make(), make, len(seeds)), actor, seeds, limits)


@pytest.fixture
def workers():
    """Makes pools, and closes them."""
    pools = []

    def make(number, make_env):
        pools.append(EpisodeWorkers(number, make_env))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def dialled_actor(n):
    """One with another level in each of n episodes."""
    space = Drift.observation_space
    wider = type(space)(-np.inf, np.inf, (space.shape[0] + 1,))
    levels = np.linspace(0, 1, n, dtype=np.float32)
    return dataclasses.replace(actor_for(wider, Drift.action_space), observation_space=space, levels=levels)


def test_batches_are_the_same_bit_for_bit(workers, tmp_path, monkeypatch):
    sizes, send = [], workers_module._Worker.send
    monkeypatch.setattr(
        workers_module._Worker, "send", lambda self, message: sizes.append(len(message)) or send(self, message)
    )
    make = partial(Drift, str(tmp_path))
    plain = in_blocks(actor_for(Drift.observation_space, Drift.action_space), SEEDS)
    moments = RunningMoments(np.float32(9), np.float32([0.1, 0.2, 0.3]), np.float32([2, 0.5, 1]))
    pool = workers(2, make)
    dialled = in_blocks(dialled_actor(len(SEEDS)), SEEDS)
    wide = in_blocks(actor_for(Drift.observation_space, Drift.action_space, hidden=(256, 256)), SEEDS)
    assert len(pickle.dumps(wide)) > 2**18
    # A smaller batch after a larger one, and the largest first: to workers that have yet to start.
    for actor in (wide, plain, dataclasses.replace(plain, moments=moments), dialled, wide):
        assert_same(pool.collect(actor, SEEDS, LIMITS), here(make, actor))
    assert max(sizes) < 4096, "no pipe is full before a worker reads, so all of them start at the same time"
    # Fewer episodes than workers.
    assert_same(pool.collect(in_blocks(plain, SEEDS[:1]), SEEDS[:1], LIMITS), here(make, plain, SEEDS[:1]))
    episodes = here(make, plain)
    assert len(set(episodes.mask.sum(axis=1))) > 3, "episodes of different lengths"
    assert "end_rate" in episodes.episode_metrics
    pool.close()
    assert len(list(tmp_path.glob("closed *"))) == 2, "workers close their environments"


def test_an_action_does_not_depend_on_the_other_episodes():
    """Of networks as wide as those whose products are rounded differently with other numbers of rows."""
    from steadyrl.agents.networks import MLP

    rng, sizes, n = np.random.default_rng(0), (17, 256, 256, 6), 11

    class Network:
        def act(self, layers, observations, noise):
            return MLP(sizes).apply_numpy(layers, observations) + (0 if noise is None else noise)

    layers = [
        {"weight": rng.standard_normal((a, b), dtype=np.float32), "bias": np.zeros(b, np.float32)}
        for a, b in pairwise(sizes)
    ]
    actor = dataclasses.replace(actor_for(Drift.observation_space, Drift.action_space), policy=Network())
    actor = dataclasses.replace(actor, parameters=layers, blocks=Blocks.of(np.arange(n)))
    features, noise = rng.standard_normal((n, 17), dtype=np.float32), rng.standard_normal((n, 6), dtype=np.float32)
    every = actor.act(features, noise)
    assert np.allclose(every, dataclasses.replace(actor, blocks=None).act(features, noise), rtol=1e-4, atol=1e-3)
    for size in (1, 2, 4, 5, 9):
        some = np.sort(rng.choice(n, size, replace=False))
        np.testing.assert_array_equal(of_episodes(actor, some).act(features[some], noise[some]), every[some])
        np.testing.assert_array_equal(
            of_episodes(actor, some).act(features[some], None), actor.act(features, None)[some]
        )


def test_blocks():
    blocks = Blocks.of(np.array([1, ROWS, 3 * ROWS + 2]))
    assert blocks.number == 3
    values = np.array([[1.0], [2.0], [3.0]])
    split = blocks.split(values)
    assert split.shape == (3, ROWS, 1)
    assert (split[0, 1], split[1, 0], split[2, 2]) == (1, 2, 3)
    assert split.sum() == 6
    np.testing.assert_array_equal(blocks.join(split), values)
    full = Blocks.of(np.arange(2 * ROWS))
    assert full.rows is None
    assert np.shares_memory(full.split(rows := np.zeros((2 * ROWS, 3))), rows), "nothing is copied"


def test_the_episodes_of_a_killed_worker_are_played_again(workers, tmp_path):
    actor = in_blocks(actor_for(Drift.observation_space, Drift.action_space), SEEDS)
    expected = here(Drift, actor)
    pool = workers(1, partial(Mortal, str(tmp_path), seed=42, deaths=1))
    assert_same(pool.collect(actor, SEEDS, LIMITS), expected)
    assert (tmp_path / "deaths").read_text() == "x", "it was killed once"
    (worker,) = pool._workers
    worker.process.kill()  # Between two batches.
    worker.process.join()
    assert_same(pool.collect(actor, SEEDS, LIMITS), expected)


def test_three_deaths_of_an_episode_are_an_error(workers, tmp_path):
    actor = in_blocks(actor_for(Drift.observation_space, Drift.action_space), SEEDS)
    with pytest.raises(FaultyEnvironmentError) as stop:
        workers(1, partial(Mortal, str(tmp_path), seed=42, deaths=9)).collect(actor, SEEDS, LIMITS)
    assert str(stop.value) == (
        "Toy: episode 72 (seed 42) was played 3 times, and each time the process that played it died; the last one "
        "was killed (SIGKILL): is there enough memory?"
    )
    assert (tmp_path / "deaths").read_text() == "xxx"


@pytest.mark.slow
def test_deaths_before_an_episode_are_not_its_own(workers, tmp_path):
    actor = in_blocks(actor_for(Drift.observation_space, Drift.action_space), SEEDS)
    pool = workers(1, partial(Fated, str(tmp_path), seed=42, fates="esse."))
    assert_same(pool.collect(actor, SEEDS, LIMITS), here(Drift, actor))
    assert (tmp_path / "started").read_text() == "xxxxx"


@pytest.mark.parametrize(("fates", "started"), [("s", 3), pytest.param("sses", 6, marks=pytest.mark.slow)])
def test_workers_that_always_die_before_an_episode_are_an_error(workers, tmp_path, fates, started):
    actor = in_blocks(actor_for(Drift.observation_space, Drift.action_space), SEEDS)
    with pytest.raises(ValueError, match="workers: ") as stop:
        workers(1, partial(Fated, str(tmp_path), seed=42, fates=fates)).collect(actor, SEEDS, LIMITS)
    assert str(stop.value) == (
        "workers: 3 worker processes in a row died before they began an episode, as they started or created the "
        "environment; the last one was killed (SIGKILL): is there enough memory? Try without workers: the results are "
        "the same."
    )
    assert len((tmp_path / "started").read_text()) == started


def test_errors_of_the_environment_are_the_same(workers):
    make = partial(Faulty, "exception", wrong_seed=8)
    actor = in_blocks(actor_for(make().observation_space, Faulty.action_space), SEEDS)
    with pytest.raises(FaultyEnvironmentError) as without:
        here(make, actor)
    with pytest.raises(FaultyEnvironmentError) as within:
        workers(1, make).collect(actor, SEEDS, LIMITS)
    assert str(within.value) == str(without.value)
    assert "KeyError: 'broken sensor' at step 3 of episode 73 (seed 8)" in str(within.value)
    assert "toy_envs.py" in str(within.value.__cause__), "the traceback of the worker"


@pytest.mark.slow
def test_the_first_of_several_errors_is_reported_and_workers_are_started_again(workers):
    actor = in_blocks(actor_for(Drift.observation_space, Drift.action_space), SEEDS)
    pool = workers(2, Drift)
    for _ in range(2):
        with pytest.raises(FaultyEnvironmentError, match=r"no end at step 1 of episode 70 \(seed 11\)"):
            pool.collect(actor, SEEDS, LIMITS._replace(max_episode_steps=1))


@pytest.mark.slow
def test_tables(workers):
    table = actor_for(Gamble.observation_space, Gamble.action_space, "table")
    assert_same(workers(2, Gamble).collect(table, SEEDS, LIMITS), here(Gamble, table))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (unlicensed, "worker process could not create the environment: RuntimeError: no licence"),
        (partial(unlicensed, SystemExit(3)), "worker process could not create the environment: SystemExit: 3"),
        (ends_its_process, "worker process ended with exit code 4 before it began an episode. Look for what ends it"),
    ],
)
def test_an_environment_that_workers_cannot_create(workers, make, message):
    actor = in_blocks(actor_for(Drift.observation_space, Drift.action_space), SEEDS)
    with pytest.raises(ValueError, match=message):
        workers(1, make).collect(actor, SEEDS, LIMITS)


def unreadable():
    raise ImportError("no such network")


class Unreadable:
    """A policy that is pickled, and cannot be unpickled."""

    def __reduce__(self):
        return unreadable, ()


@pytest.mark.slow
def test_a_policy_that_workers_cannot_load(workers):
    actor = in_blocks(actor_for(Drift.observation_space, Drift.action_space), SEEDS)
    actor = dataclasses.replace(actor, policy=Unreadable())
    with pytest.raises(ValueError, match=r"could not load the policy: ImportError: no such network\. Define what"):
        workers(1, Drift).collect(actor, SEEDS, LIMITS)


SCRIPT = """
import signal, sys
from functools import partial
from gathering import actor_for
from worker_envs import *
from steadyrl.rollouts.collector import Limits
from steadyrl.rollouts.workers import EpisodeWorkers
{guard}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    actor = actor_for(Drift.observation_space, Drift.action_space)
    pool = EpisodeWorkers(2, partial({env}, {folder!r}))
    pool.collect(actor, [1, 2, 3, 4], Limits("Toy", 1000))
"""
GUARD = "if __name__ == '__main__':"


def script(tmp_path, **parts):
    """A process that plays episodes in workers."""
    file = tmp_path / "script.py"
    file.write_text(SCRIPT.format(folder=str(tmp_path), **parts))
    paths = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, file], env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.PIPE, text=True
    )


def pids_in(tmp_path, process):
    """Of both workers, once they play."""
    deadline = time.monotonic() + 120
    while len(found := [int(path.name) for path in tmp_path.iterdir() if path.name.isdecimal()]) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    return found


def assert_gone(pids):
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, "a worker still runs"
        time.sleep(0.1)


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_no_worker_outlives_its_parent(tmp_path, number):
    process = script(tmp_path, env="Endless", guard=GUARD)
    pids = pids_in(tmp_path, process)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert_gone(pids)
    assert error.strip().endswith("" if number == signal.SIGKILL else "KeyboardInterrupt")
    assert {path.name for path in tmp_path.glob("closed *")} == {f"closed {pid}" for pid in pids}


@pytest.mark.slow
def test_a_script_without_a_guard_gets_one_line(tmp_path):
    process = script(tmp_path, env="Drift", guard="if True:")
    _, error = process.communicate(timeout=120)
    assert process.returncode == 1
    assert error.count("Traceback") == 1, "of the script, not of its workers"
    last = error.strip().splitlines()[-1]
    assert last.endswith("ended: if this is a script, put the call under `if __name__ == '__main__':`.")
