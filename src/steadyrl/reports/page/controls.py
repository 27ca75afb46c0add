"""The bar above the curves: which methods are shown, and how seeds are summarized."""

from __future__ import annotations

import html

from steadyrl.reports.page.results import Results

_SWITCHES = {
    "centre": ("Line", {"mean": "mean", "iqm": "IQM"}),
    "band": ("Band", {"se": "standard error", "bootstrap": "95 % bootstrap", "none": "none"}),
    "axis": ("Over", {"episodes": "episodes", "timesteps": "steps"}),
}
"""Name -> label, and value -> label of each choice. The first choice is the default."""
_MEANING = (
    "IQM, the interquartile mean, is the mean of the middle half of the seeds. The standard error of the mean is "
    "s / √n; that of the IQM comes from the bootstrap, which resamples seeds."
)


def controls(results: Results) -> str:
    """The bar, as HTML."""
    shown = results.shown_first()
    buttons = {method: _button(method, method in shown, results) for method in results.palette.methods}
    first = "".join(button for method, button in buttons.items() if method in shown)
    others = [button for method, button in buttons.items() if method not in shown]
    menu = (
        f'<details class="menu"><summary>{len(others)} more methods</summary><div>{"".join(others)}</div></details>'
        if others
        else ""
    )
    switches = "".join(_switch(name, *choice) for name, choice in _SWITCHES.items())
    return (
        '<div class="bar" role="region" aria-label="What the plots show">'
        f'<div class="legend" role="group" aria-label="Methods shown">{first}{menu}</div>\n'
        f'<details class="menu switches"><summary>Display</summary><div>{switches}'
        f'<label><input type="checkbox" id="seeds"> each seed as a thin line</label><p class="soft">{_MEANING}</p>'
        "</div></details></div>"
    )


def _button(method: str, shown: bool, results: Results) -> str:
    index, dash = results.palette.index(method), results.palette.dash(method)
    line = (
        f'<svg class="line" viewBox="0 0 22 4" aria-hidden="true"><path d="M0 2h22" stroke="var(--m{index})" '
        f'stroke-width="3" stroke-dasharray="{dash}"/></svg>'
    )
    return (
        f'<button type="button" aria-pressed="{str(shown).lower()}" data-method="{index}">{line}'
        f"{html.escape(method)}</button>"
    )


def _switch(name: str, label: str, choices: dict[str, str]) -> str:
    options = "".join(
        f'<label><input type="radio" name="{name}" value="{value}"{" checked" * (number == 0)}> {text}</label>'
        for number, (value, text) in enumerate(choices.items())
    )
    return f"<fieldset><legend>{label}</legend>{options}</fieldset>"
