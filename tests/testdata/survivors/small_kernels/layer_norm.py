"""Layer norm of rows, a row per program; rows whose values do not lie side by side are copied."""

import torch
import triton
import triton.language as tl


@triton.jit
def _layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, n_cols, eps, stride_xb, stride_yb, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * stride_xb + cols, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(inside, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / n_cols
    deviation = tl.sqrt(variance + eps)
    weight = tl.load(weight_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    y = centred / deviation * weight + bias
    tl.store(y_ptr + row * stride_yb + cols, y.to(y_ptr.dtype.element_ty), mask=inside)


def layer_norm(x, weight, bias, eps=1e-5):
    """Rows of `x` [B, N] less their mean, over their deviation, times `weight`, plus `bias` [N]."""
    if x.stride(1) != 1:
        x = x.contiguous()
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(n_cols)
    _layer_norm_kernel[(n_rows,)](
        x, weight, bias, y, n_cols, eps, x.stride(0), y.stride(0), BLOCK=block
    )
    return y
