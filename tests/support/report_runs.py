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


def figures_of(page: Path):
    return json.loads(parse(page).json)
