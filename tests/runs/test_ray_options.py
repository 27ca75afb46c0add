"""What can be wrong with a Ray cluster before a job runs there; jobs on a cluster are in test_stopped_sweeps.py."""

import pytest

from steadyrl.cli.main import main

SWEEP = ["sweep", "CartPole-v1", "--on", "ray", "--out"]


def refusal(capsys, out, *options):
    """The last line with which a sweep is refused."""
    with pytest.raises(SystemExit) as stop:
        main([*SWEEP, str(out), *options])
    assert stop.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("address", "message"),
    [("127.0.0.1:1", "no Ray cluster answers there"), ("nowhere", "write auto, or HOST:PORT")],
)
def test_no_cluster_gets_one_line(address, message, tmp_path, capsys):
    pytest.importorskip("ray")
    assert message in refusal(capsys, tmp_path / "out", "--address", address)


@pytest.mark.parametrize("logger", ["jsonl", "tensorboard"])
def test_loggers_that_write_files_are_refused(logger, tmp_path, capsys):
    """Jobs work in temporary folders of the nodes, whose other files are not sent."""
    line = refusal(capsys, tmp_path / "out", "--log", logger)
    assert f"--log {logger}: on a Ray cluster" in line
    assert not (tmp_path / "out").exists()


def test_without_ray_its_installation_is_explained(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    assert "pip install 'steadyrl[ray]'" in refusal(capsys, tmp_path / "out")
