"""The vocabulary of Triton kernels: what a call is called, and what each argument is for."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.kernel import KernelSyntax


class Role(enum.Enum):
    """What an expression is to the expression that holds it."""

    VALUE = "value"
    """Its value enters the result arithmetically."""
    ADDRESS = "address"
    """It is the pointer of a load, store or atomic."""
    MASK = "mask"
    """It decides which lanes a load or store touches."""
    CONDITION = "condition"
    """It decides between values (`where`, `if` expressions, comparisons)."""
    PAD = "pad"
    """It stands in for lanes that a load masks off."""
    STORED = "stored"
    """It is written to memory."""
    RETURNED = "returned"
    """It leaves the function, by `return` or as argument of a helper called for its effect."""
    CONTROL = "control"
    """It decides whether or how often statements run."""
    META = "meta"
    """It is a shape, an axis, a dtype or an option."""


SIGNATURES: Mapping[str, tuple[str, ...]] = {
    "load": ("pointer", "mask", "other"),
    "store": ("pointer", "value", "mask"),
    "descriptor_load": ("pointer", "offsets"),
    "descriptor_store": ("pointer", "offsets", "value"),
    "atomic_add": ("pointer", "value", "mask"),
    "atomic_max": ("pointer", "value", "mask"),
    "atomic_min": ("pointer", "value", "mask"),
    "atomic_and": ("pointer", "value", "mask"),
    "atomic_or": ("pointer", "value", "mask"),
    "atomic_xor": ("pointer", "value", "mask"),
    "atomic_xchg": ("pointer", "value", "mask"),
    "atomic_cas": ("pointer", "cmp", "value"),
    "where": ("condition", "x", "y"),
    "sum": ("input", "axis", "keep_dims"),
    "max": ("input", "axis", "return_indices", "return_indices_tie_break_left", "keep_dims"),
    "min": ("input", "axis", "return_indices", "return_indices_tie_break_left", "keep_dims"),
    "argmax": ("input", "axis", "tie_break_left", "keep_dims"),
    "argmin": ("input", "axis", "tie_break_left", "keep_dims"),
    "xor_sum": ("input", "axis", "keep_dims"),
    "reduce": ("input", "axis", "combine_fn", "keep_dims"),
    "cumsum": ("input", "axis", "reverse"),
    "cumprod": ("input", "axis", "reverse"),
    "associative_scan": ("input", "axis", "combine_fn", "reverse"),
    "dot": ("input", "other", "acc", "input_precision", "allow_tf32"),
    "to": ("input", "dtype"),
    "full": ("shape", "value", "dtype"),
    "zeros": ("shape", "dtype"),
    "zeros_like": ("like",),
    "arange": ("start", "end"),
    "fma": ("x", "y", "z"),
    "maximum": ("x", "y"),
    "minimum": ("x", "y"),
    "div": ("x", "y"),
    "clamp": ("x", "min", "max"),
    "expand_dims": ("input", "axis"),
    "broadcast_to": ("input", "shape"),
    "reshape": ("input", "shape"),
    "trans": ("input",),
    "make_block_ptr": ("base", "shape", "strides", "offsets", "block_shape", "order"),
    "advance": ("base", "offsets"),
    "program_id": ("axis",),
    "num_programs": ("axis",),
}
"""Parameters by position; the receiver of a method call is the first."""

REDUCTIONS = frozenset({"sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce"})
SCANS = frozenset({"cumsum", "cumprod", "associative_scan"})
ATOMICS = frozenset(
    {"atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor",
     "atomic_xchg", "atomic_cas"}
)  # fmt: skip
EXPONENTIALS: Mapping[str, float] = {"exp": 1.0, "exp2": 0.6931471805599453}
"""Exponentials and the natural logarithm of their base."""
LOGARITHMS: Mapping[str, float] = {"log": 1.0, "log2": 1.4426950408889634}
"""Logarithms and the factor from the natural one."""

_SYNONYMS: Mapping[str, str] = {
    "cast": "to",
    "fast_expf": "exp",
    "fast_exp2f": "exp2",
    "fast_logf": "log",
    "fmax": "maximum",
    "fmin": "minimum",
    "div_rn": "div",
    "fdiv": "div",
    "fast_dividef": "div",
    "sqrt_rn": "sqrt",
    "fast_tanhf": "tanh",
    "view": "reshape",
    "permute": "trans",
}
_META = frozenset(
    {
        "axis", "keep_dims", "dtype", "shape", "return_indices", "combine_fn", "reverse",
        "return_indices_tie_break_left", "tie_break_left", "input_precision", "allow_tf32",
        "out_dtype", "max_num_imprecise_acc", "order", "block_shape", "boundary_check",
        "padding_option", "cache_modifier", "eviction_policy", "volatile", "sem", "scope",
        "num_stages", "like",
    }
)  # fmt: skip
_META_CALLS = frozenset(
    {"program_id", "num_programs", "zeros", "zeros_like", "static_assert", "static_print",
     "device_print", "device_assert", "debug_barrier", "cdiv", "constexpr"}
)  # fmt: skip
_RANGES = frozenset({"builtins.range", "range", "static_range"})
_BUILTINS = frozenset({"range", "min", "max", "abs", "float", "int", "len", "isinstance"})


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call, under its parameter's name (`arg3` where that is unknown)."""

    parameter: str
    value: cst.BaseExpression
    arg: cst.Arg | None
    """None for the receiver of a method call."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Names under which a module knows the language's functions and other modules."""

    language: frozenset[str]
    functions: Mapping[str, str]
    """Local name -> function of `triton.language` (`from ... import rsqrt as r`)."""
    foreign: frozenset[str]
    """Names of other imported modules or functions."""

    def call_name(self, call: cst.Call) -> str:
        """The callee's canonical name.

        `exp` for `tl.exp`, `tl.math.exp`, `x.exp()` and aliases; `builtins.max` for Python's
        own; `helper.f` for any other function.
        """
        func = call.func
        if isinstance(func, cst.Name):
            if func.value in self.functions:
                return _canonical(self.functions[func.value])
            if func.value in _BUILTINS:
                return f"builtins.{func.value}"
            return f"helper.{func.value}"
        if isinstance(func, cst.Attribute):
            root = dotted(func.value)
            name = func.attr.value
            if root is None:
                return _canonical(name)
            head = root.split(".")[0]
            if self._is_language(root):
                return _canonical("maximum" if name == "max" and ".math" in root else name)
            if head in self.foreign:
                return f"helper.{root}.{name}"
            # Tensor descriptors are loaded and stored by methods; pointers never are.
            return f"descriptor_{name}" if name in ("load", "store") else _canonical(name)
        return "helper.?"

    def is_method(self, call: cst.Call) -> bool:
        """Whether the call is `value.function(...)`, so that the receiver is an argument."""
        if not isinstance(call.func, cst.Attribute):
            return False
        root = dotted(call.func.value)
        if root is None:
            return True
        return not self._is_language(root) and root.split(".")[0] not in self.foreign

    def _is_language(self, root: str) -> bool:
        head = root.split(".")[0]
        return (
            root in self.language
            or head in self.language
            or head in self.functions
            or root.startswith("triton.language")
        )


def dotted(node: ast.expr | cst.BaseExpression) -> str | None:
    """`a.b.c` as text, or None if the expression is no chain of names."""
    match node:
        case cst.Name(value=name) | ast.Name(id=name):
            return name
        case cst.Attribute(value=owner, attr=cst.Name(value=name)) | ast.Attribute(owner, name):
            root = dotted(owner)
            return None if root is None else f"{root}.{name}"
    return None


def absolute(name: str, imported: Mapping[str, str]) -> str:
    """The absolute name of `a.b.c`, as far as imports tell; "" for anything else."""
    root, dot, rest = name.partition(".")
    return imported[root] + dot + rest if root in imported else ""


def vocabulary(kernel: KernelSyntax) -> Vocabulary:
    """Read the imports of the kernel's module, wherever in it they stand."""
    functions: dict[str, str] = {}
    foreign: set[str] = set()
    language = set(kernel.language_names)
    for node in _imports(kernel.module.tree):
        if isinstance(node, cst.Import):
            for alias in node.names:
                name = dotted(alias.name) or ""
                local = alias.asname.name if alias.asname else None
                known = local.value if isinstance(local, cst.Name) else name.split(".")[0]
                if not name.startswith("triton.language"):
                    foreign.add(known)
                elif isinstance(local, cst.Name):
                    language.add(known)
        else:
            _import_from(node, functions, language, foreign)
    return Vocabulary(frozenset(language), functions, frozenset(foreign - language))


def _import_from(
    node: cst.ImportFrom, functions: dict[str, str], language: set[str], foreign: set[str]
) -> None:
    source = dotted(node.module) if node.module is not None else ""
    if isinstance(node.names, cst.ImportStar) or source is None:
        return
    for alias in node.names:
        name = alias.evaluated_name
        local = alias.evaluated_alias or name
        if source == "triton" and name == "language":
            language.add(local)
        elif source.startswith("triton.language"):
            functions[local] = name
        else:
            foreign.add(local)


def _imports(tree: cst.CSTNode) -> Iterator[cst.Import | cst.ImportFrom]:
    for child in tree.children:
        if isinstance(child, cst.Import | cst.ImportFrom):
            yield child
        elif not isinstance(child, cst.BaseExpression | cst.FunctionDef | cst.ClassDef):
            yield from _imports(child)


def _canonical(name: str) -> str:
    return _SYNONYMS.get(name, name)


def call_arguments(words: Vocabulary, call: cst.Call) -> tuple[Argument, ...]:
    """The call's arguments under the names of its parameters, receiver first."""
    names = SIGNATURES.get(words.call_name(call), ())
    found: list[Argument] = []
    position = 0
    if isinstance(call.func, cst.Attribute) and words.is_method(call):
        found.append(Argument(names[0] if names else "arg0", call.func.value, None))
        position = 1
    for arg in call.args:
        if arg.keyword is not None:
            found.append(Argument(_keyword(arg.keyword.value), arg.value, arg))
            continue
        name = names[position] if position < len(names) else f"arg{position}"
        found.append(Argument(name, arg.value, arg))
        position += 1
    return tuple(found)


def _keyword(name: str) -> str:
    return {"val": "value", "x": "x", "keepdims": "keep_dims"}.get(name, name)


def argument_role(call_name: str, parameter: str) -> Role:
    """What the argument of that parameter is to the call."""
    if call_name in _RANGES:
        return Role.CONTROL
    if parameter in _META or call_name in _META_CALLS:
        return Role.META
    if call_name == "load":
        return {"pointer": Role.ADDRESS, "mask": Role.MASK, "other": Role.PAD}.get(
            parameter, Role.META
        )
    if call_name.startswith("descriptor_"):
        return Role.STORED if parameter == "value" else Role.ADDRESS
    if call_name == "store" or call_name in ATOMICS:
        return {"pointer": Role.ADDRESS, "value": Role.STORED, "mask": Role.MASK}.get(
            parameter, Role.META
        )
    if call_name == "where" and parameter == "condition":
        return Role.CONDITION
    return Role.VALUE
