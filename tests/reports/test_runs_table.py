"""The table of runs: failures with their reason, seeds that stand out, and the settings that differ."""

import re

from report_runs import RECORDS, fake_run, text_of

from steadyrl.reports.page import write_report
from steadyrl.reports.page.groups import settings_of, varied
from steadyrl.reports.page.outliers import outliers
from steadyrl.reports.run_state import state_of_run
from steadyrl.training.run_files import write_error


def fail(folder, error):
    try:
        raise error
    except type(error) as raised:
        write_error(folder, raised)


def test_a_failure_has_its_reason(tmp_path):
    fake_run(tmp_path / "mg" / "seed0", records=RECORDS)
    fake_run(tmp_path / "mg" / "seed1", seed=1, records=RECORDS)
    fail(tmp_path / "mg" / "seed1", RuntimeError("the <b>wheel</b> came off\n  somewhere"))
    page = write_report(tmp_path)
    assert "failed: RuntimeError: the <b>wheel</b> came off" in text_of(page)
    assert "1 run, failed (see error.txt): training incomplete: mg/seed1" in text_of(page)
    assert "1 failed." in text_of(page)
    assert "<b>wheel" not in page.read_text()


class FaultyEnvironmentError(Exception):
    __module__ = "some.module"


def test_the_module_of_an_error_is_left_out(tmp_path):
    fail(tmp_path, FaultyEnvironmentError("no step: x.y"))
    assert state_of_run(tmp_path) == ("failed", "FaultyEnvironmentError: no step: x.y")


def test_the_error_of_somebody_else_is_none(tmp_path):
    (tmp_path / "error.txt").write_text("Traceback of another program\nValueError: 3\n")
    assert state_of_run(tmp_path).name == ""


def test_a_seed_stands_out_by_its_distance_from_the_median():
    values = {"0": 1.0, "1": 1.1, "2": 0.9, "3": 1.05, "4": 5.0}
    assert list(outliers(values, spread=10)) == ["4"]
    assert outliers({name: values[name] for name in "013"}, spread=10) == {}  # Too few.
    assert outliers(values, spread=1000) == {}  # Against this spread, all are the same.


def test_equal_seeds_do_not_stand_out_by_a_digit():
    values = {"0": -100.0, "1": -100.0, "2": -100.0, "3": -99.9}
    assert outliers(values, spread=0) == {}
    assert list(outliers({**values, "4": 5.0}, spread=105)) == ["4"]


def test_the_page_says_which_seed_stands_out(tmp_path):
    for seed in range(5):
        records = [{**record, "return": 10.0 + 0.1 * seed + 50 * (seed == 3)} for record in RECORDS]
        fake_run(tmp_path / "mg" / f"seed{seed}", seed=seed, records=records)
    assert text_of(write_report(tmp_path)).count("stands out: return 50.1 above the median") == 1


def test_settings_that_only_some_agents_have_do_not_differ():
    env = {"id": "x"}
    mg = [settings_of({"agent": "mg", "env": env, "settings": {"gamma": 0.9, "risk_aversion": x}}) for x in (1, 2)]
    ppo = settings_of({"agent": "ppo", "env": env, "settings": {"gamma": 0.9, "clip_range": 0.2}})
    assert varied([*mg, ppo]) == [("agent", "agent"), ("agent", "risk_aversion")]


def test_columns_are_the_settings_that_differ_those_of_one_agent_first(tmp_path):
    for aversion in (1, 2):
        settings = {"learning_rate": 0.1, "gamma": 0.9, "risk_aversion": aversion}
        fake_run(tmp_path / f"mg{aversion}", settings=settings, records=RECORDS)
    fake_run(tmp_path / "ppo", "ppo", settings={"learning_rate": 0.2, "gamma": 0.9}, records=RECORDS)
    section = write_report(tmp_path).read_text().partition('<section id="runs">')[2]
    headings = re.findall(r"<th [^>]*>(.*?)</th>", section)
    assert headings[-2:] == ["risk_aversion", "learning_rate"]
    assert "gamma 0.9" in section
