"""The ascents of the study `exact_ascent.py`: sweeps over lambda, and checks of how they are computed."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from ascent import Ascent, Outcome, Sweep, climb, refine
from bars import make_bar

LAMBDAS = {
    "gini_deviation": (0.0, 0.6, 0.8, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8),
    "variance": (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.0125, 0.015, 0.0175, 0.02, 0.025, 0.03, 0.1, 0.3, 1.0),
}
ENDS = {"gini_deviation": (1.0, 1.8), "variance": (0.003, 0.03)}
"""Where the search for the window starts at goal reward 80, for which there is no table."""
QUICK = {"gini_deviation": (0.6, 1.2, 1.4, 1.8), "variance": (0.001, 0.015, 0.1)}
SYMBOL = {"gini_deviation": "D", "variance": "V"}
SEARCH = 10
"""About how many ascents the search for the edges of a window takes."""


class Check(NamedTuple):
    """An ascent that was computed in two ways."""

    name: str
    """What was changed."""
    ascent: Ascent
    """The unchanged one."""
    changed: Outcome
    unchanged: Outcome


class Study(NamedTuple):
    """Everything the page is written from."""

    sweeps: dict[Ascent, Sweep]
    """For each setting (an `Ascent` with lam = 0) the outcome at each lambda."""
    checks: list[Check]
    minutes: float
    """Of processor time."""


def settings(quick: bool) -> list[Ascent]:
    """The settings whose lambdas are swept."""
    goals = (20.0, 40.0) if quick else (20.0, 40.0, 80.0)
    gini = [Ascent("gini_deviation", g, bump, 0.0) for bump, g in product((True, False), goals)]
    return gini + [Ascent("variance", g, True, 0.0) for g in goals]


def initial_lambdas(setting: Ascent, quick: bool) -> tuple[float, ...]:
    """The lambdas at which a sweep begins."""
    if quick:
        return QUICK[setting.penalty]
    return (ENDS if setting.goal_reward == 80 else LAMBDAS)[setting.penalty]


def variations(quick: bool) -> list[tuple[str, Ascent, dict[str, Any]]]:
    """(name, ascent, what is changed in it): does the method of computation matter?"""
    gini = {(g, bump): Ascent("gini_deviation", g, bump, 1.2) for g, bump in product((20.0, 40.0), (True, False))}
    variance = Ascent("variance", 40.0, True, 0.0175)
    if quick:
        return [("gamma = 1", gini[20.0, True], {"gamma": 1.0})]
    chosen: list[tuple[str, Ascent, dict[str, Any]]] = []
    for ascent in (gini[20.0, True], gini[40.0, True], variance):
        chosen.append(("tolerance 1e-6", ascent, {"tolerance": 1e-6}))
        chosen.append(("plain steps of 0.005", ascent, {"step": 0.005}))
    chosen.append(("plain steps of 0.001", gini[40.0, True], {"step": 0.001}))
    chosen += [("grid of 801", gini[g, True], {"grid": 801}) for g in (20.0, 40.0)]
    for lam in (1.2, 1.4, 1.6):
        chosen += [("gamma = 1", replace(ascent, lam=lam), {"gamma": 1.0}) for ascent in gini.values()]
    chosen += [("20 times as long", ascent, {"time": 40.0}) for ascent in (*gini.values(), variance)]
    chosen += [("20 times as long", replace(gini[20.0, True], lam=1.6), {"time": 40.0})]
    return chosen


def run_study(quick: bool) -> Study:
    """Run everything, one ascent after another, with a progress bar."""
    started = time.process_time()
    sweeps: dict[Ascent, Sweep] = {}
    checks = []
    with make_bar() as progress:
        total = sum(len(initial_lambdas(setting, quick)) + (0 if quick else SEARCH) for setting in settings(quick))
        task = progress.add_task("sweeps", total=total, unit="ascents", note="")
        for setting in settings(quick):

            def run(lam: float, setting: Ascent = setting) -> Outcome:
                outcome = climb(replace(setting, lam=lam))
                progress.update(task, advance=1, note=f"{describe(setting)}, lambda {lam:.4g}: {outcome.way}")
                return outcome

            lambdas = initial_lambdas(setting, quick)
            sweeps[setting] = {lam: run(lam) for lam in lambdas} if quick else refine(run, lambdas)
        progress.update(task, total=sum(map(len, sweeps.values())), note="")
        task = progress.add_task("checks", total=len(variations(quick)), unit="ascents", note="")
        for name, ascent, change in variations(quick):
            checks.append(Check(name, ascent, climb(replace(ascent, **change)), climb(ascent)))
            progress.update(task, advance=1, note=f"{name}, {describe(ascent)}")
    return Study(sweeps, checks, (time.process_time() - started) / 60)


def describe(setting: Ascent) -> str:
    """A setting in words."""
    return f"{SYMBOL[setting.penalty]}, goal {setting.goal_reward:g}, bump {reading(setting)}"


def reading(setting: Ascent) -> str:
    """The reward for bumping into a wall on the red cell, in words."""
    return "draws" if setting.draw_on_bump else "costs 1"
