"""`--watch`, the page at the end of commands, evaluation curves, and the size of the page."""

from types import SimpleNamespace

import numpy as np
import pytest
from report_frontier import write_frontier
from report_runs import RECORDS, curve_in, data_of, fake_run, plots_of, text_of

import steadyrl
from steadyrl.callbacks import EvaluateEvery
from steadyrl.cli import page as cli_page
from steadyrl.cli.main import main
from steadyrl.reports.page import write_report
from steadyrl.reports.page.films import MAX_ALL
from steadyrl.reports.page.watch import signature, watch
from steadyrl.runs.scheduler import Failure
from steadyrl.training.run_folder import read_metrics

MAZE = "steadyrl/GuardedMaze-v0"


def test_watch_writes_the_page_again_when_a_run_has_changed(tmp_path):
    fake_run(tmp_path / "mg" / "seed0", records=RECORDS[:5])
    written, waits = [], []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            (tmp_path / "mg" / "seed0" / "metrics.jsonl").write_text("")
        if len(waits) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(tmp_path, None, 20, (), 3, lambda page: written.append(data_of(page)), wait)
    assert waits == [3] * 4
    assert [data["refresh"] for data in written] == [3, 3]
    assert [len(data["plots"]) for data in written] == [1, 0]
    assert data_of(tmp_path / "report.html")["refresh"] == 0


def test_watch_waits_for_runs(tmp_path):
    written, failed, waits = [], [], []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            fake_run(tmp_path / "sweep" / "mg" / "seed0", records=RECORDS)
        if len(waits) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(tmp_path / "sweep", None, 20, (), 3, written.append, wait, failed=failed.append)
    assert failed == [f"{tmp_path / 'sweep'}: there is no such folder."]
    assert written == [tmp_path / "sweep" / "report.html"]
    with pytest.raises(ValueError, match="at least 2"):
        watch(tmp_path / "sweep", None, 1, (), 3, written.append, wait)


def test_the_page_itself_is_no_change(tmp_path):
    fake_run(tmp_path / "mg" / "seed0", records=RECORDS)
    before = signature(tmp_path)
    write_report(tmp_path)
    assert signature(tmp_path) == before
    fake_run(tmp_path / "mg" / "seed1", seed=1, records=RECORDS)
    assert signature(tmp_path) != before


@pytest.mark.usefixtures("pages")
def test_train_ends_with_a_page(tmp_path, capsys):
    command = ["train", MAZE, "--episodes", "50", "--no-progress", "--out", str(tmp_path / "run")]
    main(command)
    assert f"Page: {tmp_path / 'run' / 'report.html'}" in capsys.readouterr().out.splitlines()
    assert len(plots_of(tmp_path / "run" / "report.html", "bars")) == 1
    main([*command[:-1], str(tmp_path / "other"), "--no-page"])
    assert not (tmp_path / "other" / "report.html").exists()


@pytest.mark.usefixtures("pages", "in_process")
def test_sweep_ends_with_a_page(tmp_path, capsys):
    main(
        ["sweep", MAZE, "--set", "risk_aversion=0,1", "--seeds", "5", "--episodes", "40", "--out", str(tmp_path / "s")]
    )
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2:] == [f"Page: {tmp_path / 's' / 'report.html'}", f"Saved in {tmp_path / 's'}."]
    assert "To evaluate: 10 of 10 policies, 100 episodes each." in printed
    names = [method["name"] for method in data_of(tmp_path / "s" / "report.html")["methods"]]
    assert names == ["MG, lambda 0", "MG, lambda 1"]


def test_runs_that_failed_before_anything_was_recorded_are_named(tmp_path, capsys):
    fake_run(tmp_path / "mg" / "seed0", records=RECORDS)
    lost = SimpleNamespace(title="mvo seed 0", folders=(tmp_path / "mvo" / "seed0",))
    kept = SimpleNamespace(title="mg seed 0", folders=(tmp_path / "mg" / "seed0",))
    failures = [Failure(lost, "the <wheel>\ncame off"), Failure(kept, "it has a folder")]
    page = cli_page.write_page(tmp_path, tmp_path, failures=failures)
    assert "1 run, failed before anything was recorded: the <wheel> came off: mvo seed 0" in text_of(page)
    assert "it has a folder" not in text_of(page)


def test_a_page_that_cannot_be_written_is_no_failure(tmp_path, capsys):
    assert cli_page.write_page(tmp_path, tmp_path) is None
    line = capsys.readouterr().out
    assert line.startswith(f"Page: not written. {tmp_path} holds no runs")
    assert f"To try again: steadyrl report {tmp_path}" in line


@pytest.mark.parametrize(("display", "opened"), [(":0", 1), ("", 0)])
def test_a_browser_is_opened_where_there_is_a_display(tmp_path, monkeypatch, capsys, display, opened):
    addresses = []
    monkeypatch.setattr("webbrowser.open", addresses.append)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    fake_run(tmp_path / "mg" / "seed0", records=RECORDS)
    main(["report", str(tmp_path), "--open"])
    address = (tmp_path / "report.html").resolve().as_uri()
    assert capsys.readouterr().out.splitlines()[-1] == f"Its address: {address}"
    assert addresses == [address] * opened


def test_evaluations_stand_beside_training(tmp_path):
    folder = tmp_path / "mg" / "seed0"
    fake_run(folder, records=RECORDS)
    (folder / "evaluations.jsonl").write_text('{"episodes": 5, "timesteps": 50, "return": 7.5, "greedy_return": 8.0}\n')
    page = write_report(tmp_path)
    titles = [plot["title"] for plot in plots_of(page, "lines")]
    assert titles == ["Return", "Return, evaluation", "Return, most likely actions"]
    assert plots_of(page, "lines")[1]["lines"][0]["y"] == [[7.5]]


def test_evaluate_every_records_in_the_run_folder(tmp_path):
    agent = steadyrl.Reinforce(MAZE, seed=0)
    evaluations = EvaluateEvery(100, episodes=5, verbose=False)
    agent.learn(total_episodes=200, callback=[evaluations], out=tmp_path / "run", progress_bar=False)
    records = read_metrics(tmp_path / "run", "evaluations.jsonl")
    assert [record["episodes"] for record in records] == [episodes for _, episodes, _ in evaluations.reports]
    assert [record["return"] for record in records] == [report.mean.value for _, _, report in evaluations.reports]
    assert len(records) == 2
    assert [plot["title"] for plot in plots_of(write_report(tmp_path, episodes=5), "lines")][:2] == [
        "Return",
        "Return, evaluation",
    ]


def test_sixty_runs_are_less_than_6_mb(tmp_path):
    rng = np.random.default_rng(0)
    names = [
        "return",
        "undiscounted_gini_deviation",
        "gini_deviation",
        "goal_rate",
        "red_visit_rate",
        "white_path_rate",
    ]
    names += ["policy_loss", "value_loss", "entropy", "approx_kl", "gradient_norm", "explained_variance"]
    for method in range(12):
        for seed in range(5):
            records = [
                {"episodes": 50 * e, "timesteps": 999 * e} | dict(zip(names, rng.normal(size=12).tolist(), strict=True))
                for e in range(1, 401)
            ]
            fake_run(
                tmp_path / f"m{method}" / str(seed), seed=seed, settings={"risk_aversion": method}, records=records
            )
    page = write_report(tmp_path, episodes=20)
    films_at_most = 4 / 3 * MAX_ALL  # As base64.
    assert page.stat().st_size + films_at_most < 6_000_000
    assert len(curve_in(page, "m3")[1]) == 5


def test_a_point_of_a_frontier_leads_to_its_runs(tmp_path):
    write_frontier(tmp_path)
    page = write_report(tmp_path)
    data = data_of(page)
    plots = plots_of(page, "points")
    assert [plot["label"].partition(" against ")[0] for plot in plots] == ["Mean return"] * 3
    shown = {found["name"]: found for found in plots[0]["points"]}
    for aversion in (0, 1):
        group = data["groups"][shown[f"MG, lambda {aversion}"]["g"]]
        assert ["risk_aversion", str(aversion), True] in group["settings"]
        assert data["runs"][group["runs"][0]]["commands"][0] == ["made by", "steadyrl frontier x"]
    assert shown["gone"]["g"] is None
    assert shown["gone"]["pale"]
    assert plots[0]["hull"] == [[4.0, 9.0], [5.0, 10.0]]
