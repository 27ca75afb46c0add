"""Maps of where the agents go in a maze."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from steadyrl.reports.page import tables
from steadyrl.reports.page.evaluation import AgentEpisodes, Array
from steadyrl.reports.page.maze_map import maze_map, scale_key
from steadyrl.reports.page.plots import figure_element
from steadyrl.reports.page.results import Results


def map_section(results: Results) -> str:
    """The section, as HTML; empty if there is no maze."""
    visits = {
        result.index: (next(iter(result.agents.values())).maze, np.mean(counts, axis=0))
        for result in results.groups
        if (counts := _visits(list(result.agents.values())))
    }
    if not visits:
        return ""
    max_visits = max(1.0, *(float(mean.max()) for _, mean in visits.values()))
    blocks = []
    for variant, members in results.by_variant():
        maps = [
            figure_element(tables.method_link(result, results.palette), maze_map(maze, mean, max_visits))
            for result in members
            if result.index in visits
            for maze, mean in [visits[result.index]]
            if maze is not None
        ]
        if maps:
            blocks.append(f'<h3>{html.escape(variant)}</h3>\n<div class="maps">{"".join(maps)}</div>')
    text = (
        "Mean visits per episode to each cell, over the same episodes and all seeds: S start, G goal, R red; "
        "cells visited less than once in 100 episodes are white. All maps share a logarithmic colour scale:"
    )
    return (
        f'<section id="visits"><h2>Visits</h2>\n<p class="soft">{text}</p>\n{scale_key(max_visits)}\n'
        f"{''.join(blocks)}</section>"
    )


def _visits(agents: Sequence[AgentEpisodes]) -> list[Array]:
    """Those of agents in a maze of the same size as the first one's: a checkpoint may be that of another run."""
    first = agents[0].visits if agents else None
    visits = [agent.visits for agent in agents if agent.visits is not None]
    return [] if first is None else [counts for counts in visits if counts.shape == first.shape]
