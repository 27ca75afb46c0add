"""Films of MuJoCo environments: the choice of EGL or OSMesa, and a real one where either works."""

import os
import sys

import gymnasium as gym
import numpy as np
import pytest

import steadyrl
from steadyrl.evaluation.film import rendering_env
from steadyrl.evaluation.film.rendering_env import choose_mujoco_backend, has_display

NO_DISPLAY = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is a display")


@pytest.fixture
def no_display(monkeypatch):
    for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.setenv(name, "")
    return monkeypatch


@NO_DISPLAY
@pytest.mark.parametrize(("working", "chosen"), [({"egl", "osmesa"}, "egl"), ({"osmesa"}, "osmesa")])
def test_the_first_backend_that_works_is_chosen(no_display, working, chosen):
    no_display.setattr(rendering_env, "_works", lambda backend: backend in working)
    choose_mujoco_backend()
    assert os.environ["MUJOCO_GL"] == chosen


@NO_DISPLAY
def test_without_a_backend_there_is_a_hint_in_one_line(no_display):
    no_display.setattr(rendering_env, "_works", lambda backend: False)
    with pytest.raises(ImportError, match=r"neither EGL nor OSMesa works. Install EGL or OSMesa .*libegl1") as refused:
        choose_mujoco_backend()
    assert "\n" not in str(refused.value)


@NO_DISPLAY
def test_the_users_choice_and_a_display_are_left_alone(no_display):
    no_display.setattr(rendering_env, "_works", lambda backend: pytest.fail("not to be tried"))
    assert not has_display()
    no_display.setenv("MUJOCO_GL", "glfw")
    choose_mujoco_backend()
    assert os.environ["MUJOCO_GL"] == "glfw"
    no_display.setenv("MUJOCO_GL", "")
    no_display.setenv("DISPLAY", ":0")
    choose_mujoco_backend()
    assert os.environ["MUJOCO_GL"] == ""


@pytest.mark.slow
def test_an_episode_of_the_fast_simulator_is_replayed_with_pictures(monkeypatch):
    pytest.importorskip("mujoco", reason="needs steadyrl[mujoco]")
    pytest.importorskip("imageio", reason="needs steadyrl[mujoco]")
    monkeypatch.setenv("MUJOCO_GL", os.environ.get("MUJOCO_GL", ""))
    try:
        choose_mujoco_backend()
    except ImportError as error:
        pytest.skip(str(error))
    agent = steadyrl.Reinforce("steadyrl/InvertedPendulum-v0", hidden=(8,), seed=0)
    assert agent.engine == "mujoco"
    returns = steadyrl.evaluate(agent, "steadyrl/InvertedPendulum-v0", episodes=4).returns
    film = steadyrl.film(agent, "steadyrl/InvertedPendulum-v0", episodes=4, which=(0, 3), fps=2)
    np.testing.assert_allclose([one.episode_return for one in film.recordings], returns[[0, 3]], rtol=1e-12)
    first, last = (np.asarray(film.recordings[0].picture(index), int) for index in (0, -1))
    assert first.std() > 5
    assert np.abs(first - last).max() > 20


@pytest.mark.parametrize(("options", "camera"), [({}, 0), ({"camera_id": -1}, -1), ({"camera_name": "none"}, -1)])
def test_the_camera_follows_robots_that_run(options, camera):
    """Camera 0 of the model is "track"; -1 stands still."""
    pytest.importorskip("mujoco", reason="needs steadyrl[mujoco]")
    pytest.importorskip("imageio", reason="needs steadyrl[mujoco]")
    for name in ("HalfCheetah", "SwimmerDistance"):
        env = gym.make(f"steadyrl/{name}-v0", render_mode="rgb_array", **options)
        assert env.unwrapped.mujoco_renderer.camera_id == camera
        env.close()
