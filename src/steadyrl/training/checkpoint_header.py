"""The header of a checkpoint: everything but the arrays, as JSON that is checked before anything is built from it.

A file may come from anybody. Nothing in a header is called or imported, and what is built from it is no larger than
the arrays in the file; see `checkpoint.restore`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from steadyrl.base.parsing import parse_json
from steadyrl.base.shown import shown

FORMAT, POLICY_FORMAT = 2, 3
"""Of whole agents and of policies alone. Raised when a file written now could not be read by older code. Files of
format 1 have no digests."""
_HEADER = "steadyrl"
NOTE, DIGESTS, POLICY_ONLY = "note", "digests", "policy_only"
_MAX_COUNT = 2**63


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MAX_COUNT


def _is_seed(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**32


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_env_description(value: Any) -> bool:
    """Whether a value has the form of `envs.description.describe_env`."""
    return value is None or (
        _is_object(value)
        and _is_text(value.get("id"))
        and (value.get("options") is None or _is_object(value["options"]))
    )


_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "agent": _is_text,
    "settings": _is_object,
    "seed": _is_seed,
    "engine": _is_text,
    "env": is_env_description,
    "observation_space": _is_object,
    "action_space": _is_object,
    "iterations": _is_count,
    "episodes": _is_count,
    "timesteps": _is_count,
}
"""Of every format: the name of each field, and what its value must be."""


def to_metadata(
    fields: Mapping[str, Any],
    note: Mapping[str, Any] | None,
    digests: Mapping[str, str],
    policy_only: bool = False,
) -> dict[str, str]:
    """A header as metadata of a safetensors file: a single entry, because several would be written in any order."""
    header = {
        "format": POLICY_FORMAT if policy_only else FORMAT,
        **fields,
        **({NOTE: note} if note is not None else {}),
        DIGESTS: digests,
    }
    text = json.dumps(header)
    return {_HEADER: f'{{"sha256": "{_sha256(text)}", {text[1:]}'}


def from_metadata(path: Path, metadata: Mapping[str, str] | None) -> dict[str, Any]:
    """The header in the metadata of a safetensors file, with an empty note and no digests (None) if it has none.

    POLICY_ONLY in it says whether the file has the arrays of the policy alone.
    """
    text = (metadata or {}).get(_HEADER, "")
    try:
        header = parse_json(text)
    except ValueError:
        raise not_an_agent(path) from None
    version = header.get("format") if _is_object(header) else None
    if type(version) is not int or version < 1:
        raise not_an_agent(path)
    if version > POLICY_FORMAT:
        raise ValueError(f"{path} was written by a newer steadyrl (format {version}): upgrade.")
    if version >= 2 and not _has_its_digest(text):
        raise ValueError(f"{path} is damaged: its header is not what was written.")
    for name, is_valid in _FIELDS.items():
        if name not in header:
            raise not_an_agent(path)
        if not is_valid(header[name]):
            raise ValueError(f"{path} is damaged: {name} in its header is {shown(header[name], 40)}.")
    note, digests = header.get(NOTE, {}), header.get(DIGESTS)
    if not _is_object(note) or not (_is_object(digests) if version >= 2 else digests is None):
        raise ValueError(f"{path} is damaged: its header has no valid note or digests.")
    policy_only = version == POLICY_FORMAT
    return {**{name: header[name] for name in _FIELDS}, NOTE: note, DIGESTS: digests, POLICY_ONLY: policy_only}


def not_an_agent(path: Path) -> ValueError:
    """The error about a file that is something else, or was cut off."""
    return ValueError(f"{path} is no steadyrl agent, or only a part of one.")


def _has_its_digest(text: str) -> bool:
    """Whether a header begins with the digest of its rest."""
    parts = re.fullmatch(r'\{"sha256": "(\w{64})", (.*)', text, re.DOTALL)
    return parts is not None and parts[1] == _sha256("{" + parts[2])


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
