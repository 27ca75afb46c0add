"""What Chromium makes of the page: plots, switches, tables, details, keyboard, themes and widths."""

import itertools
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from report_runs import GOALS, SEEDS, fake_run, train
from scipy.stats import trim_mean

from steadyrl import MVO, Reinforce, load
from steadyrl.envs.resolve import resolve
from steadyrl.evaluation.play import play_policy
from steadyrl.reports.page import formatting, write_report
from steadyrl.reports.page.evaluation import marks_of
from steadyrl.training.run_folder import read_metrics

WALLS = 7


@pytest.fixture
def browser(chromium, page):
    """The page as it opens, at 1280 pixels."""
    resize(chromium, 1280)
    open_page(chromium, page)
    return chromium


def open_page(driver, page, fragment=""):
    driver.get("about:blank")
    driver.get_log("browser"), driver.get_log("performance")
    driver.get(page.as_uri() + fragment)
    settle(driver)


def settle(driver):
    """Two frames later, plots on the screen have been drawn."""
    driver.execute_async_script(
        "const done = arguments[0]; setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 150)"
    )


def resize(driver, width, height=800):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    settle(driver)


def show(driver, selector):
    driver.execute_script("document.querySelector(arguments[0]).scrollIntoView()", selector)
    settle(driver)


def count(driver, selector):
    return driver.execute_script("return document.querySelectorAll(arguments[0]).length", selector)


def texts(driver, selector):
    script = "return Array.from(document.querySelectorAll(arguments[0])).map(e => e.textContent.trim())"
    return driver.execute_script(script, selector)


def click(driver, selector):
    driver.execute_script("document.querySelector(arguments[0]).click()", selector)
    settle(driver)


def rows(driver, within):
    script = (
        "return Array.from(document.querySelector(arguments[0] + ' tbody').rows).filter(row => !row.hidden)"
        ".map(row => Array.from(row.cells).map(cell => cell.innerText))"
    )
    return driver.execute_script(script, within)


def press(driver, key):
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(driver).send_keys(key).perform()
    settle(driver)


def is_quiet(driver):
    return driver.get_log("browser") == []


def test_opens_without_complaint_or_network(browser, page):
    assert is_quiet(browser)
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert page.as_uri() in asked
    assert [url for url in asked if url.startswith(("http", "ws", "//"))] == []


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


def test_everything_that_acts_is_reached_with_tab(browser):
    browser.execute_script("document.querySelectorAll('main details').forEach(fold => fold.open = true)")
    resize(browser, 1280, 9000)
    reached = browser.execute_script(
        "return Array.from(document.querySelectorAll('a[href], button, summary, input, .plot'))"
        ".filter(e => e.tabIndex < 0).length"
    )
    assert reached == 0
    unnamed = browser.execute_script(
        "return Array.from(document.querySelectorAll('button, input, a, .plot, .scroll, svg[role=img]')).filter(e => "
        "!(e.textContent.trim() || e.ariaLabel || (e.labels && e.labels.length))).length"
    )
    assert unnamed == 0
    headings = [
        int(tag[1])
        for tag in browser.execute_script(
            "return Array.from(document.querySelectorAll('main h1, main h2, main h3')).map(h => h.tagName)"
        )
    ]
    assert headings[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(headings))


def test_films_can_be_paused(browser):
    assert count(browser, "#episodes img.film") == 4
    show(browser, "#episodes .film")
    loaded = "return Array.from(document.querySelectorAll('img.film')).every(e => e.naturalWidth > 600)"
    assert browser.execute_script(loaded)
    click(browser, "#episodes .pause")
    assert texts(browser, "#episodes .pause") == ["Play film", *["Pause film"] * 3]
    assert count(browser, "#episodes img.film[hidden]") == 1
    ink = (
        "const c = document.querySelector('canvas.film'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height);"
        "return new Set(d.data).size"
    )
    assert browser.execute_script(ink) > 10  # Not an empty picture.
    click(browser, "#episodes .pause")
    assert count(browser, "#episodes img.film[hidden]") == 0


def test_each_method_has_a_heat_map_in_each_maze(browser):
    cells = "return Array.from(document.querySelectorAll('.maps svg')).map(map => map.querySelectorAll('.cell').length)"
    assert browser.execute_script(cells) == [36 - WALLS] * 4
    assert count(browser, ".maps .wall") == 4 * WALLS


@pytest.mark.parametrize("width", [375, 768, 1400])
def test_nothing_overflows(browser, width):
    resize(browser, width, 3000)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    widest = browser.execute_script(
        "return Math.max(...Array.from(document.querySelectorAll('figure, .plot svg, .bar, .runs, .cards'))"
        ".map(element => element.getBoundingClientRect().right))"
    )
    assert widest <= width
    browser.execute_script("location.hash = '#group=1'")
    settle(browser)
    inside = "const d = document.querySelector('dialog'); return [d.scrollWidth, d.clientWidth, d.offsetWidth]"
    scroll, client, offset = browser.execute_script(inside)
    assert scroll <= client
    assert offset <= width


def test_a_wide_page_can_become_narrow(browser):
    resize(browser, 1400, 5000)
    resize(browser, 375)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 375


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


def theme(driver, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def test_light_and_dark(browser):
    ground = "return getComputedStyle(document.body).backgroundColor"
    theme(browser, "dark")
    dark = browser.execute_script(ground)
    assert browser.find_element("id", "theme").text == "Light page"
    theme(browser, "light")
    light = browser.execute_script(ground)
    assert dark != light
    click(browser, "#theme")
    assert browser.execute_script(ground) == dark
    browser.refresh()
    settle(browser)
    assert browser.execute_script(ground) == dark  # Remembered.
    click(browser, "#theme")
    browser.execute_script("localStorage.clear()")


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


def test_the_page_refreshes_itself_and_keeps_its_switches(chromium, tmp_path):
    records = [{"episodes": e, "return": float(e)} for e in (1, 2)]
    fake_run(tmp_path / "mg" / "seed0", records=records)
    page = write_report(tmp_path, episodes=20, refresh=1)
    open_page(chromium, page)
    assert chromium.find_element("id", "refreshing").is_displayed()
    click(chromium, "input[value=iqm]")
    chromium.execute_script("document.activeElement.blur()")
    fake_run(tmp_path / "mg" / "seed1", seed=1, records=records)
    write_report(tmp_path, episodes=20, refresh=1)
    ends = time.monotonic() + 30
    while count(chromium, ".all-runs tbody tr") < 2 and time.monotonic() < ends:
        time.sleep(0.2)
    assert count(chromium, ".all-runs tbody tr") == 2
    assert chromium.execute_script("return document.querySelector('input[value=iqm]').checked")
    click(chromium, "#refreshing")
    assert chromium.execute_script("return document.getElementById('refreshing').ariaPressed") == "false"


@pytest.mark.slow
def test_the_page_follows_runs_while_they_are_made(chromium, tmp_path):
    """`steadyrl report --watch` in a process of its own, begun before there are runs; the browser is not touched."""
    folder = tmp_path / "sweep"
    command = [sys.executable, "-m", "steadyrl", "report", folder, "--watch", "--every", "1", "--episodes", "20"]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        try:
            assert "there is no such folder" in watching.stderr.readline()
            train(folder / "reinforce", Reinforce, resolve("steadyrl/GuardedMaze-v0", horizon=15), [0], 40)
            assert watching.stdout.readline().startswith(f"Page: {folder / 'report.html'}")
            open_page(chromium, folder / "report.html")
            assert seen(chromium, "#matching", "1 run")
            train(folder / "mvo", MVO, resolve("steadyrl/GuardedMaze-v0", horizon=15), [0], 40, risk_aversion=0.5)
            assert seen(chromium, "#matching", "2 runs")
            assert seen(chromium, "#episodes .pause", "Pause film", 2)
        finally:
            watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == 130
    open_page(chromium, folder / "report.html")
    assert browser_data(chromium)["refresh"] == 0


def browser_data(driver):
    return json.loads(driver.execute_script("return document.getElementById('data').textContent"))


def seen(driver, selector, text, times=1, seconds=120):
    """Whether a page that loads itself again shows the text as often within some time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if texts(driver, selector).count(text) == times:
            return True
        time.sleep(0.5)
    return False
