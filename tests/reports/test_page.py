"""The page: what it says and leaves out, what its plots hold, and errors."""

import re
import shutil

import gymnasium as gym
import pytest
from report_runs import curve_in, data_of, fake_run, parse, plots_of, text_of, train

from steadyrl import Reinforce
from steadyrl.envs.guarded_maze import GuardedMazeEnv
from steadyrl.envs.resolve import resolve
from steadyrl.reports.page import write_report


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: there is no such folder"):
        write_report(tmp_path / "nowhere")


def test_no_runs(tmp_path):
    (tmp_path / "config.json").write_text('{"name": "of something else"}')
    with pytest.raises(FileNotFoundError, match="holds no runs"):
        write_report(tmp_path)


def test_one_episode(results):
    with pytest.raises(ValueError, match="episodes=1: a distribution of returns needs at least 2"):
        write_report(results, episodes=1)


def test_what_cannot_be_shown_is_noted(results, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(results / "goal-20" / "mvo", root / "mvo")
    shutil.copytree(results / "goal-20" / "reinforce", root / "reinforce")
    (root / "mvo" / "seed0" / "checkpoint.steady").unlink()
    (root / "mvo" / "seed1" / "checkpoint.steady").write_bytes(b"half a file")
    (root / "reinforce" / "seed0" / "metrics.jsonl").unlink()
    with (root / "reinforce" / "seed1" / "metrics.jsonl").open("a") as file:
        file.write('{"episodes": 350, "ret')  # A run under way.
    (root / "foreign").mkdir()
    (root / "foreign" / "config.json").write_text("not JSON")
    text = text_of(write_report(root, episodes=20))
    for note in (
        "config.json does not describe a steadyrl run: skipped: foreign",
        "no checkpoint: not in the return distributions: mvo/seed0",
        "is no steadyrl agent, or only a part of one. Not in the return distributions: mvo/seed1",
        "nothing recorded in metrics.jsonl: not in the learning curves: reinforce/seed0",
    ):
        assert note in text
    assert "0 to 300 episodes a run" in text


def test_an_environment_without_metrics_or_maze(tmp_path):
    train(tmp_path / "lake", Reinforce, resolve("FrozenLake-v1"), seeds=[3], episodes=0)
    train(tmp_path / "own", Reinforce, GuardedMazeEnv(), seeds=[3], episodes=0)
    page = write_report(tmp_path, episodes=20)
    assert page == tmp_path / "report.html"
    text = text_of(page)
    assert "its environment cannot be recreated here: not in the return distributions: own/seed3" in text
    assert "nothing recorded in metrics.jsonl: not in the learning curves: lake/seed3, own/seed3" in text
    assert [plot["kind"] for plot in data_of(page)["plots"]] == ["bars"]  # FrozenLake's distribution
    assert "Visits" not in text


def test_what_users_wrote_is_text(tmp_path):
    evil = "<img src=x onerror=alert(1)>\"'"
    record = {"episodes": 10, "return": 1.0, f"{evil}_rate": 0.5}
    more = {"command": f"/bin/steadyrl {evil}", "versions": {"python": evil}, "started": evil}
    for name, setting in (("a", evil), ("b", "</script>")):
        fake_run(tmp_path / f"{evil}{name}", agent=evil, env=evil, settings={evil: setting}, records=[record], **more)
    page = write_report(tmp_path, episodes=20)
    parser = parse(page)
    assert "img" not in parser.tags
    assert parser.tags.count("script") == 2
    assert f"steadyrl {evil}" in parser.text
    data_of(page)


def test_says_what_was_run(page):
    text = text_of(page)
    assert "8 runs: 2 methods in 2 variants of steadyrl/GuardedMaze-v0, 2 seeds each, 300 episodes a run" in text
    assert "2,400 in all" in text
    assert f"gymnasium {gym.__version__}" in text


def test_is_one_file_that_links_to_nothing(page):
    parser = parse(page)
    assert {link.partition(",")[0] for link in parser.links if not link.startswith("#")} == {
        "data:",
        "data:image/gif;base64",
    }
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]
    assert "@import" not in page.read_text().split("<script>")[0]


def test_every_measure_has_a_plot_in_each_variant(page):
    # Seven measures and eight metrics of updates.
    assert len(plots_of(page, "lines")) == 2 * (7 + 8)
    assert [plot["g"] for plot in plots_of(page, "bars")] == [0, 1, 2, 3]
    for plot in plots_of(page, "lines"):
        for line in plot["lines"]:
            assert len(line["y"]) == len(line["r"]) == 2
            assert {len(row) for row in line["y"]} == {len(data_of(page)["arrays"][line["x"]])}


UPDATES = [
    "Policy loss",
    "Value loss",
    "Explained variance of the value function",
    "Entropy of the policy",
    "Approximate KL divergence",
    "Gradient norm",
    "Mean of the risk weights",
    "Standard deviation of the risk weights",
]


def captions(source):
    return re.findall("<figcaption>(.*?)</figcaption>", source)


def test_metrics_of_updates_are_folded_below_the_learning_curves(page):
    (section,) = re.findall('<section id="curves" class="curves">(.*?)</section>', page.read_text(), re.DOTALL)
    curves, _, folded = section.partition("<details><summary>Update diagnostics</summary>")
    folded, _, _ = folded.partition("</details>")
    assert captions(folded) == UPDATES * 2
    assert len(captions(curves)) == 2 * 7
    assert not set(captions(curves)) & set(UPDATES)


def test_metrics_of_updates_may_be_missing_from_records(tmp_path):
    """Before learning starts, and in episodes without an update."""
    records = [{"episodes": e, "return": 1.0} for e in range(1, 7)]
    records[2] |= {"critic_loss": 0.5, "mean_q": 1.0}
    records[4] |= {"critic_loss": 0.7, "mean_q": float("nan")}
    fake_run(tmp_path / "dqn" / "seed0", agent="dqn", records=records)
    fake_run(tmp_path / "mg" / "seed0", agent="mg", records=[{"episodes": 1, "return": 1.0}])
    page = write_report(tmp_path, episodes=20)
    _, _, folded = page.read_text().partition("<summary>Update diagnostics")
    assert captions(folded) == ["Critic loss", "Mean action value"]
    assert [len(plot["lines"]) for plot in plots_of(page, "lines")] == [2, 1, 1]
    assert curve_in(page, "DQN", "critic_loss") == ([3, 5], [[0.5, 0.7]])
    assert curve_in(page, "DQN", "mean_q") == ([3], [[1]])
