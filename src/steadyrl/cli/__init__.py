"""The command line. Nothing heavy is imported before a command is known."""

from steadyrl.cli.main import main

__all__ = ["main"]
