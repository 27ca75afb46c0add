"""The page: what it finds, how it groups, what it tells, and what a browser makes of it."""

import json
import os
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from steadyrl import MVO, Reinforce, learn_together
from steadyrl.envs.guarded_maze import GuardedMazeEnv, Maze
from steadyrl.envs.resolve import resolve
from steadyrl.episodes import Episodes
from steadyrl.report import numerals, write_report
from steadyrl.report.groups import differing, group_runs, settings_of
from steadyrl.report.learning import POINTS, curve_of, final_of, measures_of
from steadyrl.report.maze_map import maze_map
from steadyrl.report.panels import Palette, distribution_panel
from steadyrl.report.playing import marks_of, visits_of
from steadyrl.report.runs_found import find_runs
from steadyrl.risk_report import Estimate, measure_risk
from steadyrl.runs import Run, config_of, read_metrics

METHODS = {"mvo": (MVO, {"risk_aversion": 0.5}), "reinforce": (Reinforce, {})}
GOALS, SEEDS, EPISODES = (20, 40), (0, 1), 300
WALLS = 7


def cannot(reason):
    """Where CI runs, a test that cannot run has failed."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@pytest.fixture(scope="module", autouse=True)
def plotly():
    try:
        import plotly.graph_objects as objects
    except ModuleNotFoundError:
        cannot("plotly is not installed: pip install 'steadyrl[report]'")
    return objects


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


def train(folder, kind, env, seeds=SEEDS, episodes=EPISODES, **settings):
    agents = [kind(env, seed=seed, **settings) for seed in seeds]
    runs = [Run.begin(folder / f"seed{a.seed}", a, config_of(a, {"episodes": episodes})) for a in agents]
    if episodes:
        learn_together(agents, total_episodes=episodes, progress_bar=False, listeners=runs)
    for run in runs:
        run.finish()


def fake_run(
    folder, agent="mg", seed=0, settings=None, options=None, records=(), env="steadyrl/GuardedMaze-v0", **more
):
    """A run's folder without an agent."""
    folder.mkdir(parents=True)
    world = {"id": env, "options": options or {}}
    config = {"agent": agent, "env": world, "settings": settings or {}, "seed": seed, **more}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def grouped(root):
    runs, notes = find_runs(root)
    return group_runs(runs, root, notes), notes


def names(groups):
    return [(group.variant, group.method, [run.seed for run in group.runs]) for group in groups]


class TestGrouping:
    def test_runs_that_differ_in_seed_alone_are_one_group(self, results):
        groups, notes = grouped(results)
        expected = [(f"goal-{goal}", method, [0, 1]) for goal in GOALS for method in ("reinforce", "mvo")]
        assert names(groups) == expected
        assert not notes

    def test_of_one_variant_or_one_method_or_one_run(self, results):
        assert [g.method for g in grouped(results / "goal-20")[0]] == ["reinforce", "mvo"]
        assert [g.variant for g in grouped(results / "goal-20")[0]] == ["GuardedMaze-v0"] * 2
        for below in ("mvo", "mvo/seed1"):
            (group,) = grouped(results / "goal-20" / below)[0]
            assert (group.variant, group.method) == ("GuardedMaze-v0", "mvo")

    def test_in_a_flat_folder_groups_are_called_by_what_is_different(self, tmp_path):
        for index, (risk_aversion, seed, goal) in enumerate([(0.5, 0, 20), (0.5, 1, 20), (2.0, 0, 20), (0.5, 0, 40)]):
            settings = {"risk_aversion": risk_aversion, "gamma": 0.999}
            fake_run(tmp_path / f"run{index}", seed=seed, settings=settings, options={"goal_reward": goal})
        fake_run(tmp_path / "other", agent="reinforce", settings={"gamma": 0.999}, options={"goal_reward": 20})
        assert names(grouped(tmp_path)[0]) == [
            ("GuardedMaze-v0, goal_reward 20", "reinforce", [0]),
            ("GuardedMaze-v0, goal_reward 20", "mg, risk_aversion 0.5", [0, 1]),
            ("GuardedMaze-v0, goal_reward 20", "mg, risk_aversion 2", [0]),
            ("GuardedMaze-v0, goal_reward 40", "mg, risk_aversion 0.5", [0]),
        ]

    def test_budgets_tell_groups_apart_where_nothing_else_does(self, tmp_path):
        for episodes in (100, 20_000):
            fake_run(tmp_path / str(episodes), budget={"episodes": episodes})
        assert [g.method for g in grouped(tmp_path)[0]] == [
            "mg, budget of episodes 100",
            "mg, budget of episodes 20,000",
        ]

    def test_equal_settings_in_two_folders_are_two_groups_if_seeds_repeat(self, tmp_path):
        for method in ("mg", "mg_again"):
            for seed in (0, 1):
                fake_run(tmp_path / method / f"seed{seed}", seed=seed)
        assert [(m, s) for _, m, s in names(grouped(tmp_path)[0])] == [("mg", [0, 1]), ("mg_again", [0, 1])]

    def test_a_copy_is_left_out_and_noted(self, tmp_path):
        for folder in ("a", "b"):
            fake_run(tmp_path / folder, records=[{"episodes": 10, "return": 1.0}])
        (group,), notes = grouped(tmp_path)
        assert [run.name for run in group.runs] == ["a"]
        assert list(notes.values()) == [["b"]]

    @pytest.mark.parametrize("ordered", [("goal-20", "goal-100"), ("0.25", "0.5", "1"), ("1e-05", "0.0001")])
    def test_numbers_in_names_are_sorted_as_numbers(self, tmp_path, ordered):
        for index, name in enumerate(reversed(ordered)):
            fake_run(tmp_path / name / "mg" / "seed0", options={"goal_reward": index})
        assert [g.variant for g in grouped(tmp_path)[0]] == list(ordered)

    def test_settings_differ_if_only_some_have_them(self):
        env = {"id": "x", "options": {"layout": "S.G"}}
        a = settings_of({"agent": "mg", "env": env, "settings": {"gamma": 0.9, "risk_aversion": 1}})
        b = settings_of({"agent": "mg", "env": env, "settings": {"gamma": 0.9}})
        assert differing([a, b]) == [("agent", "risk_aversion")]
        assert differing([a, a]) == []


class TestLearning:
    def test_a_curve_is_the_mean_over_seeds_with_one_standard_error(self, results):
        (group, *_) = grouped(results)[0]
        values = np.array([[record["return"] for record in read_metrics(run.folder)] for run in group.runs])
        curve = curve_of(group, "return")
        assert curve.episodes.tolist() == [50, 100, 150, 200, 250, 300]
        np.testing.assert_allclose(curve.mean, values.mean(axis=0))
        np.testing.assert_allclose(curve.error, np.abs(values[0] - values[1]) / 2)

    def test_runs_recorded_at_different_episodes_meet_where_both_have_been(self, tmp_path):
        fake_run(tmp_path / "a", seed=0, records=[{"episodes": e, "return": e} for e in (10, 20, 30, 40, 50, 60)])
        fake_run(tmp_path / "b", seed=1, records=[{"episodes": e, "return": -e} for e in (20, 40)])
        (group,), _ = grouped(tmp_path)
        curve = curve_of(group, "return")
        assert curve.episodes.tolist() == [20, 30, 40]
        np.testing.assert_allclose(curve.mean, 0)
        np.testing.assert_allclose(curve.error, [20, 30, 40])  # of +-e: e * sqrt(2) / sqrt(2)

    def test_what_is_missing_or_not_finite_is_passed_over(self, tmp_path):
        records = [{"episodes": 10}, {"episodes": 20, "return": 2.0}, {"episodes": 30, "return": float("nan")}]
        fake_run(tmp_path / "a", records=records)
        (group,), _ = grouped(tmp_path)
        assert curve_of(group, "return")[:2] == (np.array([20]), np.array([2]))
        assert curve_of(group, "return").error is None
        assert curve_of(group, "gini_deviation") is None
        assert final_of(group, "gini_deviation") is None

    def test_long_curves_are_thinned_and_end_where_they_did(self, tmp_path):
        fake_run(tmp_path / "a", records=[{"episodes": e, "return": e} for e in range(1, 2001)])
        (group,), _ = grouped(tmp_path)
        curve = curve_of(group, "return")
        assert len(curve.mean) == POINTS
        assert (curve.episodes[0], curve.mean[0]) == (10, 5.5)
        assert curve.episodes[-1] == 2000

    def test_the_end_is_the_last_tenth(self, tmp_path):
        for seed in (0, 1):
            records = [{"episodes": e, "return": 10 * seed + (e > 18)} for e in range(1, 21)]
            fake_run(tmp_path / str(seed), seed=seed, records=records)
        (group,), _ = grouped(tmp_path)
        assert final_of(group, "return") == pytest.approx((6.0, 5.0))  # 1 and 11, so se = 10 / sqrt(2) / sqrt(2)

    def test_measures_are_the_known_ones_then_rates_and_facts(self, tmp_path):
        record = {"episodes": 1, "distance": 1, "loss": 1, "landed_rate": 1, "white_path_rate": 1, "return": 1}
        fake_run(tmp_path / "a", records=[record])
        groups, _ = grouped(tmp_path)
        expected = ["return", "white_path_rate", "optimal_rate", "distance", "landed_rate"]
        assert measures_of(groups, facts=["distance"]) == expected


class TestNumbers:
    def test_visits_count_every_cell_and_the_last(self):
        maze = Maze(layout="S.G")
        episodes = Episodes(  # One goes right, right; one bumps up, goes right, bumps down.
            observations=np.array([[0, 1, 0], [0, 0, 1]]),
            actions=np.array([[3, 3, 0], [0, 3, 1]]),
            rewards=np.zeros((2, 3)),
            mask=np.array([[1, 1, 0], [1, 1, 1]]),
            last_observations=np.array([2, 1]),
            terminated=np.array([True, False]),
            facts={},
        )
        np.testing.assert_allclose(visits_of(maze, episodes), [[1.5, 1.5, 0.5]])

    def test_marks_of_one_seed_are_those_of_the_risk_report(self):
        returns = np.arange(50.0)
        risk = measure_risk(returns, seed=0)
        expected = {"mean": risk.mean, "gini_deviation": risk.gini_deviation, "cvar_10": risk.cvar_10}
        assert marks_of([returns]) == expected

    def test_intervals_of_several_seeds_know_that_seeds_differ(self):
        rng = np.random.default_rng(0)
        seeds = [level + rng.normal(size=200) for level in np.linspace(-10, 10, 8)]
        mean = marks_of(seeds)["mean"]
        assert mean.value == pytest.approx(np.mean(seeds))
        spread = np.std([s.mean() for s in seeds]) / np.sqrt(8)
        # Episodes alone would give 1.96 * 6.6 / sqrt(1600) = 0.32.
        assert (mean.high - mean.low) / 2 == pytest.approx(1.96 * spread, rel=0.15)
        assert marks_of([np.full(9, -100.0)] * 3)["mean"] == (-100, -100, -100)

    def test_bars_hold_every_episode(self, plotly):
        returns = {"whole": np.array([-100.0, 9, 10, 10]), "real": np.random.default_rng(0).normal(size=500)}
        marks = {method: marks_of([R]) for method, R in returns.items()}
        figure = distribution_panel(returns, marks, Palette(list(returns)))
        bars = [trace for trace in figure["data"] if trace.get("type") == "bar"]
        for bar in bars:
            assert np.square(bar["y"]).sum() == pytest.approx(1, abs=1e-3)
        assert dict(zip(bars[0]["x"], np.square(bars[0]["y"]), strict=True)) == pytest.approx(
            {-100: 0.25, 9: 0.25, 10: 0.5}, abs=1e-3
        )
        plotly.Figure(**figure)  # Refuses what plotly.js would not know.

    @pytest.mark.parametrize(
        ("told", "text"),
        [
            (numerals.number(12345.6), "12,346"),
            (numerals.number(-99.996), "-100"),
            (numerals.number(8.694), "8.69"),
            (numerals.number(0.01234), "0.0123"),
            (numerals.number(0), "0"),
            (numerals.number(float("nan")), "n/a"),
            (numerals.share(0.97), "97 %"),
            (numerals.share(0.997), "99.7 %"),
            (numerals.share(1.0), "100 %"),
            (numerals.with_error(8.663, 0.041, "return", 10), "8.66 ± 0.04"),
            (numerals.with_error(8.663, 0.004, "return", 10), "8.663 ± 0.004"),
            (numerals.with_error(0.00415, 0.002, "gini_deviation", 7.57), "0.0042 ± 0.0020"),
            (numerals.with_error(8.663, None, "return", 10), "8.66"),
            (numerals.with_error(0.5, 0.17, "goal_rate", 1), "50 ± 17 %"),
            (numerals.with_error(0.382, 0.001, "goal_rate", 1), "38.2 ± 0.1 %"),
            (numerals.interval(Estimate(2, 1, 3.456)), "[1.00, 3.46]"),
            (numerals.span([5000, 5000]), "5,000"),
            (numerals.span([5000, 200]), "200 to 5,000"),
            (numerals.setting(0.0001), "0.0001"),
            (numerals.setting([-15.0, True, "a\nb"]), "-15, true, a b"),
            (numerals.setting("x" * 50), "x" * 37 + "..."),
        ],
    )
    def test_are_told_as_people_like_them(self, told, text):
        assert told == text

    def test_no_two_methods_look_alike(self):
        methods = [f"method {index}" for index in range(30)]
        palette = Palette(methods)
        assert len({(palette.colour(method), palette.dash(method)) for method in methods}) == 30
        assert len({palette.colour(method) for method in methods[:13]}) == 13

    def test_large_mazes_are_drawn_without_numbers(self):
        wide = Maze(layout="S" + "." * 20 + "G")
        assert maze_map(wide, np.ones(wide.grid.shape), 10.0).count("<text") == 2  # S and G
        small = maze_map(Maze(), np.full((6, 6), 0.57), 10.0)
        assert small.count(">.57</text>") == 36 - WALLS


class TestErrors:
    def test_no_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere: there is no such folder"):
            write_report(tmp_path / "nowhere")

    def test_no_runs(self, tmp_path):
        (tmp_path / "config.json").write_text('{"name": "of something else"}')
        with pytest.raises(FileNotFoundError, match="holds no runs"):
            write_report(tmp_path)

    def test_no_plotly(self, results, monkeypatch):
        monkeypatch.setitem(sys.modules, "plotly.offline", None)
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'steadyrl\[report\]'"):
            write_report(results)

    def test_one_episode(self, results):
        with pytest.raises(ValueError, match="episodes=1: a distribution of returns needs at least 2"):
            write_report(results, episodes=1)


class TestPage:
    def test_what_cannot_be_shown_is_noted(self, results, tmp_path):
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
        told = text_of(write_report(root, episodes=20))
        for note in (
            "config.json is not that of a run: left out: foreign",
            "no checkpoint: not in the return distributions: mvo/seed0",
            "is no steadyrl agent, or only a part of one. Not in the return distributions: mvo/seed1",
            "nothing recorded in metrics.jsonl: not in the learning curves: reinforce/seed0",
        ):
            assert note in told
        assert "0 to 300 episodes a run" in told

    def test_an_environment_without_facts_maze_or_finite_face(self, tmp_path):
        train(tmp_path / "lake", Reinforce, resolve("FrozenLake-v1"), seeds=[3], episodes=0)
        train(tmp_path / "own", Reinforce, GuardedMazeEnv(), seeds=[3], episodes=0)
        page = write_report(tmp_path, episodes=20)
        assert page == tmp_path / "report.html"
        told = text_of(page)
        assert "its environment cannot be made again here: not in the return distributions: own/seed3" in told
        assert "nothing recorded in metrics.jsonl: not in the learning curves: lake/seed3, own/seed3" in told
        assert [len(figure["data"]) for figure in figures_of(page)] == [3]  # FrozenLake's distribution
        assert "Visits" not in told

    def test_what_users_wrote_is_text(self, tmp_path):
        evil = "<img src=x onerror=alert(1)>\"'"
        record = {"episodes": 10, "return": 1.0, f"{evil}_rate": 0.5}
        more = {"command": f"/bin/steadyrl {evil}", "versions": {"python": evil}, "started": evil}
        for name, setting in (("a", evil), ("b", "</script>")):
            fake_run(
                tmp_path / f"{evil}{name}", agent=evil, env=evil, settings={evil: setting}, records=[record], **more
            )
        page = write_report(tmp_path, episodes=20)
        parser = parse(page)
        assert "img" not in parser.tags
        assert parser.tags.count("script") == 3
        assert f"steadyrl {evil}" in parser.text
        figures_of(page)

    def test_says_what_was_run(self, page):
        told = text_of(page)
        assert "8 runs: 2 methods in 2 variants of steadyrl/GuardedMaze-v0, 2 seeds each, 300 episodes a run" in told
        assert "2,400 in all" in told
        assert f"gymnasium {gym.__version__}" in told

    def test_is_one_file_that_links_to_nothing(self, page):
        parser = parse(page)
        assert parser.links == ["data:,"]
        assert [path.name for path in page.parent.iterdir()] == ["page.html"]
        assert "@import" not in page.read_text().split("<script>")[0]

    def test_plots_are_valid(self, page, plotly):
        figures = figures_of(page)
        assert len(figures) == 2 * 6 + 2  # six measures and a distribution for each variant
        for figure in figures:
            plotly.Figure(**figure)


class TestInABrowser:
    def test_opens_without_complaint_or_network(self, browser, page):
        assert browser.get_log("browser") == []
        messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        assert page.as_uri() in asked
        assert [url for url in asked if url.startswith(("http", "ws", "//"))] == []

    def test_every_plot_has_its_traces(self, browser):
        counts = browser.execute_script(
            "return Array.from(document.querySelectorAll('.js-plotly-plot')).map(plot => plot.data.length)"
        )
        # Two methods: a line and a band each in the curves; bars and two kinds of marks each in the distributions.
        assert counts == [4] * 12 + [6] * 2
        drawn = "return document.querySelectorAll('.js-plotly-plot .scatterlayer .trace').length"
        assert browser.execute_script(drawn) == 12 * 4 + 2 * 4
        # A method has one colour everywhere.
        colours = "return Array.from(document.querySelectorAll('.curves .plot')).map(p => p.data[1].line.color)"
        assert len(set(browser.execute_script(colours))) == 1

    def test_each_method_has_a_heat_map_in_each_maze(self, browser):
        cells = (
            "return Array.from(document.querySelectorAll('.maps svg')).map(map => map.querySelectorAll('.cell').length)"
        )
        assert browser.execute_script(cells) == [36 - WALLS] * 4
        fills = (
            "return new Set(Array.from(document.querySelectorAll('.maps .cell')).map(c => c.getAttribute('fill'))).size"
        )
        assert browser.execute_script(fills) > 10
        assert browser.execute_script("return document.querySelectorAll('.maps .wall').length") == 4 * WALLS

    @pytest.mark.parametrize("width", [375, 768, 1280])
    def test_nothing_overflows(self, browser, width):
        resize(browser, width)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        widest = browser.execute_script(
            "return Math.max(...Array.from(document.querySelectorAll('figure, .plot .main-svg, .legend, .runs'))"
            ".map(element => element.getBoundingClientRect().right))"
        )
        assert widest <= width

    def test_the_table_of_runs_holds_their_numbers(self, browser, results):
        rows = table(browser, ".runs")
        assert [row[:4] for row in rows if len(row) > 1] == [
            [f"goal-{goal}", method, "2", "300"] for goal in GOALS for method in ("reinforce", "mvo")
        ]
        finals = [read_metrics(results / "goal-40" / "mvo" / f"seed{seed}")[-1] for seed in SEEDS]
        told = rows[6]
        for column, measure in ((4, "return"), (5, "gini_deviation")):
            mean, error = map(float, told[column].split(" ± "))
            assert mean == pytest.approx(np.mean([final[measure] for final in finals]), rel=5e-3)
            assert error == pytest.approx(abs(finals[0][measure] - finals[1][measure]) / 2, rel=0.1, abs=0.01)
        assert "risk_aversion 0.5" in rows[7][0].replace("\xa0", " ")
        assert "goal_reward 40" in rows[7][0].replace("\xa0", " ")
        assert "gamma" not in rows[7][0]  # the same in all

    def test_the_table_of_returns_agrees_with_the_evaluation(self, browser, results):
        from steadyrl import load

        returns = []
        for seed in SEEDS:
            agent = load(results / "goal-20" / "reinforce" / f"seed{seed}" / "checkpoint.steady")
            returns.append(agent.rollout(agent.env, 100, seed).rewards.sum(axis=1))
        expected = marks_of(returns)
        row = table(browser, ".wide figure")[0]
        for cell, name in zip(row[1:4], ("mean", "gini_deviation", "cvar_10"), strict=True):
            value, interval = cell.split("\n")
            assert value == numerals.number(expected[name].value)
            assert interval == numerals.interval(expected[name])

    def test_a_name_in_the_legend_hides_its_curves(self, browser):
        button = browser.find_element("css selector", ".legend button")
        hidden = "return document.querySelector('.curves .plot').data.map(trace => trace.visible === false)"
        browser.execute_script("arguments[0].click()", button)
        assert browser.execute_script(hidden) == [True, True, False, False]
        browser.execute_script("arguments[0].click()", button)
        assert browser.execute_script(hidden) == [False] * 4


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


class Parser(HTMLParser):
    """The tags, links and visible text of a page, and the JSON in it."""

    def __init__(self):
        super().__init__()
        self.tags, self.links, self.text, self.json = [], [], "", ""
        self._within = None

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "srcset", "action", "data")]
        if tag in ("script", "style"):
            self._within = "json" if ("type", "application/json") in attributes else "code"

    def handle_endtag(self, tag):
        self._within = None if tag in ("script", "style") else self._within

    def handle_data(self, data):
        if self._within == "json":
            self.json += data
        elif self._within is None:
            self.text += data


def parse(page: Path):
    parser = Parser()
    parser.feed(page.read_text())
    return parser


def text_of(page: Path):
    return " ".join(parse(page).text.split())


def figures_of(page: Path):
    return json.loads(parse(page).json)
