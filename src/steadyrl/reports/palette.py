"""One look for each method on the page and in figures: the hue of its agent, a shade and a dash pattern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from steadyrl.evaluation.agent_looks import DARK, LIGHT, hues_of

DASHES = ("", "7 3", "2 3", "9 3 2 3")
"""SVG dash patterns."""
SHADES = (0.0, 0.3, 0.5)
"""How much black, or white on a dark page, is mixed into a hue."""
MAX_LINES = 7
"""Lines of a panel that are shown at first; the others are in a menu."""


class Palette:
    """The looks of methods.

    Methods of one agent, such as MG with several lambdas, share a hue and differ in shade and dash pattern, as do
    agents beyond the seventh. Twelve methods of one hue look different.
    """

    def __init__(self, agents: Mapping[str, str]) -> None:
        """`agents` holds the agent of each method, in the order of the page."""
        self.methods = list(agents)
        hue_of = hues_of(agents.values())
        taken: Counter[int] = Counter()
        self._looks: dict[str, tuple[int, int]] = {}
        for method, agent in agents.items():
            hue = hue_of[agent]
            self._looks[method] = hue, taken[hue]
            taken[hue] += 1

    def index(self, method: str) -> int:
        """The number of a method, by which the page knows its colour."""
        return self.methods.index(method)

    def colour(self, method: str, dark: bool = False) -> str:
        """The colour as #rrggbb."""
        hue, variant = self._looks[method]
        return _mixed((DARK if dark else LIGHT)[hue], 255 if dark else 0, SHADES[variant % len(SHADES)])

    def dash(self, method: str) -> str:
        """The SVG dash pattern."""
        return DASHES[self._looks[method][1] % len(DASHES)]

    def styles(self) -> str:
        """CSS variables --m0, --m1, ... for the light and the dark page."""
        light, dark = (
            "".join(f"--m{i}:{self.colour(method, is_dark)};" for i, method in enumerate(self.methods))
            for is_dark in (False, True)
        )
        return (
            f":root{{{light}}}\n"
            f"@media (prefers-color-scheme: dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
            f":root[data-theme=dark]{{{dark}}}"
        )


def shown_first(agents: Mapping[str, str], most: int = MAX_LINES) -> set[str]:
    """The methods of a panel that are shown at first: of each agent the first, then of each the second, and so on."""
    turns: Counter[str] = Counter()
    order = []
    for position, (method, agent) in enumerate(agents.items()):
        order.append((turns[agent], position, method))
        turns[agent] += 1
    return {method for _, _, method in sorted(order)[:most]}


def _mixed(colour: str, towards: int, share: float) -> str:
    parts = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(part + (towards - part) * share):02x}" for part in parts)
