"""What Chromium makes of the page's plots: lines, bands, legends, axes, and the keyboard."""

import json

import numpy as np
import pytest
from browser_page import click, count, is_quiet, open_page, press, resize, settle, show, texts
from report_runs import fake_run
from scipy.stats import trim_mean

from steadyrl.reports.page import write_report


def test_plots_are_drawn_when_they_come_near(browser):
    assert count(browser, "#returns .plot svg") == 4
    assert count(browser, ".curves > details .plot svg") == 0
    resize(browser, 1280, 6000)
    drawn = texts(browser, ".curves > .grid .plot svg")
    assert len(drawn) == 14
    # A line and a band for each of two methods.
    assert count(browser, ".curves > .grid .curve") == count(browser, ".curves > .grid .band") == 28
    browser.execute_script("document.querySelectorAll('.curves > details').forEach(fold => fold.open = true)")
    settle(browser)
    assert count(browser, ".curves > details .plot svg") == 16
    assert is_quiet(browser)


def test_a_method_has_one_colour_everywhere(browser):
    resize(browser, 1280, 5000)
    script = (
        'return Array.from(document.querySelectorAll(\'.curve[data-method="1"], .legend button[data-method="1"] path,'
        ' .row[data-method="1"] .bar-of\'))'
        ".map(e => [getComputedStyle(e).stroke, getComputedStyle(e).fill].filter(c => c !== 'none')[0])"
    )
    colours = browser.execute_script(script)
    assert len(colours) > 20
    assert set(colours) == {"rgb(213, 94, 0)"}  # MVO's


def test_a_name_in_the_legend_hides_its_method(browser):
    resize(browser, 1280, 5000)
    click(browser, ".legend button[data-method='1']")
    assert (
        browser.execute_script("return document.querySelector('.legend button[data-method=\"1\"]').ariaPressed")
        == "false"
    )
    assert count(browser, ".curve[data-method='1']") == 0
    assert count(browser, ".curve[data-method='0']") == 14
    assert count(browser, ".row[data-method='1']:not([hidden])") == 0
    click(browser, ".legend button[data-method='1']")
    assert count(browser, ".curve[data-method='1']") == 14


def test_seeds_are_thin_lines_on_demand(browser):
    resize(browser, 1280, 5000)
    assert count(browser, ".seed") == 0
    click(browser, "#seeds")
    assert count(browser, ".curves > .grid .seed") == 14 * 2 * 2


def at_the_end(driver, selector=".curves .plot"):
    """What the first plot says at its end, as a screen reader would."""
    driver.execute_script("document.querySelector(arguments[0]).focus()", selector)
    press(driver, "\ue010")  # End
    return driver.execute_script("return document.querySelector(arguments[0]).ariaValueText", selector)


@pytest.fixture(scope="module")
def eight_seeds(tmp_path_factory):
    """Values of eight seeds, and their page."""
    root = tmp_path_factory.mktemp("eight")
    values = np.random.default_rng(1).normal(100, 10, size=8).round(2)
    for seed, value in enumerate(values):
        records = [{"episodes": e, "timesteps": 7 * e, "return": value} for e in (100, 200)]
        fake_run(root / "mg" / f"seed{seed}", seed=seed, records=records)
    return values, write_report(root, episodes=20)


def numbers_in(text):
    """(centre, low, high) of `200 episodes; MG 101 [98.3, 104]`."""
    words = text.partition("; ")[2].replace("MG", "").replace("[", "").replace("]", "").replace(",", "").split()
    return [float(word) for word in words]


def test_mean_or_iqm_with_standard_error_or_bootstrap(chromium, eight_seeds):
    values, page = eight_seeds
    open_page(chromium, page)
    show(chromium, "#curves")
    error = values.std(ddof=1) / np.sqrt(8)
    assert numbers_in(at_the_end(chromium)) == pytest.approx(
        [values.mean(), values.mean() - error, values.mean() + error], rel=5e-3
    )
    click(chromium, "input[value=bootstrap]")
    drawn = np.random.default_rng(0).choice(values, size=(20_000, 8))
    low, high = np.quantile(drawn.mean(axis=1), [0.025, 0.975])
    assert numbers_in(at_the_end(chromium)) == pytest.approx([values.mean(), low, high], rel=0.02)
    click(chromium, "input[value=iqm]")
    iqms = trim_mean(drawn, 0.25, axis=1)
    low, high = np.quantile(iqms, [0.025, 0.975])
    assert numbers_in(at_the_end(chromium)) == pytest.approx([trim_mean(values, 0.25), low, high], rel=0.03)
    click(chromium, "input[value=se]")
    middle = trim_mean(values, 0.25)
    expected = [middle, middle - iqms.std(), middle + iqms.std()]
    assert numbers_in(at_the_end(chromium)) == pytest.approx(expected, rel=0.02)
    click(chromium, "input[value=none]")
    assert numbers_in(at_the_end(chromium)) == pytest.approx([middle], rel=5e-3)
    click(chromium, "input[value=timesteps]")
    assert at_the_end(chromium).startswith("1,400 steps")
    assert is_quiet(chromium)


def test_plots_are_read_with_the_keyboard(browser):
    show(browser, "#curves")
    end = at_the_end(browser)
    assert end.startswith("300 episodes; ")
    assert "REINFORCE" in end
    assert "MVO" in end
    assert not browser.execute_script("return document.getElementById('tooltip').hidden")
    press(browser, "\ue012")  # Left
    assert not browser.execute_script("return document.activeElement.ariaValueText").startswith("300")
    press(browser, "\ue00c")  # Escape
    assert browser.execute_script("return document.getElementById('tooltip').hidden")
    label = browser.execute_script("return document.activeElement.ariaLabel")
    assert label.startswith("Return, goal 20. At the end: ")


def test_the_axes_of_a_panel_of_histograms_are_one_below_the_other(browser):
    show(browser, "#returns .rows")
    script = (
        "return Array.from(document.querySelectorAll('#returns .rows')).map(panel => Array.from("
        "panel.querySelectorAll('.plot')).map(plot => JSON.stringify(Array.from(plot.querySelectorAll('.xtick'))"
        ".map(tick => [tick.textContent, tick.getAttribute('x')]))))"
    )
    panels = browser.execute_script(script)
    assert [len(axes) for axes in panels] == [2, 2]
    for axes in panels:
        assert len(json.loads(axes[0])) > 1
        assert len(set(axes)) == 1


def test_values_outside_an_axis_can_be_shown(chromium, tmp_path):
    records = [{"episodes": e, "return": float(e), "white_path_rate": 1e-4 * e / 200} for e in range(1, 201)]
    fake_run(tmp_path / "mg" / "seed0", records=[{**records[0], "return": -1e6}, *records[1:]])
    open_page(chromium, write_report(tmp_path, episodes=20))
    show(chromium, "#curves")
    first = ".curves figure:first-child .ytick"
    usual = texts(chromium, first)
    assert "-1,000,000" not in " ".join(usual)
    click(chromium, ".outside button")
    assert "-1000000" in " ".join(texts(chromium, first)).replace(",", "")
    click(chromium, ".outside button")
    assert texts(chromium, first) == usual
    ticks = texts(chromium, ".curves figure:last-child .ytick")
    assert len(ticks) == len(set(ticks)) > 2
    assert all(tick.endswith("%") for tick in ticks)
    assert is_quiet(chromium)


def test_more_than_seven_methods_are_in_a_menu(chromium, tmp_path):
    for index in range(10):
        agent, aversion = ("mvo", index) if index > 7 else ("mg", index)
        records = [{"episodes": e, "return": float(e + index)} for e in (1, 2)]
        fake_run(tmp_path / f"{agent},risk_aversion={index}" / "seed0", agent, settings={"risk_aversion": aversion},
                 records=records)  # fmt: skip
    open_page(chromium, write_report(tmp_path, episodes=20))
    show(chromium, "#curves")
    assert count(chromium, ".legend > button") == 7
    assert texts(chromium, ".legend .menu summary") == ["3 more methods"]
    assert count(chromium, ".curve") == 7
    assert {"MVO, lambda 8", "MVO, lambda 9"} < set(texts(chromium, ".legend > button"))
    click(chromium, ".legend .menu button")
    assert count(chromium, ".curve") == 8
