"""An experiment at a tiny scale: what it trains, keeps, tells and draws."""

import numpy as np
import pytest
from PIL import Image

from steadyrl.cli import main
from steadyrl.experiment import load
from steadyrl.figures.curves import optimal_rate
from steadyrl.reproduce import read_curves
from steadyrl.runs import read_config


@pytest.fixture
def reproduced(tmp_path, capsys):
    command = ["reproduce", "maze", "--quick", "--seeds", "2", "--episodes", "1000", "--agents", "mvo", "--out"]
    main([*command, str(tmp_path)])
    return command, tmp_path, capsys.readouterr().out


def test_every_variant_and_seed_has_a_run(reproduced):
    _, out, told = reproduced
    for goal in (20, 40):
        for seed in (0, 1):
            config = read_config(out / f"goal-{goal}" / "mvo" / f"seed{seed}")
            assert config["env"]["options"] == {"goal_reward": goal}
            assert (config["seed"], config["seeds"]) == (seed, [0, 1])
    lines = [line for line in told.splitlines() if "MVO" in line and "±" in line]
    assert len(lines) == 2
    assert told.splitlines()[-1] == f"Learning curves: {out / 'learning_curves.png'}"


def test_the_table_holds_the_numbers_of_the_runs(reproduced):
    _, out, told = reproduced
    experiment = load("maze", quick=True, seeds=2, episodes=1000).only(["mvo"])
    curves = read_curves(experiment, out, experiment.variants[0], experiment.methods[0])
    assert curves["return"].shape == (2, 2)  # 1,000 episodes, a record each 500
    last = curves["return"][:, -1]
    expected = f"{last.mean():.1f} ±{last.std(ddof=1) / np.sqrt(2):.1f}"
    assert expected in next(line for line in told.splitlines() if "goal 20" in line)


def test_the_picture_has_a_curve_of_each_method(reproduced):
    _, out, _ = reproduced
    picture = np.asarray(Image.open(out / "learning_curves.png").convert("RGB")).reshape(-1, 3)
    blue = np.array([0x4C, 0x72, 0xB0])
    assert (np.abs(picture.astype(int) - blue).max(axis=1) < 8).sum() > 100


def test_finished_runs_are_kept_and_others_trained_anew(reproduced, capsys):
    command, out, _ = reproduced
    kept = (out / "goal-20" / "mvo" / "seed0" / "checkpoint.steady").stat().st_mtime_ns
    (out / "goal-40" / "mvo" / "seed1" / "checkpoint.steady").unlink()
    main([*command, str(out)])
    assert "Kept 2 finished runs" in capsys.readouterr().out
    assert (out / "goal-20" / "mvo" / "seed0" / "checkpoint.steady").stat().st_mtime_ns == kept
    assert (out / "goal-40" / "mvo" / "seed1" / "checkpoint.steady").exists()


def test_optimal_rate_is_the_share_of_all_episodes_so_far():
    curves = {"episodes": np.array([[100, 200, 400]]), "white_path_rate": np.array([[0.0, 1.0, 0.5]])}
    np.testing.assert_allclose(optimal_rate(curves), [[0.0, 0.5, 0.5]])
