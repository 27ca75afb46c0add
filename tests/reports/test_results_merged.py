"""Results that were made in parts: seeds of both, methods of either, and nothing that was not trained alike."""

import dataclasses

import numpy as np
import pytest
from example_results import example_results

from steadyrl.reports.final_table import final_values
from steadyrl.reports.results.file import read_results, write_results
from steadyrl.reports.results.merge import merge, remaining_jobs
from steadyrl.reports.results.results import Results
from steadyrl.runs.experiment import load_experiment

KEY = ("HalfCheetah", "mg_printed")


def part(results, seeds, methods=None):
    """The results of some seeds of some methods."""
    cells = {}
    for key, cell in results.cells.items():
        rows = [k for k, seed in enumerate(cell.seeds) if seed in seeds]
        if not rows or (methods is not None and key[1] not in methods):
            continue
        training, evaluations = ({name: x[rows] for name, x in curves.items()} for curves in cell.recorded)
        finals = {name: values[rows] for name, values in cell.recorded.finals.items()}
        recorded = dataclasses.replace(cell.recorded, training=training, evaluations=evaluations, finals=finals)
        policies = tuple(cell.policies[k] for k in rows) if cell.policies else ()
        cells[key] = cell._replace(recorded=recorded, seeds=tuple(cell.seeds[k] for k in rows), policies=policies)
    names = {method for _, method in cells}
    experiment = results.experiment
    kept = tuple(method for method in experiment.methods if method.name in names)
    return Results(
        dataclasses.replace(experiment, methods=kept), cells, results.provenance, results.evaluation_episodes
    )


def assert_same(one, other):
    assert one.seeds == other.seeds
    for kind in ("training", "evaluations"):
        a, b = getattr(one.recorded, kind), getattr(other.recorded, kind)
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    for name, values in final_values(other).items():
        np.testing.assert_array_equal(final_values(one)[name], values)
    for heading, values in other.recorded.finals.items():
        np.testing.assert_array_equal(one.recorded.finals[heading], values)


@pytest.fixture(scope="module")
def whole():
    return example_results(seeds=5)


@pytest.mark.parametrize(("before", "after"), [((0, 1, 2), (3, 4)), ((3,), (0, 1, 2, 4)), ((0, 2, 4), (1, 2, 3))])
def test_two_parts_make_the_whole(whole, before, after):
    combined = merge(part(whole, before), part(whole, after))
    assert combined.cells.keys() == whole.cells.keys()
    for key, cell in whole.cells.items():
        if "timesteps" not in cell.method.scale:  # There the points of the curves are those of the first seeds.
            assert_same(combined.cells[key], cell)


def test_methods_of_either_part(whole, tmp_path):
    known, new = part(whole, range(5), ["ppo", "mg_printed"]), part(whole, range(3), ["mvo"])
    combined = merge(known, new)
    assert {key[1]: len(cell.seeds) for key, cell in combined.cells.items()} == {"ppo": 5, "mg_printed": 5, "mvo": 3}
    assert {method.name for method in combined.experiment.methods} == {"ppo", "mg_printed", "mvo"}
    write_results(combined, tmp_path / "results.json.gz")
    assert {*read_results(tmp_path / "results.json.gz").cells} == {*combined.cells}


def test_studies_of_either_part():
    study = example_results("maze", seeds=2, evaluated=False, study="lambda_curves")
    mg, mvo = (part(study, [seed], [f"{name}=1"]) for seed, name in enumerate(("mg_printed", "mvo")))
    maze = example_results("maze", seeds=1, evaluated=False)
    one, other = (dataclasses.replace(maze, lambda_curves=some) for some in (mg, mvo))
    assert {*merge(one, maze).lambda_curves.cells} == {*merge(maze, one).lambda_curves.cells} == {*mg.cells}
    both = merge(one, other)
    seeds = {key[1]: cell.seeds for key, cell in both.lambda_curves.cells.items()}
    assert seeds == {"mg_printed=1": (0,), "mvo=1": (1,)}
    assert both.experiment.lambda_curves == maze.experiment.lambda_curves
    assert both.sweep is None


def test_a_seed_that_both_have_counts_once_as_in_the_new_ones(whole):
    new = part(example_results(seeds=5, rng=np.random.default_rng(7)), [2])
    combined = merge(whole, new)
    of_both, of_new = (final_values(results.cells[KEY])["return"] for results in (combined, new))
    assert of_both[2] == of_new[0]
    assert combined.cells[KEY].seeds == (0, 1, 2, 3, 4)


def test_variants_keep_their_order_when_the_last_one_is_continued(whole):
    first, *_ = whole.experiment.variants
    last = dataclasses.replace(first, name="continued")
    both = dataclasses.replace(whole.experiment, variants=(first, last))
    known, new = (
        dataclasses.replace(whole, experiment=dataclasses.replace(both, variants=variants))
        for variants in ((first, last), (last,))
    )
    new = dataclasses.replace(new, cells={})
    assert [variant.name for variant in merge(known, new).experiment.variants] == [first.name, "continued"]


def test_curves_at_other_points_are_interpolated(whole):
    new = part(whole, [3])
    cell = new.cells[KEY]
    sparse = {name: x[:, 1::2] for name, x in cell.recorded.training.items()}
    new.cells[KEY] = cell._replace(recorded=dataclasses.replace(cell.recorded, training=sparse))
    curves = merge(part(whole, [0]), new).cells[KEY].recorded.training
    episodes, returns = sparse["episodes"][0], sparse["gini_deviation"][0]
    np.testing.assert_array_equal(curves["episodes"][1][-1], curves["episodes"][0][-1])
    np.testing.assert_allclose(curves["gini_deviation"][1], np.interp(curves["episodes"][0], episodes, returns))


def test_commands_and_commits_of_both(whole):
    made = whole.provenance
    known = dataclasses.replace(whole, provenance=made._replace(commit="b a", date="2026-11-19", command="later"))
    new = dataclasses.replace(whole, provenance=made._replace(commit="c", date="2026-11-18", command="earlier"))
    assert merge(known, new).provenance == made._replace(commit="a b c", date="2026-11-19", command="earlier\nlater")
    assert merge(known, known).provenance.command == "later"


def changed(results, **changes):
    """With another setting of MG in its cell and in the experiment."""
    methods = tuple(
        dataclasses.replace(m, settings={**m.settings, **changes}) if m.name == "mg_printed" else m
        for m in results.experiment.methods
    )
    cells = {
        key: cell._replace(method=next(m for m in methods if m.name == key[1])) for key, cell in results.cells.items()
    }
    return dataclasses.replace(
        results, experiment=dataclasses.replace(results.experiment, methods=methods), cells=cells
    )


def test_seeds_with_other_settings_are_refused(whole, tmp_path):
    other = changed(part(whole, [0]), risk_aversion=3.0)
    with pytest.raises(ValueError, match=r"MG printed: its risk_aversion is 3.0 in the earlier results, and 2.0 here"):
        merge(other, part(whole, [1]))
    experiment = load_experiment("half_cheetah")
    with pytest.raises(ValueError, match=r"risk_aversion is 3.0 in the earlier results"):
        remaining_jobs(other, experiment, experiment.cells(tmp_path))


def test_policies_that_were_evaluated_in_other_numbers_of_episodes_are_refused(whole):
    other = dataclasses.replace(part(whole, [0]), evaluation_episodes=200)
    with pytest.raises(ValueError, match="Use --evaluation-episodes 200"):
        merge(other, part(whole, [1]))


def test_only_seeds_that_are_not_known_remain(whole, tmp_path):
    experiment = load_experiment("half_cheetah", seeds=4)
    known = part(whole, [0, 2], ["mvo", "tamar"])
    jobs = remaining_jobs(known, experiment, experiment.cells(tmp_path))
    seeds = {method: [run.seed for run in job.runs] for (_, method), job in jobs.items()}
    assert (seeds["mvo"], seeds["tamar"], seeds["ppo"]) == ([1, 3], [1, 3], [0, 1, 2, 3])
    assert seeds["mg_calibrated"] == [200, 201, 202, 203]


def test_nothing_remains_of_a_method_with_all_its_seeds(whole, tmp_path):
    experiment = load_experiment("half_cheetah", seeds=2).only(["mvo"])
    assert remaining_jobs(part(whole, [0, 1]), experiment, experiment.cells(tmp_path)) == {}
