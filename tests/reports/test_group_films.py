"""The films that the page makes: of the episodes that it names, once, and a line where there can be none."""

import base64
import io
import shutil

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image
from report_runs import parse, text_of, train

import steadyrl
from steadyrl.evaluation.play import play_policy, replay_numbered
from steadyrl.reports.page import group_films, write_report
from steadyrl.reports.page.evaluation import evaluate_agent
from steadyrl.reports.page.groups import group_runs
from steadyrl.reports.page.named_envs import NamedEnvs
from steadyrl.reports.page.results import Results
from steadyrl.reports.page.runs_found import find_runs
from steadyrl.reports.run_state import RUNNING, RunState

GIF = "data:image/gif;base64,"


def films_in(page):
    """The films that are part of a page."""
    return [base64.b64decode(link.removeprefix(GIF)) for link in parse(page).links if link.startswith(GIF)]


@pytest.fixture(scope="module")
def maze(tmp_path_factory):
    """Two seeds of REINFORCE, and the page about them."""
    root = tmp_path_factory.mktemp("maze")
    train(root / "reinforce", steadyrl.Reinforce, gym.make("steadyrl/GuardedMaze-v0", horizon=15), episodes=40)
    write_report(root, episodes=20)
    return root


@pytest.fixture
def copied(maze, tmp_path):
    return shutil.copytree(maze, tmp_path / "copied")


@pytest.fixture
def not_filmed(monkeypatch):
    """A film that is made is a failure."""
    monkeypatch.setattr(group_films, "record_scenes", lambda *_: pytest.fail("filmed"))


@pytest.mark.parametrize("numbers", [[3], [7, 0, 4]])
@pytest.mark.parametrize("env", ["steadyrl/GuardedMaze-v0", "CartPole-v1", "steadyrl/TwoSides-v0"])
def test_episodes_are_replayed_by_their_numbers(env, numbers):
    kind = steadyrl.Reinforce if env.endswith("Maze-v0") else steadyrl.PPO
    agent = kind(env, seed=0)
    played = play_policy(agent, agent.env, 8, 5, deterministic=False, gamma=agent.gamma)
    replayed = replay_numbered(agent, agent.env, numbers, 8, 5)
    np.testing.assert_array_equal(replayed.returns, played.returns[numbers])
    np.testing.assert_array_equal(replayed.discounted_returns, played.discounted_returns[numbers])
    assert len(replayed.scripts) == len(numbers)


def test_a_film_shows_the_worst_median_and_best_of_all_seeds(maze, monkeypatch):
    made = []
    real = group_films.record_scenes
    monkeypatch.setattr(group_films, "record_scenes", lambda *a: made.append(real(*a)) or made[-1])
    (maze / "reinforce" / "seed0" / "report_film.gif").unlink()
    page = write_report(maze, episodes=20)
    (film,) = made
    runs, notes = find_runs(maze)
    envs = NamedEnvs(maze, (), ())
    evaluated = {run.name: evaluate_agent(run, 20, notes, envs) for run in runs}
    (result,) = Results(group_runs(runs, maze, notes), evaluated).groups
    shown = [(one.label, one.selected.episode, one.selected.name, one.episode_return) for one in film.recordings]
    assert shown == [(f"seed {e.run.seed}", e.number, name, e.value) for name, e in result.extremes.items()]
    assert [(one.selected.rank, one.episodes) for one in film.recordings] == [(1, 40), (20, 40), (40, 40)]
    (content,) = films_in(page)
    assert content == (maze / "reinforce" / "seed0" / "report_film.gif").read_bytes()
    with Image.open(io.BytesIO(content)) as image:
        assert image.n_frames > 1
        assert image.width >= 3 * group_films.WIDTH


@pytest.mark.usefixtures("not_filmed")
def test_a_film_is_made_once(copied):
    assert len(films_in(write_report(copied, episodes=20))) == 1


def test_a_film_of_other_episodes_is_made_again(copied):
    before = (copied / "reinforce" / "seed0" / "report_film.gif").read_bytes()
    (film,) = films_in(write_report(copied, episodes=30))
    assert film != before


@pytest.mark.usefixtures("not_filmed")
def test_films_can_be_left_out(copied):
    page = write_report(copied, episodes=20, films=False)
    assert films_in(page) == []
    assert "Without --no-films, steadyrl report films them" in text_of(page)


@pytest.mark.usefixtures("not_filmed")
def test_a_run_in_training_is_not_filmed(copied, monkeypatch):
    monkeypatch.setattr("steadyrl.reports.page.runs_found.state_of_run", lambda folder: RunState(RUNNING))
    page = write_report(copied, episodes=20)
    assert films_in(page) == []
    assert "No film: it is made when the runs are complete." in text_of(page)


def test_an_environment_that_does_not_render_is_named_with_a_remedy(copied, monkeypatch):
    (copied / "reinforce" / "seed0" / "report_film.gif").unlink()
    monkeypatch.setattr("steadyrl.envs.guarded_maze.GuardedMazeEnv.metadata", {"render_modes": []})
    page = write_report(copied, episodes=20)
    assert films_in(page) == []
    assert "No film: steadyrl/GuardedMaze-v0 cannot be filmed" in text_of(page)
    assert "Implement that mode in its render()." in text_of(page)


def test_films_share_the_room(copied, monkeypatch):
    (copied / "reinforce" / "seed0" / "report_film.gif").unlink()
    monkeypatch.setattr(group_films, "MAX_ALL", 20_000)
    (film,) = films_in(write_report(copied, episodes=20))
    assert len(film) <= 20_000
    monkeypatch.setattr(group_films, "MAX_ALL", group_films.MIN_BYTES - 1)
    assert films_in(write_report(copied, episodes=20)) == []
