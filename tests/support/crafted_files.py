"""Agents' files as an attacker would write them: with any content, and digests that fit it."""

import json

from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from steadyrl.training import checkpoint, checkpoint_header


def craft(path, change, digests=True):
    """Change header and arrays of a file with `change(header, arrays)`, and write digests that fit, or none."""
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["steadyrl"])
    arrays = load_file(path)
    change(header, arrays)
    version, note = header.pop("format"), header.pop("note", None)
    header.pop("digests", None), header.pop("sha256", None)
    metadata = checkpoint_header.to_metadata(header, note, {n: checkpoint._digest(x) for n, x in arrays.items()})
    if version != checkpoint_header.FORMAT or not digests:
        written = {**json.loads(metadata["steadyrl"]), "format": version}
        if not digests:
            del written["digests"], written["sha256"]
        metadata = {"steadyrl": json.dumps(written)}
    save_file(arrays, path, metadata=metadata)
