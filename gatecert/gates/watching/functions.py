"""Names of functions that compare, and what their answers mean. Imports nothing."""

from __future__ import annotations

ASSERTING = frozenset(
    (
        "torch.testing.assert_close",
        "numpy.testing.assert_allclose",
        "numpy.testing.assert_array_equal",
        "numpy.testing.assert_array_almost_equal",
        "numpy.testing.assert_equal",
        "numpy.testing.assert_almost_equal",
    )
)
"""They say no by raising; the others by what they return."""
ARRAYS = frozenset(("torch.isclose", "numpy.isclose"))
"""They answer for every element, which says nothing of what the gate makes of it."""
WHOLE = frozenset({
    "mean", "sum", "nanmean", "nansum", "norm", "vector_norm", "matrix_norm", "linalg_norm",
    "linalg_vector_norm", "std", "var", "cosine_similarity", "dist", "dot", "vdot", "mse_loss",
    "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "pairwise_distance", "corrcoef",
})  # fmt: skip
"""Operations that make one number of many, to which every element adds a little."""
BOUNDS = frozenset(("lt", "le", "gt", "ge", "eq", "ne", "isclose"))
"""Operations that answer for every element: a sum of the answers counts elements."""
VALUES = "values"
"""Stands among the operations of a comparison by hand where all values left torch."""
