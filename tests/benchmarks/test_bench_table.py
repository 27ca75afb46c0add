"""The table of all speed benchmarks and its page: ratios, parts that fail or do not fit, and how costs grow."""

import dataclasses
import json
import math
import types

import pytest

from benchmarks.speed import all as bench
from benchmarks.speed import page, reaching, scaling, table, worlds
from benchmarks.speed.table import Row

RATES = Row(
    "fast", "steps/s", 3000.0, {"other": 1000.0}, limit=4000.0, note="physics", command="python -m x", load=0.25
)
SECONDS = Row("start", "s", 2.0, {"cold": 9.0})
BOTH = RATES, SECONDS
ETA = scaling.Series("eta", "Gini weights", "returns", "s", [10, 100, 1000], {"eta": [0.001, 0.01, 0.1]})


def test_ratios_are_how_many_times_as_fast():
    assert RATES.ratio(1000.0) == 3
    assert SECONDS.ratio(9.0) == 4.5
    text = table.as_text([RATES, SECONDS])
    assert "other 1,000 (3.00)" in text
    assert "4,000 (physics)" in text
    assert "cold 9 (4.50)" in text
    lines = table.as_markdown([RATES, SECONDS]).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert "| fast | steps/s | 3,000 | other 1,000 (3.00) | 4,000 (physics) | 0.75 | 0.2 |" in lines


def test_rows_of_several_machines_are_listed_by_machine():
    here = [dataclasses.replace(row, measured="2026-11-19", machine="2 cores (A)", versions="jax 1") for row in BOTH]
    assert table.conditions(here) == {"on 2026-11-19 on 2 cores (A), with jax 1": ["fast", "start"]}
    written = page.text(here, [], {})
    assert "\nMeasured on 2026-11-19 on 2 cores (A), with jax 1.\n" in written
    written = page.text([here[0], dataclasses.replace(here[1], machine="8 cores (B)")], [], {})
    assert "\n- on 2026-11-19 on 2 cores (A), with jax 1: fast\n- on 2026-11-19 on 8 cores (B), " in written
    assert "\nNot measured yet.\n" in page.text([], [], {})


def test_exponents():
    assert scaling.exponent(ETA, "eta") == pytest.approx(1)
    quadratic = ETA._replace(values={"eta": [1.0, 2.0, 200.0]})
    assert scaling.exponent(quadratic, "eta") == pytest.approx(2)
    assert "| eta | 1 | 10 | 100 | size^1.00 |" in scaling.as_markdown([ETA])


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Parts that return a row, or fail."""
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "benchmarks.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "benchmarks.md")
    monkeypatch.setattr(page, "FIGURE", tmp_path / "benchmarks_scaling.png")
    for peers in (bench.environment, bench.rejax_environment):
        monkeypatch.setattr(peers, "install", lambda: None)
    monkeypatch.setattr(bench, "rows_of", lambda part, peers: iter([RATES] if part != "broken" else [1 / 0]))
    monkeypatch.setattr(scaling, "measure", lambda: iter([ETA]))
    monkeypatch.setattr(bench, "others_use", lambda: 0.1)
    return [bench.Part(name, 60, 30) for name in ("maze", "broken", "scaling", "ppo")]


def test_parts_that_fail_or_do_not_fit_are_left_out(measured, capsys):
    results = {"rows": {}, "scaling": []}
    left_out = bench.run(measured, True, 1.5, results)
    assert left_out == ["broken: ZeroDivisionError: division by zero"]
    assert list(results["rows"]) == ["maze", "ppo"]
    assert results["scaling"] == [ETA._asdict()]
    (row,) = results["rows"]["maze"]
    assert (row["ours"], row["command"]) == (3000, "python -m benchmarks.speed.maze")
    assert all(row[name] for name in ("measured", "machine", "versions"))
    left_out = bench.run(measured, True, 0.9, {"rows": {}})
    assert len(left_out) == 4
    assert left_out[0] == "maze: it takes about 60 s, and the 0.9 minutes would be over."
    assert len(bench.run(measured, False, 0.9, {"rows": {}, "scaling": []})) == 1, "less time without peers"


def test_the_command_prints_the_table_warns_and_writes_the_page(measured, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench, "others_use", lambda: 1.7)
    bench.main(["--no-peers", "--only", "maze", "scaling"])
    printed = capsys.readouterr()
    assert "Load at the start: 1.7 of" in printed.out
    assert "this machine is busy" in printed.err
    assert "other programs use 1.7 cores, so maze will be too slow" in printed.err
    assert "other 1,000 (3.00)" in printed.out
    written = (tmp_path / "benchmarks.md").read_text()
    assert "other 1,000 (3.00)" in written
    assert "size^1.00" in written
    assert (tmp_path / "benchmarks_scaling.png").stat().st_size > 1000
    kept = json.loads((tmp_path / "benchmarks.json").read_text())
    assert list(kept["rows"]) == ["maze"]
    assert kept["rows"]["maze"][0]["load"] == 1.7
    assert "whole_run" not in kept
    (tmp_path / "benchmarks.md").unlink()
    bench.main(["--page"])
    assert (tmp_path / "benchmarks.md").read_text() == written


def test_what_everything_took_is_recorded_if_everything_was_measured(measured, monkeypatch, tmp_path, capsys):
    bench.main([])
    assert "Measured in 0.0 minutes." in capsys.readouterr().out
    whole = bench.read()["whole_run"]
    assert 0 < whole["minutes"] < 1
    assert f"took 0.0 minutes on {whole['measured']} on {whole['machine']}" in (tmp_path / "benchmarks.md").read_text()
    bench.main(["--only", "maze"])
    assert bench.read()["whole_run"] == whole
    monkeypatch.setattr(bench, "rows_of", lambda part, peers: iter([1 / 0]))
    bench.main([])
    assert bench.read()["whole_run"] == whole, "a part has failed"


def test_rows_that_were_measured_are_kept_when_a_later_one_of_their_part_fails(measured, monkeypatch):
    def rows(part, peers):
        yield dataclasses.replace(RATES, name="new", ours=2.0)
        raise RuntimeError("no peer")

    monkeypatch.setattr(bench, "rows_of", rows)
    results = {"rows": {"maze": [dataclasses.asdict(RATES)]}}
    assert bench.run(measured[:1], True, 15, results) == ["maze: RuntimeError: no peer"]
    assert [row["name"] for row in json.loads(bench.RESULTS.read_text())["rows"]["maze"]] == ["fast", "new"]


def test_other_programs_are_noticed(monkeypatch):
    seconds = iter([100.0, 100.0 + 0.3])
    monkeypatch.setattr(bench, "_busy_seconds", lambda: next(seconds))
    assert bench.others_use(0.1) == pytest.approx(3, rel=0.5)
    monkeypatch.setattr(bench, "_busy_seconds", lambda: None)
    monkeypatch.setattr("os.getloadavg", lambda: (3.0, 2.0, 1.0))
    assert bench.others_use(0.0) == 3.0


def test_environments_in_jax_are_compared_by_the_seed(monkeypatch):
    totals = {("ours", 1): 4.0, ("ours", 16): 16.0, ("rejax", 1): 5.0, ("rejax", 16): 32.0, ("sb3", 1): 80.0}

    def measure(learner, task, seeds, longest):
        assert longest == (math.inf if seeds == 1 else 30)
        total = totals[learner, seeds]
        compiled = {} if learner == "sb3" else {"seconds_compiled": total / 2}
        return {"learner": learner, "task": task, "seeds": seeds, "reached": seeds, "seconds": total, **compiled}

    monkeypatch.setattr(worlds, "measure", measure)
    monkeypatch.setattr(worlds, "TASKS", ["Cart"])
    rows = list(worlds.rows())
    assert [row.name.removeprefix("PPO solves gymnax Cart, ") for row in rows] == [
        "1 seed, a seed",
        "1 seed, a seed, after compilation",
        "16 seeds, a seed",
        "16 seeds, a seed, after compilation",
    ]
    assert [row.ours for row in rows] == [4, 2, 1, 0.5]
    assert [row.peers["Rejax 0.1.3"] for row in rows] == [5, 2.5, 2, 1]
    assert {row.peers["Stable-Baselines3"] for row in rows} == {80}
    assert rows[2].ratio(80) == 80


def test_the_time_of_compilation_is_what_a_first_part_takes_longer_the_first_time():
    seconds = iter([7.0, 2.0, 3.0])

    def learner(task, seeds):
        first = next(seconds)
        for part in range(5):
            yield types.SimpleNamespace(seconds=first + part), 2048 * (1 + part), [100.0 * part] * len(seeds)

    assert reaching.compilation(learner, "CartPole-v1", [0]) == {"seconds": 5.0}
    stopped = reaching.reach(learner, "CartPole-v1", [0], longest=5.0)
    assert stopped == {"seconds": 5.0, "steps": 3 * 2048, "reached": 0, "seeds": 1}


def test_learners_that_miss_the_threshold_are_marked(monkeypatch):
    """The others and ours."""

    def measure(learner, task, seeds, longest):
        return {"learner": learner, "task": task, "seeds": seeds, "reached": min(seeds, 2), "seconds": 1.0, "steps": 9}

    monkeypatch.setattr(worlds, "measure", measure)
    monkeypatch.setattr(worlds, "TASKS", ["Cart"])
    one, _, sixteen, _ = worlds.rows()
    assert set(one.peers) == {"Stable-Baselines3", "Rejax 0.1.3"}
    assert set(sixteen.peers) == {"Stable-Baselines3", "Rejax 0.1.3 (2 of 16 seeds reach it)"}
    first, last = table.as_markdown([one, sixteen]).splitlines()[2:]
    assert "| s | 1 | Stable" in first
    assert "| s | 0.0625 (2 of 16 seeds reach it) | Stable" in last
    (row,) = worlds.trainings(["Cart"], ["ours"], [16])
    assert worlds.as_text(row).endswith(" 2 of 16 seeds reach it")


def test_every_part_has_rows():
    for part in bench.PARTS:
        if part.module == "scaling":
            continue
        assert callable(bench.importlib.import_module(f"benchmarks.speed.{part.module}").rows)
    assert sum(part.seconds for part in bench.PARTS) <= 15 * 60
