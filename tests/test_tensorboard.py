import sys

import pytest

from steadyrl.cli import main
from steadyrl.runs import read_metrics

TRAIN = ["train", "steadyrl/GuardedMaze-v0", "--episodes", "150", "--no-progress", "--tensorboard", "--out"]


def scalars(folder):
    """Tag -> step -> value, from the one file of events in a folder."""
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.record_writer import RecordWriter  # noqa: F401  (documents the framing read below)

    (file,) = folder.iterdir()
    content, found = file.read_bytes(), {}
    while content:
        # A record: length (8 bytes), its checksum (4), the event, its checksum (4).
        length = int.from_bytes(content[:8], "little")
        event = Event.FromString(content[12 : 12 + length])
        for value in event.summary.value:
            found.setdefault(value.tag, {})[event.step] = value.simple_value
        content = content[16 + length :]
    return found


def test_events_are_the_metrics_by_episodes_and_by_timesteps(tmp_path, capsys):
    pytest.importorskip("tensorboardX")
    main([*TRAIN, str(tmp_path / "run")])
    assert f"tensorboard --logdir {tmp_path / 'run' / 'tensorboard'}" in capsys.readouterr().out
    metrics, events = read_metrics(tmp_path / "run"), scalars(tmp_path / "run" / "tensorboard")
    names = metrics[0].keys() - {"iteration", "episodes", "timesteps", "time"}
    assert events.keys() == {f"by_{axis}/{name}" for name in names for axis in ("episodes", "timesteps")}
    for axis in ("episodes", "timesteps"):
        expected = {record[axis]: pytest.approx(record["return"]) for record in metrics}
        assert events[f"by_{axis}/return"] == expected


def test_without_the_package_nothing_begins(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(SystemExit) as stop:
        main([*TRAIN, str(tmp_path / "run")])
    assert stop.value.code == 2
    assert "pip install 'steadyrl[tensorboard]'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
