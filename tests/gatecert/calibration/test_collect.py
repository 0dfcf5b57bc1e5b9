"""Claims about what is run beside a team's own kernel, and about torch's own result."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from gatecert.calibration.collect import collect, collecting_gate, with_other_kernels
from gatecert.calibration.models import MODELS, get_model
from gatecert.calibration.torch_results import ENTRY, has_dtype
from gatecert.campaign.plan import Plan
from gatecert.campaign.progress import Silent
from gatecert.config import CORPUS_CONFIG, Config, load_config
from gatecert.gates.registry import make_gate
from gatecert.oracle.cases import cases_for
from gatecert.oracle.contract import contract_violation
from gatecert.oracle.expectation import expect
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import operations
from gatecert.store import Scope, recording
from gatecert.subjects import Subject, load_entry

OWN = Subject("mine", "acme:softmax", "softmax", dtypes=("bfloat16",))


def config_of(*subjects: Subject) -> Config:
    return Config("/nowhere/gatecert.toml", "/nowhere", subjects)


def test_kernels_of_the_corpus_and_torch_stand_beside_a_team_s_own_in_its_dtypes() -> None:
    found = with_other_kernels((OWN,), config_of(OWN, Subject("no_operation", "acme:f")))
    assert [subject.name for subject in found] == [
        "mine",
        "corpus-softmax_one_block",
        "corpus-softmax_online",
        "torch-softmax",
    ]
    assert {subject.dtypes for subject in found} == {("bfloat16",)}


def test_the_corpus_brings_its_other_kernels_under_their_own_names() -> None:
    corpus = load_config(CORPUS_CONFIG)
    chosen = [subject for subject in corpus.subjects if subject.name == "softmax_online"]
    names = [subject.name for subject in with_other_kernels(chosen, corpus)]
    assert names == ["softmax_online", "softmax_one_block", "torch-softmax"]


def test_an_operation_of_one_s_own_has_torch_beside_it_too() -> None:
    own = Subject("mine", "acme:add", "acme.ops:scaled_add", intermediate="float16")
    mine, torchs = with_other_kernels((own,), config_of(own))
    assert mine == own
    assert (torchs.name, torchs.entry) == (
        "torch-acme.ops.scaled_add",
        f"{ENTRY}acme.ops:scaled_add",
    )
    assert torchs.intermediate is None


def test_torchs_result_of_an_operation_of_one_s_own_is_found_by_its_name() -> None:
    spec = "tests.gatecert.corpus.own_operations:scaled_add"
    entry = load_entry(Subject("t", ENTRY + spec, spec))
    assert callable(entry)
    assert not hasattr(entry, "__wrapped__")


@pytest.mark.parametrize("operation", operations(), ids=lambda operation: operation.name)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_torchs_result_keeps_the_contract_of_every_operation(operation: object, dtype: str) -> None:
    from gatecert.oracle.operations import Operation

    assert isinstance(operation, Operation)
    assert has_dtype(operation)
    (case, *_) = cases_for(operation, dtypes=(dtype,), strategy="quick")
    inputs = make_inputs(operation, case)
    entry = load_entry(Subject("t", ENTRY + operation.name, operation.name))
    outputs = entry(*inputs.args)
    assert contract_violation(operation, case, inputs, outputs) is None
    for expected, output in zip(
        expect(operation, case, inputs, baseline=True).outputs, outputs, strict=True
    ):
        assert expected.baseline is not None
        assert np.array_equal(expected.baseline, output.to(torch.float64).numpy(), equal_nan=True)


def test_the_usual_settings_share_verdicts_with_the_oracle_and_others_do_not() -> None:
    root = str(Path("/nowhere"))
    assert collecting_gate(get_model("interval"), "certify", root).name == "oracle"
    assert collecting_gate(get_model("rms"), "certify", root).name == "oracle"
    ratio = collecting_gate(get_model("ratio"), "certify", root)
    assert ratio.name == "oracle-calibrate"
    for model in MODELS.values():
        ref = collecting_gate(model, "boundary", root)
        assert make_gate(ref.name, None, root, None, ref.oracle).name == ref.name
    assert math.isfinite(MODELS["interval"].runs_needed)


def test_torch_is_left_out_where_it_cannot_compute_the_operation(tmp_path: Path) -> None:
    (tmp_path / "acme_ops.py").write_text(
        "from gatecert import Tensor, operation\n\n@operation()\n"
        'def picky(x: Tensor["N"]) -> Tensor["N"]:\n'
        "    assert str(x.dtype) == 'torch.float64'\n    return x * 2\n\n"
        "def kernel(x):\n    return x * 2\n"
    )
    own = Subject("mine", "acme_ops:kernel", "acme_ops:picky", import_paths=(str(tmp_path),))
    model = get_model("interval")
    plan = Plan(
        root=tmp_path,
        subjects=with_other_kernels((own,), config_of(own)),
        gates=(collecting_gate(model, "regular", str(tmp_path)),),
        operators=(),
    )
    with recording(tmp_path / "out", Scope("calibrate")) as record:
        found = collect(plan, model, (0,), record, Silent())
    assert {run.kernel for run in found.runs} == {"mine"}
    assert {run.need for run in found.runs} == {0.0}
    assert not any(run.beyond for run in found.runs)
