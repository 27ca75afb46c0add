"""`Agent.export`: the learned policy as a file that runs elsewhere."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from steadyrl.agents.export.npz_file import npz_file
from steadyrl.agents.export.onnx_file import onnx_file
from steadyrl.agents.export.plain_policy import Choice, plain_policy
from steadyrl.base.files import write_atomic
from steadyrl.envs.spaces import shown_space

if TYPE_CHECKING:
    from steadyrl.agents.agent import Agent

SUFFIXES = (".onnx", ".npz")


def export(agent: Agent, path: str | os.PathLike[str], action_masks: bool = False) -> Path:
    """Write the policy of `agent` to a file, whose suffix decides about its format; returns the path."""
    file = Path(path)
    check_suffix(file)
    policy = plain_policy(agent)
    if action_masks and not isinstance(policy.head, Choice):
        raise ValueError(f"action_masks: actions in {shown_space(agent.action_space)} have none. Leave it out.")
    if file.suffix.lower() == ".npz":
        write_atomic(file, npz_file(policy))
    else:
        about = {"agent": agent.name, "steadyrl": version("steadyrl"), "trained_episodes": str(agent.episodes)}
        write_atomic(file, onnx_file(policy, about, action_masks))
    return file


def check_suffix(file: Path) -> None:
    """An error for a file of another format."""
    if file.suffix.lower() not in SUFFIXES:
        kind = file.suffix or "no suffix"
        raise ValueError(
            f"{file}: {kind} is not a format of exported policies. Use .onnx, .npz, or agent.save to train it further."
        )
