"""Tables on standard output."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from steadyrl.base.shown import printable

WIDTH_OF_FILES = 140
"""Columns where there is no terminal to ask: cells of a log should not be cut off."""


def print_table(table: Table) -> None:
    """Print a table, as wide as the terminal."""
    console = Console()
    (console if console.is_terminal else Console(width=WIDTH_OF_FILES)).print(table)


def plain(text: str) -> str:
    """Text of unknown origin for a table: without control characters, and with brackets that are no markup."""
    return escape(printable(text))
