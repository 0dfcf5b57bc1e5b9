"""Tiny repositories for the tests of drafting."""

from __future__ import annotations

from pathlib import Path

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    x = tl.exp(x - tl.max(x, axis=0))
    y = x / tl.sum(x, axis=0)
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
"""

LAUNCHER = """

def softmax(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    row_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
"""

SECOND = """

@triton.jit
def relu_kernel(x_ptr, y_ptr, slope, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, tl.where(x > 0, x, slope * x), mask=at < n)


def leaky_relu(x: torch.Tensor, slope: float = 0.01):
    x = x.contiguous()
    y = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 64),)](x, y, slope, x.numel(), BLOCK=64)
    return y
"""

TEST = """
import torch
from {module} import softmax


def test_softmax():
    x = torch.linspace(-2, 2, 21).reshape(3, 7)
    torch.testing.assert_close(softmax(x), torch.softmax(x, dim=-1))
"""


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files by their path below the root."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def flat(root: Path) -> Path:
    """A package beside its tests."""
    return write(
        root,
        {
            "acme/__init__.py": "",
            "acme/kernels.py": KERNEL + LAUNCHER,
            "tests/test_softmax.py": TEST.format(module="acme.kernels"),
        },
    )


def src_layout(root: Path) -> Path:
    """A package below src, which re-exports its function; pytest is told of src."""
    return write(
        root,
        {
            "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n',
            "src/acme/__init__.py": "from acme.kernels import softmax\n",
            "src/acme/kernels.py": KERNEL + LAUNCHER,
            "tests/test_softmax.py": TEST.format(module="acme"),
        },
    )


def in_test_file(root: Path) -> Path:
    """A test module that defines the kernel and its launcher itself."""
    test = TEST.replace("import torch\nfrom {module} import softmax\n", "")
    return write(root, {"tests/test_kernel.py": KERNEL + LAUNCHER + test})


def two_kernels(root: Path) -> Path:
    """Two kernels in a module without a package; only one is tested."""
    return write(
        root,
        {
            "kernels.py": KERNEL + LAUNCHER + SECOND,
            "test_softmax.py": TEST.format(module="kernels"),
        },
    )
