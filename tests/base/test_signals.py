"""An interrupt that is ignored where it is raised is raised again."""

import gc
import os
import signal
import sys
import time

import pytest

from steadyrl.base.signals import check_interrupted, defer_signals, interruptible
from steadyrl.cli.main import main


@pytest.fixture(autouse=True)
def ctrl_c_enabled():
    """A test run in the background may have been started with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_in_callback(number=signal.SIGINT):
    """Receive a signal in a callback of the garbage collector, as JAX has one."""

    def callback(phase, info):
        gc.callbacks.remove(callback)
        os.kill(os.getpid(), number)
        time.sleep(0)

    gc.callbacks.append(callback)
    gc.collect()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_in_a_callback_is_repeated(number, capsys):
    def work():
        with interruptible():
            interrupt_in_callback(number)
            time.sleep(30)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work()
    assert time.monotonic() - started < 10
    assert capsys.readouterr().err == ""
    check_interrupted()  # It has been caught.


@pytest.mark.parametrize("safe_point", [check_interrupted, lambda: defer_signals().__enter__(), lambda: None])
def test_an_interrupt_that_a_library_catches_is_raised_at_the_next_safe_point(safe_point):
    reached = []

    def work():
        with interruptible():
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)
            except KeyboardInterrupt:
                reached.append("caught")
            safe_point()
            reached.append("after")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached[0] == "caught"


def test_an_error_that_a_library_makes_of_it_is_an_interrupt():
    def work():
        with interruptible():
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)
            except KeyboardInterrupt:
                raise RuntimeError("INTERNAL: callback failed") from None

    with pytest.raises(KeyboardInterrupt, match="callback failed"):
        work()


def test_saving_is_not_interrupted_by_the_interrupt_that_it_is_for():
    saved = []

    def work():
        with interruptible():
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)
            except KeyboardInterrupt:
                with defer_signals():
                    saved.append(True)
                raise

    with pytest.raises(KeyboardInterrupt):
        work()
    assert saved == [True]


def test_everything_is_as_before_afterwards():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), sys.unraisablehook
    with interruptible():
        assert signal.getsignal(signal.SIGTERM) is not before[1]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), sys.unraisablehook) == before
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interruptible():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_training_stops_when_a_callback_gets_the_interrupt(tmp_path, monkeypatch, capsys):
    from steadyrl.training.engines.host import HostEngine

    real, calls = HostEngine._round, []

    def interrupted(self, learner, k):
        calls.append(k)
        if len(calls) == 1:
            interrupt_in_callback()
        return real(self, learner, k)

    monkeypatch.setattr(HostEngine, "_round", interrupted)
    command = ["train", "CartPole-v1", "--agent", "reinforce", "--set", "hidden=8", "--episodes", "1000000"]
    with pytest.raises(SystemExit) as stop:
        main([*command, "--no-progress", "--out", str(tmp_path / "run")])
    assert stop.value.code == 130
    error = capsys.readouterr().err
    assert error.startswith("steadyrl: stopped.")
    assert "ignored" not in error
