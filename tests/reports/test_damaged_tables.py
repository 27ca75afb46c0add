"""Damaged runs in the tables of sweeps and experiments: they are left out, with a line on each."""

import json
import re

import numpy as np
import pytest
from report_runs import DAMAGED_METRICS, DEEP, NOT_FINITE, RECORDS, fake_run, record_line, write_latin

from steadyrl.reports import sweep_table
from steadyrl.reports.curves import read_recorded
from steadyrl.reports.figures.curves import draw_curves
from steadyrl.reports.figures.sensitivity import draw_sensitivity
from steadyrl.reports.sweep_table import print_cells
from steadyrl.reports.tables import Cell, print_summary, write_curves, write_summary
from steadyrl.runs.experiment import load_experiment
from steadyrl.runs.sweep import Sweep
from steadyrl.training.run_folder import is_complete


@pytest.fixture
def cells(tmp_path, monkeypatch):
    """Two cells of three complete seeds, without their agents."""
    monkeypatch.setattr(sweep_table, "is_complete", lambda folder: folder.exists())
    cells = Sweep(("CartPole-v1",), {"mg": {}, "mvo": {}}, (0, 1, 2), {"episodes": 10}).cells(tmp_path)
    for cell in cells:
        for run in cell.runs:
            fake_run(run.folder, cell.agent, run.seed, records=RECORDS)
    return cells


TABLE_DAMAGE = {
    **{name: text for name, (text, _) in DAMAGED_METRICS.items()},
    **{name: f'{{"episodes": 1, "return": {number}}}\n' for name, number in NOT_FINITE.items()},
    "empty": "",
    "missing": None,
    "shorter": record_line() * 3,
    "other keys": "".join(json.dumps({"episodes": e, str(e): 1.0}) + "\n" for e in range(10)),
    "no length": "".join(json.dumps({"episodes": e, "return": 1.0}) + "\n" for e in range(10)),
    "no return": "".join(json.dumps({"episodes": e}) + "\n" for e in range(10)),
}


def damage(path, text):
    if text is None:
        path.unlink()
    else:
        write_latin(path, text)


@pytest.mark.parametrize("text", TABLE_DAMAGE.values(), ids=TABLE_DAMAGE)
def test_the_table_of_a_sweep_leaves_out_a_damaged_run(cells, text, capsys):
    print_cells(cells)
    before = capsys.readouterr().out.strip().splitlines()
    damage(cells[0].folders[1] / "metrics.jsonl", text)
    print_cells(cells)
    *table, note = capsys.readouterr().out.strip().splitlines()
    assert note.startswith(f"{cells[0].folders[1]} is left out: ")
    assert [row.split() for row in table if row.strip()] == [row.split() for row in before if row.strip()]


def test_the_table_of_a_sweep_leaves_out_a_damaged_checkpoint(cells, capsys, monkeypatch):
    damaged = cells[0].folders[1]
    (damaged / "checkpoint.steady").write_bytes(b"half a file")
    monkeypatch.setattr(sweep_table, "is_complete", lambda folder: folder != damaged or is_complete(folder))
    print_cells(cells)
    *table, note = capsys.readouterr().out.strip().splitlines()
    assert note.startswith(f"{damaged} is left out: ")
    assert [part for row in table for part in row.split() if part.endswith("/3")] == ["2/3", "3/3"]


def test_a_sweep_whose_runs_are_all_damaged_is_an_error(cells):
    for cell in cells:
        for folder in cell.folders:
            write_latin(folder / "metrics.jsonl", "garbage\n")
    with pytest.raises(ValueError, match=r"no run can be shown in a table: .*line 1: it is not JSON\. And 5 more\."):
        print_cells(cells)


@pytest.fixture
def reproduced(tmp_path):
    """An experiment whose runs are recorded, without agents."""
    experiment = load_experiment("maze", quick=True, seeds=2, episodes=10).only(["mg", "reinforce"])
    jobs = experiment.cells(tmp_path)
    for job in jobs.values():
        for run in job.runs:
            fake_run(run.folder, job.agent, run.seed, records=RECORDS)
            (run.folder / "evaluations.jsonl").write_text((run.folder / "metrics.jsonl").read_text())
    return experiment, jobs


def tables_of(reproduced, out, capsys):
    experiment, jobs = reproduced
    variants = {variant.name: variant for variant in experiment.variants}
    methods = {method.name: method for method in experiment.methods}
    cells = {
        (variant, method): Cell(variants[variant], methods[method], read_recorded([*job.folders]))
        for (variant, method), job in jobs.items()
    }
    print_summary(experiment, cells)
    write_summary(experiment, cells, out / "summary.md")
    write_curves(cells, out / "curves.json")
    draw_curves(experiment, {key: cell.recorded for key, cell in cells.items()}, "learning_curves", out / "curves.png")
    return capsys.readouterr().out, (out / "summary.md").read_text(), json.loads((out / "curves.json").read_text())


@pytest.mark.parametrize("file", ["metrics.jsonl", "evaluations.jsonl"])
@pytest.mark.parametrize("text", ["garbage\n", DEEP + "\n", record_line(episodes=None), None])
def test_the_tables_of_an_experiment_leave_out_a_damaged_run(reproduced, tmp_path, capsys, file, text):
    _, written, curves = tables_of(reproduced, tmp_path, capsys)
    folder = next(iter(reproduced[1].values())).folders[1]
    damage(folder / file, text)
    after = tables_of(reproduced, tmp_path, capsys)
    assert f"{folder} is left out: " in after[0]
    assert f"{folder} is left out: " in after[1]
    rows, rows_after = (
        [row.split("[")[0] for row in text.splitlines() if row.startswith("| goal")] for text in (written, after[1])
    )
    assert [re.sub(r" \(\d seeds?\)", "", row) for row in rows_after] == rows
    assert any("(1 seed)" in row for row in rows_after) == (file == "metrics.jsonl")
    assert {name: list(methods) for name, methods in after[2].items()} == {n: list(m) for n, m in curves.items()}


def test_the_tables_of_an_experiment_show_other_methods_if_one_is_damaged(reproduced, tmp_path, capsys):
    first, *others = reproduced[1].values()
    for folder in first.folders:
        for file in ("metrics.jsonl", "evaluations.jsonl"):
            (folder / file).unlink()
    _, written, _ = tables_of(reproduced, tmp_path, capsys)
    assert len([row for row in written.splitlines() if row.startswith("| goal") and "20.00" in row]) == len(others)
    for job in others:
        for folder in job.folders:
            (folder / "metrics.jsonl").unlink()
    with pytest.raises(ValueError, match=r"no run can be shown in a table: .*nothing is recorded"):
        tables_of(reproduced, tmp_path, capsys)


def test_the_figure_of_a_sensitivity_study_has_a_gap_for_damaged_runs(tmp_path):
    whole = load_experiment("maze").only(["mg"])
    cells = [*whole.sensitivity_experiment().cells(tmp_path)]
    metrics = {row.metric for row in whole.figures["sensitivity"]}
    curves = {cell: dict.fromkeys(metrics, np.ones((2, 10))) for cell in cells}
    draw_sensitivity(whole, {**curves, cells[0]: {}}, tmp_path / "sensitivity.png")
    assert (tmp_path / "sensitivity.png").is_file()
