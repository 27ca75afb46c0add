"""The page of the paper's claims: verdicts follow from intervals, and the pages are those of the committed data."""

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pytest
from example_results import example_results, policy

from steadyrl.reports.results.file import write_results
from steadyrl.reports.tables import columns_of
from steadyrl.runs.experiment import load_experiment, names
from studies.paper_claims.claims_file import read_claims
from studies.paper_claims.measured import Measured, ResultsSource
from studies.paper_claims.page import Pages, draw_figures, short_commits, with_block
from studies.paper_claims.rules import (
    FAILS,
    HOLDS,
    NOT_RUN,
    ONLY,
    OPEN,
    OTHER,
    Claim,
    Condition,
    compare,
    conjunction,
    judge,
)

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"


def test_both_pages_are_what_the_committed_data_give():
    pages, readme = Pages(RESULTS, *read_claims()), (ROOT / "README.md").read_text()
    assert (RESULTS / "README.md").read_text() == pages.claims_page(), "run python -m studies.paper_claims"
    assert with_block(readme, pages.readme_table()) == readme, "run python -m studies.paper_claims"


def test_claims_are_about_methods_and_variants_of_their_experiments():
    domains, claims = read_claims()
    assert set(domains) == set(names())
    for domain in domains.values():
        assert domain.methods <= {method.name for method in load_experiment(domain.name).methods}
    for claim in claims:
        experiment = load_experiment(claim.domain)
        methods = {method.name for method in experiment.methods}
        for condition in claim.conditions:
            roles = {condition.method, *condition.than}
            assert {domains[claim.domain].printed.get(role, role) for role in roles} <= methods, claim.text
            assert {condition.variant, condition.than_variant} - {""} <= {v.name for v in experiment.variants}
            assert condition.than or not math.isnan(condition.value), claim.text


def test_measures_of_training_in_claims_about_the_maze_are_columns_of_its_table():
    results = example_results("maze", seeds=1)
    for cell in results.cells.values():  # Rates that training in the maze records, and figures do not show.
        cell.recorded.finals["training.white_path_rate_last_tenth"] = np.zeros(1)
    columns = {column.heading for column in columns_of(results.experiment, results.cells.values())}
    domains, claims = read_claims()
    measures = {one.measure for claim in claims if claim.domain == "maze" for one in claim.conditions}
    assert {*measures, domains["maze"].look} <= columns


def number(low, high, seeds=10):
    return Measured((low + high) / 2, low, high, seeds)


@pytest.mark.parametrize(
    ("kind", "own", "value", "other", "answer"),
    [
        ("above", number(0.91, 1.0), 0.9, None, True),
        ("above", number(0.8, 1.0), 0.9, None, None),
        ("above", number(0.8, 0.9), 0.9, None, False),
        ("below", number(0.0, 0.05), 0.1, None, True),
        ("below", number(0.2, 0.3), 0.1, None, False),
        ("more", number(2, 3), math.nan, number(0, 1), True),
        ("more", number(0, 0), math.nan, number(0, 0), False),
        ("more", number(0, 2), math.nan, number(1, 3), None),
        ("less", number(0, 1), math.nan, number(2, 3), True),
        ("less", number(2, 3), math.nan, number(0, 1), False),
        ("at_least", number(92, 95), 0.9, number(98, 102), True),
        ("at_least", number(90, 95), 0.9, number(98, 102), None),
        ("at_least", number(80, 89), 0.9, number(98, 102), None),
        ("at_least", number(80, 88), 0.9, number(98, 102), False),
        ("at_least", number(50, 100), 0.5, number(100, 100), True),
        ("at_least", number(40, 50), 0.5, number(100, 100), None),
        ("at_least", number(80, 95), 0.9, number(98, 102), None),
        ("at_least", number(-108, -95), 0.9, number(-101, -99), True),
        ("at_least", number(-110, -95), 0.9, number(-101, -99), None),
        ("above", number(0.95, 1.0, seeds=5), 0.9, None, True),
        ("above", number(0.95, 1.0, seeds=4), 0.9, None, None),
        ("more", number(2, 3), math.nan, number(0, 1, seeds=4), None),
    ],
)
def test_a_comparison_is_true_if_it_is_for_all_values_within_the_intervals(kind, own, value, other, answer):
    assert compare(kind, own, value, other) is answer


def test_a_claim_needs_all_its_conditions():
    assert [conjunction(a) for a in ([True, True], [True, None], [None, False])] == [True, None, False]


class Numbers:
    """A source with these numbers of half_cheetah's methods."""

    experiment = load_experiment("half_cheetah")

    def __init__(self, **returns):
        self.returns = returns

    def get(self, variant, method, measure):
        return self.returns.get(method)


@pytest.mark.parametrize(
    ("returns", "verdict"),
    [
        ({"mg_printed": number(5, 6), "mg_unbiased": number(0, 9)}, HOLDS),
        ({"mg_printed": number(0, 9), "mg_unbiased": number(5, 6)}, OTHER),
        ({"mg_printed": number(0, 1), "mg_unbiased": number(5, 6)}, OTHER),
        ({"mg_unbiased": number(5, 6)}, OTHER),
        ({"mg_printed": number(0, 1), "mg_unbiased": number(0, 9)}, FAILS),
        ({"mg_unbiased": number(0, 1)}, OPEN),
        ({"mg_printed": number(0, 9), "mg_unbiased": number(0, 1)}, OPEN),
        ({"mg_printed": number(5, 6, seeds=2)}, OPEN),
        ({"ppo": number(0, 1)}, NOT_RUN),
    ],
)
def test_verdicts(returns, verdict):
    claim = Claim("half_cheetah", "MG is good", "Sec. 5", "x.png", (Condition("above", "mg", "final return", value=4),))
    judged = judge(claim, Numbers(**returns), [{"mg": "mg_printed"}, {"mg": "mg_unbiased"}])
    assert judged.verdict == verdict
    assert judge(claim, None, [{}]).verdict == NOT_RUN


def test_a_claim_that_other_settings_refute_says_so():
    claim = Claim("half_cheetah", "MG is good", "Sec. 5", "x.png", (Condition("above", "mg", "final return", value=4),))
    source = Numbers(mg_printed=number(5, 6), mg_unbiased=number(0, 1))
    judged = judge(claim, source, [{"mg": "mg_printed"}, {"mg": "mg_unbiased"}])
    assert judged.verdict == ONLY


class Sweeps(Numbers):
    """A sensitivity study: method -> lambda -> the rate of reaching the goal; red is always avoided."""

    def sweep(self, variant, method, measure):
        return {x: rate if measure == "goal" else number(0, 0) for x, rate in self.returns.get(method, {}).items()}


WORKS, FAILING, UNDECIDED = number(0.95, 1), number(0, 0.5), number(0.5, 1)


@pytest.mark.parametrize(
    ("mg", "td3", "verdict", "answer"),
    [
        ({1.0: WORKS}, {1.0: FAILING}, HOLDS, True),
        ({1.0: WORKS, 2.0: UNDECIDED}, {2.0: FAILING, 1.0: FAILING}, HOLDS, True),
        ({1.0: WORKS}, {1.0: WORKS}, FAILS, False),
        ({1.0: WORKS}, {1.0: UNDECIDED}, OPEN, None),
        ({1.0: WORKS}, {2.0: FAILING}, OPEN, None),
        ({1.0: WORKS}, {1.0: number(0, 0.5, seeds=4)}, OPEN, None),
        ({1.0: WORKS}, {}, NOT_RUN, None),
    ],
)
def test_lambdas_are_compared_where_both_methods_have_tried_them(mg, td3, verdict, answer):
    claim = Claim(
        "half_cheetah", "lambdas", "App.", "x.png", (Condition("apart", "mg_printed", "goal", than=("td3",)),)
    )
    judged = judge(claim, Sweeps(mg_printed=mg, td3=td3), [{}])
    assert judged.verdict == verdict
    assert [tried.answer for tried in judged.tried] == [answer] * (verdict != NOT_RUN)
    shared = ", ".join(f"{x:g}" for x in sorted(mg.keys() & td3.keys())) or "none"
    for tried in judged.tried:
        assert tried.numbers["", "lambdas that both methods have tried"] == {"MG printed and TD3": shared}


def test_lambdas_of_other_settings_are_those_of_other_methods():
    claim = Claim("half_cheetah", "lambdas", "App.", "x.png", (Condition("apart", "mg", "goal", than=("td3",)),))
    source = Sweeps(mg_printed={1.0: UNDECIDED}, mg_unbiased={1.0: WORKS}, td3={1.0: FAILING})
    judged = judge(claim, source, [{"mg": "mg_printed"}, {"mg": "mg_unbiased"}])
    assert judged.verdict == OTHER
    assert [(tried.printed, tried.answer) for tried in judged.tried] == [(True, None), (False, True)]


def test_numbers_of_both_studies_of_lambdas(tmp_path):
    studies = {
        field: example_results("maze", seeds=5, evaluated=False, study=name)
        for field, name in (("sweep", "sensitivity"), ("lambda_curves", "lambda_curves"))
    }
    write_results(dataclasses.replace(example_results("maze", seeds=1), **studies), tmp_path / "maze.json.gz")
    source = ResultsSource(tmp_path / "maze.json.gz")
    assert [*source.sweep("goal 20", "mvo", "goal")] == [0.6, 0.8, 1.0, 1.2]
    assert [*source.sweep("goal 40", "mvo_calibrated", "goal")] == [1e-4, 1e-3, 0.01, 0.015, 0.1, 1.0]
    assert source.sweep("goal 40", "mvo", "goal") == {}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Results in which MG avoids the noise that PPO visits, at the same return."""
    folder, rng = tmp_path_factory.mktemp("published"), np.random.default_rng(0)
    results = example_results(seeds=5, few={"td3": 4})
    for key, cell in results.cells.items():
        rate = 0.01 if key[1].startswith("mg") else 0.4
        policies = tuple(policy(rng, 500.0, 50, visiting_rate=rate, distance=9.0) for _ in cell.seeds)
        results.cells[key] = cell._replace(policies=policies)
    write_results(results, folder / "half_cheetah.json.gz")
    return folder


def test_numbers_of_a_results_file(published):
    source = ResultsSource(published / "half_cheetah.json.gz")
    rate = source.get("HalfCheetah", "ppo", "final visiting_rate")
    assert rate == (*[pytest.approx(0.4)] * 3, 5, True)
    assert str(rate) == "40 [40, 40] %"
    assert source.get("HalfCheetah", "td3", "final return").seeds == 4
    values = source.results.cells["HalfCheetah", "ppo"].recorded.finals["training.return_last_tenth"]
    assert source.get("HalfCheetah", "ppo", "return").value == pytest.approx(np.sort(values)[1:4].mean())
    assert source.get("HalfCheetah", "nobody", "return") is None
    assert source.sweep("HalfCheetah", "ppo", "return") == {}


def test_the_page_and_the_table_of_a_results_file(published):
    pages = Pages(published, *read_claims())
    page, table = pages.claims_page(), pages.readme_table()
    row, *others = [line for line in page.splitlines() if "less than the risk-neutral PPO" in line and "%" in line]
    assert "| **holds** | visiting, HalfCheetah: MG printed 1 [1, 1] %; PPO printed 40 [40, 40] %. |" in row
    assert "| MG unbiased: true; MG, PPO: true | 5 |" in row
    assert [line.split(" | ")[1:3] for line in others] == [["MG unbiased", "true"], ["MG, PPO", "true"]]
    assert "MG unbiased 1 [1, 1] %; PPO printed 40 [40, 40] %." in others[0]
    row = next(line for line in page.splitlines() if "less than TD3 |" in line and "%" in line)
    assert "| **inconclusive** |" in row
    assert "### Final policies: HalfCheetah" in page
    assert "steadyrl reproduce half_cheetah --from docs/results/half_cheetah.json.gz" in page
    assert re.search(r"\| HalfCheetah \| 5 \| PPO printed \d+, MG printed \d+, PPO \d+, MG \d+ \|", table)
    assert "visiting 40 %, 1 %, 40 %, 1 %" in table
    held = [sum(one.verdict in (HOLDS, ONLY) for one in pages.judged["half_cheetah"])]
    held.append(sum(one.verdict == OTHER for one in pages.judged["half_cheetah"]))
    assert f"| {held[0]} of 7 | {held[1]} of 7 |" in table
    assert "fewer than 5 seeds" in page
    assert "| not run yet: Guarded Maze, LunarLander," in table


@pytest.mark.slow
def test_figures_of_a_results_file_are_drawn_beside_it(published):
    drawn = {path.name for path in draw_figures(published, "half_cheetah")}
    ends = ("", "_td", "_risk", "_td_risk", "_returns")
    assert drawn == {f"half_cheetah{end}.png" for end in ends}


def test_all_commits_of_the_runs_are_shown():
    one, two = "0123456789abcdef", "9876543210abcdef+changes"
    assert short_commits(one) == "commit 0123456789"
    assert short_commits(f"{one} {two} unknown") == "commits 0123456789, 9876543210+changes, unknown"


def test_a_page_without_marks_is_an_error():
    with pytest.raises(ValueError, match="needs one block between"):
        with_block("# README", "table")
