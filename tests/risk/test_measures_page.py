"""docs/measures.md states of each measure what its data state."""

import re
from pathlib import Path

import pytest

from steadyrl.risk import MEASURES, ParametricMeasure

PAGE = (Path(__file__).parents[2] / "docs" / "measures.md").read_text()
CELLS = [re.split(r" \|", line.strip("| "), maxsplit=7) for line in PAGE.splitlines() if line.startswith("| `")]
ROWS = {cells[0].strip("`"): [cell.strip(" |") for cell in cells[2:]] for cells in CELLS}
"""Name -> invariance, degree, coherence, convex order, when to use it, keyword."""
WORDS = {True: "yes", False: "no"}


def test_every_measure_has_a_row():
    assert ROWS.keys() == MEASURES.keys() - {"gini_deviation", "gini_paper"}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_what_the_measure_states(name):
    *stated, use, keyword = [*ROWS[name], ""][:6]
    measure, properties = MEASURES[name], MEASURES[name].properties
    number = f"`{measure.parameter}={measure.number:g}`" if isinstance(measure, ParametricMeasure) else ""
    degree, coherent = str(properties.degree or "none"), WORDS[properties.coherent]
    order = WORDS[properties.respects_convex_order]
    assert stated == [WORDS[properties.location_invariant], degree, coherent, order]
    assert keyword == number
    assert use
