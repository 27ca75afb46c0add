"""Groups of runs: which belong together, and what they are called."""

import pytest
from report_runs import GOALS, METHODS, SEEDS, fake_run, grouped, names

from steadyrl.reports.page.groups import differing, settings_of


@pytest.fixture
def results(tmp_path):
    """Two methods in two variants with two seeds each, as `steadyrl reproduce` lays them out."""
    for goal in GOALS:
        for method in METHODS:
            for seed in SEEDS:
                folder, options = tmp_path / f"goal-{goal}" / method / f"seed{seed}", {"goal_reward": goal}
                fake_run(folder, method, seed, options=options, records=[{"episodes": 50, "return": 1.0}])
    return tmp_path


def test_runs_that_differ_in_seed_alone_are_one_group(results):
    groups, notes = grouped(results)
    expected = [(f"goal {goal}", method, [0, 1]) for goal in GOALS for method in ("REINFORCE", "MVO")]
    assert names(groups) == expected
    assert not notes


def test_of_one_variant_or_one_method_or_one_run(results):
    assert [g.method for g in grouped(results / "goal-20")[0]] == ["REINFORCE", "MVO"]
    assert [g.variant for g in grouped(results / "goal-20")[0]] == ["GuardedMaze-v0"] * 2
    for below in ("mvo", "mvo/seed1"):
        (group,) = grouped(results / "goal-20" / below)[0]
        assert (group.variant, group.method) == ("GuardedMaze-v0", "MVO")


def test_in_a_flat_folder_groups_are_called_by_what_is_different(tmp_path):
    for index, (risk_aversion, seed, goal) in enumerate([(0.5, 0, 20), (0.5, 1, 20), (2.0, 0, 20), (0.5, 0, 40)]):
        settings = {"risk_aversion": risk_aversion, "gamma": 0.999}
        fake_run(tmp_path / f"run{index}", seed=seed, settings=settings, options={"goal_reward": goal})
    fake_run(tmp_path / "other", agent="reinforce", settings={"gamma": 0.999}, options={"goal_reward": 20})
    assert names(grouped(tmp_path)[0]) == [
        ("GuardedMaze-v0, goal_reward 20", "REINFORCE", [0]),
        ("GuardedMaze-v0, goal_reward 20", "MG, lambda 0.5", [0, 1]),
        ("GuardedMaze-v0, goal_reward 20", "MG, lambda 2", [0]),
        ("GuardedMaze-v0, goal_reward 40", "MG, lambda 0.5", [0]),
    ]


def test_budgets_tell_groups_apart_where_nothing_else_does(tmp_path):
    for episodes in (100, 20_000):
        fake_run(tmp_path / str(episodes), budget={"episodes": episodes})
    assert [g.method for g in grouped(tmp_path)[0]] == [
        "MG, budget of episodes 100",
        "MG, budget of episodes 20,000",
    ]


def test_equal_settings_in_two_folders_are_two_groups_if_seeds_repeat(tmp_path):
    for method in ("mg", "mg_again"):
        for seed in (0, 1):
            fake_run(tmp_path / method / f"seed{seed}", seed=seed)
    assert [(m, s) for _, m, s in names(grouped(tmp_path)[0])] == [("MG", [0, 1]), ("mg_again", [0, 1])]


def test_a_copy_is_left_out_and_noted(tmp_path):
    for folder in ("a", "b"):
        fake_run(tmp_path / folder, records=[{"episodes": 10, "return": 1.0}])
    (group,), notes = grouped(tmp_path)
    assert [run.name for run in group.runs] == ["a"]
    assert list(notes.values()) == [["b"]]


@pytest.mark.parametrize("ordered", [("goal-20", "goal-100"), ("0.25", "0.5", "1"), ("1e-05", "0.0001")])
def test_numbers_in_names_are_sorted_as_numbers(tmp_path, ordered):
    for index, name in enumerate(reversed(ordered)):
        fake_run(tmp_path / name / "mg" / "seed0", options={"goal_reward": index})
    assert [g.variant for g in grouped(tmp_path)[0]] == list(ordered)


def test_settings_differ_if_only_some_have_them():
    env = {"id": "x", "options": {"layout": "S.G"}}
    a = settings_of({"agent": "mg", "env": env, "settings": {"gamma": 0.9, "risk_aversion": 1}})
    b = settings_of({"agent": "mg", "env": env, "settings": {"gamma": 0.9}})
    assert differing([a, b]) == [("agent", "risk_aversion")]
    assert differing([a, a]) == []
