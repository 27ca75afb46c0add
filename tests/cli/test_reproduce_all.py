"""`steadyrl reproduce all`: every experiment in turn, and status 1 at the end if one failed."""

import pytest

from steadyrl.cli import reproduce as command
from steadyrl.cli.main import main
from steadyrl.runs.experiment import names
from steadyrl.runs.scheduler import Failure


class Job:
    title, folders = "a run", ()


def test_experiments_after_one_that_fails_are_reproduced(monkeypatch, tmp_path, capsys):
    seen = {}

    def reproduce(experiment, out, *rest):
        seen[experiment.name] = out, experiment.scale.seeds
        if experiment.name == "half_cheetah":
            raise ValueError("no simulator:\npip install it.")
        return [Failure(Job, "no luck")] if experiment.name == "maze" else []

    monkeypatch.setattr(command, "reproduce", reproduce)
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "all", "--quick", "--seeds", "1", "--out", str(tmp_path)])
    assert stop.value.code == 1
    assert seen == {name: (tmp_path / name, 1) for name in names()}
    printed, errors = capsys.readouterr()
    assert f"Experiment 1 of {len(names())}: {names()[0]}" in printed
    assert errors.splitlines()[-3:] == [
        f"steadyrl: 2 of {len(names())} experiments failed:",
        "  half_cheetah: no simulator: pip install it.",
        "  maze: runs failed; see above",
    ]


def test_by_default_each_experiment_has_its_folder(monkeypatch, capsys):
    folders = []
    monkeypatch.setattr(command, "reproduce", lambda experiment, out, *rest: folders.append(str(out)) or [])
    main(["reproduce", "all", "--quick"])
    assert folders == [f"results/{name}-quick" for name in names()]


def test_published_results_are_of_one_experiment(capsys, tmp_path):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "all", "--from", str(tmp_path)])
    assert stop.value.code == 2
    assert "name the experiment that it is of, rather than all" in capsys.readouterr().err
