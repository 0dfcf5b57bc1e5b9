"""Prove by compiled code, without a GPU, which mutants are unviable, equivalent or duplicates.

Two texts are the same kernel if their code is the same, byte for byte, for every signature of
the declared domain: their optimised IR, from which all else follows, or their machine code. The
original and the mutants of a kernel form groups that one signature after another splits; nearly
every mutant differs at its first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import msgspec

from gatecert.mutants.compile_pool import CompilePool
from gatecert.mutants.compile_protocol import FAILED, CompileReply, CompileRequest, Stop
from gatecert.mutants.discover import body_start
from gatecert.mutants.plant import overlay_of
from gatecert.mutants.records import (
    CodeComparison,
    CodeDepth,
    CodeVerdict,
    Kernel,
    Mutant,
    Signature,
)

OnResult = Callable[[CodeComparison], None]


def compare_code(
    mutants: Sequence[Mutant],
    pool: CompilePool,
    *,
    kernels: Iterable[Kernel],
    texts: Mapping[str, str],
    signatures: Sequence[Signature],
    import_paths: Sequence[str] = (),
    preload: Sequence[str] = (),
    on_result: OnResult | None = None,
    timeout_s: float = 60.0,
    depth: CodeDepth = CodeDepth.OPTIMISED_IR,
) -> list[CodeComparison]:
    """Hold each mutant's compiled code against the original's and its siblings'.

    `texts` maps paths to original module texts; `kernels` say which kernel calls which device
    function, so that a mutated device function is compiled in every kernel that it reaches.
    `preload` names library modules that the kernels import, dear to import once per mutant.
    `timeout_s` limits one compilation. `on_result` is called once per mutant, from this thread.
    The answer keeps the order of `mutants`.
    """
    callees = {kernel.name: frozenset(kernel.callees) for kernel in kernels}
    families: dict[tuple[Signature, ...], list[Mutant]] = defaultdict(list)
    found: dict[str, CodeComparison] = {}

    def report(comparison: CodeComparison) -> None:
        found[comparison.mutant] = comparison
        if on_result is not None:
            on_result(comparison)

    for mutant in mutants:
        if _retypes(mutant, texts):
            detail = "it changes how Triton types an argument, so that launches ask for other forms"
            report(CodeComparison(mutant.id, CodeVerdict.UNKNOWN, detail))
        else:
            families[relevant_signatures(mutant, signatures, callees)].append(mutant)

    for mutant in families.pop((), ()):
        if mutant.in_launcher:
            report(CodeComparison(mutant.id, CodeVerdict.HOST, "planted in a launcher"))
        else:
            report(CodeComparison(mutant.id, CodeVerdict.UNKNOWN, "no launch of it was seen"))
    if families:
        request = CompileRequest(
            files={},
            signatures=(),
            stop=Stop.NEVER,
            timeout_s=timeout_s,
            depth=depth,
            import_paths=tuple(import_paths),
            preload=tuple(preload),
        )
        comparison = _Comparison(pool, texts, request, report)
        comparison.run([_Family(s, tuple(ms)) for s, ms in families.items()])
    return [found[mutant.id] for mutant in mutants]


def _retypes(mutant: Mutant, texts: Mapping[str, str]) -> bool:
    """Does the mutant edit the parameters of its function, annotations included?

    The signatures are those of the original's launches: compiled by them, a parameter without
    its `tl.int64` would still be 64 bits wide.
    """
    if mutant.in_launcher:
        return False
    body = body_start(texts[mutant.path], mutant.kernel)
    return body is None or any(edit.start < body for edit in mutant.edits)


def relevant_signatures(
    mutant: Mutant, signatures: Iterable[Signature], callees: Mapping[str, frozenset[str]]
) -> tuple[Signature, ...]:
    """Signatures whose compiled code holds the mutated function, the likeliest to differ first.

    16-bit forms come first (a dropped cast to float32 shows there only), small ones before
    large ones (they compile faster).
    """
    mutated = f"{mutant.module}:{mutant.kernel}"

    def holds(signature: Signature) -> bool:
        handed = {
            value.removeprefix("fn:")
            for _, value in signature.constexprs
            if isinstance(value, str) and value.startswith("fn:")
        }
        names = {signature.kernel, *handed}
        return any(mutated == name or mutated in callees.get(name, ()) for name in names)

    def order(signature: Signature) -> tuple[bool, int]:
        wide = not any(type_.endswith("16") for _, type_ in signature.types if type_[0] == "*")
        size = 1
        for _, value in signature.constexprs:
            size *= value if type(value) is int and value > 1 else 1
        return wide, size

    return tuple(sorted((s for s in dict.fromkeys(signatures) if holds(s)), key=order))


@dataclass(frozen=True, slots=True)
class _Family:
    """Mutants of functions that the same signatures reach."""

    signatures: tuple[Signature, ...]
    mutants: tuple[Mutant, ...]


@dataclass(slots=True)
class _Member:
    """The original (`mutant` is None) or a mutant, and its code as far as it is known."""

    mutant: Mutant | None
    hashes: list[str] = field(default_factory=list)
    error: str = ""
    broken: str = ""
    seconds: float = 0.0
    cpu_s: float = 0.0

    def add(self, reply: CompileReply) -> None:
        self.hashes += reply.hashes
        self.error = self.error or reply.error
        self.broken = reply.broken
        self.seconds += reply.seconds
        self.cpu_s += reply.cpu_s


@dataclass(frozen=True, slots=True)
class _Group:
    """Members whose code is the same as far as all of it is known; the first leads."""

    signatures: tuple[Signature, ...]
    original: _Member
    members: tuple[_Member, ...]


class _Comparison:
    """Runs the rounds: the first signature for all, then the rest where codes agree."""

    def __init__(
        self,
        pool: CompilePool,
        texts: Mapping[str, str],
        request: CompileRequest,
        report: OnResult,
    ) -> None:
        self._pool = pool
        self._texts = texts
        self._request = request
        self._report = report
        self._partial: list[_Group] = []
        """Groups that compile for some signatures only, each of one member."""

    def run(self, families: Sequence[_Family]) -> None:
        originals = [_Member(None) for _ in families]
        self._compile(
            (original, family.signatures, Stop.FIRST_SUCCESS, ())
            for original, family in zip(originals, families, strict=True)
        )
        started = []
        for family, original in zip(families, originals, strict=True):
            if original.broken or original.hashes[-1] == FAILED:
                why = original.broken or original.error
                for mutant in family.mutants:
                    detail = f"the original does not compile: {why}"
                    self._report(CodeComparison(mutant.id, CodeVerdict.UNKNOWN, detail))
                continue
            # Forms that the original itself does not compile to say nothing.
            signatures = family.signatures[len(original.hashes) - 1 :]
            original.hashes[:] = original.hashes[-1:]
            members = tuple(_Member(mutant) for mutant in family.mutants)
            started.append((signatures, original, members))
        self._compile(
            (member, signatures, Stop.FIRST_SUCCESS, ())
            for signatures, _, members in started
            for member in members
        )
        groups = [
            group
            for signatures, original, members in started
            for group in self._split(_Group(signatures, original, (original, *members)))
        ]
        while groups:
            groups = self._next_round(groups)
        self._settle_partial()

    def _split(self, group: _Group) -> list[_Group]:
        """Report the members that are settled; group the others by the code known so far."""
        alike: dict[tuple[str, ...], list[_Member]] = defaultdict(list)
        for member in group.members:
            if member.mutant is not None and member.broken:
                self._report(self._say(member, CodeVerdict.UNKNOWN, member.broken))
            elif set(member.hashes) == {FAILED} and len(member.hashes) == len(group.signatures):
                self._report(self._say(member, CodeVerdict.UNVIABLE, member.error))
            elif _fails_where_not(member, group.original):
                self._partial.append(replace(group, members=(member,)))
            else:
                alike[tuple(member.hashes)].append(member)
        groups = []
        for same in alike.values():
            if len(same) > 1 and len(same[0].hashes) < len(group.signatures):
                groups.append(replace(group, members=tuple(same)))
            else:
                self._conclude(same)
        return groups

    def _settle_partial(self) -> None:
        """What compiles only where its code is the original's can nowhere show its bug."""
        originals = {id(group.original): group for group in self._partial}
        self._compile(
            (member, group.signatures[len(member.hashes) :], Stop.NEVER, ())
            for group in (
                *(replace(group, members=(group.original,)) for group in originals.values()),
                *self._partial,
            )
            for member in group.members
        )
        for group in self._partial:
            [member] = group.members
            same = all(
                ours in (theirs, FAILED)
                for ours, theirs in zip(member.hashes, group.original.hashes, strict=False)
            )
            if member.broken or group.original.broken:
                broken = member.broken or group.original.broken
                self._report(self._say(member, CodeVerdict.UNKNOWN, broken))
            elif same:
                detail = f"compiles only where its code is the original's: {member.error}"
                self._report(self._say(member, CodeVerdict.UNVIABLE, detail))
            else:
                detail = f"compiles for some signatures only: {member.error}"
                self._report(self._say(member, CodeVerdict.VIABLE, detail))

    def _conclude(self, same: Sequence[_Member]) -> None:
        """All that can be known of these members is: they have one code, or are one member."""
        first, *others = same
        if first.mutant is not None:
            self._report(self._say(first, CodeVerdict.VIABLE))
        for member in others:
            if first.mutant is None:
                self._report(self._say(member, CodeVerdict.EQUIVALENT))
            else:
                self._report(self._say(member, CodeVerdict.DUPLICATE, duplicate_of=first.mutant.id))

    def _next_round(self, groups: Sequence[_Group]) -> list[_Group]:
        """Compile each group's leader for more, and the others until they differ from it.

        A round doubles what is known of a leader: most members differ early, and only those
        that never do are worth all the signatures.
        """
        self._compile(
            (leader, group.signatures[len(leader.hashes) : 2 * len(leader.hashes)], Stop.NEVER, ())
            for group in groups
            for leader in group.members[:1]
        )
        whole = [group for group in groups if not group.members[0].broken]
        self._compile(
            (
                member,
                group.signatures[len(member.hashes) : len(group.members[0].hashes)],
                Stop.FIRST_DIFFERENCE,
                tuple(group.members[0].hashes[len(member.hashes) :]),
            )
            for group in whole
            for member in group.members[1:]
        )
        following = []
        for group in groups:
            leader = group.members[0]
            if leader.broken and leader.mutant is None:
                for member in group.members[1:]:
                    detail = f"the original could not be compared: {leader.broken}"
                    self._report(self._say(member, CodeVerdict.UNKNOWN, detail))
            else:
                following += self._split(group)
        return following

    def _compile(
        self, work: Iterable[tuple[_Member, tuple[Signature, ...], Stop, tuple[str, ...]]]
    ) -> None:
        work = [item for item in work if item[1]]
        requests = [
            msgspec.structs.replace(
                self._request,
                files=overlay_of(member.mutant, self._texts) if member.mutant else {},
                signatures=signatures,
                stop=stop,
                expected=expected,
            )
            for member, signatures, stop, expected in work
        ]
        for (member, *_), reply in zip(work, self._pool.map(requests), strict=True):
            member.add(reply)

    def _say(
        self, member: _Member, verdict: CodeVerdict, detail: str = "", duplicate_of: str = ""
    ) -> CodeComparison:
        assert member.mutant is not None
        return CodeComparison(
            mutant=member.mutant.id,
            verdict=verdict,
            detail=detail,
            duplicate_of=duplicate_of,
            depth=self._request.depth,
            signatures_compiled=len(member.hashes),
            seconds=member.seconds,
            cpu_s=member.cpu_s,
        )


def _fails_where_not(member: _Member, original: _Member) -> bool:
    """Whether it failed on a signature for which the original compiles, as far as is known."""
    if member.mutant is None:
        return False
    pairs = zip_longest(member.hashes, original.hashes[: len(member.hashes)], fillvalue="")
    return any(ours == FAILED and theirs != FAILED for ours, theirs in pairs)
