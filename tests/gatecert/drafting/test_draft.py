"""A draft says what the source shows, loads as it is, and leaves the rest to a person."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gatecert.config import Config, load_config
from gatecert.drafting import Draft, draft
from gatecert.errors import NothingScored
from tests.gatecert.drafting import repositories
from tests.gatecert.drafting.repositories import KERNEL, LAUNCHER, SECOND, TEST, write


def loaded(root: Path, drafted: Draft) -> Config:
    (root / "gatecert.toml").write_text(drafted.config)
    return load_config(root / "gatecert.toml")


@pytest.mark.parametrize(
    ("build", "entry", "import_paths", "tests"),
    [
        (repositories.flat, "acme.kernels:softmax", ["."], "tests/test_softmax.py"),
        (repositories.src_layout, "acme.kernels:softmax", ["src"], "tests/test_softmax.py"),
        (repositories.in_test_file, "test_kernel:softmax", ["tests"], "tests/test_kernel.py"),
        (repositories.two_kernels, "kernels:softmax", ["."], "test_softmax.py"),
    ],
)
def test_entry_path_operation_and_tests_are_found_in_every_layout(
    tmp_path: Path,
    build: Callable[[Path], Path],
    entry: str,
    import_paths: list[str],
    tests: str,
) -> None:
    drafted = draft(build(tmp_path))
    config = loaded(tmp_path, drafted)
    softmax = next(subject for subject in config.subjects if subject.name == "softmax")
    assert softmax.entry == entry
    assert softmax.operation == "softmax"
    assert list(softmax.import_paths) == [str((tmp_path / p).resolve()) for p in import_paths]
    assert config.gates["tests"].args == (tests, "-q")
    assert drafted.next_command == "gatecert certify --gate tests"


def test_every_kernel_gets_a_subject_or_a_reason(tmp_path: Path) -> None:
    drafted = draft(repositories.two_kernels(tmp_path))
    assert [subject.name for subject in drafted.subjects] == ["softmax", "leaky_relu"]
    (tmp_path / "kernels.py").write_text(KERNEL + LAUNCHER + SECOND.replace("def leaky", "def _l"))
    drafted = draft(tmp_path)
    assert [subject.name for subject in drafted.subjects] == ["softmax"]
    (skip,) = drafted.skipped
    assert skip.name == "kernels:relu_kernel"
    assert "_l_relu (kernels.py:" in skip.reason
    assert f"{skip.name}: {skip.reason}" in drafted.config


def test_nothing_of_the_repository_is_imported(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "ops_not_to_import.py": "raise SystemExit('imported')\n" + KERNEL + LAUNCHER,
            "test_ops.py": TEST.format(module="ops_not_to_import"),
        },
    )
    assert draft(tmp_path).subjects[0].entry == "ops_not_to_import:softmax"
    assert "ops_not_to_import" not in sys.modules


def test_an_operation_that_is_not_certain_is_a_comment(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "ops.py": KERNEL + LAUNCHER.replace("def softmax(x)", "def rms_norm(x)"),
            "test_ops.py": TEST.format(module="ops").replace("softmax", "rms_norm"),
        },
    )
    drafted = draft(tmp_path)
    (subject,) = loaded(tmp_path, drafted).subjects
    assert subject.operation is None
    (line,) = [x for x in drafted.config.splitlines() if "operation = " in x]
    assert line.startswith('# operation = "rms_norm"')
    assert "(x, weight, eps)" in line


def test_without_tests_the_gate_is_a_comment_that_says_how(tmp_path: Path) -> None:
    drafted = draft(write(tmp_path, {"ops.py": KERNEL + LAUNCHER}))
    assert loaded(tmp_path, drafted).gates == {}
    assert '# kind = "pytest"' in drafted.config
    assert drafted.next_command == "gatecert certify"


def test_dtypes_are_those_that_the_tests_name(tmp_path: Path) -> None:
    repositories.flat(tmp_path)
    test = tmp_path / "tests/test_softmax.py"
    test.write_text(test.read_text() + "\nDTYPES = [torch.bfloat16, torch.half]\n")
    (subject,) = loaded(tmp_path, draft(tmp_path)).subjects
    assert subject.dtypes == ("float16", "bfloat16")


def test_a_function_that_calls_the_launcher_stands_for_a_private_one(tmp_path: Path) -> None:
    public = "\n\ndef softmax(x):\n    return _Softmax.apply(x)\n"
    hidden = (
        "\n\nclass _Softmax(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, x):\n        return _launch(x)\n"
    )
    launcher = LAUNCHER.replace("def softmax(x)", "def _launch(x: torch.Tensor)")
    public = public.replace("(x):", "(x: torch.Tensor):")
    write(tmp_path, {"ops.py": KERNEL + launcher + hidden + public})
    (subject,) = draft(tmp_path).subjects
    assert (subject.entry, subject.kernels) == ("ops:softmax", ("ops:row_kernel",))


def test_of_a_helper_in_a_test_and_what_it_calls_the_latter_is_the_entry(tmp_path: Path) -> None:
    repositories.flat(tmp_path)
    test = tmp_path / "tests/test_softmax.py"
    helper = "\n\ndef check(x):\n    assert softmax(x).shape == x.shape\n"
    test.write_text(test.read_text() + helper)
    assert [s.entry for s in draft(tmp_path).subjects] == ["acme.kernels:softmax"]


def test_a_kernel_launched_by_a_test_alone_says_what_to_write(tmp_path: Path) -> None:
    test = LAUNCHER.replace("def softmax(x)", "def test_softmax(x)")
    with pytest.raises(NothingScored, match=r"test_softmax .* write a function with tensor"):
        draft(write(tmp_path, {"test_ops.py": KERNEL + test}))


def test_a_wrapped_kernel_is_launched_too(tmp_path: Path) -> None:
    launcher = LAUNCHER.replace("row_kernel[", "torch.library.wrap_triton(row_kernel)[")
    drafted = draft(write(tmp_path, {"ops.py": KERNEL + launcher}))
    assert drafted.subjects[0].kernels == ("ops:row_kernel",)


def test_what_only_reads_like_wrapping_launches_nothing(tmp_path: Path) -> None:
    launcher = LAUNCHER.replace("row_kernel[", "wrap_triton(row_kernel)[")
    with pytest.raises(NothingScored):
        draft(write(tmp_path, {"ops.py": KERNEL + launcher}))


def test_no_kernel_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(NothingScored, match=r"no @triton\.jit function in 1 Python files"):
        draft(write(tmp_path, {"plain.py": "def softmax(x):\n    return x\n"}))


def test_what_is_not_the_teams_is_not_read(tmp_path: Path) -> None:
    repositories.flat(tmp_path)
    write(
        tmp_path,
        {
            "venv/pyvenv.cfg": "",
            "venv/lib/other.py": KERNEL + LAUNCHER,
            ".hidden/other.py": KERNEL + LAUNCHER,
            "build/lib/acme/kernels.py": KERNEL + LAUNCHER,
            "gatecert-out/gatecert.sqlite": "",
            "gatecert-out/kept/acme/kernels.py": KERNEL + LAUNCHER,
        },
    )
    drafted = draft(tmp_path)
    assert [subject.entry for subject in drafted.subjects] == ["acme.kernels:softmax"]
    assert drafted.skipped == ()


def test_an_installed_package_is_found_through_the_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = write(
        tmp_path / "site-packages",
        {
            "elsewhere/__init__.py": "from elsewhere.ops import softmax\n",
            "elsewhere/ops.py": KERNEL + LAUNCHER + SECOND,
        },
    )
    monkeypatch.syspath_prepend(str(site))
    root = write(tmp_path / "repo", {"tests/test_it.py": TEST.format(module="elsewhere")})
    drafted = draft(root)
    (subject,) = loaded(root, drafted).subjects
    assert subject.entry == "elsewhere.ops:softmax"
    assert subject.import_paths == ()
    assert "elsewhere" not in sys.modules


def test_text_from_the_repository_cannot_break_the_draft(tmp_path: Path) -> None:
    launcher = LAUNCHER.replace("def softmax(x)", "def softmax(x, name='a\"\\n[b]')")
    write(tmp_path, {"ops.py": KERNEL + launcher, 'test_"q".py': TEST.format(module="ops")})
    config = loaded(tmp_path, draft(tmp_path))
    assert config.gates["tests"].args == ('test_"q".py', "-q")


def test_tests_bound_to_cuda_are_named_in_the_draft(tmp_path: Path) -> None:
    repositories.flat(tmp_path)
    assert "cuda" not in draft(tmp_path).config
    test = tmp_path / "tests" / "test_softmax.py"
    text = test.read_text()
    test.write_text(text + 'DEVICE = "cuda"\n')
    drafted = draft(tmp_path)
    assert '# tests/test_softmax.py names "cuda"' in drafted.config
    assert loaded(tmp_path, drafted).gates["tests"].kind == "pytest"
    test.write_text(text + 'DEVICE = os.environ.get("DEVICE", "cuda")\n')
    assert 'names "cuda"' not in draft(tmp_path).config
