"""An operation is guessed from name and parameters, and only where both say the same."""

from __future__ import annotations

import ast

import pytest

from gatecert.drafting.guess import Guess, guess_operation


def guess(signature: str, body: str = "return None") -> Guess:
    (function,) = ast.parse(f"def {signature}:\n    {body}\n").body
    assert isinstance(function, ast.FunctionDef)
    return guess_operation(function)


@pytest.mark.parametrize(
    ("signature", "operation"),
    [
        ("softmax(x)", "softmax"),
        ("fused_softmax(x, dim=-1)", "softmax"),
        ("triton_rms_norm_fwd(x, weight, eps)", "rms_norm"),
        ("rmsnorm(x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6)", "rms_norm"),
        ("layer_norm(x, weight, bias, eps=1e-5)", "layer_norm"),
        ("matmul(a, b, activation='')", "matmul"),
        ("bmm(a, b)", "matmul_batched"),
        ("leaky_relu(x, slope=0.01)", "leaky_relu"),
        ("SwiGLU(gate, up)", "swiglu"),
    ],
)
def test_a_known_name_with_fitting_parameters_is_sure(signature: str, operation: str) -> None:
    found = guess(signature)
    assert (found.operation, found.sure) == (operation, True)


@pytest.mark.parametrize(
    ("signature", "operation"),
    [
        ("rms_norm(x, weight)", "rms_norm"),  # no eps: the oracle could not call it
        ("layer_norm(x, shape: int, weight, bias, eps)", "layer_norm"),
        ("softmax(x, mask: torch.Tensor)", "softmax"),
        ("gelu(x)", "gelu_tanh"),
        ("cross_entropy(logits, target)", "cross_entropy"),
        ("flash_attention(q, k, v)", "attention"),
    ],
)
def test_another_reading_or_call_makes_it_a_question(signature: str, operation: str) -> None:
    found = guess(signature)
    assert (found.operation, found.sure) == (operation, False)


@pytest.mark.parametrize("signature", ["scaled_add(x, y)", "softmax_jvp(y, dy)", "run(x)"])
def test_an_unknown_name_is_no_guess(signature: str) -> None:
    assert guess(signature).operation == ""
