"""Measures and methods of the page and tables: plain names, each with its meaning."""

import re

from report_runs import RECORDS, data_of, fake_run, text_of

from steadyrl.reports import sweep_table
from steadyrl.reports.curves import read_recorded
from steadyrl.reports.page import write_report
from steadyrl.reports.sweep_table import print_cells
from steadyrl.reports.tables import Cell, print_summary, write_summary
from steadyrl.runs.experiment import load_experiment
from steadyrl.runs.sweep import Sweep

RISKY = [{**record, "gini_deviation": 1.0, "undiscounted_gini_deviation": 2.0} for record in RECORDS]


def headings(path):
    return re.findall(r"<th [^>]*>(.*?)</th>", path.read_text())


def terms(path):
    return dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", path.read_text().partition('<dl class="terms">')[2]))


def test_both_gini_deviations_are_told_apart_on_the_page(tmp_path):
    fake_run(tmp_path / "mg" / "seed0", records=RISKY)
    path = write_report(tmp_path)
    assert headings(path)[-3:] == ["return", "Gini deviation (GD)", "discounted GD"]
    assert re.findall("<figcaption>(.*?)</figcaption>", path.read_text()) == [
        "Return",
        "Gini deviation (GD)",
        "Discounted GD",
    ]
    assert "half the expected distance between the returns of two episodes" in terms(path)["Gini deviation (GD)"]
    assert "discounted return" in terms(path)["Discounted GD"]
    assert "undiscounted_gini" not in text_of(path)


def test_the_table_of_a_sweep_has_a_legend(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sweep_table, "is_complete", lambda folder: True)
    cells = Sweep(("CartPole-v1",), {"mg": {}}, (0,), {"episodes": 10}).cells(tmp_path)
    fake_run(cells[0].runs[0].folder, records=RISKY)
    print_cells(cells)
    printed = capsys.readouterr().out
    assert any("return" in line and "Gini deviation (GD)" in line for line in printed.splitlines())
    assert (
        "The Gini deviation (GD) is half the expected distance between the returns of two episodes."
        in printed.splitlines()
    )


def test_the_tables_of_an_experiment_say_discounted(tmp_path, capsys):
    experiment = load_experiment("maze", quick=True, seeds=1, episodes=10).only(["mg"])
    cells = {}
    for (variant, method), job in experiment.cells(tmp_path).items():
        fake_run(job.folders[0], job.agent, records=RISKY)
        chosen = next(one for one in experiment.variants if one.name == variant)
        cells[variant, method] = Cell(chosen, experiment.methods[0], read_recorded([*job.folders]))
    print_summary(experiment, cells)
    write_summary(experiment, cells, tmp_path / "summary.md")
    printed, written = capsys.readouterr().out, (tmp_path / "summary.md").read_text()
    for text in (printed, written):
        assert " discounted GD" in text
        assert "The discounted GD is the Gini deviation" in text
        assert "MG has settings that were calibrated here: lambda 1.4 and the unbiased" in text
    assert max(len(line) for line in printed.splitlines() if "is left out" not in line) <= 80
    assert "With goal 20, MG has the highest return, 20.0." in printed


MAZE_RECORDS = [
    {**record, "goal_rate": 1.0, "red_visit_rate": 0.5, "white_path_rate": 0.5, "own_rate": 0.5} for record in RECORDS
]


def test_metrics_of_our_environments_are_explained(tmp_path):
    fake_run(tmp_path / "mg" / "seed0", records=MAZE_RECORDS)
    explained = terms(write_report(tmp_path))
    assert "without red cells" in explained["White-path rate"]
    assert "all training episodes so far" in explained["Optimal risk-aversion rate"]
    assert "red cell" in explained["Red-visit rate"]
    assert "Own rate" not in explained


def test_metrics_of_other_environments_are_not(tmp_path):
    fake_run(tmp_path / "mg" / "seed0", records=MAZE_RECORDS, env="my_mazes:make")
    assert list(terms(write_report(tmp_path))) == ["Return"]


def test_methods_of_an_experiment_have_the_titles_of_its_figures(tmp_path):
    experiment = load_experiment("maze")
    sensitivity = experiment.sensitivity_experiment()
    for method in (*experiment.methods[:3], sensitivity.methods[0]):
        settings = {**method.settings, "of_a_later_version": 1}
        fake_run(tmp_path / method.name / "seed0", method.agent, settings=settings, records=RECORDS)
    fake_run(tmp_path / "mvo" / "seed0", "mvo", settings={"risk_aversion": 7.0}, records=RECORDS)
    path = write_report(tmp_path)
    names = [method["name"] for method in data_of(path)["methods"]]
    assert names == ["REINFORCE", "MG", "MG 0.6", "MG printed", "MVO"]
    assert terms(path)["MG printed"] == "printed: lambda 1.2 and the paper&#x27;s eta"
    assert "MVO" not in terms(path)
    assert "Settings of the methods: printed, as in the paper" in text_of(path)
