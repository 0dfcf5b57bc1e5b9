"""Cases as texts to paste: a table of gatecert.toml, a test, a script with torch alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from gatecert.oracle.case import Case
    from gatecert.subjects import Subject

GATE = "added"
"""The name of the table: its gate is `oracle-added`."""
MOST_ELEMENTS = 96
"""A script has its values written out, up to so many in all tensors."""


def config_text(cases: Iterable[str]) -> str:
    """A table of gatecert.toml; the gate `oracle-added` tries these cases under all guards."""
    listed = "".join(f'    "{case}",\n' for case in cases)
    return f"[oracle.{GATE}]\ncases = [\n{listed}]\n"


def pytest_text(subject: Subject, cases: Sequence[str], said: str) -> str:
    """A test module that holds the entry against the reference on these cases."""
    module, _, entry = subject.entry.partition(":")
    head, _, rest = entry.partition(".")
    function = entry if rest else head
    own = f', operation="{subject.operation}"' if ":" in (subject.operation or "") else ""
    step = f', intermediate="{subject.intermediate}"' if subject.intermediate else ""
    listed = "".join(f'        "{case}",\n' for case in cases)
    return (
        f'"""{said}"""\n\n'
        "import pytest\n"
        "from gatecert import assert_correct\n\n"
        f"from {module} import {head}\n\n\n"
        "@pytest.mark.parametrize(\n"
        '    "case",\n'
        f"    [\n{listed}    ],\n"
        ")\n"
        f"def test_{_identifier(subject.name)}_is_right_on(case: str) -> None:\n"
        f"    assert_correct({function}, case{own}{step})\n"
    )


def snippet_text(subject: Subject, case: Case) -> str | None:
    """A script with inputs, reference and allowance written out; None where they are too many, or
    where values do not say it all (a layout of their own, results in arguments, NaN)."""
    import numpy as np
    import torch

    from gatecert.oracle.expectation import expect
    from gatecert.oracle.inputs import make_inputs
    from gatecert.oracle.operations import resolve_operation
    from gatecert.oracle.tolerance import RoundingInterval, unit

    operation = resolve_operation(subject.operation or "")
    inputs = make_inputs(operation, case)
    made = expect(operation, case, inputs, intermediate=subject.intermediate)
    size = sum(tensor.numel() for tensor in inputs.tensors.values())
    size += sum(one.reference.size for one in made.outputs)
    if size > MOST_ELEMENTS or case.layout != "contiguous" or operation.destinations:
        return None
    if operation.in_place or any(one.counted for one in made.outputs):
        return None
    if not all(bool(np.isfinite(one.reference).all()) for one in made.outputs):
        return None
    module, _, entry = subject.entry.partition(":")
    head = entry.partition(".")[0]
    law = RoundingInterval()
    lines = ["import torch", f"from {module} import {head}", ""]
    for name, arg in zip(inputs.names, inputs.args, strict=True):
        lines.append(f"{name} = {_tensor(arg) if isinstance(arg, torch.Tensor) else repr(arg)}")
    lines += ["", f"results = {entry}({', '.join(inputs.names)})"]
    lines.append("results = results if isinstance(results, tuple) else (results,)")
    for place, one in enumerate(made.outputs):
        reference = torch.from_numpy(one.reference.copy())
        half = (_half_gap(reference, one.dtype)).numpy()
        allowed = torch.from_numpy(law.limit(one) * unit(law, one) + half)
        lines += [
            f"want = {_tensor(reference)}",
            f"allowed = {_tensor(allowed)}",
            f"error = (results[{place}].double().cpu() - want).abs()",
            f'assert bool((error <= allowed).all()), f"{one.name} is wrong by {{error.max()}}"',
        ]
    return "\n".join(lines) + "\n"


def _half_gap(reference: torch.Tensor, dtype: str) -> torch.Tensor:
    """Half of the spacing of the output's format at each value."""
    import torch

    rounded = reference.to(getattr(torch, dtype))
    up = torch.nextafter(rounded, torch.full_like(rounded, float("inf"))).double()
    down = torch.nextafter(rounded, torch.full_like(rounded, -float("inf"))).double()
    return torch.maximum(up - rounded.double(), rounded.double() - down) / 2


def _tensor(tensor: torch.Tensor) -> str:
    values = str(tensor.tolist()).replace("nan", 'float("nan")').replace("inf", 'float("inf")')
    return f"torch.tensor({values}, dtype={tensor.dtype})"


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_").lower() or "entry"
