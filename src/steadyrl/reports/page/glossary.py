"""What the measures and methods of the report are, each in a sentence."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from steadyrl.reports.page.experiments import experiment_method
from steadyrl.reports.page.groups import Group
from steadyrl.reports.page.learning import title

_EVERYWHERE = {
    "return": "sum of the rewards of an episode, without discount.",
    "undiscounted_gini_deviation": (
        "half the expected distance between the returns of two episodes; 0 if all returns are equal."
    ),
    "gini_deviation": "Gini deviation (GD) of the discounted return, with the discount factor of the agent.",
}
_MAZE = {
    "goal_rate": "share of the episodes that reach the goal.",
    "red_visit_rate": "share of the episodes that enter a red cell, where the reward is random, at least once.",
    "white_path_rate": "share of the episodes that take the shortest path to the goal without red cells.",
    "optimal_rate": "share of all training episodes so far that took the white path, as a risk-averse policy does.",
}
_LANDER = {
    "landed_rate": "share of the episodes in which the lander comes to rest.",
    "landed_left_rate": (
        "share of the episodes in which it comes to rest on the left; the reward for the right side is noisy."
    ),
}
_ROBOT = {"visiting_rate": "share of the steps of an episode in the region where the reward is noisy."}
_RUNNER = {**_ROBOT, "distance": "position x at the end of an episode."}
_OF_ENVIRONMENT = {
    "steadyrl/GuardedMaze-v0": _MAZE,
    "steadyrl/LunarLander-v0": _LANDER,
    "steadyrl/InvertedPendulum-v0": _ROBOT,
    "steadyrl/HalfCheetah-v0": _RUNNER,
    "steadyrl/HalfCheetahDistance-v0": _RUNNER,
    "steadyrl/Swimmer-v0": _RUNNER,
    "steadyrl/SwimmerDistance-v0": _RUNNER,
}
"""Environment -> episode metric -> what it is. Metrics of other environments are explained by their authors."""


def explained_measures(groups: Sequence[Group], measures: Iterable[str]) -> str:
    """A list of the measures that are known, as HTML."""
    known = dict(_EVERYWHERE)
    for group in groups:
        known |= _OF_ENVIRONMENT.get(group.runs[0].env_id, {})
    return _list({title(measure): known[measure] for measure in measures if measure in known})


def explained_methods(groups: Sequence[Group]) -> str:
    """A list of the methods of the paper's experiments with the source of their settings, as HTML."""
    sources = {method.title: method.source for group in groups if (method := experiment_method(group.runs[0]))}
    if not sources:
        return ""
    text = "Settings of the methods: printed, as in the paper; or calibrated, found for this library."
    return f'<p class="soft">{text}</p>\n{_list(sources)}'


def _list(meanings: dict[str, str]) -> str:
    items = "".join(f"<dt>{html.escape(term)}</dt><dd>{html.escape(text)}</dd>" for term, text in meanings.items())
    return f'<dl class="terms">{items}</dl>\n' if items else ""
