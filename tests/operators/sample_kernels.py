"""Kernels as people write them, several spellings each: what the tests of labels reason about."""

from __future__ import annotations

import libcst as cst

from gatecert.operators.facts.kernel import KernelSyntax, parse_module

HEADER = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.libdevice import rsqrt as inverse_root

LOG2_E = tl.constexpr(1.4426950408889634)


"""


def kernel(source: str) -> KernelSyntax:
    """The function of a text, in a module that imports Triton in several ways."""
    module = parse_module(HEADER + source)
    functions = [node for node in module.tree.body if isinstance(node, cst.FunctionDef)]
    return KernelSyntax(module, functions[-1], functions[-1].name.value)


ONE_BLOCK_SOFTMAX = """\
@triton.jit
def softmax(x_ptr, y_ptr, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < N, other=float("-inf"))
    z = x - tl.max(x, axis=0)
    e = tl.exp(z)
    tl.store(y_ptr + row * stride + cols, e / tl.sum(e, axis=0), mask=cols < N)
"""

LOG_SOFTMAX = """\
@triton.jit
def log_softmax(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=float("-inf"))
    z = x - x.max(axis=0)
    tl.store(y_ptr + cols, z - tl.log(z.exp().sum(axis=0)), mask=cols < N)
"""

ROWS_SOFTMAX = """\
@triton.jit
def softmax(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    offsets = rows[:, None] * N + cols[None, :]
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    x = tl.load(x_ptr + offsets, mask, float("-inf")).to(tl.float32)
    top = tl.max(x, 1)
    e = tl.math.exp2((x - top[:, None]) * 1.44269504)
    total = tl.sum(e, 1)
    tl.store(y_ptr + offsets, e / total[:, None], mask)
"""

ONLINE_SOFTMAX = """\
@triton.jit
def softmax(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    m = float("-inf")
    d = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=float("-inf"))
        m_old = m
        m = tl.maximum(m_old, tl.max(x))
        d = tl.sum(tl.exp2((x - m) * LOG2_E)) + d * tl.exp2((m_old - m) * LOG2_E)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=float("-inf"))
        tl.store(y_ptr + cols, tl.exp(x - m) / d, mask=cols < N)
"""

LAYER_NORM = """\
@triton.jit
def layer_norm(x_ptr, w_ptr, b_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * N
    total = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + cols, mask=cols < N, other=0.0))
    mean = total / N
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
        centred = tl.where(cols < N, x - mean, 0.0)
        squares = squares + centred * centred
    rstd = inverse_root(tl.sum(squares, axis=0) / N + 1e-5)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        w = tl.load(w_ptr + cols, mask=cols < N)
        b = tl.load(b_ptr + cols, mask=cols < N)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
        tl.store(y_ptr + tl.program_id(0) * N + cols, (x - mean) * rstd * w + b, mask=cols < N)
"""

MATMUL = """\
@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, K, sa, sb, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * sa + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * sb + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=rk[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * sb
    tl.store(c_ptr + rm[:, None] * BN + rn[None, :], acc)
"""

_FLASH = """\
@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, N, sm_scale,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn, rd = tl.arange(0, BN), tl.arange(0, D)
    q = tl.load(q_ptr + rm[:, None] * D + rd[None, :], mask=rm[:, None] < N, other=0.0)
    m_i = tl.full([BM], float("-inf"), dtype=tl.float32)
    l_i = {start}
    acc = tl.zeros([BM, D], dtype=tl.float32)
    {scale}
    for start in range(0, N, BN):
        cols = start + rn
        k = tl.load(k_ptr + cols[None, :] * D + rd[:, None], mask=cols[None, :] < N, other=0.0)
        v = tl.load(v_ptr + cols[:, None] * D + rd[None, :], mask=cols[:, None] < N, other=0.0)
        {scores}
        s = tl.where(cols[None, :] < N, s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        {body}
        m_i = m_new
    tl.store(o_ptr + rm[:, None] * D + rd[None, :], acc / l_i[:, None], mask=rm[:, None] < N)
    {end}
"""


def _flash(*body: str, **parts: str) -> str:
    return _FLASH.format(body="\n        ".join(body), **parts)


FLASH_EXP = _flash(
    "alpha = tl.exp(m_i - m_new)",
    "p = tl.exp(s - m_new[:, None])",
    "l_i = l_i * alpha + tl.sum(p, 1)",
    "acc *= alpha[:, None]",
    "acc += tl.dot(p.to(tl.float16), v)",
    start="tl.zeros([BM], dtype=tl.float32)",
    scale="q = (q * sm_scale).to(tl.float16)",
    scores="s = tl.dot(q, k)",
    end="pass",
)
"""exp; the scale is multiplied into q; separate rescale."""

FLASH_EXP2 = _flash(
    "p = tl.math.exp2(s - m_new[:, None])",
    "l_i = tl.math.exp2(m_i - m_new) * l_i + p.sum(1)",
    "acc = tl.dot(p, v, acc=acc * tl.math.exp2(m_i - m_new)[:, None])",
    start="tl.zeros([BM], dtype=tl.float32) + 1.0",
    scale="qk_scale = sm_scale * 1.44269504",
    scores="s = tl.dot(q, k) * qk_scale",
    end="tl.store(lse_ptr + rm, m_i + tl.math.log2(l_i), mask=rm < N)",
)
"""exp2 with log2(e) folded into the scale; rescale inside the dot; log-sum-exp stored."""

GELU_ERF = """\
@triton.jit
def gelu(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    tl.store(y_ptr + cols, 0.5 * x * (1.0 + libdevice.erf(x * 0.70710678)), mask=cols < N)
"""

GELU_TANH = """\
@triton.jit
def gelu(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    c: tl.constexpr = 0.7978845608
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    t = libdevice.tanh(c * (x + 0.044715 * x * x * x))
    tl.store(y_ptr + cols, x * 0.5 * (1 + t), mask=cols < N)
"""

SCALED_SOFTMAX_WEIGHTS = """\
@triton.jit
def average(x_ptr, v_ptr, y_ptr, N, temperature, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=float("-inf"))
    v = tl.load(v_ptr + cols, mask=cols < N, other=0.0)
    w = tl.exp(x - tl.max(x, axis=0)) * 0.5
    tl.store(y_ptr, tl.sum(w * v, axis=0) / tl.sum(w, axis=0))
"""
"""The 0.5 is in numerator and denominator: nothing can show it."""
