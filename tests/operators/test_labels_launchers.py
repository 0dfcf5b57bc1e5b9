"""Labels of what is planted in launchers follow from what the kernel does with its arguments."""

from __future__ import annotations

import re

import msgspec
import pytest

from gatecert.mutants.plant import apply_edits
from gatecert.operators.records import Example, ObservableBy, Reveal, Site
from gatecert.operators.registry import all_operators, get_operator
from tests.operators.launchers import launcher_of, sites_in_launcher

HEADER = "import math\nimport torch\nimport triton\nimport triton.language as tl\n\n\n"
VALUES = (ObservableBy.VALUES,)


def sites(operator: str, text: str) -> tuple[Site, ...]:
    return sites_in_launcher(get_operator(operator), HEADER + text)


def buffer(body: str, launch: str, grid: str = "(rows,)") -> str:
    """A kernel that gets `out`, which its launcher has set to zero."""
    return f"""\
@triton.jit
def kernel(x_ptr, out_ptr, n, flag, CONST: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
{body}

def launch(x, flag):
    rows, n = x.shape
    {launch}
    kernel[{grid}](x, out, n, flag, True, BLOCK=64)
    return out
"""


ROW = "    tl.store(out_ptr + row, tl.load(x_ptr + row * n))\n"
ROWS = "    tl.store(out_ptr + row * n + offs, 1.0, mask=offs < n)\n"
IN_SIZES = "out = torch.zeros(rows, dtype=x.dtype, device=x.device)"
LIKE = "out = torch.zeros_like(x)"


@pytest.mark.parametrize(
    ("body", "launch"),
    [
        (ROW, IN_SIZES),
        (ROW, "out = torch.zeros((rows,))"),
        (ROW, "shape = (rows, n) if flag else (rows,)\n    out = torch.zeros(shape)"),
        (ROWS, LIKE),
        (ROWS, "out = x.new_zeros(rows, n)"),
        ("    if CONST:\n    " + ROW, IN_SIZES),
        ("    if x_ptr is not None:\n    " + ROW, IN_SIZES),
        ("    pass\n", LIKE),
    ],
    ids=["row", "tuple", "either-tuple", "like", "new", "constexpr", "none", "unused"],
)
def test_a_buffer_that_the_kernel_stores_to_wholly_hides_what_was_in_it(
    body: str, launch: str
) -> None:
    (site,) = sites("uninitialised-buffer", buffer(body, launch))
    assert (site.observable_by, site.reveal) == ((), ())


@pytest.mark.parametrize(
    ("body", "reveal"),
    [
        ("    tl.atomic_add(out_ptr + row, 1.0)\n", Reveal.ANY),
        ("    tl.store(out_ptr + row, tl.load(out_ptr + row) + 1.0)\n", Reveal.ANY),
        ("    helper(out_ptr)\n", Reveal.ANY),
        ("    if flag > 0:\n    " + ROW, Reveal.MASKED_ROWS),
        ("    if flag == row:\n        return\n" + ROW, Reveal.MASKED_ROWS),
        ("    tl.store(out_ptr + offs, 1.0, mask=(offs < n) & (flag > 0))\n", Reveal.MASKED_ROWS),
    ],
    ids=["atomic", "load", "helper", "branch", "early-return", "mask"],
)
def test_a_buffer_that_is_read_or_stored_to_in_part_shows_it(body: str, reveal: Reveal) -> None:
    (site,) = sites("uninitialised-buffer", buffer(body, LIKE))
    assert (site.observable_by, site.reveal) == (VALUES, (reveal,))


def test_a_grid_that_may_not_cover_the_buffer_leaves_it_open() -> None:
    text = buffer(ROW, "out = torch.zeros(rows * 2)")
    assert sites("uninitialised-buffer", text)[0].reveal == (Reveal.SEVERAL_BLOCKS,)


def test_of_two_launches_the_first_one_decides() -> None:
    first = "fill[(rows,)](out)\n    "
    fill = "@triton.jit\ndef fill(out_ptr):\n    tl.store(out_ptr + tl.program_id(0), 0.0)\n\n\n"
    text = fill + buffer("    tl.atomic_add(out_ptr + row, 1.0)\n", IN_SIZES)
    (site,) = sites("uninitialised-buffer", text.replace("kernel[", first + "kernel["))
    assert site.reveal == ()
    under = text.replace("kernel[", "if flag:\n        " + first + "kernel[")
    assert sites("uninitialised-buffer", under)[0].reveal == (Reveal.ANY,)


def grid(launch: str, body: str = "    pass\n") -> str:
    return f"""\
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
{body}

def launch(x):
    m, n = x.shape
    {launch}
"""


@pytest.mark.parametrize(
    ("written", "mutated"),
    [
        ("(triton.cdiv(n, 64),)", "(n // 64,)"),
        ("(-(-n // 64),)", "(n // 64,)"),
        ("(math.ceil(n / 64),)", "(n // 64,)"),
        ("((64 + n - 1) // 64,)", "(n // 64,)"),
        ("(max(1, (n + 63) // 64),)", "(max(1, n // 64),)"),
        ("(m * ((n + (64 - 1)) // 64),)", "(m * (n // 64),)"),
        ("(m, triton.cdiv(2 * n, 64))", "(m, (2 * n) // 64)"),
    ],
)
def test_every_spelling_of_a_ceiling_is_rounded_down(written: str, mutated: str) -> None:
    text = HEADER + grid(f"kernel[{written}](x, n, BLOCK=64)")
    (site,) = sites_in_launcher(get_operator("grid-rounded-down"), text)
    (edit,) = site.edits
    assert text[: edit.start] + edit.text + text[edit.end :] == text.replace(written, mutated)
    assert (site.observable_by, site.reveal) == (VALUES, (Reveal.SHORT, Reveal.TAIL))


def test_programs_that_share_the_work_out_need_a_program_at_all() -> None:
    launch = "kernel[(triton.cdiv(m, 4), triton.cdiv(n, 64))](x, n, BLOCK=64)"
    body = "    for i in range(tl.program_id(1), n, tl.num_programs(1)):\n        pass\n"
    first, second = sites("grid-rounded-down", grid(launch, body))
    assert first.reveal == (Reveal.SHORT, Reveal.TAIL)
    assert second.reveal == (Reveal.SHORT,)


FORWARDED = """\
@triton.jit
def kernel(x_ptr, stride_x, stride_n, eps, unused, FLAG: tl.constexpr = False):
    offs = tl.arange(0, 64)
    x = tl.load(x_ptr + tl.program_id(0) * stride_x + offs * stride_n)
    if FLAG:
        x *= x
    tl.store(x_ptr + offs, x + eps)


def launch(x, eps=1e-6, unused=0, flag=False):
    m, n = x.shape
    kernel[(m,)](x, x.stride(0), x.stride(1), eps, unused, FLAG=flag, num_warps=4)
"""


def labels(text: str) -> dict[str, tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]]]:
    found = sites("argument-not-forwarded", text)
    return {site.detail: (site.observable_by, site.reveal) for site in found}


def test_an_argument_shows_if_the_kernel_uses_it() -> None:
    assert labels(FORWARDED) == {
        "kernel gets x.stride(1) as stride_x": (VALUES, (Reveal.SEVERAL_ROWS,)),
        "kernel gets x.stride(0) as stride_n": (
            (ObservableBy.VALUES, ObservableBy.BOUNDS),
            (Reveal.ANY,),
        ),
        "kernel gets 1e-6 as eps, whatever eps is": (VALUES, (Reveal.NON_DEFAULT,)),
        "kernel gets 0 as unused, whatever unused is": ((), ()),
        "kernel is not given FLAG and takes its default": (VALUES, (Reveal.NON_DEFAULT,)),
    }
    fixed = labels(FORWARDED.replace("FLAG=flag", "FLAG=True"))
    assert fixed["kernel is not given FLAG and takes its default"] == (VALUES, (Reveal.ANY,))


def test_an_option_that_no_caller_in_the_module_passes_shows_nothing() -> None:
    name = "kernel gets 1e-6 as eps, whatever eps is"
    assert labels(FORWARDED + "\n\ndef call(x):\n    launch(x)\n")[name] == ((), ())
    for given in ("x, 1.0", "x, eps=1.0", "x, *more", "x, **more"):
        called = FORWARDED + f"\n\ndef call(x, *more):\n    launch({given})\n"
        assert labels(called)[name] == (VALUES, (Reveal.NON_DEFAULT,)), given


def test_a_launch_is_bound_to_its_kernel_through_autotuner_and_heuristics() -> None:
    text = """\
@triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % 64 == 0})
@triton.jit
def kernel(x_ptr, y_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    pass


def launch(x, y, more):
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, n=x.numel(), y_ptr=y)
    kernel[(1,)](x, *more)
"""
    launcher = launcher_of(HEADER + text)
    first, second = launcher.launches
    source = launcher.module.source
    bound = {name: source(arg.value).strip() for name, arg in first.arguments.items()}
    assert bound == {"x_ptr": "x", "n": "x.numel()", "y_ptr": "y"}
    assert first.syntax is not None and first.syntax.qualname == "kernel"
    assert not first.opaque
    assert list(second.arguments) == ["x_ptr"] and second.opaque


EXAMPLES = [
    (operator.name, example)
    for operator in all_operators()
    if operator.find_in_launcher is not None
    for example in operator.applies
]
WRAPPERS = {
    "torch.library.wrap_triton": "",
    "wrap_triton": "from torch.library import wrap_triton\n",
    "wrapped": "from torch.library import wrap_triton as wrapped\n",
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize(("operator", "example"), EXAMPLES)
def test_a_launch_of_a_wrapped_kernel_has_the_bugs_of_a_direct_one(
    operator: str, example: Example, wrapper: str
) -> None:
    direct = WRAPPERS[wrapper] + example.source
    wrapped = re.sub(r"^    (\w+)\[", rf"    {wrapper}(\1)[", direct, flags=re.MULTILINE)
    assert wrapped != direct
    unwrapped = [
        (site, re.sub(rf"{wrapper}\((\w+)\)\[", r"\1[", text))
        for site, text in planted(operator, wrapped)
    ]
    assert unwrapped == planted(operator, direct)


def planted(operator: str, text: str) -> list[tuple[Site, str]]:
    """Every site but for its edits, and the text with these made."""
    return [
        (msgspec.structs.replace(site, edits=()), apply_edits(HEADER + text, site.edits))
        for site in sites(operator, text)
    ]
