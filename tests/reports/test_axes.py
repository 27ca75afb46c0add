"""The y axes of learning curves: not flattened by a few outliers, and without repeated tick labels."""

import numpy as np
import pytest
from report_runs import fake_run, plots_of, text_of

from steadyrl.reports.page import write_report
from steadyrl.reports.page.learning import Curve
from steadyrl.reports.page.limits import robust_limits

HINT = "Some values lie outside this range"


def curve(values, error=None):
    """Two seeds `error` standard errors from their mean, or one."""
    values = np.array(values)
    seeds = [values] if error is None else [values - error, values + error]
    return Curve(np.arange(1.0, len(values) + 1), np.stack(seeds))


def test_limits_leave_out_a_hundredth_at_either_end():
    values = np.linspace(0, 1, 200)
    assert robust_limits([curve(values)]) is None
    values[0] = -1000.0
    low, high = robust_limits([curve(values)])
    assert -0.1 < low < 0.02
    assert 0.98 < high < 1.1


def test_a_method_of_its_own_is_not_cut_off():
    far = curve(np.full(20, -1000.0))
    assert robust_limits([far, *(curve(np.linspace(0, 1, 200)) for _ in range(3))]) is None


def test_bands_count():
    error = np.zeros(200)
    error[0] = 1e6
    assert robust_limits([curve(np.linspace(0, 1, 200), error)]) is not None


@pytest.mark.parametrize("values", [[1.0] * 200, [1.0, 2.0], [np.nan] * 3, [0.0] * 199 + [5.0]])
def test_without_a_spread_all_is_shown(values):
    assert robust_limits([curve(values)]) is None


def test_the_page_says_that_values_lie_outside(tmp_path):
    rising = [{"episodes": e, "return": float(e), "goal_rate": 0.5} for e in range(1, 201)]
    fake_run(tmp_path / "mg" / "seed0", records=rising)
    assert HINT not in text_of(write_report(tmp_path, episodes=20))
    fake_run(tmp_path / "mvo" / "seed0", agent="mvo", records=[{**rising[0], "return": -1e6}, *rising[1:]])
    written = write_report(tmp_path, episodes=20)
    assert text_of(written).count(HINT) == 1
    returns, rate = plots_of(written, "lines")
    assert returns["cut"]
    assert returns["range"][0] > -50
    assert rate["range"] == [-0.03, 1.03]
    assert "cut" not in rate
    assert returns["lines"][1]["y"][0][0] == -1e6  # "Show all" shows it.
