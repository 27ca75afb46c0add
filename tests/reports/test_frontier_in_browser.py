"""What Chromium makes of a frontier: each point leads to its runs, by pointer and by keyboard."""

import pytest
from browser_page import is_quiet, open_page, press, settle, show, texts
from report_frontier import write_frontier

from steadyrl.reports.page import write_report


@pytest.fixture
def frontier_page(chromium, tmp_path):
    write_frontier(tmp_path)
    open_page(chromium, write_report(tmp_path, episodes=20))
    show(chromium, "#frontier")
    return chromium


def is_open(driver):
    return driver.execute_script("return document.getElementById('details').open")


def test_a_click_shows_the_settings_and_the_command_of_a_point(frontier_page):
    frontier_page.find_element("css selector", 'a.point[aria-label^="MG, lambda 1:"] .dot').click()
    settle(frontier_page)
    assert is_open(frontier_page)
    (details,) = texts(frontier_page, "#details")
    assert "lambda" in details
    assert "steadyrl frontier x" in details
    assert is_quiet(frontier_page)


def test_the_keyboard_reaches_a_point(frontier_page):
    frontier_page.execute_script("document.querySelector('a.point[aria-label^=\"MG, lambda 0:\"]').focus()")
    press(frontier_page, "\ue007")  # Enter
    assert is_open(frontier_page)
    press(frontier_page, "\ue00c")  # Escape
    assert not is_open(frontier_page)
