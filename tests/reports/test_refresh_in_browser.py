"""What Chromium makes of a page that is written again while it is open."""

import json
import signal
import subprocess
import sys
import time

import pytest
from browser_page import click, count, open_page, texts
from report_runs import fake_run, train

from steadyrl import MVO, Reinforce
from steadyrl.envs.resolve import resolve
from steadyrl.reports.page import write_report


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
    # A test run in the background may have been started with Ctrl-C ignored.
    heed_ctrl_c = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    run = f"{heed_ctrl_c}; from steadyrl.cli.main import main; main()"
    command = [sys.executable, "-c", run, "report", folder, "--watch", "--every", "1", "--episodes", "20"]
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
            watching.send_signal(signal.SIGINT)
            assert watching.wait(60) == 130
        finally:
            watching.kill()
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
