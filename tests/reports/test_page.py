"""The page: what it says and leaves out, what its plots hold, errors, and what Chromium makes of it."""

import json
import re
import shutil
import sys

import gymnasium as gym
import numpy as np
import pytest
from report_runs import GOALS, METHODS, SEEDS, cannot, fake_run, figures_of, parse, text_of, train

from steadyrl import Reinforce, load
from steadyrl.envs.guarded_maze import GuardedMazeEnv
from steadyrl.envs.resolve import resolve
from steadyrl.reports.page import formatting, write_report
from steadyrl.reports.page.distributions import marks_of
from steadyrl.training.run_folder import read_metrics

WALLS = 7


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two methods in two variants with two seeds each, as `steadyrl reproduce` lays them out."""
    root = tmp_path_factory.mktemp("results") / "tiny"
    for goal in GOALS:
        for name, (kind, settings) in METHODS.items():
            train(root / f"goal-{goal}" / name, kind, resolve("steadyrl/GuardedMaze-v0", goal_reward=goal), **settings)
    return root


@pytest.fixture(scope="module")
def page(results, tmp_path_factory):
    return write_report(results, tmp_path_factory.mktemp("page") / "new" / "page.html", episodes=100)


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: there is no such folder"):
        write_report(tmp_path / "nowhere")


def test_no_runs(tmp_path):
    (tmp_path / "config.json").write_text('{"name": "of something else"}')
    with pytest.raises(FileNotFoundError, match="holds no runs"):
        write_report(tmp_path)


def test_no_plotly(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'steadyrl\[report\]'"):
        write_report(results)


def test_one_episode(results):
    with pytest.raises(ValueError, match="episodes=1: a distribution of returns needs at least 2"):
        write_report(results, episodes=1)


def test_what_cannot_be_shown_is_noted(results, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(results / "goal-20" / "mvo", root / "mvo")
    shutil.copytree(results / "goal-20" / "reinforce", root / "reinforce")
    (root / "mvo" / "seed0" / "checkpoint.steady").unlink()
    (root / "mvo" / "seed1" / "checkpoint.steady").write_bytes(b"half a file")
    (root / "reinforce" / "seed0" / "metrics.jsonl").unlink()
    with (root / "reinforce" / "seed1" / "metrics.jsonl").open("a") as file:
        file.write('{"episodes": 350, "ret')  # A run under way.
    (root / "foreign").mkdir()
    (root / "foreign" / "config.json").write_text("not JSON")
    text = text_of(write_report(root, episodes=20))
    for note in (
        "config.json does not describe a steadyrl run: skipped: foreign",
        "no checkpoint: not in the return distributions: mvo/seed0",
        "is no steadyrl agent, or only a part of one. Not in the return distributions: mvo/seed1",
        "nothing recorded in metrics.jsonl: not in the learning curves: reinforce/seed0",
    ):
        assert note in text
    assert "0 to 300 episodes a run" in text


def test_an_environment_without_metrics_or_maze(tmp_path):
    train(tmp_path / "lake", Reinforce, resolve("FrozenLake-v1"), seeds=[3], episodes=0)
    train(tmp_path / "own", Reinforce, GuardedMazeEnv(), seeds=[3], episodes=0)
    page = write_report(tmp_path, episodes=20)
    assert page == tmp_path / "report.html"
    text = text_of(page)
    assert "its environment cannot be recreated here: not in the return distributions: own/seed3" in text
    assert "nothing recorded in metrics.jsonl: not in the learning curves: lake/seed3, own/seed3" in text
    assert [len(figure["data"]) for figure in figures_of(page)] == [3]  # FrozenLake's distribution
    assert "Visits" not in text


def test_what_users_wrote_is_text(tmp_path):
    evil = "<img src=x onerror=alert(1)>\"'"
    record = {"episodes": 10, "return": 1.0, f"{evil}_rate": 0.5}
    more = {"command": f"/bin/steadyrl {evil}", "versions": {"python": evil}, "started": evil}
    for name, setting in (("a", evil), ("b", "</script>")):
        fake_run(tmp_path / f"{evil}{name}", agent=evil, env=evil, settings={evil: setting}, records=[record], **more)
    page = write_report(tmp_path, episodes=20)
    parser = parse(page)
    assert "img" not in parser.tags
    assert parser.tags.count("script") == 3
    assert f"steadyrl {evil}" in parser.text
    figures_of(page)


def test_says_what_was_run(page):
    text = text_of(page)
    assert "8 runs: 2 methods in 2 variants of steadyrl/GuardedMaze-v0, 2 seeds each, 300 episodes a run" in text
    assert "2,400 in all" in text
    assert f"gymnasium {gym.__version__}" in text


def test_is_one_file_that_links_to_nothing(page):
    parser = parse(page)
    assert parser.links == ["data:,"]
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]
    assert "@import" not in page.read_text().split("<script>")[0]


def test_plots_are_valid(page, plotly):
    figures = figures_of(page)
    assert len(figures) == 2 * (7 + 8 + 1)  # seven measures, eight metrics of updates and a distribution per variant
    for figure in figures:
        plotly.Figure(**figure)


UPDATES = [
    "Policy loss",
    "Value loss",
    "Explained variance of the value function",
    "Entropy of the policy",
    "Approximate KL divergence",
    "Gradient norm",
    "Mean of the risk weights",
    "Standard deviation of the risk weights",
]


def captions(source):
    return re.findall("<figcaption>(.*?)</figcaption>", source)


def test_metrics_of_updates_are_folded_below_the_learning_curves(page):
    (section,) = re.findall('<section class="curves">(.*?)</section>', page.read_text(), re.DOTALL)
    curves, _, folded = section.partition("<details><summary>Update diagnostics</summary>")
    assert captions(folded) == UPDATES * 2
    assert len(captions(curves)) == 2 * 7
    assert not set(captions(curves)) & set(UPDATES)
    assert folded.endswith("</details>")


def test_metrics_of_updates_may_be_missing_from_records(tmp_path):
    """Before learning starts, and in episodes without an update."""
    records = [{"episodes": e, "return": 1.0} for e in range(1, 7)]
    records[2] |= {"critic_loss": 0.5, "mean_q": 1.0}
    records[4] |= {"critic_loss": 0.7, "mean_q": float("nan")}
    fake_run(tmp_path / "dqn" / "seed0", agent="dqn", records=records)
    fake_run(tmp_path / "mg" / "seed0", agent="mg", records=[{"episodes": 1, "return": 1.0}])
    page = write_report(tmp_path, episodes=20)
    _, _, folded = page.read_text().partition("<summary>Update diagnostics")
    assert captions(folded) == ["Critic loss", "Mean action value"]
    returns, loss, q = figures_of(page)
    assert [len(figure["data"]) for figure in (returns, loss, q)] == [2, 1, 1]
    assert (loss["data"][0]["x"], loss["data"][0]["y"]) == ([3, 5], [0.5, 0.7])
    assert (q["data"][0]["x"], q["data"][0]["y"]) == ([3], [1])


# In a browser


@pytest.fixture(scope="module")
def driver(page, tmp_path_factory):
    """Chromium with the page open."""
    try:
        from selenium import webdriver
    except ModuleNotFoundError:
        cannot("selenium is not installed: pip install 'steadyrl[dev]'")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    chromedriver = shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        cannot("no browser to look at the page with: apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    flags = "headless=new no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
    flags += "disable-component-update disable-sync disable-dev-shm-usage"
    for flag in flags.split():
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    driver.get(page.as_uri())
    yield driver
    driver.quit()


@pytest.fixture
def browser(driver):
    """The page at 1280 pixels."""
    resize(driver, 1280)
    return driver


def resize(driver, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    # Two frames later, plots have been fitted to it.
    driver.execute_async_script(
        "const done = arguments[0]; setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 300)"
    )


def table(browser, within):
    """The texts of the cells of the first table there."""
    body = browser.find_element("css selector", f"{within} tbody")
    return [[cell.text for cell in row.find_elements("tag name", "td")] for row in body.find_elements("tag name", "tr")]


def test_opens_without_complaint_or_network(browser, page):
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert page.as_uri() in asked
    assert [url for url in asked if url.startswith(("http", "ws", "//"))] == []


def test_every_plot_has_its_traces(browser):
    counts = browser.execute_script(
        "return Array.from(document.querySelectorAll('.js-plotly-plot')).map(plot => plot.data.length)"
    )
    # Two methods: a line and a band each in the curves; bars and two kinds of marks each in the distributions.
    assert counts == [4] * 14 + [6] * 2
    drawn = "return document.querySelectorAll('.js-plotly-plot .scatterlayer .trace').length"
    assert browser.execute_script(drawn) == 14 * 4 + 2 * 4
    # A method has one colour everywhere.
    colours = "return Array.from(document.querySelectorAll('.curves .js-plotly-plot')).map(p => p.data[1].line.color)"
    assert len(set(browser.execute_script(colours))) == 1


def test_each_method_has_a_heat_map_in_each_maze(browser):
    cells = "return Array.from(document.querySelectorAll('.maps svg')).map(map => map.querySelectorAll('.cell').length)"
    assert browser.execute_script(cells) == [36 - WALLS] * 4
    fills = "return new Set(Array.from(document.querySelectorAll('.maps .cell')).map(c => c.getAttribute('fill'))).size"
    assert browser.execute_script(fills) > 10
    assert browser.execute_script("return document.querySelectorAll('.maps .wall').length") == 4 * WALLS


@pytest.mark.parametrize("width", [375, 768, 1280])
def test_nothing_overflows(browser, width):
    resize(browser, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    widest = browser.execute_script(
        "return Math.max(...Array.from(document.querySelectorAll('figure, .plot .main-svg, .legend, .runs'))"
        ".map(element => element.getBoundingClientRect().right))"
    )
    assert widest <= width


def test_the_table_of_runs_holds_their_numbers(browser, results):
    rows = table(browser, ".runs")
    assert [row[:4] for row in rows if len(row) > 1] == [
        [f"goal-{goal}", method, "2", "300"] for goal in GOALS for method in ("reinforce", "mvo")
    ]
    finals = [read_metrics(results / "goal-40" / "mvo" / f"seed{seed}")[-1] for seed in SEEDS]
    row = rows[6]
    for column, measure in ((4, "return"), (5, "undiscounted_gini_deviation"), (6, "gini_deviation")):
        mean, error = map(float, row[column].split(" ± "))
        assert mean == pytest.approx(np.mean([final[measure] for final in finals]), rel=5e-3)
        assert error == pytest.approx(abs(finals[0][measure] - finals[1][measure]) / 2, rel=0.15, abs=0.01)
    assert "risk_aversion 0.5" in rows[7][0].replace("\xa0", " ")
    assert "goal_reward 40" in rows[7][0].replace("\xa0", " ")
    assert "gamma" not in rows[7][0]  # the same in all


def test_the_table_of_returns_agrees_with_the_evaluation(browser, results):
    returns = []
    for seed in SEEDS:
        agent = load(results / "goal-20" / "reinforce" / f"seed{seed}" / "checkpoint.steady")
        returns.append(agent.play(100, seed).rewards.sum(axis=1))
    expected = marks_of(returns)
    row = table(browser, ".wide figure")[0]
    for cell, name in zip(row[1:4], ("mean", "gini_deviation", "cvar_10"), strict=True):
        value, interval = cell.split("\n")
        assert value == formatting.number(expected[name].value)
        assert interval == formatting.interval(expected[name])


def test_a_name_in_the_legend_hides_its_curves(browser):
    button = browser.find_element("css selector", ".legend button")
    hidden = "return document.querySelector('.curves .plot').data.map(trace => trace.visible === false)"
    browser.execute_script("arguments[0].click()", button)
    assert browser.execute_script(hidden) == [True, True, False, False]
    browser.execute_script("arguments[0].click()", button)
    assert browser.execute_script(hidden) == [False] * 4


FOLDED = "return Array.from(document.querySelectorAll('details .plot'))"


def test_folded_plots_are_drawn_when_they_are_opened(browser):
    assert browser.execute_script(f"{FOLDED}.filter(plot => plot.data).length") == 0
    button = browser.find_element("css selector", ".legend button")
    browser.execute_script("arguments[0].click()", button)  # Hides REINFORCE, which has no risk weights.
    for width in (1280, 375):
        browser.execute_script("document.querySelector('details').open = false")
        resize(browser, width)
        browser.execute_script("document.querySelector('details').open = true")
        resize(browser, width)
        assert browser.execute_script(f"{FOLDED}.map(plot => plot.data.length)") == ([4] * 6 + [2] * 2) * 2
        gaps = f"{FOLDED}.map(plot => plot.clientWidth - plot.querySelector('.main-svg').clientWidth)"
        assert set(browser.execute_script(gaps)) == {0}
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    visible = f"{FOLDED}[0].data.map(trace => trace.visible !== false)"
    assert browser.execute_script(visible) == [False, False, True, True]
    browser.execute_script("arguments[0].click()", button)
    assert browser.execute_script(visible) == [True] * 4
    browser.execute_script("document.querySelector('details').open = false")
    assert browser.get_log("browser") == []


def test_values_outside_an_axis_can_be_shown(browser, page, tmp_path):
    records = [{"episodes": e, "return": float(e), "white_path_rate": 1e-4 * e / 200} for e in range(1, 201)]
    fake_run(tmp_path / "mg" / "seed0", records=[{**records[0], "return": -1e6}, *records[1:]])
    browser.get(write_report(tmp_path, episodes=20).as_uri())
    lowest = "return document.querySelector('.plot').layout.yaxis.range[0]"
    at_first = browser.execute_script(lowest)
    assert at_first > -50
    browser.execute_script("document.querySelector('.outside button').click()")
    assert browser.execute_script(lowest) <= -1e6
    browser.execute_script("document.querySelector('.outside button').click()")
    assert browser.execute_script(lowest) == at_first
    labels = "return Array.from(document.querySelectorAll('.curves figure:last-child .ytick')).map(t => t.textContent)"
    ticks = browser.execute_script(labels)
    assert len(ticks) == len(set(ticks)) > 2
    assert all(tick.endswith("%") for tick in ticks)
    assert browser.get_log("browser") == []
    browser.get(page.as_uri())
