"""What pages get when the site is built: commands, settings, and names and pages that are listed nowhere yet."""

from __future__ import annotations

import contextlib
import fnmatch
import inspect
import io
import os
import re
import textwrap
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
WIDTH = "88"


def commands() -> str:
    """A section for each command: what `steadyrl COMMAND --help` prints."""
    from steadyrl.cli.main import _commands

    sections = []
    for name, kind in _commands().items():
        first_line = (kind.__doc__ or "").splitlines()[0]
        sections.append(f"## steadyrl {name}\n\n{first_line}\n\n```text\n{help_of(name)}\n```\n")
    return "\n".join(sections)


def help_of(command: str) -> str:
    """What a command prints with `--help`."""
    from steadyrl.cli.main import main

    printed = io.StringIO()
    os.environ["COLUMNS"] = WIDTH
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([command, "--help"])
    lines = [line for line in printed.getvalue().rstrip().splitlines() if set(line.strip()) != {"-"}]  # No rulers.
    return "\n".join(part for line in lines for part in _folded(line.rstrip()))


def _folded(line: str) -> list[str]:
    """A line that is longer than the box of code, in several, indented as it is."""
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(line, int(WIDTH), subsequent_indent=indent, break_on_hyphens=False) or [""]


def settings() -> str:
    """A section for each agent: what `steadyrl agents NAME` prints, as lists."""
    from steadyrl.agents import AGENTS

    return "\n".join(f"## {kind.__name__}\n\n{_as_markdown(name, kind)}\n" for name, kind in AGENTS.items())


def _as_markdown(name: str, kind: type) -> str:
    """A docstring whose paragraphs are summary, example, and lists of `name = default` with indented sentences."""
    first, _, rest = (kind.__doc__ or "").partition("Example:")
    example, heading, rest = rest.partition("Settings:")
    lines = [f"`steadyrl.{kind.__name__}`, on the command line `--agent {name}`. {first.strip()}", ""]
    lines += ["```python", inspect.cleandoc(example), "```", ""]
    for line in (heading + rest).splitlines():
        if re.fullmatch(r"[A-Z][a-z ]+:", line):
            lines += [f"**{line[:-1]}**", ""]
        elif re.match(r"\w+( = .*)?$", line):
            lines += ["", f"`{line}`"]
        elif line.startswith("    "):
            begins = lines[-1].startswith("`")
            lines.append(f"{': ' if begins else '  '}{line.strip()}")
        else:
            lines.append(line)
    return "\n".join(lines)


def other_names() -> str:
    """A section with the public names that the API page does not have yet."""
    import steadyrl

    page = (DOCS / "api.md").read_text()
    missing = [name for name in steadyrl.__all__ if not re.search(rf"\b{name}\b", page)]
    if not missing:
        return ""
    kinds = {name: "class" if inspect.isclass(getattr(steadyrl, name)) else "function" for name in missing}
    lines = [f".. auto{kind}:: steadyrl.{name}" for name, kind in kinds.items()]
    return "\n".join(["## Other names", "", "```{eval-rst}", *lines, "```", ""])


def other_pages() -> str:
    """A table of contents with the pages that the index does not name."""
    index = (DOCS / "index.md").read_text().split()
    names = sorted(page.stem for page in DOCS.glob("*.md") if page.stem != "index")
    missing = [name for name in names if not any(fnmatch.fnmatch(name, entry) for entry in index)]
    return "\n".join(["```{toctree}", ":caption: More", ":hidden:", "", *missing, "```", ""]) if missing else ""


PAGES = {"cli": commands, "settings": settings, "api": other_names, "index": other_pages}
"""Page -> what is appended to it."""


OUTSIDE = {"../CONTRIBUTING.md": "contributing.md", "../benchmarks/README.md": "benchmark_scripts.md"}
"""Link to a file outside of docs/ -> the page of the site that includes it."""


def complete(app: Any, page: str, source: list[str]) -> None:
    """Sphinx calls this with the text of every page that it reads."""
    for link, own in OUTSIDE.items():
        source[0] = source[0].replace(f"]({link}", f"]({own}")
    if page in PAGES:
        source[0] += "\n" + PAGES[page]()


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", complete)
    return {"parallel_read_safe": True}
