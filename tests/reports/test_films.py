"""Films in run folders, and the worst, median and best episodes."""

import base64
import json

import numpy as np
import pytest
from report_runs import RECORDS, fake_run, parse, text_of

from steadyrl.reports.page import films, write_report
from steadyrl.reports.page.evaluation import AgentEpisodes
from steadyrl.reports.page.groups import group_runs
from steadyrl.reports.page.results import Results
from steadyrl.reports.page.runs_found import find_runs

GIF = b"GIF89a" + bytes(100)
MP4 = bytes(4) + b"ftypisom" + bytes(100)


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "mg" / "seed0"
    fake_run(folder, records=RECORDS)
    return folder


def test_a_film_is_part_of_the_page(run, tmp_path):
    (run / "film.gif").write_bytes(GIF)
    source = f"data:image/gif;base64,{base64.b64encode(GIF).decode()}"
    assert source in parse(write_report(tmp_path)).links
    (run / "film.mp4").write_bytes(MP4)  # Preferred: it can be paused.
    page = parse(write_report(tmp_path))
    assert "video" in page.tags
    assert source not in page.links


def test_the_film_of_an_episode_stands_beside_it(run, tmp_path):
    (run / "film-worst.gif").write_bytes(GIF)
    assert films.find_film(run, "film-worst").mime == "image/gif"


def test_to_a_large_film_there_is_a_link(run, tmp_path, monkeypatch):
    monkeypatch.setattr(films, "MAX_FILM", 50)
    (run / "film.gif").write_bytes(GIF)
    page = write_report(tmp_path)
    assert "mg/seed0/film.gif" in parse(page).links
    assert "too large to be part of the page, which links to it: film: mg/seed0" in text_of(page)


@pytest.mark.parametrize("content", [b"<svg onload=alert(1)>", b"", b"GIF"])
def test_what_is_no_film_is_left_out(run, tmp_path, content):
    (run / "film.gif").write_bytes(content)
    assert "img" not in parse(write_report(tmp_path)).tags


def test_links_are_not_followed(run, tmp_path):
    (tmp_path / "elsewhere.gif").write_bytes(GIF)
    (run / "film.gif").symlink_to(tmp_path / "elsewhere.gif")
    assert films.find_film(run, "film") is None


def test_worst_median_and_best_of_all_seeds(run, tmp_path):
    fake_run(tmp_path / "mg" / "seed1", seed=1, records=RECORDS)
    runs, notes = find_runs(tmp_path)
    episodes = {
        "mg/seed0": AgentEpisodes(np.array([3.0, 9.0, 4.0]), {}),
        "mg/seed1": AgentEpisodes(np.array([5.0, -7.0, 6.0]), {}),
    }
    (result,) = Results(group_runs(runs, tmp_path, notes), episodes).groups
    found = {name: (e.run.seed, e.number, e.value) for name, e in result.extremes.items()}
    assert found == {"worst": (1, 1, -7.0), "median": (0, 2, 4.0), "best": (0, 1, 9.0)}


def test_stored_returns_are_shown_without_an_agent_that_loads(run, tmp_path):
    """Those whose digest fits the checkpoint; the environment is not needed."""
    import hashlib

    (run / "checkpoint.steady").write_bytes(b"an agent of another version")
    content = {
        "checkpoint": hashlib.sha256(b"an agent of another version").hexdigest(),
        "deterministic": False,
        "seed": 0,
        "gamma": 0.9,
        "returns": [1.0, 2.0, 30.0],
        "discounted_returns": [1.0, 2.0, 30.0],
        "episode_metrics": {},
    }
    (run / "final_evaluation.json").write_text(json.dumps(content))
    text = text_of(write_report(tmp_path, episodes=3))
    assert "MG has a mean return of 11.0" in text
    assert "steadyrl watch" in text
    assert "--worst 1 --seed 0 --episodes 3" in text
    (run / "final_evaluation.json").write_text(json.dumps({**content, "returns": ["x"]}))
    text = text_of(write_report(tmp_path, episodes=3))
    assert "final_evaluation.json is damaged" in text
    assert "mean return of" not in text
