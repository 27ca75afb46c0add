"""Run folders for tests of the report, and the content of a page."""

import json
import os
from html.parser import HTMLParser
from pathlib import Path

import pytest

from steadyrl import MVO, Reinforce, learn_together
from steadyrl.reports.page.groups import group_runs
from steadyrl.reports.page.runs_found import find_runs
from steadyrl.training.run_folder import Run, config_of

METHODS = {"mvo": (MVO, {"risk_aversion": 0.5}), "reinforce": (Reinforce, {})}
GOALS, SEEDS, EPISODES = (20, 40), (0, 1), 300


def cannot(reason):
    """Where CI runs, a test that cannot run has failed."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


def train(folder, kind, env, seeds=SEEDS, episodes=EPISODES, **settings):
    agents = [kind(env, seed=seed, **settings) for seed in seeds]
    runs = [Run.begin(folder / f"seed{a.seed}", a, config_of(a, {"episodes": episodes})) for a in agents]
    if episodes:
        learn_together(agents, total_episodes=episodes, progress_bar=False, listeners=runs)
    for run in runs:
        run.finish()


def fake_run(
    folder, agent="mg", seed=0, settings=None, options=None, records=(), env="steadyrl/GuardedMaze-v0", **more
):
    """A run's folder without an agent."""
    folder.mkdir(parents=True)
    world = {"id": env, "options": options or {}}
    config = {"agent": agent, "env": world, "settings": settings or {}, "seed": seed, **more}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def grouped(root):
    runs, notes = find_runs(root)
    return group_runs(runs, root, notes), notes


def names(groups):
    return [(group.variant, group.method, [run.seed for run in group.runs]) for group in groups]


class Parser(HTMLParser):
    """The tags, links and visible text of a page, and the JSON in it."""

    def __init__(self):
        super().__init__()
        self.tags, self.links, self.text, self.json = [], [], "", ""
        self._within = None

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "srcset", "action", "data")]
        if tag in ("script", "style"):
            self._within = "json" if ("type", "application/json") in attributes else "code"

    def handle_endtag(self, tag):
        self._within = None if tag in ("script", "style") else self._within

    def handle_data(self, data):
        if self._within == "json":
            self.json += data
        elif self._within is None:
            self.text += data


def parse(page: Path):
    parser = Parser()
    parser.feed(page.read_text())
    return parser


def text_of(page: Path):
    return " ".join(parse(page).text.split())


def data_of(page: Path):
    """Everything that the scripts of a page draw."""
    return json.loads(parse(page).json)


def plots_of(page: Path, kind: str):
    """Its plots of one kind: lines, bars or points."""
    return [plot for plot in data_of(page)["plots"] if plot["kind"] == kind]


def curve_in(page: Path, method: str, measure="return"):
    """(episodes, values of each seed) of a method in the first plot of a measure."""
    data = data_of(page)
    for plot in data["plots"]:
        if plot["kind"] == "lines" and (plot["measure"], plot["source"]) == (measure, "records"):
            for line in plot["lines"]:
                if data["methods"][line["m"]]["name"] == method:
                    return data["arrays"][line["x"]], line["y"]
    return None


# Damage

RECORDS = [
    {"iteration": e, "episodes": e, "timesteps": 10 * e, "return": 2.0 * e, "length": 10.0} for e in range(1, 11)
]
DEEP = "[" * 100_000 + "]" * 100_000


def record_line(**changed):
    """A record as text, with some values changed."""
    return json.dumps({**RECORDS[0], **changed}) + "\n"


DAMAGED_METRICS = {
    "garbage": ("garbage\n", "line 1: it is not JSON"),
    "garbage without an end": ("garbage", "line 1: it is not JSON"),
    "bytes": ("\xff\xfe\x00", "line 1: it is not JSON"),
    "a number": ("3\n", "line 1: 3 is not a JSON object"),
    "null": (record_line(episodes=None), "line 1: 'episodes' is None, not a number"),
    "a list": (record_line(episodes=[1]), "line 1: 'episodes' is [1], not a number"),
    "text": (record_line(episodes="many"), "line 1: 'episodes' is 'many', not a number"),
    "true": (record_line(episodes=True), "line 1: 'episodes' is True, not a number"),
    "infinite": (record_line(episodes=float("inf")), "line 1: 'episodes' is inf, not a whole number from 0"),
    "negative": (record_line(episodes=-1), "line 1: 'episodes' is -1, not a whole number from 0"),
    "decreasing": (record_line() + record_line(episodes=0), "line 2: 'episodes' is 0, not a whole number from 1"),
    "steps": (record_line(timesteps=1.5), "line 1: 'timesteps' is 1.5, not a whole number from 0"),
    "no episodes": ('{"return": 1.0}\n', "line 1: it has no 'episodes'"),
    "an object": (record_line(**{"return": {"mean": 1}}), "line 1: 'return' is {'mean': 1}, not a number"),
    "deep": (DEEP + "\n", "line 1: it is nested too deeply"),
    "deep without an end": ('{"a":' * 100_000, "line 1: it is nested too deeply"),
    "digits": ('{"episodes": 1, "return": ' + "9" * 5000 + "}\n", "line 1: "),
    "later": (record_line() + record_line(length="long"), "line 2: 'length' is 'long', not a number"),
}
NOT_FINITE = {"NaN": "NaN", "infinite": "-Infinity", "400 digits": "9" * 400, "1e999": "1e999"}


def write_latin(path, text):
    path.write_bytes(text.encode("latin-1"))


def change_config(folder, changed):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
