"""The page as one HTML file: a template, with style, scripts and data in it."""

from __future__ import annotations

import html
from importlib.resources import files
from string import Template
from typing import Any

from steadyrl.reports.page.plots import as_script

STYLES = ("page.css", "plots.css")
SCRIPTS = (
    "svg.js",
    "statistics.js",
    "lines.js",
    "bars.js",
    "points.js",
    "tables.js",
    "details.js",
    "films.js",
    "page.js",
)
"""In the order in which they need each other."""


def document(title: str, content: str, styles: str, data: dict[str, Any]) -> str:
    """The page; `content` is the HTML of its sections, `styles` the colours of the methods."""
    scripts = "\n".join(_asset(name) for name in SCRIPTS)
    return Template(_asset("page.html")).substitute(
        title=html.escape(title),
        style="\n".join([*(_asset(name) for name in STYLES), styles]),
        content=content,
        data=as_script(data),
        script=f'(function () {{\n"use strict";\n{scripts}\n}})();',
    )


def _asset(name: str) -> str:
    return (files("steadyrl.reports.page") / "assets" / name).read_text(encoding="utf-8")
