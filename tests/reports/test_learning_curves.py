"""Learning curves of groups of runs, and measures at the end of training."""

import numpy as np
import pytest
from report_runs import fake_run, grouped

from steadyrl.reports.curves import UPDATE_METRICS, read_curves
from steadyrl.reports.page.learning import POINTS, curve_of, final_of, measures_of, update_metrics_of
from steadyrl.training.run_folder import METRICS


def test_a_curve_is_the_mean_over_seeds_with_one_standard_error(tmp_path):
    values = np.random.default_rng(0).normal(size=(2, 6))
    for seed, returns in enumerate(values):
        records = [{"episodes": 50 * (i + 1), "return": value} for i, value in enumerate(returns)]
        fake_run(tmp_path / str(seed), seed=seed, records=records)
    (group,), _ = grouped(tmp_path)
    curve = curve_of(group, "return")
    assert curve.episodes.tolist() == [50, 100, 150, 200, 250, 300]
    np.testing.assert_allclose(curve.mean, values.mean(axis=0))
    np.testing.assert_allclose(curve.error, np.abs(values[0] - values[1]) / 2)


def test_runs_recorded_at_different_episodes_meet_where_both_have_been(tmp_path):
    fake_run(tmp_path / "a", seed=0, records=[{"episodes": e, "return": e} for e in (10, 20, 30, 40, 50, 60)])
    fake_run(tmp_path / "b", seed=1, records=[{"episodes": e, "return": -e} for e in (20, 40)])
    (group,), _ = grouped(tmp_path)
    curve = curve_of(group, "return")
    assert curve.episodes.tolist() == [20, 30, 40]
    np.testing.assert_allclose(curve.mean, 0)
    np.testing.assert_allclose(curve.error, [20, 30, 40])  # of +-e: e * sqrt(2) / sqrt(2)


def test_what_is_missing_or_not_finite_is_passed_over(tmp_path):
    records = [{"episodes": 10}, {"episodes": 20, "return": 2.0}, {"episodes": 30, "return": float("nan")}]
    fake_run(tmp_path / "a", records=records)
    (group,), _ = grouped(tmp_path)
    assert curve_of(group, "return").episodes.tolist() == [20]
    assert curve_of(group, "return").values.tolist() == [[2]]
    assert curve_of(group, "return").error is None
    assert curve_of(group, "gini_deviation") is None
    assert final_of(group, "gini_deviation") is None


def test_long_curves_are_thinned_and_end_where_they_did(tmp_path):
    fake_run(tmp_path / "a", records=[{"episodes": e, "return": e} for e in range(1, 10 * POINTS + 1)])
    (group,), _ = grouped(tmp_path)
    curve = curve_of(group, "return")
    assert len(curve.mean) == POINTS
    assert (curve.episodes[0], curve.mean[0]) == (10, 5.5)
    assert curve.episodes[-1] == 10 * POINTS


def test_the_end_is_the_last_tenth(tmp_path):
    for seed in (0, 1):
        records = [{"episodes": e, "return": 10 * seed + (e > 18)} for e in range(1, 21)]
        fake_run(tmp_path / str(seed), seed=seed, records=records)
    (group,), _ = grouped(tmp_path)
    assert final_of(group, "return") == pytest.approx((6.0, 5.0))  # 1 and 11, so se = 10 / sqrt(2) / sqrt(2)


def test_measures_are_the_known_ones_then_rates_and_episode_metrics(tmp_path):
    record = {"episodes": 1, "distance": 1, "loss": 1, "landed_rate": 1, "white_path_rate": 1, "return": 1}
    fake_run(tmp_path / "a", records=[record | dict.fromkeys(UPDATE_METRICS, 1.0), {"episodes": 2, "return": 1}])
    groups, _ = grouped(tmp_path)
    expected = ["return", "white_path_rate", "optimal_rate", "distance", "landed_rate"]
    assert measures_of(groups, episode_metrics=["distance"]) == expected
    assert update_metrics_of(groups) == list(UPDATE_METRICS)


def test_metrics_of_updates_begin_where_all_seeds_have_them(tmp_path):
    for seed, starts in enumerate((3, 5)):
        records = [{"episodes": e} | ({"critic_loss": 1.0 + seed} if e >= starts else {}) for e in range(1, 9)]
        fake_run(tmp_path / str(seed), seed=seed, records=[*records, {"episodes": 9}])
    (group,), _ = grouped(tmp_path)
    assert update_metrics_of([group]) == ["critic_loss"]
    curve = curve_of(group, "critic_loss")
    assert curve.episodes.tolist() == [5, 6, 7, 8]
    np.testing.assert_allclose(curve.mean, 1.5)


@pytest.mark.parametrize("over", ["episodes", "timesteps"])
def test_a_record_without_an_update_is_in_the_curves_of_figures(tmp_path, over):
    """Seeds have updates in different records; a record without dispersion, at the end of a budget, is left out."""
    for seed, missing in enumerate(([1], [])):
        records = [
            {"episodes": e, "timesteps": 10 * e, "return": e, "variance": 1.0}
            | ({} if e - 1 in missing else {"critic_loss": 1.0})
            for e in (1, 2, 3)
        ]
        last = {"episodes": 4, "timesteps": 40, "return": 4, "critic_loss": 1.0}
        fake_run(tmp_path / str(seed), seed=seed, records=[*records, last])
    curves = read_curves([tmp_path / "0", tmp_path / "1"], METRICS, over, [])
    assert curves["return"].tolist() == [[1, 2, 3]] * 2
    assert "critic_loss" not in curves
    assert read_curves([tmp_path / "1"], METRICS, over, [])["critic_loss"].tolist() == [[1, 1, 1]]
