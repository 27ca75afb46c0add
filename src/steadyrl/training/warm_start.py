"""Warm starts: a run that begins with what another agent has learned.

The file start.steady in a run folder is a checkpoint of that agent. The run begins with all that training changes
(policy, values, critics, optimizer state, moments of observations), but counts its own rounds, episodes and updates
from 0: step sizes that fall with the number of updates fall anew. What the other agent does not have, such as the risk
critic of one with lambda 0, begins untrained. So the folder holds all that the run depends on, also on another machine;
its config has the digest of the file.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from steadyrl.base.files import write_atomic
from steadyrl.training import checkpoint
from steadyrl.training.run_files import START


def place_start(folder: Path, agent_file: Path) -> None:
    """Let the run in `folder`, which has not begun, start from the agent in a file."""
    if not (folder / START).exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / START, agent_file.read_bytes())


def start_entry(folder: Path) -> dict[str, str]:
    """What the config of the run in `folder` says about its start: nothing if it begins untrained."""
    path = folder / START
    return {"warm_start": hashlib.sha256(path.read_bytes()).hexdigest()} if path.is_file() else {}


def apply_start(agent: Any, folder: Path) -> None:
    """Give an untrained agent the start that its run folder holds, if it holds one."""
    if not (folder / START).is_file():
        return
    file = checkpoint.read(folder / START)
    if file.header["agent"] != agent.name:
        raise ValueError(f"{file.path} holds a {file.header['agent']} agent, and this run is of {agent.name}.")
    learned = checkpoint.matching_fields(agent.learner, file)
    if "theta" not in learned:
        raise ValueError(f"{file.path} holds a policy of another shape than that of this run.")
    learned.pop("updates", None)
    agent.learner = agent.learner._replace(**learned)
    agent.config_entries = start_entry(folder)
