"""Claims about the corpus: what a launcher or an autotuner may choose, they may choose."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import conv1d, scaled_dot_product_attention

from tests.gatecert.lanes.inside import inside_lane


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("index", [0, 1, 2])
@inside_lane
def test_every_configuration_of_the_batched_product_is_right(index: int) -> None:
    from gatecert.corpus import matmul_batched
    from gatecert.lanes import interpreter

    assert len(matmul_batched._matmul_batched_kernel.configs) == 3
    a, b = normal(2, 67, 70), normal(2, 70, 35)
    with interpreter.tuned(index):
        found = matmul_batched.matmul_batched(a, b)
    torch.testing.assert_close(found.double(), a.double() @ b.double(), rtol=0, atol=3e-5)


@pytest.mark.parametrize("k_size", [1, 31, 32, 33, 64, 65, 200])
@inside_lane
def test_a_split_contraction_loses_no_step_whatever_its_length(k_size: int) -> None:
    from gatecert.corpus.matmul_split_k import matmul_split_k

    a, b = torch.ones(3, k_size), torch.ones(k_size, 5)
    assert torch.equal(matmul_split_k(a, b), torch.full((3, 5), float(k_size)))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n_queries", "n_keys"), [(35, 70), (70, 35), (1, 40), (40, 1)])
@inside_lane
def test_grouped_attention_is_right_with_and_without_a_causal_mask(
    n_queries: int, n_keys: int, causal: bool
) -> None:
    from gatecert.corpus.attention_grouped_query import attention_grouped_query

    q, k, v = normal(1, 6, n_queries, 24), normal(1, 2, n_keys, 24), normal(1, 2, n_keys, 24)
    found = attention_grouped_query(q, k, v, causal)
    wanted = scaled_dot_product_attention(
        q.double(), k.double(), v.double(), is_causal=causal, enable_gqa=True
    )
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n_queries", "n_keys"), [(35, 70), (70, 35), (1, 40), (40, 1)])
@inside_lane
def test_gradients_are_right_with_and_without_a_causal_mask(
    n_queries: int, n_keys: int, causal: bool
) -> None:
    from gatecert.corpus.attention_backward import attention_backward

    q, dout = normal(1, 2, n_queries, 40), normal(1, 2, n_queries, 40)
    k, v = normal(1, 2, n_keys, 40), normal(1, 2, n_keys, 40)
    leaves = [tensor.double().requires_grad_() for tensor in (q, k, v)]
    out = scaled_dot_product_attention(*leaves, is_causal=causal)
    wanted = torch.autograd.grad(out, leaves, dout.double())
    for found, exact in zip(attention_backward(q, k, v, dout, causal), wanted, strict=True):
        torch.testing.assert_close(found.double(), exact, rtol=0, atol=2e-5)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@inside_lane
def test_a_convolution_without_its_activation_is_plain(width: int) -> None:
    from gatecert.corpus.causal_conv1d import causal_conv1d

    x, weight, bias = normal(2, 9, 70), normal(9, width), normal(9)
    found = causal_conv1d(x, weight, bias, silu=False)
    wanted = conv1d(
        x.double(), weight.double()[:, None], bias.double(), padding=width - 1, groups=9
    )[..., :70]
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=1e-5)
