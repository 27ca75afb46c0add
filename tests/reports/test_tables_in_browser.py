"""What Chromium makes of the page's tables and of the details of a run."""

import numpy as np
import pytest
from browser_page import click, count, is_quiet, open_page, press, rows, texts
from report_runs import GOALS, SEEDS, fake_run

from steadyrl import load
from steadyrl.evaluation.play import play_policy
from steadyrl.reports.page import formatting, write_report
from steadyrl.reports.page.evaluation import marks_of
from steadyrl.training.run_folder import read_metrics


def test_the_table_at_the_end_of_training_holds_its_numbers(browser, results):
    found = rows(browser, ".finals")
    assert [row[:4] for row in found] == [
        [f"goal {goal}", method, "2", "300"] for goal in GOALS for method in ("REINFORCE", "MVO")
    ]
    finals = [read_metrics(results / "goal-40" / "mvo" / f"seed{seed}")[-1] for seed in SEEDS]
    for column, measure in ((4, "return"), (5, "undiscounted_gini_deviation"), (6, "gini_deviation")):
        mean, error = map(float, found[3][column].split(" ± "))
        assert mean == pytest.approx(np.mean([final[measure] for final in finals]), rel=5e-3)
        assert error == pytest.approx(abs(finals[0][measure] - finals[1][measure]) / 2, rel=0.15, abs=0.01)


def test_the_table_of_returns_agrees_with_the_evaluation(browser, results):
    returns = []
    for seed in SEEDS:
        agent = load(results / "goal-20" / "reinforce" / f"seed{seed}" / "checkpoint.steady")
        returns.append(play_policy(agent, agent.env, 100, seed, False, agent.gamma).returns)
    expected = marks_of(returns)
    row = rows(browser, "#returns figure")[0]
    for cell, name in zip(row[1:4], ("mean", "gini_deviation", "cvar_10"), strict=True):
        value, interval = cell.split("\n")
        assert value == formatting.number(expected[name].value)
        assert interval == formatting.interval(expected[name])


def test_the_table_of_runs_sorts_and_filters(browser):
    headings = texts(browser, ".all-runs th")
    assert headings[:5] == ["variant", "method", "remarks", "seed", "episodes"]
    assert "goal_reward" in headings
    assert "gamma" not in headings  # The same in all runs.
    assert len(rows(browser, ".all-runs")) == 8
    column = headings.index("return")
    heading = f".all-runs th:nth-child({column + 1})"
    for direction in ("descending", "ascending"):
        click(browser, f"{heading} button")
        assert browser.execute_script(f"return document.querySelector('{heading}').ariaSort") == direction
        values = [float(row[column]) for row in rows(browser, ".all-runs")]
        assert values == sorted(values, reverse=direction == "descending")
    script = "const f = document.getElementById('filter'); f.value = arguments[0]; f.dispatchEvent(new Event('input'))"
    for text, matching in (
        ("mvo", 4),
        ("mvo seed 1", 2),
        ("goal 20 mvo seed 1", 1),
        ("mvo seed 1, reinforce", 6),
        ("", 8),
    ):
        browser.execute_script(script, text)
        assert len(rows(browser, ".all-runs")) == matching
    assert texts(browser, "#matching") == ["8 runs"]


def test_a_single_run_is_one_run(chromium, tmp_path):
    fake_run(tmp_path / "run", records=[{"episodes": 5, "return": 1.0}])
    open_page(chromium, write_report(tmp_path))
    assert texts(chromium, "#matching") == ["1 run"]


def test_a_run_opens_its_details(browser):
    click(browser, ".all-runs tbody tr:nth-child(3) a")
    assert browser.execute_script("return document.querySelector('dialog').open")
    text = texts(browser, "dialog")[0]
    assert "goal-20/mvo/seed0" in text
    assert "risk_aversion0.5" in text
    assert "steadyrl evaluate" in text
    assert count(browser, "dialog .plot svg") == 2  # The curve and the histogram.
    press(browser, "\ue00c")
    assert not browser.execute_script("return document.querySelector('dialog').open")
    assert browser.execute_script("return location.hash") == ""
    assert is_quiet(browser)
