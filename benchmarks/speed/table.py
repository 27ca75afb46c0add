"""What every speed benchmark returns: rows of one table, with what ours is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One measurement: ours, and others in the same run."""

    name: str
    unit: str
    """What the numbers count, such as "steps/s", of which more is better; or "s", seconds, of which fewer are."""
    ours: float
    peers: dict[str, float] = field(default_factory=dict)
    """Name -> the same of another library, or of another way to do it."""
    limit: float | None = None
    """What nobody can exceed, such as the physics alone."""
    command: str = ""
    """The script that measures this more often and prints more."""
    note: str = ""
    """What the limit is."""
    load: float | None = None
    """How many cores other programs used in the second before its script began."""
    measured: str = ""
    """The date."""
    machine: str = ""
    """Its cores and their kind, such as "2 cores (AMD EPYC)"."""
    versions: str = ""
    """Of Python and of libraries."""
    ours_note: str = ""
    """What ours falls short of, such as "15 of 16 seeds reach it"."""

    def ratio(self, other: float) -> float:
        """How many times as fast ours is."""
        return other / self.ours if self.unit == "s" else self.ours / other


def as_text(rows: Sequence[Row]) -> str:
    """The table for a terminal."""
    return "\n".join("  ".join(cells).rstrip() for cells in _aligned([_HEAD, *map(_cells, rows)]))


def as_markdown(rows: Sequence[Row]) -> str:
    """The table for a page."""
    lines = [_HEAD, tuple("---" for _ in _HEAD), *map(_cells, rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


_HEAD = ("", "unit", "ours", "others (ours is so many times as fast)", "limit", "ours / limit", "load")


def _cells(row: Row) -> tuple[str, ...]:
    peers = "; ".join(f"{name} {number(value)} ({row.ratio(value):.2f})" for name, value in row.peers.items())
    named = f" ({row.note})" if row.note else ""
    limit = ("", "") if row.limit is None else (number(row.limit) + named, f"{row.ratio(row.limit):.2f}")
    ours = number(row.ours) + (f" ({row.ours_note})" if row.ours_note else "")
    return (row.name, row.unit, ours, peers, *limit, "" if row.load is None else f"{row.load:.1f}")


def conditions(rows: Sequence[Row]) -> dict[str, list[str]]:
    """When, on what machine and with which versions -> the rows that were measured so."""
    found: dict[str, list[str]] = {}
    for row in rows:
        words = [f"on {part}" for part in (row.measured, row.machine) if part]
        described = ", with ".join(filter(None, [" ".join(words), row.versions]))
        found.setdefault(described, []).append(row.name)
    return found


def number(value: float) -> str:
    """Three digits at least, and thousands separated."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _aligned(lines: Sequence[Sequence[str]]) -> Iterable[list[str]]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
