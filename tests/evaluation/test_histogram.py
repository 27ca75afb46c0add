import numpy as np
import pytest

from steadyrl.evaluation.histogram import text_histogram
from steadyrl.evaluation.risk_report import RiskReport


def counts(text):
    """The middle column: how many episodes each bar stands for."""
    return [int(line.split("#")[0].split()[-1]) for line in text.splitlines()]


def test_few_values_have_a_bar_each():
    assert text_histogram(np.array([-1.0, 5.0, 5.0, -1.0, 5.0])) == "-1  2  ##\n 5  3  ###"


def test_constant_returns_are_one_bar():
    assert text_histogram(np.full(7, 0.1)) == "0.1  7  #######"


def test_many_values_are_ten_bars_that_hold_every_episode():
    text = text_histogram(np.arange(100.0))
    assert counts(text) == [10] * 10
    assert text.splitlines()[0].split()[:3] == ["0", "to", "9.9"]


@pytest.mark.parametrize(
    "R",
    [
        np.random.default_rng(0).exponential(size=5000) * 1e5,
        1e6 + 1e-9 * np.arange(50),
        np.array([1.0, np.nextafter(1.0, 2), np.nextafter(1.0, 3) + 2**-51]),
        np.array([-1e308, 1e308, 0.0]),
        np.concatenate([np.zeros(100_000), np.arange(30)]),
    ],
)
def test_it_fits_a_terminal(R):
    text = text_histogram(R)
    assert sum(counts(text)) == len(R)
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) <= 10


def test_a_bar_is_never_empty_where_there_is_an_episode():
    lines = text_histogram(np.concatenate([np.zeros(100_000), [9.0]])).splitlines()
    assert lines[1] == "9       1  #"


@pytest.mark.parametrize("returns", [[1.0, 2.0, 2.5, 4.0] * 20, [3.0] * 5, [0.0, 1.0]])
def test_a_picture(returns, tmp_path):
    report = RiskReport.from_returns(returns, returns, 1.0, {}, 0)
    assert "episodes by undiscounted return" in str(report)
    path = report.histogram(tmp_path / "new" / "returns")
    assert path == tmp_path / "new" / "returns.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert report.histogram(str(tmp_path / "returns.svg")).read_text().startswith("<?xml")
