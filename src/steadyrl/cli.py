"""The command line: which command was meant, and how it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import tyro

from steadyrl.commands.judging import Compare, Evaluate, Report
from steadyrl.commands.knowing import Agents, Doctor
from steadyrl.commands.training import Reproduce, Sweep, Train
from steadyrl.interrupts import BrokenOffError, ended_like_ctrl_c

COMMANDS: dict[str, Callable[..., Any]] = {
    "train": Train,
    "sweep": Sweep,
    "evaluate": Evaluate,
    "compare": Compare,
    "reproduce": Reproduce,
    "report": Report,
    "agents": Agents,
    "doctor": Doctor,
}


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a mistake in what was asked for ends in one line, and in status 2."""
    # As `python -m` does, but last: nothing installed is hidden by a file that happens to lie here.
    sys.path.append(os.getcwd())
    try:
        with ended_like_ctrl_c():
            _command(sys.argv[1:] if arguments is None else arguments)()
    except KeyboardInterrupt as stop:
        print(f"steadyrl: stopped. {stop}".rstrip(), file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever reads our output, such as `head`, has seen enough; Python would complain once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if os.environ.get("STEADYRL_DEBUG") or not _is_users(error):
            raise
        print(f"steadyrl: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    finally:
        sys.path.pop()


def _command(arguments: list[str]) -> Callable[[], None]:
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        from steadyrl.naming import unknown

        raise ValueError(unknown("command", arguments[0], COMMANDS))
    command: Callable[[], None] = tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        prog="steadyrl",
        description="Risk-averse reinforcement learning: policies whose return is high and steady.",
        args=arguments,
    )
    return command


def _is_users(error: Exception) -> bool:
    """Whether an error says what the user can mend; anything else is a defect and keeps its traceback."""
    gymnasium = sys.modules.get("gymnasium")
    mendable: tuple[Any, ...] = (ValueError, OSError, FloatingPointError, ImportError, BrokenOffError)
    return isinstance(error, (*mendable, gymnasium.error.Error) if gymnasium else mendable)
