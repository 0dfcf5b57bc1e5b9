"""Make Triton's block types and tensors cheap to build.

Interpreting a kernel builds thousands of them, of a handful of shapes. The original
constructors run once per element type and shape; later instances copy what they made.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl

_DERIVED = "_gatecert_derived"


def patch_constructors() -> None:
    """Replace the constructors of `tl.block_type` and `tl.tensor`; done once per process."""
    core = tl.core
    make_block_type, make_tensor = core.block_type.__init__, core.tensor.__init__
    made: dict[Any, dict[str, Any]] = {}
    scalar_shape, scalar_numel = _shape_of(make_tensor, core.int32)

    def block_type(self: Any, element_ty: Any, shape: Any) -> None:
        sizes = [s.value if type(s) is core.constexpr else s for s in shape]
        key = (element_ty.name, getattr(element_ty, "address_space", 0), *sizes)
        known = made.get(key)
        if known is None:
            make_block_type(self, element_ty, shape)
            setattr(self, _DERIVED, _shape_of(make_tensor, self))
            made[key] = dict(self.__dict__)
        else:
            self.__dict__.update(known)
            self.element_ty = element_ty

    def tensor(self: Any, handle: Any, type: Any) -> None:
        self.handle = handle
        self.type = type
        self.dtype = type.scalar
        self.shape, self.numel = type.__dict__.get(_DERIVED) or (scalar_shape, scalar_numel)

    core.block_type.__init__ = block_type
    core.tensor.__init__ = tensor


def _shape_of(make_tensor: Any, type: Any) -> tuple[Any, Any]:
    """The shape and element count, as Triton puts them into a tensor of this type."""
    example = object.__new__(tl.tensor)
    make_tensor(example, None, type)
    return example.shape, example.numel
