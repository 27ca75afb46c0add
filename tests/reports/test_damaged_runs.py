"""One damaged run among healthy ones: a page leaves it out and says why; the others are shown."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from report_runs import (
    DAMAGED_METRICS,
    DEEP,
    NOT_FINITE,
    RECORDS,
    change_config,
    curve_in,
    fake_run,
    record_line,
    text_of,
    write_latin,
)

from steadyrl.cli.main import main
from steadyrl.evaluation.play import Played
from steadyrl.reports.page import evaluation, histograms, write_report
from steadyrl.reports.records import validated_records

DAMAGED_CONFIGS = {
    "versions": ({"versions": ["1"]}, "config.json: versions is ['1'], not an object"),
    "budget": ({"budget": 3}, "config.json: budget is 3, not an object"),
    "options": ({"env": {"id": "CartPole-v1", "options": [1]}}, "config.json: env.options is [1], not an object"),
    "id": ({"env": {"id": 3}}, "config.json: env.id is 3, not text"),
    "a boolean seed": ({"seed": True}, "config.json: seed is True, not a whole number from 0"),
    "a huge seed": ({"seed": 10**30}, "config.json: seed is 1000"),
    "deep": ({"settings": {"a": json.loads("[" * 100 + "]" * 100)}}, "config.json is nested more than 20 levels deep"),
}


@pytest.fixture
def root(tmp_path):
    fake_run(tmp_path / "healthy" / "seed0", records=RECORDS, budget={"episodes": 10}, versions={"python": "3"})
    return tmp_path


def shows_the_healthy_run(path):
    """The curve of its returns."""
    return curve_in(path, "healthy")[1] == [[record["return"] for record in RECORDS]]


@pytest.mark.parametrize(("text", "reason"), DAMAGED_METRICS.values(), ids=DAMAGED_METRICS)
def test_a_page_leaves_out_damaged_metrics(root, text, reason):
    fake_run(root / "damaged" / "seed0", agent="mvo", records=RECORDS)
    write_latin(root / "damaged" / "seed0" / "metrics.jsonl", text)
    warnings = []
    path = write_report(root, warn=warnings.append)
    (note,) = [warning for warning in warnings if "metrics.jsonl" in warning]
    assert note.startswith(f"1 run, metrics.jsonl, {reason}")
    assert note.endswith("not in the learning curves: damaged/seed0")
    assert note in text_of(path)
    assert shows_the_healthy_run(path)


def test_a_damaged_seed_does_not_shorten_the_curve_of_the_others(root):
    fake_run(root / "healthy" / "seed1", seed=1, budget={"episodes": 10}, versions={"python": "3"})
    write_latin(root / "healthy" / "seed1" / "metrics.jsonl", record_line() + "garbage\n")
    assert shows_the_healthy_run(write_report(root))


@pytest.mark.parametrize("number", NOT_FINITE.values(), ids=NOT_FINITE)
def test_a_page_leaves_out_numbers_that_are_not_finite(root, number):
    fake_run(root / "damaged" / "seed0", agent="mvo")
    write_latin(root / "damaged" / "seed0" / "metrics.jsonl", f'{{"episodes": 1, "return": {number}}}\n')
    path = write_report(root)
    assert "not a finite number in some records: return, left out there: damaged/seed0" in text_of(path)
    assert shows_the_healthy_run(path)


@pytest.mark.parametrize(("changed", "reason"), DAMAGED_CONFIGS.values(), ids=DAMAGED_CONFIGS)
def test_a_page_leaves_out_a_damaged_config(root, changed, reason):
    fake_run(root / "damaged" / "seed0", agent="mvo", records=RECORDS)
    change_config(root / "damaged" / "seed0", changed)
    path = write_report(root)
    text = text_of(path)
    assert f"1 run, {reason}" in text
    assert "skipped: damaged/seed0" in text
    assert shows_the_healthy_run(path)


@pytest.mark.parametrize("text", [DEEP, "not JSON", "[]", '{"agent": "mg"}', "\xff"])
def test_a_page_leaves_out_what_is_no_config(root, text):
    fake_run(root / "damaged" / "seed0", agent="mvo", records=RECORDS)
    write_latin(root / "damaged" / "seed0" / "config.json", text)
    path = write_report(root)
    assert "config.json does not describe a steadyrl run: skipped: damaged/seed0" in text_of(path)
    assert shows_the_healthy_run(path)


@pytest.mark.parametrize("header", [b"", b"\xff" * 100, b"\x10" + bytes(7) + b'{"__metadata__":'])
def test_a_page_leaves_out_a_damaged_checkpoint(root, header):
    (root / "healthy" / "seed0" / "checkpoint.steady").write_bytes(header)
    path = write_report(root)
    assert "Not in the return distributions: healthy/seed0" in text_of(path)
    assert shows_the_healthy_run(path)


@pytest.mark.parametrize(
    ("rewards", "reason"),
    [
        (None, "its environment failed (RuntimeError: the wheel came off): not in the return distributions"),
        ([[1.0, np.nan]], "returns that are not finite: not in the return distributions"),
        ([[1e308, 1.0]], "returns that are not finite: not in the return distributions"),
    ],
)
def test_a_page_leaves_out_an_agent_whose_environment_fails(root, monkeypatch, rewards, reason):
    def play(agent, seed, episodes):
        if rewards is None:
            raise RuntimeError("the wheel\ncame off")
        return Played.of(np.array(rewards), 1.0, {}), None, None

    agent = SimpleNamespace(env="any", risk_aversion_range=None)
    monkeypatch.setattr(evaluation, "load", lambda path, env: agent)
    monkeypatch.setattr(evaluation, "play", play)
    (root / "healthy" / "seed0" / "checkpoint.steady").touch()
    path = write_report(root)
    assert f"1 run, {reason}: healthy/seed0" in text_of(path)
    assert shows_the_healthy_run(path)


@pytest.mark.parametrize("returns", [[1e20, 1e20], [1e150, 1e150], [5e-324, 0.0], [0.1, 0.1 + 1e-17], [-1e150, 1e150]])
def test_returns_that_hardly_differ_are_in_a_few_bars(returns):
    edges = histograms.bin_edges(np.array(returns))
    assert 2 <= len(edges) <= histograms.BINS + 2
    assert np.histogram(returns, edges)[0].sum() == len(returns)


def test_what_is_not_unicode_is_replaced(root):
    fake_run(root / "odd" / "seed0", agent="mvo", settings={"name": "\ud800"}, records=RECORDS)
    assert shows_the_healthy_run(write_report(root))


def test_a_line_that_is_being_written_is_no_damage(root, tmp_path):
    path = tmp_path / "healthy" / "seed0" / "metrics.jsonl"
    whole = path.read_text()
    for end in range(len(whole) - len(record_line()) + 2, len(whole)):
        path.write_text(whole[:end])
        assert len(validated_records(path).records) in (9, 10)


def test_the_command_names_damaged_runs_on_stderr(root, capsys):
    fake_run(root / "bad\nname" / "seed0", agent="mvo")
    write_latin(root / "bad\nname" / "seed0" / "metrics.jsonl", "garbage\n")
    main(["report", str(root)])
    printed = capsys.readouterr()
    assert printed.out == f"Page: {root / 'report.html'}\n"
    reason = "metrics.jsonl, line 1: it is not JSON: not in the learning curves: bad?name/seed0"
    assert f"1 run, {reason}" in printed.err.splitlines()


@pytest.mark.parametrize("file", ["config.json", "metrics.jsonl"])
def test_if_all_runs_are_damaged_there_is_one_error(tmp_path, file, capsys):
    for seed in (0, 1):
        fake_run(tmp_path / f"seed{seed}", seed=seed, records=RECORDS)
        if file == "config.json":
            change_config(tmp_path / f"seed{seed}", {"budget": 3})
        else:
            write_latin(tmp_path / f"seed{seed}" / file, "garbage\n")
    with pytest.raises(ValueError, match=r"no run in it can be shown \(2 damaged or incomplete\), such as seed0: "):
        write_report(tmp_path)
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path)])
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not (tmp_path / "report.html").exists()
