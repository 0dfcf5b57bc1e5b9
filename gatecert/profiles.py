"""Profiles: ready configurations by where a kernel comes from, as data (profiles.toml)."""

from __future__ import annotations

import enum
import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from gatecert.errors import InternalError, UsageError, did_you_mean
from gatecert.mutants.records import CandidateKind

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FILE = Path(__file__).with_name("profiles.toml")
_USUAL_STRATEGY = "certify"
"""The oracle's own."""
_ALL = (CandidateKind.BENIGN, CandidateKind.ADVERSARY, CandidateKind.MUTANT)


class DimsRule(str, enum.Enum):
    """Which sizes the oracle adds to those of its strategy."""

    LISTED = "listed"
    """The subject's own `dims`."""
    AROUND_BLOCKS = "around_blocks"
    """Also B-1, B, B+1 and 2B+1 for every block size that launches show."""
    AROUND_CONFIGS = "around_configs"
    """Also the same for every tile size of every autotune configuration."""


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One profile; without a name it is the usual treatment, in which nothing is left out."""

    name: str = ""
    summary: str = ""
    classes: tuple[str, ...] = ()
    """Bug classes that are planted; empty: all."""
    candidates: tuple[CandidateKind, ...] = _ALL
    """What is judged beside the original."""
    strategy: str = ""
    """The oracle's; empty: its own."""
    dims: DimsRule = DimsRule.LISTED
    every_config: bool = False
    """The oracle runs each case under every autotune configuration."""
    quick: bool = False
    needs_dims: bool = False
    """The subject must list sizes of its own."""
    needs_earlier: bool = False
    """A certificate to compare with must be named."""

    @property
    def plants(self) -> bool:
        """Whether mutants are judged at all."""
        return CandidateKind.MUTANT in self.candidates

    def covers(self, bug_class: str) -> bool:
        """Whether bugs of that class are planted."""
        return self.plants and (not self.classes or bug_class in self.classes)

    @property
    def for_gates(self) -> Profile:
        """As much of it as a gate sees: profiles that agree in this share their verdicts."""
        strategy = "" if self.strategy == _USUAL_STRATEGY else self.strategy
        return Profile(strategy=strategy, every_config=self.every_config)

    def left_out(self, bug_classes: Sequence[str]) -> Iterator[str]:
        """What it does not test, for a certificate: one line each."""
        if not self.plants:
            yield f"profile {self.name} plants no bugs: nothing is said of the gate's kill rate"
        elif self.classes:
            others = [name for name in bug_classes if name not in self.classes]
            yield f"profile {self.name} leaves out bugs of class {', '.join(others)}"
        for kind in (CandidateKind.BENIGN, CandidateKind.ADVERSARY):
            if kind not in self.candidates:
                what = "benign rewrites" if kind is CandidateKind.BENIGN else "adversaries"
                yield f"profile {self.name} runs no {what}"


@functools.cache
def profiles() -> Mapping[str, Profile]:
    """Every built-in profile by name, in the order of the file."""
    try:
        tables = tomllib.loads(_FILE.read_text(encoding="utf-8"))["profile"]
        return {
            name: msgspec.convert({"name": name, **table}, Profile)
            for name, table in tables.items()
        }
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, KeyError) as error:
        raise InternalError(f"{_FILE.name}: {error}") from error


def get_profile(name: str) -> Profile:
    """The profile of that name; "" is the usual treatment.

    Raises:
        UsageError: there is none; names the nearest.
    """
    if not name:
        return Profile()
    known = profiles()
    if name in known:
        return known[name]
    hint = did_you_mean(name, known)
    raise UsageError(f"unknown profile {name!r}; {hint}")


def dims_around(
    listed: Mapping[str, Sequence[int]],
    tiled: Sequence[str],
    blocks: Mapping[str, Sequence[int]],
    tiles: Sequence[int] = (),
) -> dict[str, tuple[int, ...]]:
    """Sizes by dim: those listed, and for every tiled dim those around its block sizes.

    Which dim an autotune configuration's tile cuts is not known, so `tiles` count for each.
    """
    found = {dim: tuple(sizes) for dim, sizes in listed.items()}
    for dim in tiled:
        around = sorted(
            {
                size
                for block in (*blocks.get(dim, ()), *tiles)
                for size in (block - 1, block, block + 1, 2 * block + 1)
                if size > 0
            }
        )
        if around:
            found[dim] = tuple(dict.fromkeys((*found.get(dim, ()), *around)))
    return found
