"""The benchmark of credit by step: its plan, a run at a small scale, its page."""

import json

import gymnasium as gym
import pytest

from benchmarks.learning import break_even, step_credit


def test_the_break_even_lambdas_are_those_worked_out_by_hand():
    half_cheetah, swimmer = (gym.make(f"steadyrl/{name}Distance-v0") for name in ("HalfCheetah", "Swimmer"))
    found = [break_even.break_even(half_cheetah, speed, 0.99) for speed in (0.3, 1.0)]
    found += [break_even.break_even(swimmer, speed, 0.99) for speed in (0.06, 0.36)]
    assert found == pytest.approx([0.26, 2.25, 0.15, 0.93], abs=0.01)


def test_every_method_of_every_domain_can_be_made():
    for domain, plan in step_credit.PLAN["domains"].items():
        env = step_credit.environment_of(domain)
        for method in plan["methods"]:
            kind = step_credit.agent_class(method)
            assert kind(env, **step_credit.settings_of(domain, method)).episodes == 0, (domain, method)


def test_a_run_is_recorded_once_and_is_on_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(step_credit, "RUNS", tmp_path / "runs.jsonl")
    monkeypatch.setattr(step_credit, "PAGE", tmp_path / "page.md")
    monkeypatch.setitem(step_credit.PLAN, "evaluation_episodes", 5)
    monkeypatch.setitem(step_credit.PLAN["domains"]["two_sides"], "episodes", 16)
    for _ in range(2):
        step_credit.main(["--domains", "two_sides", "--seeds", "1"])
    runs = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [(run["method"], run["seed"]) for run in runs] == [
        (method, 50) for method in step_credit.PLAN["domains"]["two_sides"]["methods"]
    ]
    assert runs[1]["settings"]["risk_aversion"] == 1.0
    assert runs[0]["episodes"] == 16
    assert step_credit.as_planned(runs[0])
    others = [{"settings": {}}, {"seed": 10}, {"budget": {"total_episodes": 17}}, {"method": "SAC"}, {"domain": "Mars"}]
    assert not any(step_credit.as_planned({**runs[0], **other}) for other in others)
    step_credit.main(["--report"])
    page = (tmp_path / "page.md").read_text()
    assert "## Two sides" in page
    assert "## Guarded Maze" not in page
    assert f"| PPO | 1 | {runs[0]['return']:.4g} (" in page
    assert "- MG by step: `risk_aversion=1.0`\n" in page


def made_up(domain, method, seed, rate):
    return {"domain": domain, "method": method, "seed": seed, "return": 1.0, "gini_deviation": 2.0, "metrics": rate}


def test_of_few_seeds_each_is_on_the_page_and_of_many_those_in_the_noise():
    rates = {10: 0.013, 11: 0.76}
    few = [made_up("swimmer", "PPO", seed, {"visiting_rate": x, "distance": 1.0}) for seed, x in rates.items()]
    assert step_credit.each_seed(few, "swimmer").splitlines()[-1] == "- PPO: 0.013, 0.76"
    assert step_credit.table(few, "swimmer").splitlines()[0].endswith("| visiting rate below 2% |")
    assert step_credit.table(few, "swimmer").splitlines()[-1].endswith("| 1 of 2 |")
    rates = {50: 0.0, 51: 0.92, 52: 0.0, 53: 0.61}
    many = [made_up("two_sides", "PPO", seed, {"visiting_rate": x, "position": 1.0}) for seed, x in rates.items()]
    assert (
        step_credit.each_seed(many, "two_sides").splitlines()[-1] == "- PPO: always 0 with 2 of 4; 0.92 (51), 0.61 (53)"
    )
