"""LunarLander against Gymnasium's own, its noise against the stream it comes from, and EnvPool's against both."""

import importlib
import pickle
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

pytest.importorskip("Box2D", reason="needs steadyrl[box2d]")

from gymnasium.envs.box2d.lunar_lander import heuristic

import steadyrl.envs  # noqa: F401  (registers steadyrl/...)
from steadyrl.envs.fast_simulator import fast_simulator
from steadyrl.envs.lunar_lander.environment import LandingNoise, LunarLanderEnv
from steadyrl.envs.reward_noise import noise_stream

ID = "steadyrl/LunarLander-v0"
LANDS_LEFT, LANDS_RIGHT = 5, 0
"""Seeds from which the heuristic comes to rest on that side."""
EVERYWHERE = {"dividing_x": -1.0}
"""Options by which all of the ground is on the right."""


def fly(env, seed, act=None):
    """The transitions of one episode, by the heuristic that Gymnasium ships unless `act` is given."""
    observation, _ = env.reset(seed=seed)
    steps, over = [], False
    while not over:
        action = heuristic(env.unwrapped, observation) if act is None else act
        steps.append(env.step(action))
        observation, _, terminated, truncated, _ = steps[-1]
        over = terminated or truncated
    return steps


def last(env, seed, act=None):
    observation, reward, _, _, info = fly(env, seed, act)[-1]
    return observation[0], reward, info


def test_gymnasium_finds_nothing_wrong():
    check_env(gym.make(ID).unwrapped, skip_render_check=True)


def test_moves_and_pays_as_gymnasiums_does_but_for_the_noise():
    ours, theirs = gym.make(ID), gym.make("LunarLander-v3")
    for seed in (LANDS_LEFT, LANDS_RIGHT):
        mine, plain = fly(ours, seed), fly(theirs, seed)
        assert len(mine) == len(plain)
        for (seen, paid, *ends, _), (seen_there, paid_there, *ends_there, _) in zip(mine[:-1], plain[:-1], strict=True):
            np.testing.assert_array_equal(seen, seen_there)
            assert paid == paid_there
            assert ends == ends_there
        noise = 90 * noise_stream(seed).standard_normal() if seed == LANDS_RIGHT else 0
        assert plain[-1][1] == 100
        assert mine[-1][1] == 100 + noise


def test_a_landing_on_the_left_is_counted_and_pays_100():
    x, reward, info = last(gym.make(ID), LANDS_LEFT)
    assert x < 0
    assert reward == 100
    assert (info["landed"], info["landed_left"], info["landed_right"]) == (True, True, False)
    assert info["episode_metrics"] == {"landed_rate": 1.0, "landed_left_rate": 1.0}


def test_a_landing_on_the_right_is_counted_and_noisy():
    x, reward, info = last(gym.make(ID), LANDS_RIGHT)
    assert x > 0
    assert reward not in (100, -100)
    assert (info["landed"], info["landed_left"], info["landed_right"]) == (True, False, True)
    assert info["episode_metrics"] == {"landed_rate": 1.0, "landed_left_rate": 0.0}


def test_a_crash_and_a_time_out_are_no_landings():
    nothing = {"landed_rate": 0.0, "landed_left_rate": 0.0}
    _, reward, crash = last(gym.make(ID, **EVERYWHERE), seed=0, act=0)
    assert reward == -100
    assert crash["episode_metrics"] == nothing
    *_, terminated, truncated, timed_out = fly(gym.make(ID, max_episode_steps=20), seed=0)[-1]
    assert (terminated, truncated, timed_out["episode_metrics"]) == (False, True, nothing)


def test_the_limit_is_a_thousand_steps():
    assert gym.spec(ID).max_episode_steps == 1000


def test_noise_depends_on_the_seed_alone():
    """The same draw however the lander comes down, and another from another seed."""
    crashing = gym.make(ID, noisy_landings="rest_or_crash", **EVERYWHERE)
    draws = {seed: noise_stream(seed).standard_normal() for seed in (LANDS_LEFT, LANDS_RIGHT)}
    assert draws[LANDS_LEFT] != draws[LANDS_RIGHT]
    for seed, draw in draws.items():
        assert last(crashing, seed)[1] == 100 + 90 * draw
        assert last(crashing, seed, act=0)[1] == -100 + 90 * draw


def test_without_a_seed_the_noise_is_new_and_the_flight_as_without_noise():
    ours, theirs = gym.make(ID, **EVERYWHERE).unwrapped, gym.make("LunarLander-v3").unwrapped
    noises = []
    for seed in (3, None, None):
        (mine, _), (plain, _) = ours.reset(seed=seed), theirs.reset(seed=seed)
        np.testing.assert_array_equal(mine, plain)
        noises.append(ours._noise.standard_normal())
    assert len(set(noises)) == 3
    ours.reset(seed=3)
    ours.reset()
    assert ours._noise.standard_normal() == noises[1]


@pytest.mark.parametrize(
    ("options", "x", "reward", "landing"),
    [
        ({}, 0.1, 100, (True, False, True)),
        ({}, 0.0, 100, (True, True, False)),
        ({}, 0.1, -100, (False, False, False)),
        ({"noisy_side": "left"}, 0.0, 100, (True, True, True)),
        ({"noisy_side": "left"}, 0.1, 100, (True, False, False)),
        ({"dividing_x": 0.2}, 0.1, 100, (True, True, False)),
        ({"noisy_landings": "rest_or_crash"}, 0.1, -100, (False, False, True)),
        ({"noisy_landings": "rest_or_crash"}, -0.1, -100, (False, False, False)),
        ({"noisy_landings": "rest_or_crash"}, 1.0, -100, (False, False, False)),  # left the world sideways
    ],
)
def test_which_landings_are_noisy(options, x, reward, landing):
    assert LandingNoise(**options).landing(x, reward) == landing


@pytest.mark.parametrize(
    "options",
    [
        {"noise_scale": -1.0},
        {"noise_scale": float("nan")},
        {"dividing_x": float("inf")},
        {"noisy_side": "up"},
        {"noisy_landings": "all"},
    ],
)
def test_options_without_meaning_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        gym.make(ID, **options)


def test_options_of_gymnasiums_lander_reach_it_and_survive_pickling():
    env = pickle.loads(pickle.dumps(gym.make(ID, gravity=-5.0, enable_wind=True, noise_scale=7.0).unwrapped))
    assert (env.gravity, env.enable_wind, env.landing_noise.noise_scale) == (-5.0, True, 7.0)


def test_without_box2d_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "Box2D", None)
    monkeypatch.delitem(sys.modules, "gymnasium.envs.box2d.lunar_lander")
    monkeypatch.delitem(sys.modules, "steadyrl.envs.lunar_lander.environment")
    with pytest.raises(gym.error.DependencyNotInstalled, match=r"pip install 'steadyrl\[box2d\]'"):
        importlib.import_module("steadyrl.envs.lunar_lander.environment")


@pytest.fixture
def lander():
    """From options and a number of episodes to EnvPool's lander."""
    pytest.importorskip("envpool", reason="needs steadyrl[fast]")

    def made(size, **options):
        fast = fast_simulator(gym.make(ID, **options))
        assert fast.engine == "envpool"
        assert fast.unsupported is None
        return fast.make(size)

    return made


def fly_together(simulator, seeds, act=None):
    """Returns, lengths and metrics of an episode for each seed, and the last step of each."""
    seen, slots = simulator.reset(seeds), np.arange(len(seeds))
    returns, lengths, metrics, ends = np.zeros(len(seeds)), np.zeros(len(seeds), int), {}, {}
    steering = gym.make("LunarLander-v3").unwrapped
    while len(slots):
        actions = np.array([heuristic(steering, x) if act is None else act for x in seen])
        steps = simulator.step(slots, actions)
        assert steps.rewards.dtype == np.float64
        returns[slots] += steps.rewards
        lengths[slots] += 1
        metrics |= steps.episode_metrics
        over = steps.terminated | steps.truncated
        assert sorted(steps.episode_metrics) == slots[over].tolist()
        for k in np.flatnonzero(over):
            ends[int(slots[k])] = (steps.observations[k, 0], steps.rewards[k], steps.terminated[k], steps.truncated[k])
        slots, seen = slots[~over], steps.observations[~over]
    return returns, lengths, [metrics[slot] for slot in range(len(seeds))], [ends[slot] for slot in range(len(seeds))]


def test_envpool_flies_as_gymnasium_does(lander):
    """Means within 4 standard errors of their difference; the heuristic lands nine times out of ten."""
    n = 90
    env = gym.make(ID, noise_scale=0.0)
    flights = [fly(env, seed) for seed in range(n)]
    ends = [flight[-1][-1]["episode_metrics"].values() for flight in flights]
    outcomes = [[sum(step[1] for step in flight), len(flight), *end] for flight, end in zip(flights, ends, strict=True)]
    plain = np.column_stack([outcomes, [env.reset(seed=seed)[0][:6] for seed in range(n)]])
    simulator = lander(n, noise_scale=0.0)
    start = simulator.reset(range(n))
    assert start.shape == (n, 8)
    returns, lengths, metrics, _ = fly_together(simulator, range(n))
    fast = np.column_stack([returns, lengths, [list(one.values()) for one in metrics], start[:, :6]])
    error = np.sqrt((plain.var(axis=0) + fast.var(axis=0)) / n)
    np.testing.assert_array_less(np.abs(plain.mean(axis=0) - fast.mean(axis=0)), 4 * error)
    assert 0.7 < plain[:, 0].std() / fast[:, 0].std() < 1.4
    assert simulator.idle_steps == 0


def test_envpool_gives_gymnasiums_noise_to_the_same_landings(lander):
    seeds = range(100, 120)
    quiet = fly_together(lander(20, noise_scale=0.0), seeds)
    noisy = fly_together(lander(20), seeds)
    landed = {"left": 0, "right": 0}
    for seed, metrics, (x, reward, *_), (_, plain, *_) in zip(seeds, noisy[2], noisy[3], quiet[3], strict=True):
        right = plain == 100 and x > 0
        assert metrics == {"landed_rate": float(plain == 100), "landed_left_rate": float(plain == 100 and x <= 0)}
        assert reward == plain + (90 * noise_stream(seed).standard_normal() if right else 0)
        landed["right" if right else "left"] += plain == 100
    assert min(landed.values()) > 2


def test_an_episode_in_envpool_does_not_depend_on_its_neighbours(lander):
    together = fly_together(lander(4), [5, 6, 2**40, 8])
    alone = fly_together(lander(1), [2**40])
    for mine, theirs in zip(together, alone, strict=True):
        assert mine[2] == theirs[0]


def test_envpool_keeps_the_limit_and_calls_it_a_truncation(lander):
    _, lengths, metrics, ends = fly_together(lander(2, max_episode_steps=30), [1, 2])
    assert lengths.tolist() == [30, 30]
    assert [(bool(terminated), bool(truncated)) for *_, terminated, truncated in ends] == [(False, True)] * 2
    assert metrics == [{"landed_rate": 0.0, "landed_left_rate": 0.0}] * 2


@pytest.mark.parametrize(
    "options", [{"enable_wind": True}, {"gravity": -9.0}, {"continuous": True}], ids=lambda options: next(iter(options))
)
def test_envpool_refuses_what_it_cannot_honour(options):
    pytest.importorskip("envpool", reason="needs steadyrl[fast]")
    fast = fast_simulator(gym.make(ID, **options))
    assert isinstance(fast.unsupported, ValueError)
    with pytest.raises(ValueError, match=next(iter(options))):
        fast.make(2)


def test_without_envpool_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    fast = fast_simulator(gym.make(ID))
    assert isinstance(fast.unsupported, ImportError)
    with pytest.raises(ImportError, match=r"pip install 'steadyrl\[fast\]'"):
        fast.make(2)


def test_more_seeds_than_slots_are_refused(lander):
    with pytest.raises(ValueError, match="3 seeds for a simulator of 2"):
        lander(2).reset([1, 2, 3])


def test_a_subclass_that_steps_in_its_own_way_has_no_fast_simulator():
    class Hovering(LunarLanderEnv):
        def step(self, action):
            return super().step(2)

    assert Hovering().fast_simulator(None) is None
