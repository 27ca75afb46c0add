"""HalfCheetah and Swimmer against Gymnasium's own, their noise and metrics against their definitions."""

import math
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

pytest.importorskip("mujoco", reason="needs steadyrl[mujoco]")
pytest.importorskip("imageio", reason="needs steadyrl[mujoco]")

import mujoco
from gymnasium.envs.mujoco.mujoco_env import MujocoEnv
from side_by_side import assert_same

import steadyrl.envs  # noqa: F401  (registers steadyrl/...)
from steadyrl.envs.fast_simulator import fast_simulator
from steadyrl.envs.mujoco.half_cheetah import HalfCheetahEnv
from steadyrl.envs.mujoco.running import DISTANCE, Running
from steadyrl.envs.mujoco.task import State
from steadyrl.envs.reward_noise import noise_stream


def gait(period, phases, joints):
    """Every joint swings and is held back where it is: the actions depend on what is seen."""

    def act(seen, t):
        return np.clip(np.sin(t / period + np.array(phases)) - 0.3 * seen[..., joints], -1, 1).astype(np.float32)

    return act


LEFT = gait(3.5, [5.0, 1.5, 0.3, 2.5, 1.3, 0.6], slice(3, 9))
RIGHT = gait(2.07, [4.6, 1.8, 1.2, 5.4, 3.6, 3.1], slice(3, 9))
SWIM = gait(6.25, [3.6, 3.3], slice(3, 5))
CASES = {
    # Name: Gymnasium's own, a way to move, where its steps are noisy, and how much, given x.
    "HalfCheetah": ("HalfCheetah-v5", LEFT, lambda x: np.where(x < -3, 10.0, 0.0)),
    "Swimmer": ("Swimmer-v5", SWIM, lambda x: np.where(x > 0.5, 10.0, 0.0)),
    "HalfCheetahDistance": ("HalfCheetah-v5", RIGHT, lambda x: np.where((x > 0) & (x <= 20), 10 * (1 - x / 20), 0)),
    "SwimmerDistance": ("Swimmer-v5", SWIM, lambda x: np.where((x > 0) & (x <= 20), 10 * (1 - x / 20), 0)),
}
each_task = pytest.mark.parametrize("name", CASES)


def make(name, **options):
    return gym.make(f"steadyrl/{name}-v0", **options)


@pytest.fixture
def gymnasiums(tmp_path, monkeypatch):
    """Makes Gymnasium's own, whose half cheetah has MuJoCo write a log into the working directory."""
    monkeypatch.chdir(tmp_path)

    def make(name, **options):
        return gym.make(name, exclude_current_positions_from_observation=False, max_episode_steps=500, **options)

    return make


@each_task
@pytest.mark.filterwarnings("ignore:.*A Box observation space m..imum value is -?infinity:UserWarning")
def test_gymnasium_finds_nothing_wrong(name):
    check_env(make(name).unwrapped, skip_render_check=True)


@each_task
def test_it_moves_as_gymnasiums_and_pays_as_the_paper_says(name, gymnasiums):
    theirs, act, noise_scale = CASES[name]
    ours, theirs = make(name), gymnasiums(theirs)
    seen, their_seen, over = ours.reset(seed=7)[0], theirs.reset(seed=7)[0], False
    np.testing.assert_array_equal(seen, their_seen)
    rewards, expected, x = [], [], []
    while not over:
        action = act(seen, len(x))
        seen, paid, terminated, over, info = ours.step(action)
        their_seen, _, _, _, theirs_says = theirs.step(action)
        np.testing.assert_array_equal(seen, their_seen)
        assert not terminated
        rewards.append(paid)
        speed = theirs_says["reward_forward"]
        expected.append((speed if "Distance" in name else abs(speed)) + theirs_says["reward_ctrl"])
        x.append(theirs_says["x_position"])
    scales = noise_scale(np.array(x))
    assert len(x) == 500
    assert 0.3 < np.mean(scales > 0) <= 1
    np.testing.assert_allclose(rewards, expected + scales * noise_stream(7).standard_normal(500), rtol=0, atol=1e-9)
    assert info["episode_metrics"] == {"visiting_rate": np.mean(scales > 0), "distance": x[-1]}


@each_task
def test_many_at_once_are_the_same_episodes(name):
    env = make(name)
    simulator = fast_simulator(env).make(3)
    together, metrics = assert_same(env, simulator, [7, 8, 2**32 - 1], CASES[name][1])
    assert [len(episode) for episode in together] == [500] * 3
    assert all(one["visiting_rate"] > 0.2 for one in metrics)
    simulator.close()


def test_starts_differ_as_gymnasiums_do(gymnasiums):
    for name, theirs in (("HalfCheetah", "HalfCheetah-v5"), ("SwimmerDistance", "Swimmer-v5")):
        ours, plain = make(name, reset_noise_scale=0.3), gymnasiums(theirs, reset_noise_scale=0.3)
        for seed in (0, 1, None):
            np.testing.assert_array_equal(ours.reset(seed=seed)[0], plain.reset(seed=seed)[0])


def outcome_at(task, x, x_before=0.0, actions=((0.0,),)):
    at = [State(np.array([[where, 9.0]]), np.zeros((1, 2))) for where in (x_before, x)]
    return task.outcome(at[0], np.array(actions), at[1], seconds=0.5)


@pytest.mark.parametrize(
    ("x", "scale"), [(-1.0, 0), (0.0, 0), (1e-9, 10), (5.0, 7.5), (10.0, 5), (19.0, 0.5), (20.0, 0), (21.0, 0)]
)
def test_the_noise_fades_with_the_distance(x, scale):
    outcome = outcome_at(Running(**DISTANCE), x)
    assert (outcome.noise_scale * outcome.in_noisy_region).tolist() == pytest.approx([scale])


@pytest.mark.parametrize(
    ("name", "quiet", "noisy"),
    [("HalfCheetah", (-3.0, 0.0, 50.0), (-3.01, -50.0)), ("Swimmer", (0.5, -9.0), (0.51, 9.0))],
)
def test_the_noise_of_a_place_is_the_same_all_over_it(name, quiet, noisy):
    task = make(name).unwrapped.task
    assert not any(outcome_at(task, x).in_noisy_region for x in quiet)
    assert all(outcome_at(task, x).in_noisy_region for x in noisy)
    assert {float(outcome_at(task, x).noise_scale[0]) for x in noisy} == {10.0}


def test_speed_is_paid_both_ways_or_forwards_alone():
    def paid(x, **options):
        task = Running(forward_reward_weight=3.0, control_cost_weight=0.5, **options)
        return outcome_at(task, x, x_before=2.0, actions=[[1.0, -2.0]]).rewards.tolist()

    assert paid(2.5) == paid(1.5) == [3.0 * 1 - 0.5 * 5]
    assert paid(2.5, both_ways=False) == [3.0 * 1 - 0.5 * 5]
    assert paid(1.5, both_ways=False) == [-3.0 * 1 - 0.5 * 5]


def test_the_noise_of_a_step_depends_on_seed_and_step_alone():
    env = make("Swimmer", noisy_above=-math.inf)
    plain = make("Swimmer", noise_scale=0.0)

    def noise(seed, torque):
        for one in (env, plain):
            one.reset(seed=seed)
        action = np.full(2, torque, np.float32)
        return [env.step(action)[1] - plain.step(action)[1] for _ in range(20)]

    assert noise(3, 1.0) == pytest.approx(noise(3, -0.5), abs=1e-12)
    assert noise(3, 1.0) != pytest.approx(noise(4, 1.0), abs=1e-3)
    assert noise(3, 1.0) == pytest.approx(10 * noise_stream(3).standard_normal(20), abs=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"noise_scale": -1.0},
        {"reset_noise_scale": np.nan},
        {"forward_reward_weight": np.inf},
        {"control_cost_weight": np.nan},
        {"noisy_above": 1.0, "noisy_below": 1.0},
        {"noisy_below": np.nan},
        {"fades_over": 0.0},
        {"fades_over": np.nan},
    ],
)
def test_options_without_meaning_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        make("Swimmer", **{"noisy_above": 0.0, **options})


def test_options_reach_task_and_model_and_survive_pickling():
    env = make("HalfCheetahDistance", frame_skip=4, noise_scale=3.0, noisy_below=math.inf, width=64).unwrapped
    again = pickle.loads(pickle.dumps(env))
    assert again.task == env.task == Running(3.0, 0.0, math.inf, 20.0, both_ways=False, normal_velocities=True)
    assert (again.frame_skip, again.width, again.metadata["render_fps"]) == (4, 64, 25)


def test_nothing_is_written_where_one_works(tmp_path, monkeypatch, capfd):
    """MuJoCo calls an attribute of the half cheetah's file deprecated, and would log that."""
    monkeypatch.chdir(tmp_path)
    HalfCheetahEnv()
    assert not list(tmp_path.iterdir())
    assert not capfd.readouterr().err


def test_other_complaints_about_a_model_are_heard(monkeypatch):
    loaded = MujocoEnv._initialize_simulation

    def complaining(env):
        mujoco.get_mju_user_warning()("too heavy")
        return loaded(env)

    monkeypatch.setattr(MujocoEnv, "_initialize_simulation", complaining)
    with pytest.warns(UserWarning, match="half_cheetah.xml: too heavy"):
        HalfCheetahEnv()
    assert mujoco.get_mju_user_warning() is None
