"""A process that plays episodes for another one: it has an environment of its own, and is given the policy and seeds.

It is sent pickled tuples: ("make", function that creates the environment), then for each batch ("batch", actor, limits,
deterministic), and for each episode ("play", number in the batch, seed), or ("close",). It answers ("ready",) or
("unable", error, traceback) when it has created the environment, and each episode by ("played", layouts of its arrays,
metrics) or ("failed", error, traceback). The arrays themselves are in shared memory.
"""

from __future__ import annotations

import pickle
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from steadyrl.base.processes import end_after_cleanup, received
from steadyrl.base.shared_arrays import SharedArrays
from steadyrl.base.signals import check_interrupted, defer_signals, interruptible
from steadyrl.rollouts.acting import Actor, of_episodes
from steadyrl.rollouts.collector import Limits, collect
from steadyrl.rollouts.episodes import Episodes
from steadyrl.rollouts.simulators.gymnasium import GymnasiumSimulator

ARRAYS = ("observations", "actions", "rewards", "last_observations", "terminated", "action_masks", "last_action_masks")
"""The parts of `Episodes` that a worker returns, the last two only if there are action masks. `mask` is all ones."""


def work(pipe: Connection, memory: SharedArrays) -> None:
    """Play episodes until the pipe is closed, or the process is terminated; then close the environment."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    messages = received(pipe, end_after_cleanup)
    envs: list[Any] = []

    def receive() -> Any:
        check_interrupted()
        message = messages.get()
        with defer_signals():  # An exception in the middle of the import of JAX can crash Python.
            return pickle.loads(message)

    try:
        with interruptible(), suppress(BrokenPipeError, ConnectionResetError):
            try:
                _, make = receive()
                envs.append(make())
                pipe.send(("ready",))
            except Exception as error:
                pipe.send(("unable", *_sendable(error)))
                return
            _play_all(pipe, memory, GymnasiumSimulator(envs[0], None, 1), receive)
    except KeyboardInterrupt:
        pass
    finally:
        for env in envs:
            with suppress(Exception):
                env.close()


def _play_all(
    pipe: Connection, memory: SharedArrays, simulator: GymnasiumSimulator, receive: Callable[[], Any]
) -> None:
    batch: Any = None
    while True:
        kind, *content = receive()
        if kind == "close":
            return
        if kind == "batch":
            batch = content
            continue
        try:
            episode = _play(simulator, *batch, *content)
            metrics = {name: float(values[0]) for name, values in episode.episode_metrics.items()}
            answer: Any = ("played", memory.write(_arrays(episode)), metrics)
        except Exception as error:
            check_interrupted()
            answer = ("failed", *_sendable(error))
        pipe.send(answer)


def _arrays(episode: Episodes) -> list[Any]:
    arrays = [getattr(episode, name) for name in ARRAYS]
    return [array for array in arrays if array is not None]


def _play(
    simulator: GymnasiumSimulator, actor: Actor, limits: Limits, deterministic: bool, number: int, seed: int
) -> Episodes:
    """The episode as it would be among the others of its batch."""
    limits = limits._replace(first_episode=limits.first_episode + number)
    return collect(simulator, of_episodes(actor, slice(number, number + 1)), [seed], limits, deterministic)


def _sendable(error: Exception) -> tuple[Exception, str]:
    """An error that can be pickled and unpickled, and its traceback as text."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    return error, text
