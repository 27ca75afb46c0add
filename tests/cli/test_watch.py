"""`steadyrl watch`."""

import sys

import pytest
from PIL import Image

import steadyrl
from steadyrl.cli.main import main

MAZE = "steadyrl/GuardedMaze-v0"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "mg"
    steadyrl.Reinforce(MAZE, seed=0).learn(total_episodes=2, out=folder, progress_bar=False)
    return folder


@pytest.fixture(autouse=True)
def no_display(monkeypatch):
    monkeypatch.setattr("steadyrl.evaluation.film.rendering_env.has_display", lambda: False)


def printed(capsys, *arguments):
    main(["watch", *map(str, arguments), "--episodes", "6"])
    return capsys.readouterr().out


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(["watch", *map(str, arguments)])
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_without_a_display_the_film_is_in_the_run_folder(run, capsys):
    out = printed(capsys, run)
    file = run / "film.gif"
    assert out.splitlines()[-1].startswith(f"Film: {file} (")
    assert [line.split(",")[0] for line in out.splitlines()[:3]] == [
        f"REINFORCE: rank {rank} of 6 ({name})" for rank, name in ((1, "worst"), (3, "median"), (6, "best"))
    ]
    with Image.open(file) as film:
        assert film.n_frames > 1
    assert file.stat().st_size < 1_000_000


def test_the_worst_the_best_and_the_first_of_a_seed(run, capsys, tmp_path):
    lines = printed(capsys, run, "--worst", "2", "--out", tmp_path / "a.gif", "--max-kb", "40").splitlines()
    assert ["rank 1 of 6 (worst)" in lines[0], "rank 2 of 6" in lines[1], len(lines)] == [True, True, 3]
    assert (tmp_path / "a.gif").stat().st_size < 40_000
    lines = printed(capsys, run, "--best", "1", "--seed", "5", "--out", tmp_path / "b.gif").splitlines()
    assert ["rank 6 of 6 (best)" in lines[0], len(lines)] == [True, 2]
    lines = printed(capsys, run, "--seed", "5", "--out", tmp_path / "c.gif").splitlines()
    assert ["episode 0:" in lines[0], len(lines)] == [True, 2]


def test_two_runs_side_by_side(run, capsys, tmp_path):
    saved = tmp_path / "other.steady"
    steadyrl.QLearning(MAZE, seed=0).save(saved)
    lines = printed(capsys, saved, run, "--worst", "1").splitlines()
    assert [line.split(":")[0] for line in lines] == ["Q-learning", "REINFORCE", "Film"]
    assert saved.with_suffix(".gif").exists()
    lines = printed(capsys, run, run / "checkpoint.steady", "--best", "1").splitlines()
    assert lines[0].startswith(f"{run}: rank 6 of 6")


def test_a_window_that_cannot_be_opened_becomes_a_file(run, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("steadyrl.evaluation.film.rendering_env.has_display", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = []
    monkeypatch.setattr("steadyrl.cli.film_window.show_film", lambda frames, title: shown.append(next(frames())))
    main(["watch", str(run), "--episodes", "2", "--seed", "0"])
    assert len(shown) == 1
    assert "Film:" not in capsys.readouterr().out

    def fail(frames, title):
        raise RuntimeError("the display cannot be used: no display")

    monkeypatch.setattr("steadyrl.cli.film_window.show_film", fail)
    main(["watch", str(run), "--episodes", "2", "--seed", "0"])
    output = capsys.readouterr()
    assert output.err == "No window: the display cannot be used: no display\n"
    assert "film.gif" in output.out


def test_mistakes_are_one_line(run, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("steadyrl.evaluation.film.film.play_policy", lambda *_, **__: pytest.fail("played"))
    assert "no such file" in refused(capsys, tmp_path / "nothing")
    assert "worst 7: 6 episodes are played" in refused(capsys, run, "--worst", "7", "--episodes", "6")
    assert "film.avi: a film ends in .gif, .webp or .mp4." in refused(capsys, run, "--out", tmp_path / "film.avi")
    assert "--worst and --best: give one of them." in refused(capsys, run, "--worst", "1", "--best", "1")
    assert "unknown environment" in refused(capsys, run, "--env", "Maize-v7")
    other = tmp_path / "other.steady"
    steadyrl.QLearning("FrozenLake-v1").save(other)
    assert "were not trained in the same environment" in refused(capsys, run, other)
