"""InvertedPendulum against Gymnasium's own, and its noise and metrics against their definitions."""

import importlib
import pickle
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from side_by_side import play_alone

pytest.importorskip("mujoco", reason="needs steadyrl[mujoco]")
pytest.importorskip("imageio", reason="needs steadyrl[mujoco]")

import steadyrl.envs  # noqa: F401  (registers steadyrl/...)
from steadyrl.envs.mujoco.inverted_pendulum import Balancing
from steadyrl.envs.mujoco.task import State
from steadyrl.envs.reward_noise import noise_stream

ID = "steadyrl/InvertedPendulum-v0"
GAINS = np.array([0.72, 6.83, 0.92, 1.08])
"""A linear controller that keeps the pole up."""


def balance(seen):
    return np.atleast_1d(seen @ GAINS).astype(np.float32)


def let_fall(seen):
    return np.zeros(1, np.float32)


def play(env, steps=500, seed=0, act=balance):
    """Up to so many transitions of one episode."""
    seen, _ = env.reset(seed=seed)
    played = []
    for _ in range(steps):
        played.append(env.step(act(seen)))
        seen, _, terminated, truncated, _ = played[-1]
        if terminated or truncated:
            break
    return played


# Gymnasium advises against the bounds of its own task.
@pytest.mark.filterwarnings("ignore:.*For Box action spaces, we recommend:UserWarning")
@pytest.mark.filterwarnings("ignore:.*A Box observation space m..imum value is -?infinity:UserWarning")
def test_gymnasium_finds_nothing_wrong():
    check_env(gym.make(ID).unwrapped, skip_render_check=True)


def test_with_the_papers_changes_undone_it_is_gymnasiums():
    undone = {"noise_scale": 0.0, "reset_velocity_scale": 0.01, "pay_failing_step": False}
    ours, theirs = gym.make(ID, max_episode_steps=1000, **undone), gym.make("InvertedPendulum-v5")
    for act in (balance, let_fall):
        mine, plain = play(ours, 300, seed=4, act=act), play(theirs, 300, seed=4, act=act)
        assert len(mine) == len(plain)
        for (seen, paid, *ends, _), (seen_there, paid_there, *ends_there, _) in zip(mine, plain, strict=True):
            np.testing.assert_array_equal(seen, seen_there)
            assert paid == paid_there
            assert ends == ends_there
    assert mine[-1][2]


def test_positions_start_as_gymnasiums_and_velocities_nearer_to_rest():
    ours, theirs = gym.make(ID), gym.make("InvertedPendulum-v5")
    starts = np.array([[ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0]] for seed in range(200)])
    mine, plain = starts[:, 0], starts[:, 1]
    np.testing.assert_array_equal(mine[:, :2], plain[:, :2])
    np.testing.assert_allclose(mine[:, 2:], plain[:, 2:] / 20, rtol=1e-12)
    assert 0.00045 < np.abs(mine[:, 2:]).max() <= 0.0005


def test_rewards_are_noisy_beyond_the_line_and_1_elsewhere():
    played = play(gym.make(ID), seed=1, act=lambda seen: balance(seen - [-0.01, 0, 0, 0]))
    draws = noise_stream(1).standard_normal(len(played))
    x = np.array([seen[0] for seen, *_ in played])
    noisy = x > 0.01
    assert 20 < noisy.sum() < 480
    np.testing.assert_array_equal([info["in_noisy_region"] for *_, info in played], noisy)
    np.testing.assert_array_equal([paid for _, paid, *_ in played], 1 + np.where(noisy, 10 * draws, 0))
    assert played[-1][-1]["episode_metrics"] == {"visiting_rate": noisy.mean()}


def test_the_paper_pays_the_failing_step():
    for pay, last in ((True, 1.0), (False, 0.0)):
        played = play(gym.make(ID, pay_failing_step=pay, noise_scale=0.0), act=let_fall)
        assert played[-1][2]
        assert [paid for _, paid, *_ in played] == [1.0] * (len(played) - 1) + [last]


def test_the_limit_is_500_steps_and_a_truncation():
    played = play(gym.make(ID), 501)
    assert len(played) == 500
    assert played[-1][2:4] == (False, True)


def test_visits_count_without_noise_too():
    env = gym.make(ID, noise_scale=0.0, noisy_beyond=-np.inf)
    played, metrics = play_alone(env, 0, lambda observation, t: balance(observation))
    assert metrics == {"visiting_rate": 1.0}
    assert sum(reward for _, reward, *_ in played) == 500


def test_an_episode_ends_beyond_the_angle_limit():
    task = Balancing(angle_limit=0.3, step_reward=2.0)
    lean = np.array([0.0, 0.3, -0.3, 0.301, -0.301, np.nan])
    state = State(np.column_stack([np.zeros(6), lean]), np.zeros((6, 2)))
    outcome = task.outcome(state, np.zeros((6, 1)), state, 0.04)
    assert outcome.terminated.tolist() == [False, False, False, True, True, True]
    assert outcome.rewards.tolist() == [2.0] * 6


def test_noise_is_new_without_a_seed_and_moves_nothing():
    ours, theirs = gym.make(ID, reset_velocity_scale=0.01).unwrapped, gym.make("InvertedPendulum-v5").unwrapped
    noises = []
    for seed in (3, None, None):
        np.testing.assert_array_equal(ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0])
        noises.append(ours._noise.standard_normal())
    assert len(set(noises)) == 3


def test_the_noise_does_not_repeat_the_draws_of_the_reset():
    assert noise_stream(5).standard_normal() != np.random.default_rng(5).standard_normal()


@pytest.mark.parametrize(
    "options",
    [
        {"noise_scale": -1.0},
        {"reset_noise_scale": np.nan},
        {"reset_velocity_scale": np.inf},
        {"angle_limit": 0.0},
        {"noisy_beyond": np.nan},
        {"step_reward": np.inf},
    ],
)
def test_options_without_meaning_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        gym.make(ID, **options)


def test_options_reach_task_and_model_and_survive_pickling():
    env = pickle.loads(pickle.dumps(gym.make(ID, frame_skip=4, noise_scale=3.0, width=64).unwrapped))
    assert (env.frame_skip, env.task.noise_scale, env.width, env.metadata["render_fps"]) == (4, 3.0, 64, 12)


def test_without_mujoco_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "steadyrl.envs.mujoco.environment")
    with pytest.raises(gym.error.DependencyNotInstalled, match=r"pip install 'steadyrl\[mujoco\]'"):
        importlib.import_module("steadyrl.envs.mujoco.environment")
