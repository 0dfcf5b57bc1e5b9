"""Records of what is planted: kernels, skips, mutants, candidates, signatures."""

from __future__ import annotations

import enum
import hashlib

import msgspec

from gatecert.operators.records import Edit, ObservableBy, Reveal


class Kernel(msgspec.Struct, frozen=True):
    """One `@triton.jit` function found in source.

    `callees` are the qualified names (`module:qualname`) of jit functions that it calls,
    directly or through others.
    """

    module: str
    qualname: str
    path: str
    line: int
    decorators: tuple[str, ...] = ()
    callees: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`module:qualname`."""
        return f"{self.module}:{self.qualname}"


class Launcher(msgspec.Struct, frozen=True):
    """A Python function that launches kernels; `launches` are `module:qualname`."""

    module: str
    qualname: str
    path: str
    line: int
    launches: tuple[str, ...]


class Skip(msgspec.Struct, frozen=True):
    """Something that was looked at and not mutated, and why."""

    name: str
    path: str
    line: int
    reason: str


class Mutant(msgspec.Struct, frozen=True):
    """One subject with one planted bug.

    `id` is `subject/function/operator[.variant]/ordinal-hash`: it names the kernel function,
    the operator and variant, six hex digits of the edited statements as they were, and the
    ordinal of the site among those that agree in all of these. It depends on no line number
    and no formatting, so text that moves keeps its ids. `diff` is a unified diff for display.
    `also` names further operators whose edit gives the very same text. `kernel` is the edited
    function; where that is a launcher, `launches` names the kernels that it launches.
    """

    id: str
    subject: str
    operator: str
    bug_class: str
    variant: str
    scored: bool
    module: str
    kernel: str
    path: str
    line: int
    detail: str
    diff: str
    edits: tuple[Edit, ...]
    source_sha256: str
    observable_by: tuple[ObservableBy, ...]
    reveal: tuple[Reveal, ...]
    also: tuple[str, ...] = ()
    launches: tuple[str, ...] = ()

    @property
    def in_launcher(self) -> bool:
        """Whether the edited function is a launcher, so that no compiled code changes."""
        return bool(self.launches)

    @property
    def unit(self) -> str:
        """The kernel that it belongs to, `module:qualname`: its own, or the first launched."""
        return self.launches[0] if self.launches else f"{self.module}:{self.kernel}"


class Ignored(msgspec.Struct, frozen=True):
    """A mutant that a person ignores: why, and where that is written."""

    mutant: str
    reason: str
    path: str
    line: int


class Accepted(msgspec.Struct, frozen=True):
    """A mutant that a person accepts as a survivor: why, and who. `changed` says that its function
    is no longer what was accepted."""

    mutant: str
    reason: str
    by: str = ""
    changed: bool = False


class CandidateKind(str, enum.Enum):
    """What a gate is asked to judge."""

    ORIGINAL = "original"
    """The team's code as it is: a gate must accept it."""
    BENIGN = "benign"
    """A correct rewrite that computes other bits: a gate must accept it."""
    MUTANT = "mutant"
    """One planted bug."""
    ADVERSARY = "adversary"
    """Code that no gate may accept."""


class Candidate(msgspec.Struct, frozen=True):
    """Code for a gate to judge: an overlay of module texts over the user's tree.

    `files` maps a real path to the whole text that takes its place on import; it is empty
    for the original. `kernels` are those that can show the change, as `module:qualname`: the
    mutated one, or all that the mutated launcher launches; empty means any. `reveal` says which
    inputs are likely to show it: a gate may try those first.
    """

    id: str
    kind: CandidateKind
    subject: str
    files: dict[str, str] = {}
    detail: str = ""
    diff: str = ""
    kernels: tuple[str, ...] = ()
    reveal: tuple[Reveal, ...] = ()


def original(subject: str) -> Candidate:
    """The team's code as it is."""
    return Candidate(id=f"{subject}/original", kind=CandidateKind.ORIGINAL, subject=subject)


class Signature(msgspec.Struct, frozen=True, order=True):
    """One compiled form of a kernel: what `triton.compile` needs besides the source.

    `types` maps every runtime parameter to its Triton type (`*fp16`, `i32`, `fp32`, ...) with
    integers general (no divisibility and no value 1); `constexprs` holds the rest, each
    value as JSON can hold it.
    """

    kernel: str
    types: tuple[tuple[str, str], ...]
    constexprs: tuple[tuple[str, int | float | bool | str | None], ...]
    num_warps: int = 4
    num_stages: int = 3

    @property
    def key(self) -> str:
        """A short hash that stands for it."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:16]


class CodeDepth(str, enum.Enum):
    """How far a kernel is compiled before its code is compared."""

    OPTIMISED_IR = "optimised_ir"
    """Triton's IR after its optimiser: all that follows is a function of it. Cheap."""
    MACHINE_CODE = "machine_code"
    """The GPU's code: ten times dearer, and the same for more spellings of one kernel."""


class CodeVerdict(str, enum.Enum):
    """What compiling a mutant said."""

    VIABLE = "viable"
    """It compiles and its code differs from the original's."""
    UNVIABLE = "unviable"
    """It imports or compiles for no signature of the domain on which its code could differ."""
    EQUIVALENT = "equivalent"
    """Its compiled code is the original's for every signature of the domain."""
    SAME_ON_LAUNCHES = "same_on_launches"
    """Its compiled code is the original's on all that the gate launches, and no operation declares
    a domain: elsewhere it may differ, so that nothing is proven and it is judged like any other."""
    DUPLICATE = "duplicate"
    """Its compiled code is another mutant's for every signature of the domain."""
    HOST = "host"
    """It is planted in a launcher: compiled code says nothing of it."""
    UNKNOWN = "unknown"
    """No signature is known, or the compiler itself failed: nothing is claimed."""


class CodeComparison(msgspec.Struct, frozen=True):
    """A mutant's compiled code held against the original's and its siblings'."""

    mutant: str
    verdict: CodeVerdict
    detail: str = ""
    duplicate_of: str = ""
    depth: CodeDepth = CodeDepth.OPTIMISED_IR
    signatures_compiled: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
