"""An overlay replaces what is imported, everywhere Triton looks, and nothing on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.packages import fingerprint, run_python, write_package

_RUN = """
import os, sys
from pathlib import Path
from gatecert.mutants.overlay import install_overlay, overlay_proof

def child():
    path = Path({path!r})
    files = {{str(path): path.read_text().replace({old!r}, {new!r})}}
    {before}
    install_overlay(files)
    {after}
    import torch
    from acme.kernels import sum_squares
    print(sum_squares(torch.full((2, 70), 2.0)).tolist(), overlay_proof(files))
    sys.stdout.flush()

pid = os.fork()
if pid == 0:
    code = 1
    try:
        child()
        code = 0
    except BaseException as error:
        print(f"{{type(error).__name__}}: {{error}}", flush=True)
    finally:
        os._exit(code)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def _run(
    package: Path,
    *,
    file: str = "kernels.py",
    old: str = "* 1.0",
    new: str = "* 10.0",
    before: str = "pass",
    after: str = "pass",
) -> str:
    script = _RUN.format(path=str(package / file), old=old, new=new, before=before, after=after)
    result = run_python(script, package.parent)
    return (result.stdout + result.stderr).strip()


def test_the_interpreter_runs_the_overlaid_kernel_and_the_tree_stays_as_it_was(
    tmp_path: Path,
) -> None:
    package = write_package(tmp_path)
    before = fingerprint(tmp_path)
    assert _run(package, new="* 1.0") == "[280.0, 280.0] []"
    assert _run(package) == "[2800.0, 2800.0] []"
    assert fingerprint(tmp_path) == before


def test_an_overlaid_device_function_reaches_its_caller_in_another_module(tmp_path: Path) -> None:
    package = write_package(tmp_path)
    assert _run(
        package, file="helpers.py", old="x * x", new="x + x"
    ) == "[280.0, 280.0] []".replace("280.0", str(70 * 4.0))
    assert _run(package, file="helpers.py", old="x * x", new="x") == "[140.0, 140.0] []"


def test_namespace_packages_are_overlaid(tmp_path: Path) -> None:
    package = write_package(tmp_path, namespace=True)
    assert _run(package) == "[2800.0, 2800.0] []"


def test_a_path_through_a_symbolic_link_is_overlaid(tmp_path: Path) -> None:
    package = write_package(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert _run(tmp_path / "link" / "acme") == "[2800.0, 2800.0] []"
    assert package.is_dir()


def test_a_finder_that_alone_knows_the_package_is_asked(tmp_path: Path) -> None:
    package = write_package(tmp_path / "src")
    editable = (
        "import importlib.util as u; sys.path.remove(str(path.parent.parent)); "
        "sys.meta_path.append(type('Editable', (), {'find_spec': staticmethod("
        "lambda name, path=None, target=None: u.spec_from_file_location('acme', "
        f"'{package}/__init__.py') if name == 'acme' else None)}}))"
    )
    assert _run(package, before=editable) == "[2800.0, 2800.0] []"


def test_a_module_loaded_by_its_file_is_overlaid(tmp_path: Path) -> None:
    package = write_package(tmp_path)
    by_file = (
        "import importlib.util as u, acme; "
        "spec = u.spec_from_file_location('acme.kernels', str(path)); "
        "module = u.module_from_spec(spec); sys.modules['acme.kernels'] = module; "
        "spec.loader.exec_module(module)"
    )
    assert _run(package, after=by_file) == "[2800.0, 2800.0] []"


def test_a_finder_put_in_front_later_does_not_win(tmp_path: Path) -> None:
    package = write_package(tmp_path)
    in_front = (
        "import importlib.machinery as m; sys.meta_path.insert(0, type('Front', (), "
        "{'find_spec': staticmethod(m.PathFinder.find_spec)}))"
    )
    assert _run(package, after=in_front) == "[2800.0, 2800.0] []"


def test_stale_byte_code_is_not_used(tmp_path: Path) -> None:
    package = write_package(tmp_path)
    compiled = run_python(f"import compileall; compileall.compile_dir({str(package)!r})")
    assert compiled.returncode == 0
    before = fingerprint(tmp_path)
    assert any(name.endswith(".pyc") for name in before)
    assert _run(package) == "[2800.0, 2800.0] []"
    assert fingerprint(tmp_path) == before


def test_a_target_that_was_imported_before_is_refused(tmp_path: Path) -> None:
    package = write_package(tmp_path)
    said = _run(package, before="import acme.kernels")
    assert said == "InternalError: acme.kernels was imported before its overlay was installed"


_NOTE = "from gatecert.mutants.overlay import note_imports; note_imports()"


def test_what_was_imported_before_is_noted_once_for_many_children(tmp_path: Path) -> None:
    package = write_package(tmp_path)
    assert _run(package, before=_NOTE) == "[2800.0, 2800.0] []"


@pytest.mark.parametrize(
    "before",
    [
        f"import acme.kernels; {_NOTE}",
        f"{_NOTE}; import acme.kernels",
        f"{_NOTE}; {_NOTE}; import acme.kernels",
    ],
)
def test_a_target_is_refused_before_and_after_a_note(tmp_path: Path, before: str) -> None:
    said = _run(write_package(tmp_path), before=before)
    assert said == "InternalError: acme.kernels was imported before its overlay was installed"


def test_a_second_overlay_is_refused(tmp_path: Path) -> None:
    package = write_package(tmp_path)
    said = _run(package, after="install_overlay(files)")
    assert said == "InternalError: an overlay is already installed in this process"


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ("files[str(path.parent / 'other.py')] = ''", "never imported"),
        ("files[str(path)] += '# more'", "another text"),
    ],
)
def test_what_was_not_imported_with_its_text_is_named(tmp_path: Path, after: str, why: str) -> None:
    package = write_package(tmp_path)
    name = "other.py" if why == "never imported" else "kernels.py"
    assert _run(package, after=after) == f"[2800.0, 2800.0] ['{package / name}']"


def test_lost_source_lines_void_the_proof(tmp_path: Path) -> None:
    package = write_package(tmp_path)
    clear = "import linecache, acme.kernels; linecache.clearcache()"
    assert _run(package, after=clear).endswith(f"['{package / 'kernels.py'}']")


def test_kernels_in_a_test_module_are_overlaid_under_pytest(tmp_path: Path) -> None:
    write_package(tmp_path)
    test_file = tmp_path / "test_inline.py"
    test_file.write_text(
        (tmp_path / "acme" / "kernels.py").read_text().replace("from .helpers", "from acme.helpers")
        + "\n\ndef test_it():\n    assert sum_squares(torch.ones(1, 3)).tolist() == [3.0]\n"
    )
    script = f"""
import pytest
from pathlib import Path
from gatecert.mutants.overlay import install_overlay, overlay_proof
path = Path({str(test_file)!r})
files = {{str(path): path.read_text().replace("* 1.0", "* 10.0")}}
install_overlay(files)
code = pytest.main([str(path), "-q", "-p", "no:cacheprovider", "--tb=line", *MODE])
print("exit", int(code), overlay_proof(files))
"""
    for mode in ([], ["--import-mode=importlib"]):
        result = run_python(script.replace("MODE", repr(mode)), tmp_path, cwd=tmp_path)
        assert "exit 1 []" in result.stdout, result.stdout + result.stderr
        assert "1 failed" in result.stdout
    assert not list(tmp_path.rglob("__pycache__"))


_TWO_KERNELS = """\
import triton
import triton.language as tl


@triton.jit
def first(y_ptr):
    tl.store(y_ptr, 1.0)

SEPARATOR
@triton.autotune(configs=[triton.Config({"BLOCK": 1})], key=[])
@triton.jit
def second(y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr, 2.0)
    # Done.


class Kernels:
    class Inner:
        @staticmethod
        @triton.jit
        def third(y_ptr):
            tl.store(y_ptr, 3.0)
"""

_RUN_TWO = """
import inspect, linecache
from gatecert.mutants.overlay import install_overlay, overlay_proof
path, text = {path!r}, {text!r}
install_overlay({{path: text}})
import torch, two
y = torch.zeros(1)
two.second[(1,)](y)
source = inspect.getsource(two.second.fn.fn)
{after}
print(y.item(), "def second" in source, overlay_proof({{path: text}}) == {unproven})
"""


def _run_two(
    folder: Path,
    separator: str,
    *,
    newline: str = "\n",
    head: str = "",
    after: str = "",
    proven: bool = True,
) -> str:
    """Overlay `2.0` by `20.0` in the second kernel; say what it stored and whether all is proven.

    The module is imported through a symbolic link to its folder.
    """
    path = folder / "real" / "two.py"
    path.parent.mkdir()
    (folder / "link").symlink_to(path.parent)
    original = head + _TWO_KERNELS.replace("SEPARATOR", separator).replace("\n", newline)
    path.write_bytes(original.encode())
    script = _RUN_TWO.format(
        path=str(path),
        text=original.replace("2.0", "20.0"),
        after=after,
        unproven="[]" if proven else "[path]",
    )
    result = run_python(script, folder / "link")
    return (result.stdout + result.stderr).strip()


@pytest.mark.parametrize(
    "separator",
    ["\x0c", "# \x0b \x0c \x1c \x1d \x1e \x85 \u2028 \u2029"],
    ids=["form-feed", "in-a-comment"],
)
def test_what_ends_a_line_for_splitlines_only_shifts_no_kernel(
    tmp_path: Path, separator: str
) -> None:
    assert _run_two(tmp_path, separator) == "20.0 True True"


@pytest.mark.parametrize("newline", ["\r\n", "\r"], ids=["crlf", "cr"])
def test_other_line_ends_and_a_byte_order_mark_shift_no_kernel(
    tmp_path: Path, newline: str
) -> None:
    assert _run_two(tmp_path, "", newline=newline, head="\ufeff") == "20.0 True True"


@pytest.mark.parametrize(
    ("lose", "why"),
    [
        ("text.splitlines(keepends=True)", "the whole text, split at form feeds too"),
        ("text.replace('20.0', '2.0').splitlines(keepends=True)", "another text"),
        ("[]", "nothing"),
    ],
)
def test_a_kernel_whose_source_is_not_its_own_voids_the_proof(
    tmp_path: Path, lose: str, why: str
) -> None:
    after = f"linecache.cache[path] = (1, None, {lose}, path)"
    said = _run_two(tmp_path, "\x0c", after=after, proven=False)
    assert said == "20.0 True True", why


@pytest.mark.parametrize(
    ("old", "new"),
    [("20.0", "2.0"), ("3.0", "4.0"), ("class Kernels", "\nclass Kernels"), ("# Done", "#")],
    ids=["decorated-twice", "in-a-class", "shifted", "comment"],
)
def test_the_source_of_each_kernel_is_proven_by_the_path_it_was_imported_by(
    tmp_path: Path, old: str, new: str
) -> None:
    after = f"""
lines = text.replace({old!r}, {new!r}).splitlines(keepends=True)
linecache.cache[two.__file__] = (1, None, lines, two.__file__)
assert two.__file__ != path
"""
    assert _run_two(tmp_path, "", after=after, proven=False) == "20.0 True True"


def test_what_is_no_kernel_needs_no_source(tmp_path: Path) -> None:
    after = """
class Handler:
    def __init__(self, fn):
        self.fn = fn
class Cyclic:
    pass
two.handler = Handler(eval(compile("lambda x: x", path, "eval")))
two.cyclic = Cyclic()
two.cyclic.fn = two.cyclic
two.wrapped = Handler(two.second)
"""
    assert _run_two(tmp_path, "", after=after) == "20.0 True True"


_RUN_LAUNCHER = """
from gatecert.mutants.overlay import install_overlay, overlay_proof
path, text = {path!r}, {text!r}
files = {{path: text.replace("x, y, n", "x, y, n - 1")}}
install_overlay(files)
{before}
import torch
from acme import kernels
{after}
print(kernels.sum_squares(torch.full((2, 70), 2.0)).tolist(), overlay_proof(files))
"""


def _run_launcher(package: Path, *, before: str = "", after: str = "") -> str:
    path = package / "kernels.py"
    script = _RUN_LAUNCHER.format(path=str(path), text=path.read_text(), before=before, after=after)
    result = run_python(script, package.parent)
    return (result.stdout + result.stderr).strip()


def test_a_mutated_launcher_is_imported_and_proven(tmp_path: Path) -> None:
    package = write_package(tmp_path)
    assert _run_launcher(package) == "[276.0, 276.0] []"


def test_a_launcher_that_was_not_compiled_from_the_text_voids_the_proof(tmp_path: Path) -> None:
    package = write_package(tmp_path)
    original = (
        "names = dict(vars(kernels)); exec(compile(text, path, 'exec'), names);"
        "kernels.sum_squares = names['sum_squares']"
    )
    said = _run_launcher(package, after=original)
    assert said.endswith(f"['{package / 'kernels.py'}']")


def test_a_decorated_launcher_in_a_class_is_proven_by_the_function_beneath(tmp_path: Path) -> None:
    package = write_package(tmp_path)
    path = package / "kernels.py"
    path.write_text(
        path.read_text()
        + "\n\nimport functools\n\n\ndef logged(function):\n"
        + "    @functools.wraps(function)\n    def inner(*args):\n"
        + "        return function(*args)\n    return inner\n\n\n"
        + "class Sums:\n    @staticmethod\n    @logged\n    def launch(x):\n"
        + "        return sum_squares(x)\n"
    )
    assert _run_launcher(package).endswith("[]")
    exchange = (
        "launch = eval(compile('lambda x: x', path, 'eval'));"
        "kernels.Sums.launch = staticmethod(launch)"
    )
    assert _run_launcher(package, after=exchange).endswith(f"['{path}']")


@pytest.mark.parametrize("decorator", ["custom_op", "triton_op"])
def test_a_launcher_that_is_an_operator_of_torch_is_proven_by_the_function_it_runs(
    tmp_path: Path, decorator: str
) -> None:
    package = write_package(tmp_path)
    path = package / "kernels.py"
    registered = f'@torch.library.{decorator}("acme::sum_squares", mutates_args=())\n'
    typed = "def sum_squares(x: torch.Tensor) -> torch.Tensor:"
    path.write_text(path.read_text().replace("def sum_squares(x):", registered + typed))
    assert _run_launcher(package) == "[276.0, 276.0] []"
    original = (
        "names = dict(vars(kernels)); exec(compile(text, path, 'exec'), names);"
        "kernels.sum_squares = names['sum_squares']"
    )
    assert _run_launcher(package, after=original) == f"[280.0, 280.0] ['{path}']"
