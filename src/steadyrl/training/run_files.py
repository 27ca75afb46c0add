"""The files of a run folder: their names, and which of them belong to the run.

config.json        agent, environment, settings, seed, budget: everything the result depends on, with the versions
metrics.jsonl      a line for each record, appended during training
evaluations.jsonl  a line for each evaluation during training, if there are any
resume-N.steady    everything needed to resume after N rounds: there while the run is not complete
checkpoint.steady  the agent, for `steadyrl.load`: when the run is complete, which is noted in it, or was interrupted
error.txt          the traceback of the error that ended training, if one did
start.steady       the agent that the run began with, if it did not begin untrained; see `warm_start`
end.json           what the end of a complete run added to its metrics, for an extension of it; see `extension`
final_evaluation.json  evaluation episodes of the agent at the end, and the digest of that agent's file
greedy_evaluation.json  the same with its most likely actions

People keep files of their own in such a folder, so nothing else in it is ever changed or removed.
"""

from __future__ import annotations

import re
import traceback
from pathlib import Path

from steadyrl.base.files import PARTIAL

CONFIG, METRICS, CHECKPOINT = "config.json", "metrics.jsonl", "checkpoint.steady"
EVALUATIONS, ERROR = "evaluations.jsonl", "error.txt"
RESUME = "resume-{}.steady"
START, END = "start.steady", "end.json"
FINAL_EVALUATION, GREEDY_EVALUATION = "final_evaluation.json", "greedy_evaluation.json"
_ERROR_MARK = "This error ended a training of steadyrl:\n"
"""The first line of our error.txt: others may use this name too, for example for what a command prints."""
_OURS = re.compile(
    r"(config|end)\.json|metrics\.jsonl|(evaluations|(final|greedy)_evaluation)\.jsonl?|(checkpoint|start|resume-\d+)\.steady"
)
_PARTIAL = re.compile(rf"\.(?P<name>.+)\.\d+{re.escape(PARTIAL)}")


def resume_files(folder: Path) -> dict[int, Path]:
    """Number of rounds -> the checkpoint after them."""
    start, end = RESUME.split("{}")
    found = {path.name.removeprefix(start).removesuffix(end): path for path in folder.glob(RESUME.format("*"))}
    return {int(rounds): path for rounds, path in found.items() if rounds.isdecimal()}


def partial_files(folder: Path) -> list[Path]:
    """What processes left that were killed while writing one of a run's files."""
    matches = {path: _PARTIAL.fullmatch(path.name) for path in folder.glob(f".*{PARTIAL}")}
    return [path for path, match in matches.items() if match and _OURS.fullmatch(match["name"])]


def refuse_links(folder: Path) -> None:
    """An error if something in the folder is a symbolic link: what is written through it would change other files."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_symlink():
            raise FileExistsError(f"{path} is a symbolic link, and training would write through it. Remove it.")


def remove_run_files(folder: Path) -> None:
    """Remove the files of the run in a folder; others stay, and so does the agent that it begins with."""
    named = [folder / name for name in (METRICS, EVALUATIONS, CHECKPOINT, END)]
    remove_error(folder)
    # config.json last: only files next to it are known to belong to a run.
    for path in (*named, *resume_files(folder).values(), *partial_files(folder), folder / CONFIG):
        path.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what a complete run no longer needs, if its process was killed before it could."""
    for path in (*resume_files(folder).values(), *partial_files(folder)):
        path.unlink(missing_ok=True)
    remove_error(folder)


def write_error(folder: Path, error: BaseException) -> None:
    """Keep the traceback of an error, unless there is an error.txt of somebody else."""
    if not (folder / ERROR).exists() or has_error(folder):
        (folder / ERROR).write_text(_ERROR_MARK + "".join(traceback.format_exception(error)))


def has_error(folder: Path) -> bool:
    """Whether an error ended the training of the run."""
    path = folder / ERROR
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_ERROR_MARK)) == _ERROR_MARK.encode()


def remove_error(folder: Path) -> None:
    """Remove the traceback of an error, if there is one."""
    if has_error(folder):
        (folder / ERROR).unlink(missing_ok=True)
