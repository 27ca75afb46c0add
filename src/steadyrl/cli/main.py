"""The command line: dispatches to a command, and reports how it ends."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tyro

from steadyrl.base.signals import TrainingInterruptedError, sigterm_as_interrupt
from steadyrl.cli.evaluate import Compare, Evaluate
from steadyrl.cli.info import Agents, Doctor
from steadyrl.cli.report import Report
from steadyrl.cli.reproduce import Reproduce
from steadyrl.cli.sweep import SweepCommand
from steadyrl.cli.train import Train

COMMANDS: dict[str, Callable[..., Any]] = {
    "train": Train,
    "sweep": SweepCommand,
    "evaluate": Evaluate,
    "compare": Compare,
    "reproduce": Reproduce,
    "report": Report,
    "agents": Agents,
    "doctor": Doctor,
}


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a user's mistake is reported in one line, with exit status 2."""
    # As `python -m` does, but last: nothing installed is hidden by a file that happens to lie here.
    sys.path.append(os.getcwd())
    try:
        with sigterm_as_interrupt(), _deprecations_shown():
            _command(sys.argv[1:] if arguments is None else arguments)()
    except KeyboardInterrupt as stop:
        print(f"steadyrl: stopped. {stop}".rstrip(), file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output, such as `head`, has closed the pipe; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if os.environ.get("STEADYRL_DEBUG") or not _is_user_error(error):
            raise
        print(f"steadyrl: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    finally:
        sys.path.pop()


def _command(arguments: list[str]) -> Callable[[], None]:
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        from steadyrl.base.names import unknown

        raise ValueError(unknown("command", arguments[0], COMMANDS))
    command: Callable[[], None] = tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        prog="steadyrl",
        description="Risk-averse reinforcement learning: policies whose return is high and steady.",
        args=arguments,
    )
    return command


@contextmanager
def _deprecations_shown() -> Iterator[None]:
    """Print deprecation warnings of ours in one line; Python hides them by default."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"steadyrl: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.filterwarnings("once", message=".* is now called ", category=DeprecationWarning)
        warnings.showwarning = show
        yield


def _is_user_error(error: Exception) -> bool:
    """Whether the user can fix it; anything else is a bug, which is shown with its traceback."""
    gymnasium = sys.modules.get("gymnasium")
    user_errors: tuple[Any, ...] = (ValueError, OSError, FloatingPointError, ImportError, TrainingInterruptedError)
    return isinstance(error, (*user_errors, gymnasium.error.Error) if gymnasium else user_errors)
