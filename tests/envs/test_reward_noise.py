"""Reward noise as environments report it, step by step, and pictures of TwoSides and LunarLander."""

import gymnasium as gym
import numpy as np
import pytest

import steadyrl.envs  # noqa: F401  (registers steadyrl/...)
from steadyrl.envs.reward_noise import noise_of
from steadyrl.envs.two_sides_picture import AGENT, NOISY, two_sides_picture

MAZE, TWO_SIDES, LANDER = "steadyrl/GuardedMaze-v0", "steadyrl/TwoSides-v0", "steadyrl/LunarLander-v0"
RIGHT = 3


def test_the_maze_reports_how_a_red_reward_differs_from_its_mean():
    env = gym.make(MAZE, red_rewards=(-10.0, 20.0), red_probabilities=(0.5, 0.5))
    seen = set()
    for seed in range(12):
        env.reset(seed=seed)
        steps = [env.step(RIGHT) for _ in range(5)]
        assert ["reward_noise" in info for *_, info in steps] == [False] * 3 + [True, False]
        _, reward, _, _, info = steps[3]
        assert info["reward_noise"] == reward - 5
        seen.add(info["reward_noise"])
    assert seen == {-15, 15}


def test_the_maze_replays_given_outcomes():
    env = gym.make(MAZE)
    for outcome, reward in enumerate((-15.0, -1.0, 13.0)):
        env.reset(seed=0, options={"outcomes": [0, 0, 0, outcome]})
        assert [env.step(RIGHT)[1] for _ in range(4)] == [-1, -1, -1, reward]
    drawn = [[env.reset(seed=seed), *(env.step(RIGHT)[1] for _ in range(4))][-1] for seed in range(12)]
    assert set(drawn) == {-15, -1, 13}


def test_two_sides_reports_the_noise_of_steps_on_the_right():
    env = gym.make(TWO_SIDES)
    env.reset(seed=0)
    for step in range(8):
        observation, reward, _, _, info = env.step(np.float32([1]))
        assert ("reward_noise" in info) == (step >= 4)
        assert reward == pytest.approx(float(observation[0]) + info.get("reward_noise", 0.0))


def test_lunar_lander_reports_the_noise_of_a_landing():
    pytest.importorskip("Box2D", reason="needs steadyrl[box2d]")
    from gymnasium.envs.box2d.lunar_lander import heuristic

    noisy, plain = (gym.make(LANDER, noisy_side=side, dividing_x=1.0) for side in ("left", "right"))
    last = []
    for env in (noisy, plain):
        observation, _ = env.reset(seed=0)
        while True:
            observation, reward, terminated, truncated, info = env.step(heuristic(env.unwrapped, observation))
            if terminated or truncated:
                break
            assert "reward_noise" not in info
        last.append((reward, info))
    assert last[1][0] == 100
    assert "reward_noise" not in last[1][1]
    assert last[0][0] == pytest.approx(100 + last[0][1]["reward_noise"])
    assert abs(last[0][1]["reward_noise"]) > 1


@pytest.mark.parametrize(("side", "tinted"), [("right", slice(450, None)), ("left", slice(None, 450))])
def test_lunar_lander_is_tinted_on_the_noisy_side(side, tinted):
    pytest.importorskip("Box2D", reason="needs steadyrl[box2d]")
    env = gym.make(LANDER, render_mode="rgb_array", noisy_side=side, dividing_x=0.5)
    plain = gym.make("LunarLander-v3", render_mode="rgb_array")
    pictures = []
    for one in (env, plain):
        one.reset(seed=0)
        pictures.append(one.render().astype(int))
        one.close()
    difference = (pictures[0] - pictures[1])[..., 0]
    sky = 60  # A row below the lander and above the ground.
    assert difference[sky, tinted].tolist() == [70] * len(difference[sky, tinted])
    difference[:, tinted] = 0
    assert not difference.any()
    np.testing.assert_array_equal(pictures[0][..., 1:], pictures[1][..., 1:])


def test_mujoco_tasks_report_the_noise_of_steps_in_the_noisy_region():
    pytest.importorskip("mujoco", reason="needs steadyrl[mujoco]")
    pytest.importorskip("imageio", reason="needs steadyrl[mujoco]")
    env = gym.make("steadyrl/InvertedPendulum-v0")
    env.reset(seed=0)
    reported = []
    for _ in range(15):
        _, reward, terminated, _, info = env.step(np.float32([1.0]))
        assert reward == pytest.approx(1 + info.get("reward_noise", 0.0))
        assert info["in_noisy_region"] == ("reward_noise" in info)
        reported.append("reward_noise" in info)
        if terminated:
            break
    assert any(reported)


@pytest.mark.parametrize(("info", "noise"), [({}, None), ({"reward_noise": 2}, 2.0), ({"reward_noise": "loud"}, None),
                                             ({"reward_noise": float("nan")}, None), ({"reward_noise": True}, None),
                                             ({"reward_noise": np.float32(0.5)}, 0.5)])  # fmt: skip
def test_only_finite_numbers_are_noise(info, noise):
    assert noise_of(info) == noise


def test_two_sides_is_drawn():
    env = gym.make(TWO_SIDES, render_mode="rgb_array")
    env.reset(seed=0)
    middle = env.render()
    env.step(np.float32([-1]))
    left = env.render()
    env.close()
    columns = [np.flatnonzero((picture == AGENT).all(axis=-1).any(axis=0)).mean() for picture in (middle, left)]
    assert columns[0] == pytest.approx(middle.shape[1] / 2, abs=1)
    assert columns[0] - columns[1] == pytest.approx((240 - 1 - 32) / 2 / 16, abs=1)
    tinted = (middle == NOISY).all(axis=-1)
    assert np.flatnonzero(tinted[0])[0] == round(16 + 207 * 0.625)
    assert not (two_sides_picture(0, 1.5) == NOISY).all(axis=-1).any()
    assert (two_sides_picture(0, -2) == NOISY).all(axis=-1)[0].all()
    with pytest.raises(ValueError, match="render_mode='human' is not supported: use None or 'rgb_array'"):
        gym.make(TWO_SIDES).unwrapped.__class__(render_mode="human")
