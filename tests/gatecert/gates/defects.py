"""Defects of other checkers, and what proves that our oracle has none of them.

Each line names the system whose checker has, or had, the defect, and a kernel of `wrong_kernels`
or `wrong_sums` that it lets through (or rejects although it is right), or where else it is tested.
Read in their sources:

| system | source |
|---|---|
| gpuemu | `Skelf-Research/gpuemu`: crates/gpuemu-daemon/src/validator.rs, server.rs |
| CUDA-L2 | `deepreinforce-ai/CUDA-L2`: zero_one_correctness_check.py |
| gpucheck | PyPI gpucheck 0.1.0 |
| cuda-kernel-verifier | PyPI cuda-kernel-verifier 1.0.2 |
| geak-eval, GEAK | `AMD-AGI/GEAK-eval`: geak_eval/evaluators/TB_correctness.py |
| KernelBench | `ScalingIntelligence/KernelBench`: src/eval.py |
| KernelBench-X | `BonnieW05/KernelBenchX`: EVAL/1_exe_acc.py |
| robust-kbench | `SakanaAI/robust-kbench`: robust_kbench/sandbox/correct_forward_fn.py |
| TritonBench-G | `thunlp/TritonBench`: EVAL/eval_G |
| FlashInfer-Bench | `flashinfer-ai/flashinfer-bench`: flashinfer_bench/bench/utils.py |
| BackendBench | `meta-pytorch/BackendBench`: BackendBench/eval.py |
| GPU MODE | `gpu-mode/reference-kernels`: problems/*/utils.py |
| MultiKernelBench | `wzzll123/MultiKernelBench`: utils/correctness.py |
| tritonbench | `meta-pytorch/tritonbench`: tritonbench/operators |
| Triton | `triton-lang/triton`: python/triton/testing.py (old), python/test/unit |
| triton_kernels | `triton-lang/triton`: python/triton_kernels |
| Liger | `linkedin/Liger-Kernel`: test/transformers |
| FlagGems | `FlagOpen/FlagGems`: tests/accuracy_utils.py |
| flash-attention, FLA | `Dao-AILab/flash-attention`, `fla-org/flash-linear-attention`: tests |
| vLLM | `vllm-project/vllm`: tests/kernels |
| CUTLASS | `NVIDIA/cutlass`: tools/profiler, include/cutlass/relatively_equal.h |
| DeepGEMM | `deepseek-ai/DeepGEMM`: tests |
| tinygrad | `tinygrad/tinygrad`: extra/gemm/fuzz_matmul.py |
| CUDA-L1 | `deepreinforce-ai/CUDA-L1`: eval/eval_cuda.py |
"""

from __future__ import annotations

from gatecert.gates.records import Reason

ACCEPTED_ELSEWHERE = [
    # NaN and infinities
    ("gpuemu: NaN > atol is false", "softmax_finite_for_nan", Reason.NONFINITE),
    ("FlashInfer-Bench: NaN in the reference passes", "softmax_finite_for_nan", Reason.NONFINITE),
    ("KernelBench: no row of -inf", "softmax_unscaled_masked_rows", Reason.NONFINITE),
    ("gpuemu without check_nan: NaN minus infinity", "transpose_nan_for_inf", Reason.NONFINITE),
    ("triton_kernels: sign of an infinity", "transpose_inf_without_sign", Reason.NONFINITE),
    ("gpuemu: NaN becomes infinity in float16", "transpose_inf_for_nan", Reason.NONFINITE),
    ("CUDA-L2: overflow is never reached", "transpose_saturates", Reason.NONFINITE),
    (
        "KernelBench: no row that is masked as a whole",
        "masked_softmax_nan_where_nothing_counts",
        Reason.NONFINITE,
    ),
    # Formats
    ("gpuemu: float16 subnormals decode wrongly", "transpose_flushes_subnormals", Reason.VALUES),
    ("gpuemu: bfloat16 in float16's layout", "transpose_through_float16", Reason.VALUES),
    ("Triton: one step of a copy", "transpose_one_step_off", Reason.VALUES),
    ("gpuemu: integers under a float tolerance", "argmax_last_of_ties", Reason.VALUES),
    ("BackendBench: 1% for indices too", "argmax_one_off_past_100", Reason.VALUES),
    (
        "gpuemu: the reference is rounded first",
        "softmax_a_bit_too_large_in_16_bits",
        Reason.VALUES,
    ),
    # The contract
    ("robust-kbench: a shape that broadcasts", "softmax_one_row", Reason.CONTRACT),
    ("GPU MODE: exact comparison without shapes", "argmax_of_one_row", Reason.CONTRACT),
    ("FLA: no check of shapes", "softmax_flat", Reason.CONTRACT),
    ("gpuemu: a shape compared with itself", "softmax_flat", Reason.CONTRACT),
    ("GPU MODE: no check of dtypes", "softmax_in_float32", Reason.CONTRACT),
    ("CUDA-L2: a dtype changed on output", "softmax_in_float64", Reason.CONTRACT),
    ("GPU MODE: an index of another dtype", "argmax_int32", Reason.CONTRACT),
    ("CUDA-L1: not a tensor", "softmax_as_list", Reason.CONTRACT),
    ("geak-eval: an empty tuple is zipped", "softmax_nothing", Reason.CONTRACT),
    ("GEAK: an empty dict", "softmax_empty_dict", Reason.CONTRACT),
    ("TritonBench-G: nothing printed equals nothing", "softmax_none", Reason.CONTRACT),
    ("geak-eval: a further output is not noticed", "softmax_twice", Reason.CONTRACT),
    ("geak-eval: a missing output is not noticed", "row_moments_without_variance", Reason.CONTRACT),
    ("geak-eval: an empty list", "row_moments_without_any", Reason.CONTRACT),
    ("geak-eval: outputs by order, keys ignored", "row_moments_swapped", Reason.VALUES),
    ("geak-eval: values of a dict by their order", "row_moments_as_dict", Reason.CONTRACT),
    ("geak-eval: tolerance lost in a list", "row_moments_wrong_last", Reason.VALUES),
    ("geak-eval: a named tuple is never unpacked", "row_moments_named_wrong", Reason.VALUES),
    ("FlashInfer-Bench: one of two outputs is enough", "row_moments_wrong_last", Reason.VALUES),
    ("tritonbench: gradients of inputs", "softmax_backward_without_sum", Reason.VALUES),
    # Memory and state
    ("FlashInfer-Bench: outputs not poisoned", "softmax_unwritten", Reason.NONFINITE),
    ("CUDA-L2: outputs zeroed beforehand", "softmax_writes_no_zeros", Reason.NONFINITE),
    ("KernelBench: stale output of an earlier call", "softmax_stale", None),
    ("cuda-kernel-verifier: inputs by reference", "softmax_writes_its_input", None),
    ("KernelBench: no repeat", "softmax_varies", Reason.NOT_REPEATABLE),
    ("Liger: three tries", "softmax_wrong_every_seventh_time", Reason.VALUES),
    (
        "cuda-kernel-verifier: every second call is looked at",
        "softmax_wrong_every_seventh_time",
        Reason.VALUES,
    ),
    ("KernelBench: contiguous only", "softmax_ignores_strides", None),
    # Tolerances
    ("KernelBench: zeros below atol", "softmax_of_zeros", Reason.VALUES),
    ("FlagGems: 97% of a softmax below atol", "softmax_of_zeros", Reason.VALUES),
    ("FlashInfer-Bench: 0.5% too large", "softmax_one_part_in_200", Reason.VALUES),
    ("CUTLASS profiler: within 5%", "softmax_one_part_in_200", Reason.VALUES),
    ("flash-attention: twice the worst error anywhere", "softmax_one_wrong_element", Reason.VALUES),
    ("FLA: one element in an RMS", "softmax_one_wrong_element", Reason.VALUES),
    ("FlashInfer-Bench: 5% of elements free", "softmax_one_wrong_element", Reason.VALUES),
    ("DeepGEMM: one zeroed row in a cosine", "softmax_one_wrong_row", Reason.VALUES),
    ("KernelBench-X: one wrong row in a global metric", "softmax_one_wrong_row", Reason.VALUES),
    ("Triton: a signed maximum as divisor", "log_softmax_all_one_too_low", Reason.VALUES),
    ("Liger: atol of 1", "log_softmax_all_one_too_low", Reason.VALUES),
    ("FlagGems: atol times K", "matmul_off_by_a_ten_thousandth_of_k", Reason.VALUES),
    ("gpucheck: atol times the root of K", "matmul_off_by_a_ten_thousandth_of_k", Reason.VALUES),
    ("KernelBench: constants within 1%", "softmax_short_log2e", Reason.VALUES),
    ("KernelBench: a hundredth of K within 1%", "matmul_loses_a_hundredth_of_k", Reason.VALUES),
    ("CUDA-L2: six places", "matmul_off_by_less_than_a_millionth", Reason.VALUES),
    ("flash-attention: small outputs", "softmax_tiny_outputs_lost", Reason.VALUES),
    ("triton_kernels: 2% of the RMS is free", "leaky_relu_small_values_lost", Reason.VALUES),
    ("DeepGEMM: the sign of few elements", "leaky_relu_last_sign", Reason.VALUES),
    ("vLLM: a residual of zeros", "add_rms_norm_residual_of_zeros", Reason.VALUES),
    ("vLLM: tiny inputs hide a scale", "rms_norm_a_sixth_too_large", Reason.VALUES),
    ("CUDA-L2: positions past 2047 ignored", "matmul_past_2047", Reason.VALUES),
    # Inputs
    ("CUDA-L2: no negative input", "matmul_positive_part", Reason.VALUES),
    ("CUDA-L2: no sign", "matmul_of_magnitudes", Reason.VALUES),
    ("tinygrad: no negative input", "matmul_positive_part", Reason.VALUES),
    ("CUDA-L2: squares", "matmul_of_squares", Reason.VALUES),
    ("CUDA-L2: min for a product", "matmul_minimum_for_product", Reason.VALUES),
    ("CUDA-L2: a narrow accumulator", "matmul_narrow_accumulator", None),
    ("CUDA-L2: sizes padded to the tile", "matmul_whole_tiles_only", Reason.VALUES),
    ("geak-eval: 16 x 16 x 16 alone", "matmul_whole_tiles_only", Reason.VALUES),
    ("gpuemu: K = 1 hides a lost sum", "matmul_last_sum", Reason.VALUES),
    ("KernelBench: inputs in [0, 1)", "leaky_relu_without_slope", Reason.VALUES),
    ("KernelBench: one value of a scalar", "leaky_relu_fixed_slope", Reason.VALUES),
    ("MultiKernelBench: no large value", "softmax_without_maximum", None),
    ("gpucheck: 21 of 50 shapes are squares", "transpose_of_squares_only", Reason.VALUES),
    ("geak-eval: powers of two from 512", "softmax_tail_of_zeros", Reason.VALUES),
    ("Triton: one block in every test", "softmax_without_rescale", None),
    ("KernelBench: aligned shapes", "softmax_tail_of_zeros", Reason.VALUES),
    ("BackendBench: dims up to 20", "softmax_wide_rows_end", Reason.VALUES),
    ("KernelBench: no tiny denominator", "rms_norm_without_eps", None),
    # Exceptions
    ("cuda-kernel-verifier: an exception swallowed", "softmax_raises", Reason.RAISED),
    ("tritonbench: a comparison's result discarded", "softmax_raises", Reason.RAISED),
]

REJECTED_ELSEWHERE = [
    ("gpuemu: NaN in both fails", "softmax"),
    ("FlashInfer-Bench: -inf in both fails", "log_softmax"),
    ("KernelBench: NaN in both fails", "transpose"),
    ("gpucheck: NaN fails wherever it is", "transpose"),
    ("MultiKernelBench: 1e-4 for every dtype", "matmul"),
    ("KernelBench: TF32 in the reference, 1e-4 beside it", "matmul"),
    ("gpuemu: one atol for sums of every length", "row_moments"),
    ("geak-eval: a named tuple is never unpacked", "row_moments_named"),
    ("flash-attention: a low-precision result that was lucky", "rms_norm"),
    ("TritonBench-G: unseeded inputs on both sides", "argmax"),
    ("gpuemu: an atol of 0 where controls are exact", "leaky_relu"),
    ("KernelBench: one tensor is returned", "add_rms_norm"),
    ("KernelBench: no row that is masked as a whole", "masked_softmax"),
    ("tritonbench: gradients of inputs", "softmax_backward"),
]
"""Right kernels."""

TESTED_ELSEWHERE = {
    "gpuemu: minimise never runs the kernel": "gatecert/cli/test_minimise.py::"
    "test_a_case_shrinks_to_the_one_value_that_matters_and_fails_again",
    "gpuemu: failure is taken to be monotone in a dim": "oracle/test_minimise.py::"
    "test_dims_reach_a_minimum_though_failure_is_not_monotone",
    "gpuemu: reproducing makes the inputs and runs nothing": "gatecert/cli/test_replay.py::"
    "test_a_wrong_kernel_is_a_rejected_control",
    "gpuemu: 1.5 times a 95th percentile": "gatecert/calibration/test_fit.py::"
    "test_one_rare_large_need_counts_in_full_where_a_percentile_would_drop_it",
    "gpuemu, gpucheck: block sizes are not known": "oracle/test_cases.py::"
    "test_each_tiled_dim_has_a_tail_apart_from_the_others",
    "gpucheck: a sanitizer's lines with the word error count": "gatecert/gates/command/"
    "test_sanitizer_report.py::test_only_a_record_of_the_tools_own_kind_is_a_finding",
    "CUDA-L2: exit status 0 whatever was found": "gatecert/cli/test_controls.py::"
    "test_a_rejected_control_exits_with_three_and_no_verdict_with_four",
    "FLA: failures only warn in CI": "gatecert/test_certificate.py::"
    "test_a_rejected_control_outranks_nothing_scored",
    "CUDA-L2: a clock says how much is tried": "oracle/test_cases.py::"
    "test_the_same_seed_gives_the_same_cases_and_another_seed_other_inputs",
    "triton_kernels: nothing to compare passes": "oracle/test_comparators.py::"
    "test_an_empty_output_passes_and_says_that_nothing_was_compared",
    "KernelBench: no size of 0": "oracle/test_empty_sizes.py::"
    "test_a_matrix_product_over_nothing_is_zero_and_garbage_is_seen",
    "GPU MODE, CUDA-L2: no offset past 2^31": "gatecert/gates/test_far_spans.py::"
    "test_an_offset_that_wraps_past_two_to_the_31_is_seen",
    "KernelBench, Liger: one order of programs": "gatecert/gates/test_oracle.py::"
    "test_a_program_that_reads_what_the_one_before_it_wrote_is_caught",
    "KernelBench: outputs that share memory": "gatecert/gates/test_oracle.py::"
    "test_an_output_that_the_next_call_overwrites_is_not_repeatable",
}
"""Tests, below `tests`."""
