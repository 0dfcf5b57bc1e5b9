"""Index, offset and mask tensors of a case, by the rules of `oracle.index_tensors`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import torch

from gatecert.errors import UsageError
from gatecert.oracle.case import Case
from gatecert.oracle.dims import size_of_dim
from gatecert.oracle.formats import torch_dtype
from gatecert.oracle.index_tensors import Facts, Index, get_rule
from gatecert.oracle.ranges import integer_range
from gatecert.oracle.specs import TensorSpec
from gatecert.oracle.streams import Stream


def make_indices(spec: TensorSpec, case: Case, found: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Valid values, drawn by the case and the argument's name; `found` holds those it goes by.

    Raises:
        UsageError: the case's sizes allow none.
    """
    assert spec.index is not None
    case = msgspec.structs.replace(case, given=())
    stream = Stream(f"{case.id}#{spec.name}")
    facts = _facts(spec.index, case, found)
    rule, dtype = get_rule(spec.index.rule), spec.dtype(case.dtype)
    try:
        made = rule.make(stream, spec.shape(case.sizes), facts)
        wrong = rule.broken(made, facts)
        if wrong is not None:
            raise UsageError(f"no {rule.name} of shape {made.shape} fit these sizes: {wrong}")
        if made.size and made.max() > integer_range(dtype)[1]:
            raise UsageError(f"{made.max()} does not fit {dtype}")
    except UsageError as error:
        raise UsageError(f"case {case.id!r}: argument {spec.name}: {error}") from None
    return torch.from_numpy(made).to(torch_dtype(dtype))


def check_indices(spec: TensorSpec, case: Case, found: Mapping[str, torch.Tensor]) -> None:
    """Refuse values that were written out or held, where they break the argument's rule.

    Raises:
        UsageError: it names the argument, its rule and shape, and what is wrong.
    """
    if spec.index is None:
        return
    values = found[spec.name].numpy().astype(np.int64)
    wrong = get_rule(spec.index.rule).broken(values, _facts(spec.index, case, found))
    if wrong is not None:
        raise UsageError(
            f"case {case.id!r}: argument {spec.name} ({spec.index.rule} [{', '.join(spec.dims)}] "
            f"= {tuple(values.shape)}) {wrong}"
        )


def _facts(index: Index, case: Case, found: Mapping[str, torch.Tensor]) -> Facts:
    return Facts(
        {role: size_of_dim(size, case.sizes) for role, size in index.sizes.items()},
        {role: found[name].numpy().astype(np.int64) for role, name in index.tensors.items()},
        index.patterns,
    )
