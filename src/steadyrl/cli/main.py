"""The command line: dispatches to a command, and reports how it ends."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from steadyrl.base.shown import printable
from steadyrl.base.signals import TrainingInterruptedError, defer_signals, interruptible

NEED_JAX = (
    "train",
    "sweep",
    "evaluate",
    "compare",
    "export",
    "reproduce",
    "agents",
    "frontier",
    "calibrate",
    "tune",
    "watch",
)
"""Commands that import it."""
_STOPPED = 130


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a user's mistake is reported in one line, with exit status 2."""
    called_by_shell = arguments is None
    arguments = sys.argv[1:] if arguments is None else arguments
    path = list(sys.path)
    if any(":" in argument or argument.endswith(".toml") for argument in arguments):
        # For a module:factory in the current folder. Otherwise that is not searched, as Gymnasium and JAX load all
        # plugins that they find: it may be a folder that was downloaded.
        sys.path.append(os.getcwd())
    try:
        with interruptible(), _deprecations_shown():
            _run(arguments)
    except KeyboardInterrupt as stop:
        print(f"steadyrl: stopped. {stop}".rstrip(), file=sys.stderr)
        if called_by_shell:
            _exit_at_once(_STOPPED)
        sys.exit(_STOPPED)
    except BrokenPipeError:
        # The reader of our output, such as `head`, has closed the pipe; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if os.environ.get("STEADYRL_DEBUG") or not _is_user_error(error):
            raise
        print(f"steadyrl: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        sys.exit(2)
    finally:
        sys.path[:] = path


def _exit_at_once(status: int) -> None:
    """Skip what Python does at its end: there JAX crashes now and then if it was interrupted while it compiled."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)


def _run(arguments: list[str]) -> None:
    if arguments[:1] == ["--version"]:
        print(f"steadyrl {importlib.metadata.version('steadyrl')}")
        return
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview(), file=sys.stdout if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    command = _command(arguments)
    if arguments[0] in NEED_JAX:
        with defer_signals():  # An exception in the middle of its import can crash Python.
            import steadyrl.agents  # noqa: F401
    command()


def _command(arguments: list[str]) -> Callable[[], None]:
    import tyro

    from steadyrl.base.names import unknown
    from steadyrl.cli.arguments import check_options

    commands = _commands()
    if arguments[0] not in commands:
        raise ValueError(unknown("command", arguments[0], commands))
    check_options(arguments[0], commands[arguments[0]], arguments[1:])
    command: Callable[[], None] = tyro.extras.subcommand_cli_from_dict(
        commands,
        prog="steadyrl",
        description="Risk-averse reinforcement learning: policies whose return is high and steady.",
        args=arguments,
    )
    return command


def _overview() -> str:
    """The commands, with a line about each."""
    commands = {name: (kind.__doc__ or "").splitlines()[0] for name, kind in _commands().items()}
    width, columns = max(map(len, commands)), min(shutil.get_terminal_size().columns, 120)
    indent = " " * (width + 4)
    return "\n".join(
        [
            "usage: steadyrl COMMAND ...",
            "",
            "Risk-averse reinforcement learning: policies whose return is high and steady.",
            "",
            *(
                textwrap.fill(f"  {name:<{width}}  {line}", columns, subsequent_indent=indent)
                for name, line in commands.items()
            ),
            "",
            "All options of a command: steadyrl COMMAND --help. The version: steadyrl --version.",
            "For a start: steadyrl train steadyrl/GuardedMaze-v0 --agent mg",
        ]
    )


def _commands() -> dict[str, Callable[..., Any]]:
    """Imported here rather than above: Ctrl-C is handled by now."""
    from steadyrl.cli.calibrate import Calibrate
    from steadyrl.cli.compare import Compare
    from steadyrl.cli.evaluate import Evaluate
    from steadyrl.cli.export import Export
    from steadyrl.cli.frontier import FrontierCommand
    from steadyrl.cli.info import Agents, Doctor
    from steadyrl.cli.report import Report
    from steadyrl.cli.reproduce import Reproduce
    from steadyrl.cli.sweep import SweepCommand
    from steadyrl.cli.train import Train
    from steadyrl.cli.tune import TuneCommand
    from steadyrl.cli.watch import Watch

    return {
        "train": Train,
        "sweep": SweepCommand,
        "frontier": FrontierCommand,
        "calibrate": Calibrate,
        "tune": TuneCommand,
        "evaluate": Evaluate,
        "compare": Compare,
        "watch": Watch,
        "export": Export,
        "reproduce": Reproduce,
        "report": Report,
        "agents": Agents,
        "doctor": Doctor,
    }


@contextmanager
def _deprecations_shown() -> Iterator[None]:
    """Print deprecation warnings of ours in one line; Python hides them by default."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"steadyrl: {printable(' '.join(str(message).split()))}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.filterwarnings("once", message=".* is now called ", category=DeprecationWarning)
        warnings.showwarning = show
        yield


def _is_user_error(error: Exception) -> bool:
    """Whether the user can fix it; anything else is a bug, which is shown with its traceback."""
    gymnasium = sys.modules.get("gymnasium")
    user_errors: tuple[Any, ...] = (ValueError, OSError, FloatingPointError, ImportError, TrainingInterruptedError)
    return isinstance(error, (*user_errors, gymnasium.error.Error) if gymnasium else user_errors)
