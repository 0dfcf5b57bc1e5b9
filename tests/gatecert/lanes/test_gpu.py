"""Claims about finding a GPU, and hiding it from the interpreter lane."""

from __future__ import annotations

import pytest

from gatecert.errors import EnvironmentFailure
from gatecert.lanes.cuda import gpu
from gatecert.lanes.cuda.gpu import check_gpu, with_gpus, without_gpus


@pytest.mark.parametrize(
    "before", [{}, {"CUDA_VISIBLE_DEVICES": "2,3"}, {"CUDA_VISIBLE_DEVICES": ""}]
)
def test_a_compiled_gate_sees_the_gpus_that_were_hidden(before: dict[str, str]) -> None:
    hidden = without_gpus({**before, "HOME": "/root"})
    assert hidden["CUDA_VISIBLE_DEVICES"] == ""
    assert without_gpus(hidden) == hidden, "hidden once is hidden"
    assert with_gpus(hidden) == {**before, "HOME": "/root"}
    assert with_gpus(before) == before


def test_without_a_gpu_the_environment_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "describe_gpu", lambda: "")
    with pytest.raises(
        EnvironmentFailure, match="gate 'fast': no GPU that CUDA can use here; rent"
    ):
        check_gpu("fast", "rent one")


def test_a_torch_without_cuda_is_named_where_there_is_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(gpu, "describe_gpu", lambda: "NVIDIA H200, sm_90, driver CUDA 12.8")
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(EnvironmentFailure, match="built without CUDA; install another"):
        check_gpu("fast", "install another")
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    check_gpu("fast", "install another")
