"""Compares results of any nesting: dicts, lists and tuples of tensors."""

from typing import Any

import torch


def assert_same_results(expected: Any, actual: Any) -> None:
    """Compare two structures part by part."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict)
        assert_same_results(list(expected.values()), list(actual.values()))
    elif isinstance(expected, list | tuple):
        assert isinstance(actual, list | tuple)
        for one, other in zip(expected, actual, strict=False):
            assert_same_results(one, other)
    else:
        torch.testing.assert_close(actual, expected)
