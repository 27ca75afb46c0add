"""Whatever the files of a run hold, a report shows the other runs."""

import json

from hypothesis import example, given
from hypothesis import strategies as st
from report_runs import RECORDS, change_config, fake_run, text_of

from steadyrl.reports.curves import read_recorded
from steadyrl.reports.page import write_report

TEXT = st.text(st.characters(), max_size=8)
NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from([10**400, -1, 2**63, 1e308]))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)
CONFIG_KEYS = ["agent", "seed", "settings", "env", "budget", "versions", "started", "command", "engine", "other"]
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)
NEARLY_CONFIGS = st.fixed_dictionaries({}, optional={"settings": OBJECTS, "budget": OBJECTS, "versions": OBJECTS})
CONFIGS = st.dictionaries(st.sampled_from(CONFIG_KEYS), JSON, max_size=4) | NEARLY_CONFIGS
ENVS = st.fixed_dictionaries({"id": TEXT | JSON, "options": OBJECTS | JSON})
METRIC_NAMES = st.sampled_from(["episodes", "timesteps", "return", "length", "white_path_rate", "x_rate"]) | TEXT
METRICS = st.dictionaries(METRIC_NAMES, NUMBERS | JSON, max_size=5)
NEARLY_RECORDS = st.builds(lambda episodes, rest: {"episodes": episodes, **rest}, st.integers(0, 9), METRICS)
LINES = st.lists(METRICS | NEARLY_RECORDS, max_size=4)
ENDS = st.sampled_from([b"", b"\n"])


@example({}, None, [{"episodes": 0, "return": 1e308}, {"episodes": 0, "return": -1e308}], b"", b"\n")
@example({"settings": {"a": "\ud800"}}, None, [{"episodes": 1, "\ud800_rate": 1}], b"", b"")
@given(config=CONFIGS, env=st.none() | ENVS, lines=LINES, bytes_=st.binary(max_size=6), end=ENDS)
def test_whatever_a_run_holds_the_others_are_shown(tmp_path_factory, config, env, lines, bytes_, end):
    root = tmp_path_factory.mktemp("runs")
    fake_run(root / "healthy" / "seed0", records=RECORDS)
    fake_run(root / "healthy" / "seed1", seed=1)
    folder = root / "healthy" / "seed1"
    change_config(folder, {**config, **({"env": env} if env else {})})
    content = "\n".join(json.dumps(record) for record in lines).encode() + end + bytes_
    for file in ("metrics.jsonl", "evaluations.jsonl"):
        (folder / file).write_bytes(content)
    text = text_of(write_report(root, root / "page.html"))
    assert "healthy" in text
    assert "GuardedMaze" in text
    folders = [root / "healthy" / "seed0", folder]
    assert read_recorded(folders).training["return"][0, -1] == RECORDS[-1]["return"]
    assert "return" in read_recorded(folders, "timesteps").training
