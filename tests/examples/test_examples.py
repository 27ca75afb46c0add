"""The recipes in examples/: their environments have the returns that can be worked out by hand, and the scripts run."""

import runpy
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from fragile_robot import LENGTH, PAY, ROUGH, SECONDS, SHAKING, SPEEDS, TIME_LIMIT, WAGE, FragileRobotEnv
from gymnasium.utils.env_checker import check_env
from inventory import COST, ORDERS, PRICE, WEEKS, InventoryEnv
from portfolio import DRIFT, FEE, MONTHS, STAKE, PortfolioEnv
from price_of_risk import price_of_half

from steadyrl.evaluation.frontier import Frontier, FrontierPoint

EXAMPLES = Path(__file__).parents[2] / "examples"
ENVS = {"inventory": InventoryEnv, "portfolio": PortfolioEnv, "fragile_robot": FragileRobotEnv}


def play(env, action, seed=0):
    """Rewards of an episode with one action throughout."""
    env.reset(seed=seed)
    rewards = []
    over = False
    while not over:
        _, reward, terminated, truncated, _ = env.step(action)
        rewards.append(reward)
        over = terminated or truncated
    return np.array(rewards)


@pytest.mark.filterwarnings("ignore::UserWarning")  # Of spaces that have no bounds.
@pytest.mark.parametrize("name", ENVS)
def test_environments_follow_the_api(name):
    check_env(ENVS[name](), skip_render_check=True)


@pytest.mark.parametrize("name", ENVS)
def test_episodes_depend_on_the_seed_alone(name):
    env: gym.Env = ENVS[name]()
    action = np.array([0.7], np.float32) if name == "portfolio" else 5
    assert np.array_equal(play(env, action, seed=3), play(env, action, seed=3))
    assert len({play(env, action, seed).sum() for seed in range(10)}) > 1


def test_a_shop_without_orders_sells_at_most_what_it_has():
    rewards = play(InventoryEnv(), 0)
    assert len(rewards) == WEEKS
    assert rewards.sum() <= 24 * PRICE


def test_a_shop_that_orders_too_much_loses_the_rest():
    everything = np.array([play(InventoryEnv(), len(ORDERS) - 1, seed).sum() for seed in range(20)])
    most_sold = 24 + (WEEKS - 2) * ORDERS[-1]
    assert np.all(everything <= PRICE * most_sold - COST * (WEEKS - 1) * ORDERS[-1])


def test_money_that_is_not_invested_earns_nothing():
    assert np.all(play(PortfolioEnv(), np.array([0.0], np.float32)) == 0)


def test_the_fund_earns_its_drift_less_one_fee():
    profits = np.array([play(PortfolioEnv(), np.array([1.0], np.float32), seed).sum() for seed in range(400)])
    expected = STAKE * (MONTHS * DRIFT - FEE)
    assert abs(profits.mean() - expected) < 4 * profits.std() / np.sqrt(len(profits))


def test_a_robot_that_stands_still_is_paid_for_nothing():
    rewards = play(FragileRobotEnv(), 0)
    assert len(rewards) == TIME_LIMIT
    assert rewards.sum() == pytest.approx(-WAGE * SECONDS * TIME_LIMIT)


@pytest.mark.parametrize("speed", [2.0, 1.0])
def test_the_noise_of_the_robot_grows_with_the_square_of_its_speed(speed):
    action = int(np.flatnonzero(speed == SPEEDS)[0])
    returns = np.array([play(FragileRobotEnv(), action, seed).sum() for seed in range(400)])
    deviation = SHAKING * speed**2 * np.sqrt(sum(end - start for start, end in ROUGH))
    assert abs(returns.mean() - (PAY * LENGTH - WAGE * LENGTH / speed)) < 4 * deviation / np.sqrt(len(returns))
    assert abs(returns.std() / deviation - 1) < 4 / np.sqrt(2 * len(returns))


def test_the_price_of_half_of_the_risk():
    points = (
        FrontierPoint.of("ppo", None, [np.array([0.0, 40.0])]),
        FrontierPoint.of("mg", 1.0, [np.array([13.0, 23.0])]),
        FrontierPoint.of("mg", 2.0, [np.array([9.0, 11.0])]),
    )
    sentence = price_of_half(Frontier(points, "somewhere"))
    assert "take lambda 1 (Gini deviation 5): it costs 2 of a mean of 20, 10%" in sentence
    assert price_of_half(Frontier(points[:1], "somewhere")).startswith("No policy here has half")


OPTIONS = ["--episodes", "32", "--seeds", "1", "--risk-aversion", "1", "--evaluation-episodes", "20", "--out", "runs"]


@pytest.mark.slow
def test_a_script_runs_in_any_folder(tmp_path):
    """Its processes find the environment in the file of the script."""
    command = [sys.executable, str(EXAMPLES / "inventory.py"), *OPTIONS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "Gini deviation" in done.stdout
    assert (tmp_path / "runs" / "inventory.png").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", ["portfolio", "fragile_robot"])
def test_the_other_scripts_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *OPTIONS])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert "Gini deviation" in capsys.readouterr().out
    assert (tmp_path / "runs" / f"{name}.png").stat().st_size > 10_000
