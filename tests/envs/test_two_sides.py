"""TwoSides against its rules: what both sides pay, where it is noisy, what it reports and what it refuses."""

import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import steadyrl.envs  # noqa: F401  (registers steadyrl/...)
from steadyrl.envs.two_sides import TwoSidesEnv
from steadyrl.risk import gini_deviation

ID = "steadyrl/TwoSides-v0"
LEFT, STAY, RIGHT = -1.0, 0.0, 1.0
STEPS, RAMP = 60, 16
"""Of an episode, and from the middle to an end."""
PAID = 105.0
"""0.125 + 0.25 + ... + 2, then 2 for each of the other 44 steps."""
NOISY_STEPS = 56
"""The fifth step to the right is the first that ends beyond 0.5."""
SPREAD = 3 * math.sqrt(NOISY_STEPS) / math.sqrt(math.pi)
"""The Gini deviation of a normal distribution is its standard deviation divided by the square root of pi."""


def play(env, action, seed=None, steps=STEPS):
    """The transitions of one episode that always moves alike."""
    env.reset(seed=seed)
    return [env.step(np.float32([action])) for _ in range(steps)]


def total(transitions):
    return sum(reward for _, reward, *_ in transitions)


def metrics(transitions):
    return transitions[-1][-1]["episode_metrics"]


@pytest.mark.parametrize("options", [{}, {"noise_scale": 0.0, "noisy_above": -1.0}])
def test_passes_gymnasiums_checker(options):
    check_env(gym.make(ID, **options).unwrapped)


def test_an_episode_is_truncated_after_60_steps_and_never_ends():
    steps = play(gym.make(ID), RIGHT, seed=0)
    assert [truncated for _, _, _, truncated, _ in steps] == [False] * (STEPS - 1) + [True]
    assert not any(terminated for _, _, terminated, _, _ in steps)


def test_always_left_pays_105_for_sure():
    env = gym.make(ID)
    assert [total(play(env, LEFT, seed)) for seed in range(5)] == [PAID] * 5
    # By hand, and however the steps are added up: eighths are exact.
    assert sum(min(t / 8, 2) for t in range(1, STEPS + 1)) == PAID


def test_always_right_pays_as_much_on_average_with_a_gini_deviation_of_12_7():
    env, n = gym.make(ID), 2000
    returns = np.array([total(play(env, RIGHT, seed=0 if i == 0 else None)) for i in range(n)])
    standard_deviation = 3 * math.sqrt(NOISY_STEPS)
    assert abs(returns.mean() - PAID) < 4 * standard_deviation / math.sqrt(n)
    assert pytest.approx(12.67, abs=0.005) == SPREAD
    assert gini_deviation(returns) == pytest.approx(SPREAD, rel=0.06)


def test_both_sides_pay_alike_without_noise():
    env = gym.make(ID, noise_scale=0)
    left, right = ([reward for _, reward, *_ in play(env, side, seed=0)] for side in (LEFT, RIGHT))
    assert left == right
    assert total(play(env, STAY)) == 0


@pytest.mark.parametrize(("noisy_above", "noisy"), [(0.5, 56), (0.0, 60), (-3.0, 60), (1.999, 45), (2.0, 0)])
def test_steps_that_end_to_the_right_of_the_border_are_noisy(noisy_above, noisy):
    steps = play(gym.make(ID, noisy_above=noisy_above), RIGHT, seed=1)
    surprises = [reward - abs(float(seen[0])) for seen, reward, *_ in steps]
    assert np.count_nonzero(surprises) == noisy
    assert surprises[: STEPS - noisy] == [0] * (STEPS - noisy)
    assert metrics(steps)["visiting_rate"] == pytest.approx(noisy / STEPS)


def test_noise_has_the_scale_that_is_asked_for():
    steps = play(TwoSidesEnv(noise_scale=0.5, noisy_above=-9), STAY, seed=2, steps=4000)
    noise = np.array([reward for _, reward, *_ in steps])
    assert abs(noise.mean()) < 4 * 0.5 / math.sqrt(4000)
    assert noise.std() == pytest.approx(0.5, rel=0.05)


def test_the_same_seed_gives_the_same_episode():
    env = gym.make(ID)
    returns = [total(play(env, RIGHT, seed)) for seed in (3, 3, 4, None)]
    assert returns[0] == returns[1]
    assert len(set(returns)) == 3


def test_positions_stay_on_the_line_and_actions_in_their_range():
    env = TwoSidesEnv()
    for action, end in ((7.0, 2.0), (-7.0, -2.0)):
        steps = play(env, action, seed=0, steps=RAMP + 1)
        assert [float(seen[0]) for seen, *_ in steps] == [math.copysign(min(t / 8, 2), end) for t in range(1, RAMP + 2)]
        assert all(env.observation_space.contains(seen) for seen, *_ in steps)


def test_metrics_tell_where_the_episode_is_and_how_much_of_it_was_noisy():
    env = gym.make(ID)
    assert metrics(play(env, LEFT)) == {"position": -2.0, "visiting_rate": 0.0}
    assert metrics(play(env, RIGHT)) == {"position": 2.0, "visiting_rate": NOISY_STEPS / STEPS}
    assert metrics(play(env, RIGHT, steps=6)) == {"position": 0.75, "visiting_rate": 2 / 6}
    assert metrics(play(env, STAY, steps=3)) == {"position": 0.0, "visiting_rate": 0.0}


REFUSED = [("noise_scale", -1.0), *((name, x) for name in ("noise_scale", "noisy_above") for x in (math.nan, math.inf))]


@pytest.mark.parametrize(("name", "value"), [*REFUSED, ("noise_scale", -math.inf), ("noisy_above", -math.inf)])
def test_options_that_make_no_sense_are_refused_in_one_line(name, value):
    with pytest.raises(ValueError, match=f"^{name}={value}: a finite number .*is needed.$") as refused:
        gym.make(ID, **{name: value})
    assert "\n" not in str(refused.value)
