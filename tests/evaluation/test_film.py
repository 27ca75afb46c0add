"""Films: which episodes they show, that these are exact replays, and what is drawn and written."""

import itertools
import subprocess

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image, ImageColor

import steadyrl
from steadyrl.evaluation.agent_looks import agent_colours
from steadyrl.evaluation.film.camera import CURVE
from steadyrl.evaluation.film.drawing import STRUCK, signed
from steadyrl.evaluation.film.selection import parse_which, select

MAZE = "steadyrl/GuardedMaze-v0"
RIGHT, UP = 3, 0
TO_RED = 4
"""Steps to the right from the start to the red cell."""


def maze():
    return gym.make(MAZE, horizon=12)


@pytest.fixture(scope="module")
def agent():
    return steadyrl.Reinforce(maze(), seed=0)


def right_through_red(observation):
    """Along the bottom row, and up to the goal: nine steps, the fourth into the red cell."""
    return UP if observation % 6 == 5 else RIGHT


def test_the_episodes_are_those_of_evaluate_with_the_same_seed(agent):
    returns = steadyrl.evaluate(agent, maze(), episodes=20, seed=3).returns
    film = steadyrl.film(agent, maze(), episodes=20, seed=3, which=range(20), layout="one by one")
    np.testing.assert_array_equal([one.episode_return for one in film.recordings], returns)
    ranks = [one.selected.rank for one in film.recordings]
    assert sorted(ranks) == list(range(1, 21))
    np.testing.assert_array_equal(returns[np.argsort(ranks)], np.sort(returns))


def test_the_worst_median_and_best_are_side_by_side(agent):
    returns = np.sort(steadyrl.evaluate(agent, maze(), episodes=21).returns)
    film = steadyrl.film(agent, maze(), episodes=21)
    assert [len(scene) for scene in film.scenes] == [3]
    assert [one.episode_return for one in film.recordings] == [returns[0], returns[10], returns[20]]
    assert [one.selected.name for one in film.recordings] == ["worst", "median", "best"]
    first, _ = next(film.frames())
    assert first.width == 3 * 200 + 4 * 8


def test_ranks_and_choices():
    returns = np.array([5.0, 1.0, 3.0, 1.0])
    wanted = parse_which(["worst:2", "median", "best", 0], 4)
    assert [(one.episode, one.rank) for one in select(wanted, returns)] == [(1, 1), (3, 2), (3, 2), (0, 4), (0, 4)]
    assert [one.episode for one in select(parse_which("best:3", 4), returns)] == [0, 2, 3]


@pytest.mark.parametrize("ending", [".gif", ".webp"])
def test_a_file_has_a_picture_of_each_step(tmp_path, ending):
    file = tmp_path / f"film{ending}"
    film = steadyrl.film(right_through_red, MAZE, file, episodes=4, which="best")
    (recording,) = film.recordings
    assert recording.length == 9
    assert recording.steps == tuple(range(10))
    with Image.open(file) as opened:
        assert (opened.n_frames, opened.info["loop"]) == (10, 0)
        assert opened.size == next(film.frames())[0].size
        seconds = []
        for index in range(10):
            opened.seek(index)
            opened.load()
            seconds.append(opened.info["duration"])
    assert seconds == [pytest.approx(125, abs=5)] * 9 + [1500]
    assert file.stat().st_size < 150_000


def test_noise_is_marked_at_the_step_where_it_struck():
    film = steadyrl.film(right_through_red, MAZE, episodes=30, which=("worst", "best"))
    worst, best = film.recordings
    assert (worst.noise, best.noise) == ({TO_RED: -14.0}, {TO_RED: 14.0})
    # Three steps of -1, the red reward of -15 or 13, four more steps of -1, and the goal.
    assert worst.returns.tolist() == [0, -1, -2, -3, -18, -19, -20, -21, -22, -2]
    assert best.episode_return == 26
    frames = [np.asarray(picture) for picture, _ in film.frames()]
    corner = (8 + 40, 8 + 4)  # Of the first picture, where its border is drawn.
    assert [tuple(frame[corner]) == STRUCK for frame in frames] == [TO_RED <= t < TO_RED + 4 for t in range(10)]


def test_without_noise_nothing_is_said_about_it():
    pytest.importorskip("pygame", reason="Gymnasium draws FrozenLake with it")
    film = steadyrl.film(lambda observation: 1, "FrozenLake-v1", episodes=3, which=0)
    assert film.recordings[0].noise == {}
    assert "noise" not in str(film)
    frame = np.asarray(next(film.frames())[0])
    assert not (frame == STRUCK).all(axis=-1).any()
    assert (frame == ImageColor.getrgb(CURVE)).all(axis=-1).any()


def test_the_actions_of_any_policy_are_replayed():
    """A policy with random numbers of its own, which cannot be seeded, in an environment with an array of actions."""
    random = np.random.default_rng(0)
    shared = np.zeros(1, np.float32)
    played = []

    def policy(observation):
        shared[:] = random.uniform(-1, 1)
        played.append(float(shared[0]))
        return shared

    film = steadyrl.film(policy, "steadyrl/TwoSides-v0", episodes=3, which=(2,))
    assert len(played) == 3 * 60
    x, expected = 0.0, 0.0
    for action in played[120:]:
        x += 0.125 * action
        expected += abs(x)
    (recording,) = film.recordings
    assert recording.episode_return - sum(recording.noise.values()) == pytest.approx(expected)


def test_an_agent_has_its_title_and_the_colour_of_the_page(agent):
    film = steadyrl.film(agent, maze(), episodes=3, which="worst")
    (recording,) = film.recordings
    assert (recording.label, recording.colour) == ("REINFORCE", agent_colours(["reinforce"])["reinforce"])
    frame = np.asarray(list(film.frames())[-1][0])
    assert (frame == ImageColor.getrgb(recording.colour)).all(axis=-1).any()


def test_several_policies_are_side_by_side_and_their_episodes_one_by_one(agent):
    film = steadyrl.film({"a": agent, "right": right_through_red}, maze(), episodes=5, which=("worst", "best"))
    assert [[one.label for one in scene] for scene in film.scenes] == [["a", "right"]] * 2
    assert str(film).startswith("a: rank 1 of 5 (worst), episode ")
    lengths = [max(one.length for one in scene) for scene in film.scenes]
    assert len(list(film.frames())) == sum(lengths) + 2


class Forgetful(gym.Env):
    """Its rewards do not depend on the seed."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    observation_space = action_space = gym.spaces.Discrete(2)
    rewards = itertools.count()

    def __init__(self, render_mode="rgb_array", picture=np.zeros((20, 30, 3), np.uint8)):  # noqa: B008
        self.render_mode, self.picture = render_mode, picture

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, float(next(self.rewards)), True, False, {"reward_noise": "much"}

    def render(self):
        return self.picture


def test_a_replay_with_another_return_is_refused():
    with pytest.raises(ValueError, match=r"episode 0 had return .* when it was played again .*self\.np_random"):
        steadyrl.film(lambda observation: 0, Forgetful(), episodes=2, which=0)


@pytest.mark.parametrize("picture", [None, "text", np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3))])
def test_what_is_no_picture_is_refused(picture):
    with pytest.raises(ValueError, match=r"Forgetful cannot be filmed: render\(\) returned .*, not an array"):
        steadyrl.film(lambda observation: 0, Forgetful(picture=picture), episodes=2)


def never(observation):
    raise AssertionError("nothing is played")


class Dark(Forgetful):
    metadata = {"render_modes": ["human"]}  # noqa: RUF012


REFUSED = [
    ({"which": "worst:6"}, "worst 6: 5 episodes are played. Ask for 1 to 5, or raise episodes."),
    ({"which": "best:0"}, "best 0: 5 episodes are played"),
    ({"which": 5}, "episode 5: 5 episodes are played, numbered from 0"),
    ({"which": "oldest"}, "which='oldest': use 'worst', 'median', 'best'"),
    ({"which": "median:2"}, "which='median:2': use"),
    ({"which": ()}, "which is empty"),
    ({"layout": "circle"}, "layout='circle': use 'side by side' or 'one by one'"),
    ({"episodes": 1}, "episodes=1"),
    ({"seed": -1}, "seed=-1"),
    ({"width": 0}, "width=0"),
    ({"fps": 0}, "fps=0"),
    ({"out": "film.avi"}, "film.avi: a film ends in .gif, .webp or .mp4"),
    ({"out": "."}, ". is a folder"),
    ({"env": Dark("human")}, "Dark cannot be filmed: of the render modes it has only human"),
    ({"env": Forgetful(None)}, "how to make it again is not known. Pass it made with render_mode='rgb_array'"),
    ({"policy": {}}, "policy is an empty mapping"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_mistakes_are_reported_before_anything_is_played(given, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, OSError)) as refused:
        steadyrl.film(**{"policy": never, "env": MAZE, "episodes": 5, **given})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_long_episodes_are_shown_faster():
    """CartPole has 50 steps a second, and is at most shown with 15 pictures a second."""
    pytest.importorskip("pygame", reason="Gymnasium draws CartPole with it")
    film = steadyrl.film(
        lambda observation: int(observation[2] + observation[3] > 0), "CartPole-v1", episodes=2, which=0
    )
    (recording,) = film.recordings
    assert recording.length > 100
    assert film.pace == (4, 4 / 50, 1.0)
    assert recording.steps == (*range(0, recording.length, 4), recording.length)
    fast = steadyrl.film(lambda observation: 0, "CartPole-v1", episodes=2, which=0, seconds=0.05)
    assert fast.pace.speed == np.ceil(fast.recordings[0].length / 50 / 0.05)
    assert fast.recordings[0].steps[-1] == fast.recordings[0].length


def test_files_stay_below_the_limit(tmp_path):
    film = steadyrl.film(right_through_red, MAZE, episodes=2)
    whole, small = (
        film.save(tmp_path / name, limit).stat().st_size for name, limit in (("a.gif", None), ("b.gif", 15_000))
    )
    assert small <= 15_000 < whole
    with pytest.warns(UserWarning, match=r"c.gif has \d+ kB, above the limit of 0 kB: it cannot be made smaller"):
        film.save(tmp_path / "c.gif", 1)
    with Image.open(tmp_path / "b.gif") as opened:
        opened.seek(opened.n_frames - 1)
        assert opened.info["duration"] >= 1500


def test_films_as_video(tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="needs steadyrl[film]")
    film = steadyrl.film(right_through_red, MAZE, tmp_path / "film.mp4", episodes=2, which=0)
    command = [ffmpeg.get_ffmpeg_exe(), "-i", str(tmp_path / "film.mp4")]
    about = subprocess.run(command, capture_output=True, text=True).stderr
    assert "Video: h264" in about
    assert "{}x{}".format(*next(film.frames())[0].size) in about
    pictures, seconds = ffmpeg.count_frames_and_secs(str(tmp_path / "film.mp4"))
    assert pictures == 9 + 12
    assert seconds == pytest.approx(9 / 8 + 1.5, abs=0.15)
    assert [file.name for file in tmp_path.iterdir()] == ["film.mp4"]


def test_video_without_ffmpeg_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"MP4 needs ffmpeg: pip install 'steadyrl\[film\]'"):
        steadyrl.film(never, MAZE, tmp_path / "film.mp4")


def test_notebooks_show_the_film():
    html = steadyrl.film(right_through_red, MAZE, episodes=2, which=0)._repr_html_()
    assert html.startswith('<img alt="film of 1 episodes" src="data:image/gif;base64,R0lGOD')


@pytest.mark.parametrize(
    ("number", "text"),
    [(-14, "\N{MINUS SIGN}14.0"), (3.14, "+3.1"), (-0.01, "+0.0"), (12345.6, "+12,346"), (0, "+0.0")],
)
def test_numbers_have_signs(number, text):
    assert signed(number) == text
    assert signed(abs(number), plus=False) == text[1:]
