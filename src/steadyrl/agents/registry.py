"""The agents by name. They register themselves when their class is defined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steadyrl.base.names import choose, plain

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

AGENTS: dict[str, type[Agent]] = {}
"""The agents by the name that the command line and checkpoints use."""


def agent_class(name: str) -> type[Agent]:
    """The agent by its name or the name of its class, in whatever capitals."""
    classes = {plain(kind.__name__): name for name, kind in AGENTS.items()}
    return choose("agent", classes.get(plain(name), name), AGENTS)
