"""The page docs/benchmarks.md: the table of all speed benchmarks, how they were measured, and how costs grow."""

from __future__ import annotations

import importlib.metadata
import platform
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed import scaling
from benchmarks.speed.table import Row, as_markdown, conditions

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
FIGURE = PAGE.with_name("benchmarks_scaling.png")
_PACKAGES = ("jax", "numpy", "gymnasium", "mujoco")

HEAD = """# Benchmarks

    make bench      # everything once, in at most 15 minutes: writes this page

{measured}

{table}

- More is better, except for seconds. "Others" are measured in the same run as ours; a number in brackets is how many
  times as fast ours is. The limit is what nobody can exceed; that of TD3 is NumPy's products, though, and ours are
  XLA's, which are faster on some machines.
- Stable-Baselines3, SBX and Rejax have virtual environments of their own, with the same versions of the simulators,
  except that Rejax needs gymnax 0.0.9. In training, the fastest of their variants counts (numbers of threads).
- Load is how many cores other programs used in the second before the measurement. Numbers that were measured beside
  other programs are too small, and unequally.
- In gymnax's environments, training ends at a limit of steps, and with sixteen seeds also after 30 seconds. If
  some seeds have not reached the threshold by then, the number says how many have, and all of them would take
  longer.

| | measured more often, with details, by |
| --- | --- |
{commands}

[What each script does](../benchmarks/README.md).
"""

READING = """
## Reading the table

With networks, a batch of episodes is played side by side and the policy acts for all of them at once. In finite
environments such as the maze, playing and learning are one compiled program, with several seeds in it. In HalfCheetah,
a round of PPO is 10 episodes of 500 steps and 5 passes over all of them, with networks of 256x256. TD3 makes 50 updates
of batches of 256 after every 50 steps, DQN 4 updates of batches of 64 after every 4 ("What bounds TD3" is in the
[architecture](architecture.md)). Environments that are slow in Python are played by
[worker processes](training.md#slow-environments). What is gained with many runs at a time: [sweeps](scaling.md).
"""

GROWTH = """
## Cost as it grows

![Time against size](benchmarks_scaling.png)

Measured by `python -m benchmarks.speed.scaling`{when}.
Rounds are MG-PPO with 20 episodes of 100 steps, networks of 128x128 and 4 passes, except for what grows, in
an environment that costs next to nothing. Exponents are those between the last two sizes: 1 is growth in
proportion. eta, the weights of the Gini deviation, is computed from the sorted returns: time like n log n would
be size^1.10 from 10,000 to 100,000 returns. Seeds in the maze are trained five at a time, so one takes as long
as five.

{tables}"""


def machine() -> str:
    """The cores of this machine, and their kind."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{scaling.CORES} cores ({cpu})"


def versions() -> str:
    """Of Python, and of libraries that make a difference."""
    libraries = (f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    return ", ".join([f"Python {platform.python_version()}", *libraries])


def text(rows: Sequence[Row], series: Sequence[scaling.Series], results: dict[str, Any]) -> str:
    """The page."""
    commands = {row.command: row.name for row in rows if row.command}
    parts = [
        HEAD.format(
            measured="\n\n".join(filter(None, [_measured(rows), _duration(results)])),
            table=as_markdown(rows),
            commands="\n".join(f"| {_all(rows, command)} | `{command}` |" for command in commands),
        ),
        READING,
    ]
    if series:
        when = f" on {results['scaling_measured']} on {results['scaling_machine']}, load {results['scaling_load']:.1f}"
        parts.append(GROWTH.format(when=when, tables=scaling.as_markdown(series)))
    return "".join(parts)


def write(rows: Sequence[Row], series: Sequence[scaling.Series], results: dict[str, Any]) -> None:
    """The page and its figure."""
    if series:
        scaling.draw(series, FIGURE)
    PAGE.write_text(text(rows, series, results))


def _measured(rows: Sequence[Row]) -> str:
    """A sentence on when and where; a list if that differs from row to row."""
    found = conditions(rows)
    if len(found) <= 1:
        return _wrapped(f"Measured {next(iter(found))}." if found else "Not measured yet.")
    groups = (_wrapped(f"- {described}: {'; '.join(names)}", indent="  ") for described, names in found.items())
    return "Measured\n\n" + "\n".join(groups)


def _duration(results: dict[str, Any]) -> str:
    """What the last measurement of everything took, if it was recorded."""
    if not (whole := results.get("whole_run")):
        return ""
    when = f"on {whole['measured']} on {whole['machine']}"
    return _wrapped(f"`make bench` took {whole['minutes']:.1f} minutes {when}; the aim is at most 15.")


def _wrapped(paragraph: str, indent: str = "") -> str:
    return textwrap.fill(paragraph, 110, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _all(rows: Sequence[Row], command: str) -> str:
    return "; ".join(row.name for row in rows if row.command == command)
