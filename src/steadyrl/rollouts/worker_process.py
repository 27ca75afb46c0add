"""A process that plays episodes for another one: it has an environment of its own, and is given the policy and seeds.

It is sent pickled tuples: for each batch ("batch", where it is in memory shared by all workers), and for each episode
("play", number in the batch, seed), or ("close",). A batch is the pickled function that creates the environment, actor,
limits and deterministic. It answers each episode by ("unable", what, error, traceback) if it cannot load the policy or
create the environment, else by ("begun",), and then ("played", layouts of its arrays, metrics) or ("failed", error,
traceback). The arrays themselves are in memory shared by this process and its parent.
"""

from __future__ import annotations

import pickle
import signal
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from steadyrl.base.processes import end_after_cleanup, received
from steadyrl.base.shared_arrays import SharedArrays
from steadyrl.base.shared_pickle import SharedPickle
from steadyrl.base.signals import check_interrupted, defer_signals, interruptible
from steadyrl.rollouts.acting import of_episodes
from steadyrl.rollouts.collector import collect
from steadyrl.rollouts.episodes import Episodes
from steadyrl.rollouts.simulators.gymnasium import GymnasiumSimulator

ARRAYS = ("observations", "actions", "rewards", "last_observations", "terminated", "action_masks", "last_action_masks")
"""The parts of `Episodes` that a worker returns, the last two only if there are action masks. `mask` is all ones."""


def work(pipe: Connection, memory: SharedArrays, shared: SharedPickle) -> None:
    """Play episodes until the pipe is closed, or the process is terminated; then close the environment."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    messages, player = received(pipe, end_after_cleanup), _Player(memory, shared)
    try:
        with interruptible(), suppress(BrokenPipeError, ConnectionResetError):
            while True:
                check_interrupted()
                kind, *content = pickle.loads(messages.get())
                if kind == "close":
                    return
                if kind == "batch":
                    player.announce(*content)
                    continue
                try:
                    player.prepare()
                except (Exception, SystemExit) as error:
                    check_interrupted()
                    pipe.send(("unable", player.preparing, *_sendable(error)))
                    return
                pipe.send(("begun",))
                pipe.send(player.play(*content))
    except KeyboardInterrupt:
        pass
    finally:
        player.close()


class _Player:
    """The environment of this process, and the batch that is being played."""

    def __init__(self, memory: SharedArrays, shared: SharedPickle) -> None:
        self._memory, self._shared = memory, shared
        self.preparing = ""
        """What is being prepared, for errors."""
        self._layouts: Any = None
        self._batch: Any = None
        self._env: Any = None
        self._simulator: Any = None

    def announce(self, layouts: Any) -> None:
        """Another batch, which is read with its first episode: until that is over, its memory does not change."""
        self._layouts, self._batch = layouts, None

    def prepare(self) -> None:
        """Read the batch and create the environment, unless that is done."""
        if self._batch is not None:
            return
        self.preparing = "load the policy"
        with defer_signals():  # An exception in the middle of the import of JAX can crash Python.
            make, *batch = self._shared.read(self._layouts)
        if self._env is None:
            self.preparing = "create the environment"
            with defer_signals():
                make = pickle.loads(make)
            self._env = make()
            self._simulator = GymnasiumSimulator(self._env, None, 1)
        self._batch = batch

    def play(self, number: int, seed: int) -> tuple[Any, ...]:
        """The answer with an episode, as it would be among the others of its batch."""
        actor, limits, deterministic = self._batch
        limits = limits._replace(first_episode=limits.first_episode + number)
        try:
            actor = of_episodes(actor, slice(number, number + 1))
            episode = collect(self._simulator, actor, [seed], limits, deterministic)
            metrics = {name: float(values[0]) for name, values in episode.episode_metrics.items()}
            return "played", self._memory.write(_arrays(episode)), metrics
        except Exception as error:
            check_interrupted()
            return "failed", *_sendable(error)

    def close(self) -> None:
        """Close the environment, if there is one."""
        with suppress(Exception):
            if self._env is not None:
                self._env.close()


def _arrays(episode: Episodes) -> list[Any]:
    arrays = [getattr(episode, name) for name in ARRAYS]
    return [array for array in arrays if array is not None]


def _sendable(error: BaseException) -> tuple[BaseException, str]:
    """An error that can be pickled and unpickled, and its traceback as text."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    return error, text
