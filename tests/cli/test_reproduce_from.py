"""`steadyrl reproduce --from`: tables and figures of what was trained, and nothing is trained."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from example_results import example_results
from in_process import trained_in_process

import steadyrl
from steadyrl.cli.main import main
from steadyrl.reports.final_table import final_values, over_seeds
from steadyrl.reports.results.file import read_results, write_results
from steadyrl.reports.results.found import complete_jobs, found_jobs
from steadyrl.reports.results.publish import Output, Runs, publish, sweep_folder
from steadyrl.reports.results.results import RISK
from steadyrl.reports.results.share import median_seed
from steadyrl.runs.experiment import load_experiment
from steadyrl.runs.final_evaluation import read_evaluation
from steadyrl.runs.scheduler import train_all

PUBLISHED = sorted((Path(__file__).parents[2] / "docs" / "results").glob("*.json.gz"), key=lambda p: p.stat().st_size)


def run(*arguments):
    with trained_in_process():
        main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("from") / "maze"
    experiment = load_experiment("maze", quick=True, seeds=2, episodes=600).only(["mg_printed"])
    with trained_in_process():
        assert train_all([*experiment.cells(out).values()], out) == []
        assert publish(Runs.found(experiment, out), Output(None, 20)) == []
    return out


def test_the_results_file_has_the_numbers_of_each_seed(trained):
    results = read_results(trained / "results.json.gz")
    assert str(trained) not in (trained / "summary.md").read_text()
    cell = results.cells["goal 20", "mg_printed"]
    assert cell.seeds == (0, 1)
    assert cell.method.settings["risk_aversion"] == 1.2
    assert cell.method.scale == {"episodes": 600, "timesteps": 0}
    for seed, policy in zip(cell.seeds, cell.policies, strict=True):
        folder = trained / "goal-20" / "mg_printed" / f"seed{seed}"
        evaluated = read_evaluation(folder, 20)
        for name in RISK:
            expected = getattr(evaluated.report(), name).value
            assert policy.returns[name] == pytest.approx(expected, rel=1e-4, abs=1e-9)
        assert policy.episode_metrics["goal_rate"] == pytest.approx(evaluated.episode_metrics["goal_rate"].mean())
        assert policy.greedy_mean == pytest.approx(read_evaluation(folder, 2, deterministic=True).returns.mean())
        recorded = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        np.testing.assert_allclose(
            cell.recorded.training["goal_rate"][seed], [one["goal_rate"] for one in recorded], atol=1e-3
        )


def test_a_folder_and_its_file_are_drawn_alike(trained, tmp_path, capsys):
    before = (trained / "results.json.gz").read_bytes()
    checkpoint = trained / "goal-20" / "mg_printed" / "seed0" / "checkpoint.steady"
    then = checkpoint.stat().st_mtime_ns
    run("reproduce", "maze", "--from", trained, "--out", tmp_path / "one", "--evaluation-episodes", 20)
    first = capsys.readouterr().out
    assert (tmp_path / "one" / "results.json.gz").read_bytes() == before
    assert checkpoint.stat().st_mtime_ns == then
    assert "To evaluate" not in first
    run("reproduce", "maze", "--from", trained / "results.json.gz", "--out", tmp_path / "two")
    for name in ("summary.md", "learning_curves.png", "risk_curves.png", "distributions.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert (tmp_path / "one" / "summary.md").read_text() == (trained / "summary.md").read_text()


def test_runs_that_do_not_say_their_commit_are_not_given_that_of_the_publishing_code(trained, tmp_path):
    from shutil import copytree

    copy = tmp_path / "maze"
    copytree(trained, copy)
    for number, path in enumerate(sorted(copy.rglob("config.json"))):
        config = json.loads(path.read_text())
        assert config.pop("versions")
        config["commit"] = "0123abc+changes" if number == 0 else None
        path.write_text(json.dumps(config))
    run("reproduce", "maze", "--from", copy, "--evaluation-episodes", 20)
    made = read_results(copy / "results.json.gz").provenance
    assert (made.commit, made.versions) == ("0123abc+changes unknown", {})
    assert f"{made.date}; commit 0123abc+changes unknown\n" in (copy / "summary.md").read_text()


def test_the_commands_of_all_runs_of_a_folder_are_recorded_in_their_order(trained, tmp_path):
    from shutil import copytree

    copy = tmp_path / "maze"
    copytree(trained, copy)
    for number, path in enumerate(sorted(copy.rglob("config.json"))):
        command = "steadyrl reproduce maze --agents " + ("mg --out here" if number else "mvo")
        started = f"2026-11-{18 + (number == 0)}T00:00:00"
        path.write_text(json.dumps({**json.loads(path.read_text()), "command": command, "started": started}))
    run("reproduce", "maze", "--from", copy, "--evaluation-episodes", 20)
    made = read_results(copy / "results.json.gz").provenance
    assert made.command.splitlines() == ["steadyrl reproduce maze --agents mg", "steadyrl reproduce maze --agents mvo"]
    assert made.date == "2026-11-19"


def test_incomplete_and_other_runs_are_left_out(trained, tmp_path, capsys):
    from shutil import copytree

    copy = tmp_path / "maze"
    copytree(trained, copy)
    (copy / "goal-20" / "mg_printed" / "seed1" / "checkpoint.steady").unlink()
    config = copy / "goal-40" / "mg_printed" / "seed0" / "config.json"
    config.write_text(config.read_text().replace('"risk_aversion": 1.2', '"risk_aversion": 1.4'))
    run("reproduce", "maze", "--from", copy, "--evaluation-episodes", 20)
    printed = capsys.readouterr().out
    assert (
        "seed0 is left out: it is another run than mg_printed: risk_aversion is 1.4, and in the experiment 1.2."
        in printed
    )
    results = read_results(copy / "results.json.gz")
    assert {key: cell.seeds for key, cell in results.cells.items()} == {
        ("goal 20", "mg_printed"): (0,),
        ("goal 40", "mg_printed"): (1,),
    }


def test_a_seed_with_another_setting_than_the_others_is_left_out(trained, tmp_path):
    from shutil import copytree

    copytree(trained, tmp_path / "maze")
    experiment, name = load_experiment("maze").only(["mg_printed"]), "gamma"
    (method,) = experiment.methods
    with_default = {key: value for key, value in method.settings.items() if key != name}
    experiment = dataclasses.replace(experiment, methods=(dataclasses.replace(method, settings=with_default),))
    jobs = found_jobs(experiment, tmp_path / "maze")
    path = tmp_path / "maze" / "goal-20" / "mg_printed" / "seed1" / "config.json"
    config = json.loads(path.read_text())
    before, config["settings"][name] = config["settings"][name], 0.5
    path.write_text(json.dumps(config))
    kept, notes = complete_jobs(experiment, jobs)
    assert notes == [f"{path.parent} is left out: its {name} is 0.5, and that of other seeds {before!r}."]
    assert {key: [run.seed for run in job.runs] for key, job in kept.items()} == {
        ("goal 20", "mg_printed"): [0],
        ("goal 40", "mg_printed"): [0, 1],
    }


def test_runs_of_the_sensitivity_study_that_are_left_out_are_named(trained, tmp_path, capsys):
    from shutil import copytree

    copytree(trained, tmp_path / "maze")
    other = tmp_path / "maze-sweep" / "goal-20" / "mg=1.4" / "seed0"
    copytree(trained / "goal-20" / "mg_printed" / "seed0", other)
    run("reproduce", "maze", "--from", tmp_path / "maze", "--evaluation-episodes", 20)
    assert f"{other} is left out: it is another run than mg=1.4" in capsys.readouterr().out


def test_the_sensitivity_study_is_beside_the_runs(tmp_path, monkeypatch):
    assert sweep_folder(Path("results/maze")) == Path("results/maze-sweep")
    (tmp_path / "maze").mkdir()
    monkeypatch.chdir(tmp_path / "maze")
    assert sweep_folder(Path(".")) == tmp_path / "maze-sweep"


def error_of(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        run("reproduce", *arguments)
    assert stop.value.code == 2
    text = capsys.readouterr().err.strip()
    assert "\n" not in text
    return text


def test_mistakes_are_errors_in_one_line(trained, tmp_path, capsys):
    file = trained / "results.json.gz"
    assert "has the results of maze, not of swimmer" in error_of(capsys, "swimmer", "--from", file)
    assert "there is no such file" in error_of(capsys, "maze", "--from", tmp_path / "no.json.gz")
    assert "holds no complete run of maze" in error_of(capsys, "maze", "--from", tmp_path)
    assert "is no results.json.gz" in error_of(capsys, "maze", "--from", trained / "summary.md")
    assert "--seeds: nothing is trained with --from" in error_of(capsys, "maze", "--from", file, "--seeds", 3)
    assert "--on: nothing is trained with --from" in error_of(capsys, "maze", "--from", file, "--on", "ray")
    assert "--open: no page is written with --from" in error_of(capsys, "maze", "--from", file, "--open")
    assert "--agents: that takes the folder" in error_of(capsys, "maze", "--from", file, "--agents", "mg")
    assert "--evaluation-episodes 1:" in error_of(capsys, "maze", "--from", trained, "--evaluation-episodes", 1)
    assert "unknown experiment 'mace'. Did you mean 'maze'?" in error_of(capsys, "mace", "--from", file)


def test_seeds_of_a_published_file_can_be_summarized_anew(tmp_path):
    write_results(example_results(seeds=5), tmp_path / "half_cheetah.json.gz")
    run("reproduce", "half_cheetah", "--from", tmp_path / "half_cheetah.json.gz", "--out", tmp_path / "out")
    cell = read_results(tmp_path / "half_cheetah.json.gz").cells["HalfCheetah", "ppo"]
    means = np.sort([policy.returns["mean"] for policy in cell.policies])
    row = next(
        line for line in (tmp_path / "out" / "summary.md").read_text().splitlines() if "| PPO printed | 5 |" in line
    )
    assert f"| {means[1:4].mean():.4g} [" in row


@pytest.mark.parametrize("file", PUBLISHED, ids=lambda path: path.name)
def test_published_files_are_small_and_complete(file):
    results = read_results(file)
    assert results.experiment.name == file.name.removesuffix(".json.gz")
    assert file.stat().st_size < 300_000
    assert all(cell.seeds for cell in results.cells.values())


@pytest.mark.parametrize("file", PUBLISHED[:1], ids=lambda path: path.name)
def test_a_published_file_is_drawn_with_its_numbers(file, tmp_path):
    results = read_results(file)
    run("reproduce", results.experiment.name, "--from", file, "--out", tmp_path)
    text = (tmp_path / "summary.md").read_text()
    for cell in results.cells.values():
        for heading, values in final_values(cell).items():
            assert f" {over_seeds(heading, values)} |" in text
    names = {"episodes": "learning_curves.png", "timesteps": "learning_curves_by_steps.png"}
    for unit, name in names.items():
        assert (tmp_path / name).is_file() == (unit in results.experiment.by_unit())


def test_agents_to_share_are_those_of_median_seeds(trained, tmp_path, capsys):
    shared = tmp_path / "agents"
    run("reproduce", "maze", "--from", trained, "--out", tmp_path, "--agents-to", shared, "--evaluation-episodes", 20)
    assert f"Agents: 2 in {shared / 'maze'}" in capsys.readouterr().out
    results = read_results(trained / "results.json.gz")
    for variant, folder in (("goal 20", "goal-20"), ("goal 40", "goal-40")):
        cell = results.cells[variant, "mg_printed"]
        scores = [policy.returns["mean"] - 1.2 * policy.returns["gini_deviation"] for policy in cell.policies]
        agent = steadyrl.load(shared / "maze" / folder / "mg_printed.steady")
        assert agent.seed == int(np.argmin(scores))  # Of two, the lower one is the median.
        whole = steadyrl.load(trained / folder / "mg_printed" / f"seed{agent.seed}")
        np.testing.assert_array_equal(agent.probabilities(), whole.probabilities())
    page = (shared / "maze" / "README.md").read_text()
    assert "[goal-20/mg_printed.steady](goal-20/mg_printed.steady) | goal 20 | MG printed |" in page


def test_seeds_of_a_results_file_are_not_trained_again(trained, tmp_path, capsys):
    seeds = {"--seeds": 3, "--episodes": 600, "--evaluation-episodes": 20, "--out": tmp_path / "rest"}
    options = [word for pair in seeds.items() for word in pair]
    known = trained / "results.json.gz"
    run("reproduce", "maze", "--quick", "--agents", "mg_printed", *options, "--continue", known)
    assert sorted(path.name for path in (tmp_path / "rest").rglob("seed*")) == ["seed2", "seed2"]
    combined, before = read_results(tmp_path / "rest" / "results.json.gz"), read_results(known)
    for key, cell in combined.cells.items():
        assert cell.seeds == (0, 1, 2)
        np.testing.assert_array_equal(final_values(cell)["return"][:2], final_values(before.cells[key])["return"])


def test_a_file_that_has_all_seeds_is_drawn(trained, tmp_path):
    known, out = trained / "results.json.gz", tmp_path / "none"
    options = ["--seeds", 2, "--episodes", 600, "--evaluation-episodes", 20, "--out", out]
    run("reproduce", "maze", "--quick", "--agents", "mg_printed", *options, "--continue", known)
    assert (out / "results.json.gz").read_bytes() == known.read_bytes()
    assert (out / "learning_curves.png").is_file()


def test_agents_of_seeds_that_were_trained_elsewhere_stay(trained, tmp_path):
    from shutil import copytree

    first, second, agents = tmp_path / "first", tmp_path / "second", tmp_path / "agents"
    for copy, other in ((first, "seed1"), (second, "seed0")):
        copytree(trained, copy)
        for folder in copy.glob(f"*/mg_printed/{other}"):
            folder.rename(folder.with_name(f"not-{other}"))
    options = ["--evaluation-episodes", 20, "--agents-to", agents]
    run("reproduce", "maze", "--from", first, *options)
    run("reproduce", "maze", "--from", second, "--continue", first / "results.json.gz", *options)
    results = read_results(second / "results.json.gz")
    page = (agents / "maze" / "README.md").read_text()
    for (variant, _), cell in results.cells.items():
        assert cell.seeds == (0, 1)
        file = agents / "maze" / cell.variant.folder / "mg_printed.steady"
        seed = steadyrl.load(file).seed
        assert seed == median_seed(cell)
        assert f"| {variant} | MG printed | {seed} | 2 |" in page


def test_results_of_another_experiment_cannot_be_continued(trained, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run("reproduce", "swimmer", "--continue", trained / "results.json.gz", "--out", tmp_path / "x")
    assert "has the results of maze, not of swimmer" in capsys.readouterr().err
