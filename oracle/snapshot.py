"""Snapshots: a case with its tensors in a safetensors file, for values that no text can hold.

The file holds every tensor argument by name, contiguous, and the case's id as metadata: no code.
"""

from __future__ import annotations

from pathlib import Path

import torch

from gatecert.errors import UsageError
from gatecert.oracle.case import Case, parse_case
from gatecert.oracle.inputs import Inputs

_CASE = "gatecert.case"


def save_snapshot(path: Path, case: Case, inputs: Inputs) -> None:
    """Write the inputs of a case.

    Raises:
        UsageError: the file cannot be written.
    """
    from safetensors.torch import save

    tensors = {name: tensor.contiguous().clone() for name, tensor in inputs.tensors.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(save(tensors, {_CASE: case.id}))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; choose another file") from None


def load_snapshot(path: Path) -> tuple[Case, dict[str, torch.Tensor]]:
    """Read a case and its tensors.

    Raises:
        UsageError: the file is missing or is no snapshot.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise UsageError(f"{path}: not a snapshot: {error}") from None
    if _CASE not in metadata:
        raise UsageError(f"{path}: not a snapshot: it has no {_CASE!r} in its metadata")
    return parse_case(metadata[_CASE]), tensors
