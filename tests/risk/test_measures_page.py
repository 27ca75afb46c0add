"""docs/measures.md states of each measure what its data state."""

import re
from pathlib import Path

import pytest

from steadyrl.risk import MEASURES, ParametricMeasure

PAGE = (Path(__file__).parents[2] / "docs" / "measures.md").read_text()
ROWS = {
    row[0]: row[2:] for row in re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \| (.*) \| (.*) \| (.*) \| (.*)\|$", PAGE, re.M)
}
WORDS = {True: "yes", False: "no"}


def test_every_measure_has_a_row():
    assert ROWS.keys() == MEASURES.keys() - {"gini_deviation", "gini_paper"}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_what_the_measure_states(name):
    measure = MEASURES[name]
    stated = measure.properties
    number = f"`{measure.parameter}={measure.number:g}`" if isinstance(measure, ParametricMeasure) else ""
    expected = WORDS[stated.location_invariant], str(stated.degree or "none"), WORDS[stated.coherent]
    assert (*expected, WORDS[stated.respects_convex_order], number) == tuple(cell.strip() for cell in ROWS[name])
