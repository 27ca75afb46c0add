"""`steadyrl train --resume-from RUN`: what to train is read from a run folder, for how long from the command."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple


class RecordedRun(NamedTuple):
    """What a run folder says about its run."""

    folder: Path
    env: str
    options: dict[str, Any]
    config: dict[str, Any]

    @classmethod
    def read(cls, folder: Path, env: str | None) -> RecordedRun:
        """From its config; an environment that is code of the user's own has to be named again as `env`."""
        from steadyrl.envs.description import trusted
        from steadyrl.training.run_folder import is_config, read_config

        config = read_config(folder)
        if not is_config(config):
            raise ValueError(f"--resume-from {folder}: its config.json does not describe a steadyrl run.")
        recorded = config["env"]
        if env is not None and env != recorded["id"]:
            raise ValueError(f"--resume-from {folder}: its environment is {recorded['id']}, not {env}. Leave it out.")
        try:
            if env is None:
                trusted(recorded)
        except PermissionError as error:
            raise ValueError(
                f"--resume-from {folder}: {error} If you trust it, name it: "
                f"steadyrl train {recorded['id']} --resume-from {folder} ..."
            ) from None
        if recorded.get("options") is None:
            raise ValueError(f"--resume-from {folder}: it does not record how to make its environment.")
        return cls(folder, recorded["id"], dict(recorded["options"]), config)

    def refuse(self, given: Mapping[str, bool]) -> None:
        """An error for options that the run decides."""
        for option, is_given in given.items():
            if is_given:
                raise ValueError(f"{option}: with --resume-from it is that of the run. Leave it out.")

    def announce(self, budget: Mapping[str, int]) -> None:
        """Print what happens, and what a schedule makes of it."""
        from steadyrl.training.schedule import Schedule

        old = self.config.get("budget")
        ((unit, total),) = budget.items()
        if not isinstance(old, dict) or not isinstance(old.get(unit), int) or total <= old[unit]:
            return
        print(f"Extending {self.folder} from {old[unit]:,} to {total:,} {unit}.", file=sys.stderr)
        kind = self.config["settings"].get("learning_rate_schedule", "constant")
        if kind != "constant":
            factor = Schedule(kind, unit, 0, total).factor(old[unit])
            print(
                f"learning_rate_schedule={kind}: step sizes had fallen to 0 at the end, and continue at {factor:.3g} "
                f"of their initial values, as in a run of {total:,} {unit}. The result is not that of such a run from "
                "the start.",
                file=sys.stderr,
            )
