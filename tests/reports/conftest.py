"""Runs, their page, and a browser to look at it with."""

import shutil

import pytest
from browser_page import open_page, resize
from report_runs import GOALS, METHODS, cannot, train

from steadyrl.envs.resolve import resolve
from steadyrl.reports.page import write_report


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """Chromium without a window; its log of the network is kept."""
    try:
        from selenium import webdriver
    except ModuleNotFoundError:
        cannot("selenium is not installed: pip install 'steadyrl[dev]'")
    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    chromedriver = shutil.which("chromedriver")
    if binary is None or chromedriver is None:
        cannot("no browser to look at the page with: apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    flags = "headless=new no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
    flags += "disable-component-update disable-sync disable-dev-shm-usage hide-scrollbars"
    for flag in flags.split():
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """Two methods in two variants with two seeds each, as `steadyrl reproduce` lays them out."""
    root = tmp_path_factory.mktemp("results") / "tiny"
    for goal in GOALS:
        for name, (kind, settings) in METHODS.items():
            train(root / f"goal-{goal}" / name, kind, resolve("steadyrl/GuardedMaze-v0", goal_reward=goal), **settings)
    return root


@pytest.fixture(scope="session")
def page(results, tmp_path_factory):
    return write_report(results, tmp_path_factory.mktemp("page") / "new" / "page.html", episodes=100)


@pytest.fixture
def browser(chromium, page):
    """The page as it opens, at 1280 pixels."""
    resize(chromium, 1280)
    open_page(chromium, page)
    return chromium
