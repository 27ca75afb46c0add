"""What Chromium makes of the page as a whole: films, maps, keyboard, themes and widths."""

import itertools
import json

import pytest
from browser_page import click, count, is_quiet, resize, settle, show, texts, theme

WALLS = 7


def test_opens_without_complaint_or_network(browser, page):
    assert is_quiet(browser)
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert page.as_uri() in asked
    assert [url for url in asked if url.startswith(("http", "ws", "//"))] == []


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
