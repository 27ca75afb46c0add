"""Tables and figures from results: the numbers of each seed, and how many seeds there are."""

import dataclasses

import numpy as np
import pytest
from example_results import example_results, policy
from matplotlib.figure import Figure
from PIL import Image

from steadyrl.evaluation.seed_resamples import interquartile_mean
from steadyrl.reports.figures.curves import add_legend, so_far
from steadyrl.reports.figures.distributions import draw_distributions, pooled_quantiles
from steadyrl.reports.figures.lambda_curves import draw_lambda_curves
from steadyrl.reports.figures.sensitivity import budget_and_seeds, draw_sensitivity
from steadyrl.reports.final_table import final_section, final_table, over_seeds, print_final_table
from steadyrl.reports.results.draw import draw_results
from steadyrl.reports.results.file import read_results, write_results
from steadyrl.reports.seed_statistics import COVERAGE, iqm_over_seeds
from steadyrl.reports.tables import print_summary, write_summary
from steadyrl.runs.experiment import load_experiment


@pytest.fixture(scope="module")
def results():
    return example_results(seeds=4, few={"mg_printed": 2, "td3": 1})


def test_tables_say_how_many_seeds_each_method_has(results, tmp_path, capsys):
    write_results(results, tmp_path / "results.json.gz")
    draw_results(read_results(tmp_path / "results.json.gz"), tmp_path / "drawn")
    printed, written = capsys.readouterr().out, (tmp_path / "drawn" / "summary.md").read_text()
    for text in (printed, written):
        assert "1 to 4 seeds" in text
        assert "MG printed (2 seeds)" in text
        assert "TD3 (1 seed)" in text
    assert "commit 0123abc" in written
    assert {path.name for path in (tmp_path / "drawn").iterdir()} == {
        "summary.md",
        "distributions.png",
        *(f"{name}_curves{unit}.png" for name in ("learning", "risk") for unit in ("", "_by_steps")),
    }


def test_titles_of_an_unknown_file_do_not_reach_the_terminal_raw(tmp_path, capsys):
    results = example_results(seeds=1)
    experiment = results.experiment
    methods = tuple(dataclasses.replace(m, title=f"\x1b]0;x\x07[red]{m.title}[/nothing]") for m in experiment.methods)
    by_name = {method.name: method for method in methods}
    cells = {key: cell._replace(method=by_name[key[1]]) for key, cell in results.cells.items()}
    experiment = dataclasses.replace(experiment, title="[/bold]\x1b[2J", methods=methods)
    results = dataclasses.replace(results, experiment=experiment, cells=cells)
    print_summary(experiment, cells)
    print_final_table(results)
    write_summary(experiment, cells, tmp_path / "summary.md", results.provenance)
    for text in (capsys.readouterr().out, (tmp_path / "summary.md").read_text()):
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "?]0;x?[red]TD3[/nothing]" in text
        assert "[/bold]?[2J" in text


def test_names_of_columns_in_results_files_are_fixed():
    keys = {key for cell in example_results("maze", seeds=1).cells.values() for key in cell.recorded.finals}
    ends = {"return": "last_tenth", "goal_rate": "last_tenth", "red_visit_rate": "last_tenth"}
    assert {f"training.{name}_{end}" for name, end in ends.items()} <= keys
    assert {"training.white_path_rate_last_tenth", "training.white_path_rate_so_far_at_end"} <= keys
    assert {"evaluations.return_last_tenth", "evaluations.exact_variance_at_end"} <= keys


def test_the_sensitivity_figure_counts_what_was_run():
    curves = [{"episodes": np.tile([500, 1000 * n], (n, 1))} for n in (2, 3)]
    assert budget_and_seeds(curves).startswith(
        "last tenth of 2,000 to 3,000 episodes, mean and standard error of 2 to 3"
    )
    assert budget_and_seeds([*curves[:1], {}]).endswith(
        "last tenth of 2,000 episodes, mean and standard error of 2 seeds"
    )


def test_curves_of_lambdas_are_drawn_from_the_file(tmp_path, capsys):
    study = example_results("maze", seeds=2, evaluated=False, study="lambda_curves")
    del study.cells["goal 20", "mvp=0.4"]  # Its runs are not complete yet.
    maze = dataclasses.replace(example_results("maze", seeds=1, evaluated=False), lambda_curves=study)
    write_results(maze, tmp_path / "results.json.gz")
    draw_results(read_results(tmp_path / "results.json.gz"), tmp_path)
    assert str(tmp_path / "lambda_curves.png") in capsys.readouterr().out
    assert (tmp_path / "lambda_curves.png").stat().st_size > 10_000
    rows = [line for line in (tmp_path / "lambda_curves.md").read_text().splitlines() if line.startswith("| goal")]
    assert len(rows) == 12
    assert rows[0].startswith("| goal 20 | MG printed 0.8 |")


def test_methods_of_a_study_that_have_no_runs_yet_are_not_drawn(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *arguments, **more: drawn.append(figure))
    cells = example_results("maze", seeds=2, evaluated=False, study="sensitivity").cells
    curves = {key: cell.recorded.training for key, cell in cells.items() if key[1].startswith("mg=")}
    draw_sensitivity(load_experiment("maze"), curves, tmp_path / "x.png")
    assert [panel.get_title() for panel in drawn[0].axes if panel.get_title()] == ["MG"]


def test_each_lambda_has_its_curve_and_band(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *arguments, **more: drawn.append(figure))
    experiment = load_experiment("maze")
    cells = example_results("maze", seeds=2, evaluated=False, study="lambda_curves").cells
    draw_lambda_curves(experiment, {key: cell.recorded for key, cell in cells.items()}, tmp_path / "x.png")
    panels = np.reshape(drawn[0].axes, (2, 4))
    assert [panel.get_title() for panel in panels[0]] == [f"{name}, goal 20" for name in ("MG", "MVO", "Tamar", "MVP")]
    assert [panel.get_ylabel() for panel in panels[:, 0]] == ["evaluation return", "optimal risk-aversion rate"]
    labels = [text.get_text() for text in panels[0, 1].get_legend().get_texts()]
    assert labels == ["lambda 0.6", "lambda 0.8", "lambda 1*", "lambda 1.2"]
    for panel, lines in zip(panels.T.flat, (3, 3, 4, 4, 3, 3, 3, 3), strict=True):
        assert len(panel.lines) == len(panel.collections) == lines
    recorded = cells["goal 20", "mvp=0.2"].recorded.training
    expected = so_far(recorded, "white_path_rate").mean(axis=0)
    np.testing.assert_allclose(panels[1, 3].lines[1].get_ydata(), expected)
    highest = max(line.get_ydata().max() for panel in panels[1] for line in panel.lines)
    assert -0.1 < panels[1, 0].get_ylim()[0] < 0
    assert panels[1, 0].get_ylim()[1] > highest


def test_drawing_twice_gives_the_same_tables_and_pixels(results, tmp_path):
    write_results(results, tmp_path / "results.json.gz")
    for out in ("one", "two"):
        draw_results(read_results(tmp_path / "results.json.gz"), tmp_path / out)
    for path in (tmp_path / "one").iterdir():
        other = tmp_path / "two" / path.name
        if path.suffix == ".png":
            assert (np.asarray(Image.open(path)) == np.asarray(Image.open(other))).all()
        else:
            assert path.read_bytes() == other.read_bytes()


def test_the_table_of_final_policies_has_iqms_of_seeds(results):
    heading, *rows = final_table(results)
    assert heading == ["", "method", "seeds", "return", "GD", "variance", "CVaR 10 %", "greedy return", *heading[8:]]
    assert heading[8:] == ["visiting", "distance"]
    by_title = {row[1]: row for row in rows}
    means = np.array([p.returns["mean"] for p in results.cells["HalfCheetah", "ppo"].policies])
    assert by_title["PPO printed"][2:4] == ["4", str(iqm_over_seeds(means))]
    assert "[" not in by_title["MG printed"][3]
    assert by_title["MG printed"][8] == "25 %"
    section = final_section(results)
    assert "Of fewer than 3 seeds" in section
    assert "Intervals of fewer than 5 seeds are too narrow: with 3 seeds they cover the mean in about 74 %" in section
    assert "too narrow" not in final_section(example_results(seeds=5))
    assert final_section(example_results(evaluated=False)) == ""


def test_interquartile_means_and_their_intervals():
    values = np.array([0.0, 1.0, 2.0, 100.0])
    estimate = iqm_over_seeds(values)
    assert estimate.value == 1.5
    assert 0 <= estimate.low < 1.5 < estimate.high <= 100
    assert iqm_over_seeds(np.full(5, 3.0)) == (3.0, 3.0, 3.0)
    assert np.isnan(iqm_over_seeds(np.array([1.0, 2.0])).low)
    many = np.random.default_rng(0).normal(size=400)
    low, high = iqm_over_seeds(many)[1:]
    # The IQM of normal values has 1.09 times the standard error of their mean.
    assert high - low == pytest.approx(2 * 1.96 * 1.09 / 20, rel=0.15)
    assert over_seeds("landed_rate", np.array([0.5, 0.5])) == "50 %"


@pytest.mark.parametrize(("seeds", "percent"), COVERAGE.items())
def test_intervals_of_few_seeds_hold_the_mean_less_often_than_their_level(seeds, percent):
    rng, level = np.random.default_rng(seeds), [0.025, 0.975]
    drawn = [values[rng.integers(seeds, size=(500, seeds))] for values in rng.normal(size=(1500, seeds))]
    ends = np.quantile(interquartile_mean(np.array(drawn)), level, axis=1)
    assert 100 * ((ends[0] <= 0) & (ends[1] >= 0)).mean() == pytest.approx(percent, abs=4)


def test_quantiles_of_several_seeds_are_those_of_all_returns():
    rng = np.random.default_rng(0)
    two = [policy(rng, 0.0), policy(rng, 100.0)]
    low, middle, high = pooled_quantiles(two, np.array([0.25, 0.5, 0.75]))
    assert (low, middle, high) == (pytest.approx(0, abs=2), pytest.approx(50, abs=25), pytest.approx(100, abs=2))


def test_without_final_policies_there_is_no_picture_of_them(tmp_path):
    assert not draw_distributions(example_results(evaluated=False), tmp_path / "x.png")
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize(("label", "columns"), [("MG", 2), ("MVPI, y of rewards (5 seeds)", 1)])
def test_a_legend_has_as_many_columns_as_fit_the_figure(label, columns):
    figure = Figure(figsize=(3.6, 3), layout="constrained")
    (line,) = figure.subplots().plot([0, 1])
    add_legend(figure, {f"{label} {i}": line for i in range(4)}, columns=2)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width
    lefts = {round(text.get_window_extent().x0) for text in legend.get_texts()}
    assert len(lefts) == columns
