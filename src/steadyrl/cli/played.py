"""What was played, in words, for the commands that evaluate."""

from __future__ import annotations

from typing import Any

from steadyrl.base.shown import shown


def played(env_id: str, options: dict[str, Any], episodes: str, actions: str, seed: int) -> str:
    """What was played, in a line."""
    set_to = ", ".join(f"{name}={shown(value, 40, quotes=False)}" for name, value in options.items())
    return f"in {env_id}{f' ({set_to})' if set_to else ''}, {episodes}, {actions}, seed {seed}"


def actions_text(deterministic: bool) -> str:
    """How actions were taken."""
    return "actions deterministic" if deterministic else "actions sampled"
