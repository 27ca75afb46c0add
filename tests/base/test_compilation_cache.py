"""The compilation cache: whole entries for all processes, a limit of size, and programs that are compiled once."""

import json
import os
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import jax_worlds
import pytest

from steadyrl.base.compilation_cache import FileCache, prune

VALUE = zlib.compress(os.urandom(20_000))


def is_whole(value):
    try:
        zlib.decompress(value)
    except zlib.error:
        return False
    return True


def test_entries(tmp_path):
    cache = FileCache(tmp_path, is_whole)
    assert cache.get("one") is None
    cache.put("one", VALUE)
    assert cache.get("one") == FileCache(tmp_path, is_whole).get("one") == VALUE
    assert [path.name for path in tmp_path.iterdir()] == ["one-cache"], "the name that JAX gives it"


@pytest.mark.parametrize("size", [0, 1, len(VALUE) // 2, len(VALUE) - 1])
def test_an_entry_that_was_cut_off_is_replaced(tmp_path, size):
    (tmp_path / "one-cache").write_bytes(VALUE[:size])
    cache = FileCache(tmp_path, is_whole)
    assert cache.get("one") is None
    cache.put("one", VALUE)
    assert cache.get("one") == VALUE


def test_readers_never_see_a_part_of_an_entry(tmp_path):
    """While others write the same entry all the time."""
    cache, done = FileCache(tmp_path, is_whole), threading.Event()
    cache.put("one", VALUE)

    def write():
        own = FileCache(tmp_path, is_whole)
        while not done.is_set():
            own.put("one", VALUE)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert all(cache.get("one") == VALUE for _ in range(200))
    finally:
        done.set()
        writer.join()


def test_a_process_that_is_killed_while_writing_leaves_no_entry(tmp_path):
    code = f"""
import os, signal
from pathlib import Path
from steadyrl.base.compilation_cache import FileCache
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
FileCache(Path({str(tmp_path)!r}), bool).put("one", b"whole")
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    (left,) = tmp_path.iterdir()
    assert left.read_bytes() == b"whole"
    assert FileCache(tmp_path, is_whole).get("one") is None
    prune(tmp_path, 10**9)
    assert left.exists(), "somebody may still be writing it"
    os.utime(left, (0, 0))
    prune(tmp_path, 10**9)
    assert not left.exists()


def test_the_size_is_bounded_and_what_was_used_last_stays(tmp_path):
    cache = FileCache(tmp_path, lambda value: True, max_bytes=10_000)
    for number in range(350):
        cache.put(str(number), b"x" * 100)
        os.utime(tmp_path / f"{number}-cache", (number, number))
    left = sorted(int(path.name.removesuffix("-cache")) for path in tmp_path.iterdir())
    # Checked every 100 entries, and then 80 % are kept.
    assert left == list(range(220, 350))
    cache = FileCache(tmp_path, lambda value: True, max_bytes=None)
    cache.put("more", b"")
    assert len(list(tmp_path.iterdir())) == len(left) + 1, "no limit"


def test_reading_an_entry_is_using_it(tmp_path):
    cache = FileCache(tmp_path, lambda value: True)
    for name in ("old", "older"):
        cache.put(name, b"x" * 100)
        os.utime(tmp_path / f"{name}-cache", (1, 1))
    cache.get("older")
    prune(tmp_path, 150)
    assert [path.name for path in tmp_path.iterdir()] == ["older-cache"]


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path):
    (tmp_path / "file").touch()
    cache = FileCache(tmp_path / "file", is_whole)
    cache.put("one", VALUE)
    assert cache.get("one") is None


COUNTING = """
import collections, json, sys
import jax, jax.monitoring
counts = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: counts.update([event.rsplit("/", 1)[-1]]))
{code}
print(json.dumps([counts["cache_hits"], counts["cache_misses"]]))
"""
SMALL = """
from steadyrl.base.machine import enable_compilation_cache
enable_compilation_cache()
assert jax.jit(lambda x: 3 * x + 1)(2.0) == 7
"""
TRAINING = """
import steadyrl
settings = dict(hidden=(8,), episodes_per_update=4, max_episode_steps=600)
steadyrl.MeanGini("CartPole-v1", **settings).learn(total_episodes=8, progress_bar=False)
"""
TRAINING_IN_JAX = f"""
import sys
import steadyrl
sys.path.append({str(Path(jax_worlds.__file__).parent)!r})
agent = steadyrl.MeanGini("jax_worlds:Counter", hidden=(8,), episodes_per_update=4)
assert agent.engine == "jax"
agent.learn(total_episodes=8, progress_bar=False)
"""


def start(code, folder, **variables):
    """A process of its own that prints how many programs came from the cache, and how many were compiled."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {"XDG_CACHE_HOME": str(folder), **variables}
    # Warnings would be errors: JAX reports entries that it cannot read.
    command = [sys.executable, "-W", "error::UserWarning", "-c", COUNTING.format(code=code)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def counts(process):
    """What it prints."""
    printed, errors = process.communicate()
    assert process.returncode == 0, errors
    return tuple(json.loads(printed.splitlines()[-1]))


def compiled(code, folder, **variables):
    """How many programs came from the cache, and how many were compiled, in a process of its own."""
    return counts(start(code, folder, **variables))


def entries(folder):
    return list(folder.rglob("*-cache"))


def test_the_second_process_compiles_nothing_and_heals_entries(tmp_path):
    hits, compilations = compiled(SMALL, tmp_path)
    assert hits == 0
    assert compilations == len(entries(tmp_path)) > 0
    for entry in entries(tmp_path):
        os.truncate(entry, entry.stat().st_size // 2)
    assert compiled(SMALL, tmp_path) == (0, compilations)
    assert compiled(SMALL, tmp_path) == (compilations, 0)


@pytest.mark.slow
def test_a_folder_of_the_users_and_no_cache(tmp_path):
    own = tmp_path / "own"
    assert compiled(SMALL, tmp_path / "ours", JAX_COMPILATION_CACHE_DIR=str(own))[1] == len(entries(own)) > 0
    assert compiled(SMALL, tmp_path / "ours", JAX_ENABLE_COMPILATION_CACHE="0") == (0, 0)
    assert not entries(tmp_path / "ours")
    (tmp_path / "file").touch()
    assert compiled(SMALL, tmp_path / "file") == (0, 0), "nowhere to write"


@pytest.mark.slow
@pytest.mark.parametrize("training", [TRAINING, TRAINING_IN_JAX], ids=["gymnasium", "jax"])
def test_a_second_training_compiles_nothing(training, tmp_path):
    assert compiled(training, tmp_path)[1] > 20
    stored = {path: path.read_bytes() for path in entries(tmp_path)}
    hits, compilations = compiled(training, tmp_path)
    assert hits > 20
    assert compilations == 0
    assert {path: path.read_bytes() for path in entries(tmp_path)} == stored


@pytest.mark.slow
def test_two_trainings_at_a_time_share_a_folder(tmp_path):
    """Both may compile what neither has found; what they leave is whole and complete."""
    two = [start(TRAINING_IN_JAX, tmp_path) for _ in range(2)]
    for process in two:
        assert sum(counts(process)) > 20
    assert compiled(TRAINING_IN_JAX, tmp_path)[1] == 0
