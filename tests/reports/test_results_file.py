"""results.json.gz: small, the same bytes for the same results, and an error in one line for anything else."""

import dataclasses
import gzip
import json

import numpy as np
import pytest
from example_results import example_results

from steadyrl.reports.results.collect import without_folders
from steadyrl.reports.results.compact import downsample, fixed, significant
from steadyrl.reports.results.file import read_results, write_results
from steadyrl.reports.tables import columns_of


@pytest.fixture(scope="module")
def results():
    return example_results(few={"mg_printed": 2})


@pytest.fixture
def written(results, tmp_path):
    write_results(results, tmp_path / "results.json.gz")
    return tmp_path / "results.json.gz"


def test_what_is_read_is_what_was_written(results, written):
    read = read_results(written)
    budgets = [results.experiment.scale_of(method).budget for method in results.experiment.methods]
    assert [read.experiment.scale_of(method).budget for method in read.experiment.methods] == budgets
    assert [m.settings for m in read.experiment.methods] == [m.settings for m in results.experiment.methods]
    assert read.experiment.by_unit().keys() == results.experiment.by_unit().keys()
    assert read.experiment.figures == results.experiment.figures
    assert read.provenance == results.provenance
    assert read.evaluation_episodes == 1000
    for key, cell in results.cells.items():
        again = read.cells[key]
        assert again.seeds == cell.seeds
        for kind in ("training", "evaluations"):
            before, after = getattr(cell.recorded, kind), getattr(again.recorded, kind)
            assert before.keys() == after.keys()
            for name, values in before.items():
                np.testing.assert_allclose(after[name], values, rtol=0, atol=1e-3 * np.abs(values).max(), err_msg=name)
        for column in columns_of(results.experiment, results.cells.values()):
            np.testing.assert_allclose(column.values(again.recorded), column.values(cell.recorded), rtol=1e-4)
        for old, new in zip(cell.policies, again.policies, strict=True):
            assert new.returns["gini_deviation"] == pytest.approx(old.returns["gini_deviation"], rel=1e-4)
            assert new.greedy_mean == pytest.approx(old.greedy_mean, rel=1e-4)
            assert new.episode_metrics == {"visiting_rate": 0.25, "distance": 12.0}
            np.testing.assert_allclose(new.quantiles, old.quantiles, atol=0.06)


def test_the_sensitivity_study_is_part_of_the_file(tmp_path):
    maze = example_results("maze", seeds=1)
    both = dataclasses.replace(maze, sweep=example_results("maze", seeds=2, evaluated=False, study="sensitivity"))
    write_results(both, tmp_path / "maze.json.gz")
    read = read_results(tmp_path / "maze.json.gz")
    assert read.experiment.sensitivity == maze.experiment.sensitivity
    assert read.sweep.cells.keys() == both.sweep.cells.keys()
    assert ("goal 20", "tamar_calibrated=1e-05") in read.sweep.cells


def test_the_study_of_curves_is_part_of_the_file(tmp_path):
    maze, study = example_results("maze", seeds=1), example_results("maze", seeds=2, evaluated=False, study=CURVES)
    write_results(dataclasses.replace(maze, lambda_curves=study), tmp_path / "maze.json.gz")
    read = read_results(tmp_path / "maze.json.gz")
    assert read.experiment.lambda_curves == maze.experiment.lambda_curves
    assert {*read.studies} == {CURVES}
    assert {*read.lambda_curves.cells} == {("goal 20", method.name) for method in study.experiment.methods}
    before, after = (one.cells["goal 20", "mvo=0.6"].recorded.training for one in (study, read.lambda_curves))
    np.testing.assert_allclose(after["white_path_rate"], before["white_path_rate"], atol=1e-3)


def test_files_from_before_there_were_curves_of_lambdas_are_read(written):
    def older(content):
        del content["lambda_curves"], content["experiment"]["lambda_curves"]

    changed(written, older)
    assert read_results(written).studies == {}


def test_small_quantiles_beside_large_ones_are_kept(results, tmp_path):
    key, cell = next(iter(results.cells.items()))
    quantiles = np.geomspace(1e-3, 1e6, 101)
    cell = cell._replace(policies=tuple(one._replace(quantiles=quantiles) for one in cell.policies))
    write_results(dataclasses.replace(results, cells={**results.cells, key: cell}), tmp_path / "x.json.gz")
    read = read_results(tmp_path / "x.json.gz").cells[key].policies[0]
    np.testing.assert_allclose(read.quantiles, quantiles, rtol=1e-3)


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("steadyrl reproduce maze --out 'my results' --seeds 3", "steadyrl reproduce maze --seeds 3"),
        ("steadyrl reproduce maze --agents-to=/home/me/a --out=x", "steadyrl reproduce maze"),
        ("steadyrl reproduce maze --agents_to /home/me/a", "steadyrl reproduce maze"),
        ("steadyrl reproduce maze --agents mg --out", "steadyrl reproduce maze --agents mg"),
        ("steadyrl reproduce maze --continue /home/me/results.json.gz", "steadyrl reproduce maze"),
        ("steadyrl reproduce 'maze", ""),
    ],
)
def test_commands_are_kept_without_the_folders_of_a_machine(command, kept):
    assert without_folders(command) == kept


def test_the_same_results_have_the_same_bytes(results, written, tmp_path):
    write_results(read_results(written), tmp_path / "again.json.gz")
    assert (tmp_path / "again.json.gz").read_bytes() == written.read_bytes()


def test_ten_methods_with_ten_seeds_are_small(tmp_path):
    eight = example_results(seeds=10)
    write_results(eight, tmp_path / "eight.json.gz")
    assert (tmp_path / "eight.json.gz").stat().st_size * 10 / len(
        eight.cells
    ) < 80_000  # White noise is the worst case.


def test_quantiles_of_a_sample_are_kept():
    cell = next(iter(example_results(seeds=1).cells.values()))
    (policy,) = cell.policies
    assert np.interp(policy.returns["mean"], policy.quantiles, np.linspace(0, 1, 101)) == pytest.approx(0.5, abs=0.05)
    assert policy.quantiles[0] < policy.returns["cvar_10"] < policy.quantiles[10]


def test_points_of_curves_are_means_and_keep_the_last_tenth():
    records = np.random.default_rng(0).normal(size=(2, 600))
    curves = {"episodes": np.tile(np.arange(10, 6001, 10), (2, 1)), "return": records, "other": records}
    small = downsample(curves, ["return"], "episodes", 30)
    assert small.keys() == {"episodes", "return"}
    assert small["episodes"][0, [0, -1]].tolist() == [200, 6000]
    np.testing.assert_allclose(small["return"][:, 0], records[:, :20].mean(axis=1))
    np.testing.assert_allclose(small["return"][:, -3:].mean(axis=1), records[:, -60:].mean(axis=1))
    few = downsample({"episodes": np.array([[5, 10]]), "return": np.array([[1.0, 3.0]])}, ["return"], "episodes", 30)
    assert few["return"].tolist() == [[1.0, 3.0]]


def test_numbers_are_short():
    assert fixed([483.2345, 0.01234, np.nan, -12.0]) == [483.2, 0, None, -12]
    assert fixed([[0.0], [0.0]]) == [[0], [0]]
    assert fixed([123456.0]) == [123500]
    assert (significant(0.00123456), significant(3.0), significant(np.inf)) == (0.0012346, 3, None)


def changed(path, change):
    content = json.loads(gzip.decompress(path.read_bytes()))
    change(content)
    path.write_bytes(gzip.compress(json.dumps(content).encode()))


def figure(content):
    return content["experiment"]["figures"]["risk_curves"]


def studied(content, **changed):
    scale = {"seeds": 1, "episodes": 1, "episodes_per_record": 1, "episodes_per_evaluation": 1}
    study = {"setting": "risk_aversion", "values": {"mg_printed": [[1.0, {}]]}, "scale": scale}
    content["experiment"]["figures"]["sensitivity"] = [{"metric": "return", "label": "return"}]
    content["experiment"]["sensitivity"] = {**study, **changed}


CURVES = "lambda_curves"
STUDIES = {
    "without values": ({"values": {"mg_printed": []}}, "sensitivity.values.mg_printed: it has no value"),
    "with text": ({"values": {"mg_printed": [["x", {}]]}}, "values.mg_printed: a number is needed, not 'x'"),
    "with a number alone": ({"values": {"mg_printed": [1.0]}}, "mg_printed: a value and a table are needed, not 1.0"),
    "without methods": ({"values": {"new": [[1.0, {}]]}}, "sensitivity: it has 0 methods"),
    "of another setting": ({"setting": "agent"}, "methods.mg_printed.agent: a number is needed, not None"),
    "without a scale": ({"scale": None}, "sensitivity.scale: a table is needed, not None"),
    "of no variant": ({"variants": ["Mars"]}, "sensitivity: it is about variants that the experiment does not have"),
    "with one variant": ({"variants": "HalfCheetah"}, "sensitivity.variants: a list is needed, not 'HalfCheetah'"),
}


DAMAGE = {
    "no cells": (lambda c: c.pop("cells"), r"is damaged: 'cells' is missing\."),
    "a curve too short": (lambda c: c["cells"][0]["training"]["variance"][0].pop(), r"is damaged: .*"),
    "text in a curve": (lambda c: c["cells"][0]["training"].update(variance=[["x"]]), r"is damaged: .*"),
    "few quantiles": (
        lambda c: c["cells"][0]["policies"][0].update(quantiles=[1]),
        r"quantiles has the shape \(1,\), not",
    ),
    "few policies": (lambda c: c["cells"][0]["policies"].pop(), "3 seeds and 2 final policies"),
    "no method": (lambda c: c["cells"][0].update(method="new"), "is damaged: 'new' is missing"),
    "no budget": (lambda c: c["experiment"]["methods"][0].pop("budget"), "damaged: methods.budget: a table is needed"),
    "newer": (lambda c: c.update(version=99), r"newer steadyrl \(version 99 of results files\): upgrade"),
    "cells empty": (lambda c: c["cells"].clear(), r"cells: a list of runs is needed, not \[\]"),
    "one cell": (lambda c: c.update(cells=c["cells"][0]), r"cells: a list of runs is needed, not \{"),
    "version as text": (lambda c: c.update(version="1"), r"is damaged: '1' is no version of results files\."),
    "version 0": (lambda c: c.update(version=0), r"is damaged: 0 is no version"),
    "versions": (lambda c: c["provenance"].update(versions=[1]), "provenance.versions: a table is needed, not"),
    "a version": (
        lambda c: c["provenance"]["versions"].update(jax=1),
        "provenance.versions.jax: text is needed, not 1",
    ),
    "no commit": (lambda c: c["provenance"].pop("commit"), "provenance.commit: text is needed, not None"),
    "rows of": (lambda c: figure(c)[0].update(of="played"), "figures.risk_curves: of is 'played', not 'training' or"),
    "no rows": (lambda c: figure(c).clear(), "figures.risk_curves: it has 0 rows"),
    "many rows": (lambda c: figure(c).extend(figure(c)[:1] * 99), "figures.risk_curves: it has 10. rows"),
    "a budget of text": (
        lambda c: c["experiment"]["methods"][0].update(budget={"episodes": "9"}),
        "methods.budget.episodes: a whole number is needed, not '9'",
    ),
    "a sweep in a sweep": (lambda c: c.update(sweep=dict(c, sweep=dict(c))), "the study in sweep has another one"),
    "a study in curves": (
        lambda c: c.update(lambda_curves=dict(c, sweep=dict(c))),
        "the study in lambda_curves has another one",
    ),
    "no counter": (lambda c: c["cells"][0]["training"].pop("episodes"), "curves have no episodes"),
    "a seed without end": (lambda c: c["cells"][0].update(seeds=[float("inf")]), "is damaged: .*infinity"),
    "a method twice": (
        lambda c: c["experiment"]["methods"].append(c["experiment"]["methods"][0]),
        "methods: 11 are named; from 1 to 200 are possible, of different names",
    ),
    **{
        f"sensitivity {name}": (lambda c, study=study: studied(c, **study), message)
        for name, (study, message) in STUDIES.items()
    },
    "other kind": (lambda c: c.update(kind="frontier"), "is no results.json.gz of `steadyrl reproduce`"),
}


@pytest.mark.parametrize(("change", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_an_error_in_one_line(written, change, message):
    changed(written, change)
    with pytest.raises(ValueError, match=message) as caught:
        read_results(written)
    assert "\n" not in str(caught.value)


def test_a_sensitivity_study_is_read(written):
    changed(written, studied)
    assert read_results(written).experiment.sensitivity.values == {"mg_printed": {1.0: {}}}


def test_a_small_file_does_not_unpack_to_much_memory(written):
    def many_seeds(content):
        row = [list(range(10_000))]
        content["cells"][0].update(seeds=[0] * 10_000, training={"episodes": row, "timesteps": row}, policies=[])

    changed(written, many_seeds)
    with pytest.raises(ValueError, match="curves of 10,000 seeds with 10,000 points are larger than 1,000,000 numbers"):
        read_results(written)


def test_counters_of_all_seeds_take_the_memory_of_one(written):
    episodes = next(iter(read_results(written).cells.values())).recorded.training["episodes"]
    assert episodes.shape[0] == 3
    assert episodes.strides[0] == 0


def renamed_figure(name):
    def change(content):
        figures = content["experiment"]["figures"]
        figures[name] = figures.pop("risk_curves")

    return change


NAMES = {
    "figure in the parent folder": (renamed_figure("../risk_curves"), "figures: '../risk_curves' cannot be a name"),
    "figure with a whole path": (renamed_figure("/tmp/risk_curves"), "figures: '/tmp/risk_curves' cannot be a name"),
    "figure with a line break": (renamed_figure("risk\n"), r"figures: 'risk\\n' cannot be a name"),
    "figure without a name": (renamed_figure(""), "figures: '' cannot be a name"),
    "method": (lambda c: c["experiment"]["methods"][0].update(name="../mg"), r"methods: '\.\./mg' cannot be a name"),
    "variant": (lambda c: c["experiment"]["variants"][0].update(name=".."), r"variants: '\.\.' cannot be a name"),
    "experiment": (lambda c: c["experiment"].update(name="a/b"), "experiment: 'a/b' cannot be a name"),
}


@pytest.mark.parametrize(("change", "message"), NAMES.values(), ids=NAMES)
def test_a_name_that_would_be_another_path_is_an_error(written, change, message):
    changed(written, change)
    with pytest.raises(ValueError, match=message):
        read_results(written)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", gzip.compress(b"[1]"), gzip.compress(b"{")],
    ids=["empty", "not compressed", "a list", "not JSON"],
)
def test_another_file_is_an_error(tmp_path, content):
    (tmp_path / "x.json.gz").write_bytes(content)
    with pytest.raises(ValueError, match=r"is no results\.json\.gz"):
        read_results(tmp_path / "x.json.gz")


def test_half_a_file_is_an_error(written):
    written.write_bytes(written.read_bytes()[:-2000])
    with pytest.raises(ValueError, match="or only a part of one"):
        read_results(written)
