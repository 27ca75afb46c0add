"""Runs that are extended to a larger budget: in their folder, and recorded in their config.

Round k of a run depends on its settings, its seed and k; so with a constant learning rate, an extended run ends with
the parameters and metrics of a run that had the larger budget from the start. For that its folder holds end.json, if
the end of the run added something to its metrics, and the replay buffer if it was kept.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from steadyrl.base.files import write_atomic
from steadyrl.training import checkpoint
from steadyrl.training.algorithm import Trainee
from steadyrl.training.run_files import CHECKPOINT, CONFIG, RESUME
from steadyrl.training.run_folder import (
    STOPPED_EARLY,
    complete_note,
    is_complete,
    read_config,
    resume_note_at_end,
    state_of,
)

EXTENSIONS = "extensions"
"""In config.json: from which budget to which the run was extended, when, and if so, that its replay buffer is kept."""
_MAY_CHANGE = ("budget", "evaluations", "early_stopping")


def extend_run(folder: Path, agent: Trainee, config: dict[str, Any], command: str = "") -> None:
    """Let the run in `folder`, of an untrained `agent`, be resumed up to the budget of `config`.

    Nothing changes if it has that budget already. However this is interrupted, the folder holds the run with its old
    budget or with the new one.
    """
    found = read_config(folder)
    old, new = found.get("budget"), config["budget"]
    if old == new:
        return
    _check_budgets(folder, old, new)
    same = {name: found[name] for name in _MAY_CHANGE if name in found}
    state = state_of(folder, {**{k: v for k, v in config.items() if k not in _MAY_CHANGE}, **same})
    if state == "absent":
        raise ValueError(
            f"{folder} holds no checkpoint to extend. Train it first, or train a new run with that budget."
        )
    keep = kept_replay_buffer(folder)
    if state == "complete":
        _make_resumable(folder, agent)
    entry = {
        "from": old,
        "to": new,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        **({"keep_replay_buffer": True} if keep and agent.replay_buffer is not None else {}),
        **({STOPPED_EARLY: found[STOPPED_EARLY]} if STOPPED_EARLY in found else {}),
    }
    kept = {name: value for name, value in found.items() if name not in (*_MAY_CHANGE, STOPPED_EARLY)}
    changed = {name: config[name] for name in _MAY_CHANGE if name in config}
    content = {**kept, **changed, EXTENSIONS: [*found.get(EXTENSIONS, []), entry]}
    write_atomic(folder / CONFIG, json.dumps(content, indent=2).encode())


def kept_replay_buffer(folder: Path) -> bool:
    """Whether the run in a folder has its replay buffer at its end, or had it when an extension of it began.

    A complete run that can be extended has it if its agent has one: others are refused.
    """
    match read_config(folder).get(EXTENSIONS):
        case [*_, {"keep_replay_buffer": True}]:
            return True
    return is_complete(folder)


def _check_budgets(folder: Path, old: Any, new: dict[str, int]) -> None:
    ((unit, total),) = new.items()
    if not isinstance(old, dict) or not isinstance(old.get(unit), int):
        had = ", ".join(f"{number} {name}" for name, number in old.items()) if isinstance(old, dict) else "none"
        raise ValueError(f"{folder}: its budget is in another unit ({had}). Extend it in that.")
    if total < old[unit]:
        raise ValueError(f"{folder} has a budget of {old[unit]:,} {unit} already: an extension needs more than that.")


def _make_resumable(folder: Path, agent: Trainee) -> None:
    """Turn the end of a complete run into a checkpoint to resume from."""
    file = checkpoint.read(folder / CHECKPOINT)
    if agent.replay_buffer is not None and not checkpoint.has_replay_buffer(file):
        raise ValueError(
            f"{folder} was saved without its replay buffer, so it cannot be continued as if it had never ended. "
            "Train it with --keep-replay-buffer (learn: keep_replay_buffer=True) to extend it later."
        )
    checkpoint.restore(agent, file)
    # First what to resume from, and then the agent that is no longer the end of a complete run.
    note = resume_note_at_end(folder, agent.iterations)
    checkpoint.write(agent, folder / RESUME.format(agent.iterations), note=note)
    checkpoint.write(agent, folder / CHECKPOINT, replay_buffer=False, note=complete_note(False))
