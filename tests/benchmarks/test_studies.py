"""The studies at a tiny scale: numbers that need no sampling are those of the stored pages."""

from pathlib import Path

import ascent
import ascent_study
import exact_ascent
import gini_estimators
import markdown_page
import numpy as np
import pendulum_start
import ppo_ratios
import pytest
import return_capping
import risk_credit
import risk_critics
from ascent import Ascent, Outcome

import steadyrl

pytestmark = pytest.mark.slow

RESULTS = Path(__file__).parents[2] / "docs" / "results"
UNIFORM = np.full((36, 4), 0.25)
WINDOW = (1.13, 1.57)


def cells(line):
    return [cell.strip() for cell in line.strip("|\n").split("|")]


def outcome(lam):
    """As if the safe way were taken within WINDOW alone."""
    goal, red = (0.1, 0.2) if lam > WINDOW[1] else (0.9, 0.9) if lam < WINDOW[0] else (0.9, 0.01)
    return Outcome(goal, red, 0.5, 1.0, 2.0, 3.0, np.nan)


def test_the_goal_rate_of_the_uniform_policy_is_the_stored_one():
    goal, red, white = ascent.rates(ascent.make_maze(20.0, True), UNIFORM)
    assert f"The uniform policy has p = {goal:.3f}" in " ".join((RESULTS / "exact_ascent.md").read_text().split())
    assert white == pytest.approx(0.25**11)  # One path of 11 moves.
    assert 0 < red < 1


def test_ascent_raises_its_objective():
    climbed = ascent.climb(Ascent("variance", 20.0, True, lam=0.001, time=0.01, step=0.005))
    start = ascent.climb(Ascent("variance", 20.0, True, lam=0.001, time=0.0, step=0.005))
    assert climbed.mean - 0.001 * climbed.variance > start.mean - 0.001 * start.variance
    assert start.goal_rate == pytest.approx(ascent.rates(ascent.make_maze(20.0, True), UNIFORM)[0])


def test_the_edges_of_a_window_are_found_to_one_percent():
    low, high = ascent.window(ascent.refine(outcome, (1.0, 1.3, 1.8)))
    assert WINDOW[0] <= low <= ascent.RESOLUTION * WINDOW[0]
    assert WINDOW[1] / ascent.RESOLUTION <= high <= WINDOW[1]


def test_limits_are_the_stored_ones():
    setting = Ascent("gini_deviation", 20.0, True, 0.0)
    limits = ascent.first_step_limit(setting), ascent.mixture_limit(setting.maze, setting.penalty, setting.gamma)
    rows = map(cells, (RESULTS / "exact_ascent.md").read_text().splitlines())
    (row,) = (row for row in rows if row[:3] == ["D", "draws", "20"])
    assert row[-2:] == [exact_ascent.format_lambda(limit) for limit in limits]


def test_the_page_of_exact_ascent_has_the_stored_sections(monkeypatch, tmp_path):
    for limit in ("first_step_limit", "mixture_limit"):
        monkeypatch.setattr(exact_ascent, limit, lambda *_: 1.0)
    sweeps = {
        setting: ascent.refine(outcome, sorted({1.2, *ascent_study.initial_lambdas(setting, quick=False)}))
        for setting in ascent_study.settings(quick=False)
    }
    checks = [
        ascent_study.Check(name, setting, outcome(1.0), outcome(1.2))
        for name, setting, _ in ascent_study.variations(quick=False)
    ]
    exact_ascent.write(ascent_study.Study(sweeps, checks, 1.0), tmp_path, quick=False)
    written, stored = ((folder / "exact_ascent.md").read_text() for folder in (tmp_path, RESULTS))
    assert [line for line in written.splitlines() if line.startswith("#")] == [
        line for line in stored.splitlines() if line.startswith("#")
    ]
    assert (tmp_path / "exact_ascent.png").stat().st_size > 10_000


def test_the_quick_study_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(ascent_study, "climb", lambda setting: outcome(setting.lam))
    exact_ascent.main(["--quick", "--out", str(tmp_path)])
    assert "| 1.4 | safe | 0.9000 | 0.0100 |" in (tmp_path / "exact_ascent.md").read_text()


def test_gini_estimators_have_the_stored_truths(tmp_path):
    gini_estimators.main(["--batches", "200", "--maze-episodes", "1500", "--out", str(tmp_path)])
    written, stored = ((folder / "gini_estimators.md").read_text() for folder in (tmp_path, RESULTS))

    def truths(page):
        """Case, n, grad D, the paper's bias, and its expected mean: none of them sampled."""
        table = page[page.index("## Bias") : page.index("## Spread")]
        return [cells(line)[:5] for line in table.splitlines() if line.startswith("|")]

    assert truths(written) == truths(stored)
    assert len(truths(written)) == 2 + 6 * 3


def test_the_first_pass_over_a_batch_has_ratios_of_one(monkeypatch, tmp_path, capsys):
    assert ppo_ratios.make_agent().settings.risk_ratios == "trajectory"
    settings = {"risk_ratios": "trajectory", "hidden": (8,), "episodes_per_update": 3, "inner_updates": 2}
    small = steadyrl.MeanGini("steadyrl/HalfCheetah-v0", mean="ppo", **settings)
    monkeypatch.setattr(ppo_ratios, "make_agent", lambda: small)
    ppo_ratios.main(["--learned", "3", "--batches", "1", "--out", str(tmp_path)])
    first, second = map(cells, (tmp_path / "ppo_ratios.md").read_text().splitlines()[-2:])
    assert first == ["3", "1", "0.000", "0.0", "0.0", "0.0", "1.000"]
    assert second[:2] == ["3", "2"]
    assert float(second[2]) > 0


def test_ratios_and_biases_of_estimators_are_those_of_their_distributions():
    rng, count = np.random.default_rng(0), len(risk_critics.ESTIMATORS)
    truth, scale = np.array([3.0, 4.0]), np.ones(count)
    scale[0], bias = 2.0, np.zeros((count, 2))
    bias[-1] = 5.0, 0.0
    estimates = truth + bias + scale[:, None] * rng.normal(size=(20_000, count, 2))
    norm, measured = risk_critics.compare(estimates, truth)
    assert norm == 5
    first, *_, last = measured.values()
    assert (first.ratio, first.error_ratio) == (1, 1)
    assert (last.ratio, last.error_ratio) == pytest.approx((4, 8 / 27), rel=0.05)
    assert abs(last.ratio - 4) < 4 * last.ratio_error
    assert (first.bias, last.bias) == pytest.approx((0, 1), abs=0.02)
    assert last.bias_in_errors == pytest.approx(5 / np.sqrt(2 / 20_000), rel=0.05)
    assert last.cosine == pytest.approx(2 / np.sqrt(5), rel=0.02)


def test_risk_credit_has_the_stored_sections_at_a_tiny_scale(tmp_path):
    maze, two_sides = ["--maze-training", "500", "--maze-episodes", "100"], ["--two-sides-training", "160"]
    two_sides += ["--two-sides-episodes", "100"]
    risk_credit.main(["--seeds", "1", *maze, *two_sides, "--out", str(tmp_path)])
    written, stored = ((folder / "risk_credit.md").read_text() for folder in (tmp_path, RESULTS))

    def names(page):
        """Headings, and moment, critic, law and lambda of each row."""
        lines = page.splitlines()
        return [x for x in lines if x.startswith("#")] + [cells(x)[:4] for x in lines if x.startswith(("| e", "| l"))]

    assert names(written) == names(stored)
    assert (tmp_path / "risk_credit.png").stat().st_size > 10_000


def test_prose_is_wrapped_and_tables_are_not():
    wide = "| " + "x " * 80 + "|"
    page = markdown_page.wrap(f"\n# Title\n\n{'word ' * 30}\n\n- {'one ' * 30}\n- two\n\n{wide}\n")
    title, prose, items, table = page.rstrip("\n").split("\n\n")
    assert (title, table) == ("# Title", wide)
    assert max(map(len, (prose + "\n" + items).splitlines())) <= markdown_page.WIDTH
    assert [line[:3] for line in items.splitlines()] == ["- o", "  o", "- t"]


def test_when_cvar_is_learned_for_good():
    world = return_capping.World("maze", "", 1_000, (0.1, 0.2), 5.0)
    curves = np.zeros((3, return_capping.EVALUATIONS))
    curves[0, 3:] = 6
    curves[1, 1:] = 6
    curves[1, 7] = 4
    assert return_capping.learned_after(world, curves) == [400, 900, np.inf]


def test_the_page_of_return_capping_has_the_stored_sections(tmp_path):
    return_capping.main(["--seeds", "1", "--maze", "50", "--two-sides", "32", "--out", str(tmp_path)])
    written, stored = ((folder / "return_capping.md").read_text() for folder in (tmp_path, RESULTS))
    heads = [[line for line in page.splitlines() if line.startswith(("#", "| world"))] for page in (written, stored)]
    assert heads[0] == heads[1]
    assert (tmp_path / "return_capping.png").stat().st_size > 10_000


def test_tries_in_the_pendulum_are_recorded_once_and_counted(tmp_path, capsys):
    given = ["--runs", str(tmp_path / "runs.jsonl"), "--page", str(tmp_path / "page.md"), "--seeds", "0"]
    name = "64x64, rate 1e-3, no noise"
    for _ in range(2):
        pendulum_start.main([*given, "--tries", name, "--methods", "PPO", "--episodes", "16", "--long", "1e9"])
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 1
    pendulum_start.main([*given, "--report"])
    assert f"| {name} | PPO | 0 of 1 | - | - |" in (tmp_path / "page.md").read_text()
    assert "risk_warmup" not in pendulum_start.settings_of("64x64, rate 1e-3, lambda rises over 500", "PPO")
    assert pendulum_start.options_of(name) == {"noise_scale": 0.0}
    some = [
        {"try": name, "method": "MG", "seed": k, "learned_after": after} for k, after in enumerate((100, None, 300))
    ]
    assert pendulum_start.row(some, name, "MG")[2:] == ["2 of 3", "300", "100, -, 300"]


def test_the_films_are_of_runs_that_are_reported():
    from benchmarks.learning.step_credit import seeds_of, settings_of
    from studies.films import FOLDER, SCENES

    for name, scene in SCENES.items():
        assert scene.seed in seeds_of(scene.domain)
        assert all(isinstance(settings_of(scene.domain, method), dict) for method in scene.methods.values())
        assert (FOLDER / f"{name}.gif").stat().st_size < 1_500_000
