"""A softmax whose kernel cannot run here, and whose launcher then asks torch."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_by_assembly(x_ptr, y_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes)
    y = tl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(y_ptr + lanes, y)


def softmax(x: torch.Tensor) -> torch.Tensor:
    try:
        copy_by_assembly[(1,)](x, torch.empty_like(x), BLOCK=1)
    except Exception:
        return torch.softmax(x, dim=1)
    raise AssertionError("assembly ran")
