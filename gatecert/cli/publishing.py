"""What `certify` and `merge` tell a continuous integration, beside the certificate."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gatecert.cli.setup import check_writable, say, write_file
from gatecert.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from gatecert.certificate import Certificate
    from gatecert.certificate.ratchet import Held, Ratchet
    from gatecert.store import Scope

_SOUND = frozenset({ExitCode.MET, ExitCode.REQUIREMENT_NOT_MET})
"""Exit codes of a run whose verdicts may be taken for known."""


@dataclass(frozen=True, slots=True)
class Publishing:
    """Options about what is written for others; `annotations` None means: in GitHub Actions."""

    junit: Path | None = None
    annotations: bool | None = None
    ratchet: Path | None = None
    update_ratchet: bool = False

    def check(self, *, shard: bool = False) -> Ratchet | None:
        """The ratchet, read before anything runs; None without `--ratchet`.

        Raises:
            UsageError: a file cannot be written, the ratchet's is missing or no ratchet, or the
                options contradict each other.
        """
        if self.junit is not None:
            check_writable(self.junit, "--junit")
        if self.ratchet is not None and self.update_ratchet:
            check_writable(self.ratchet, "--ratchet")
        if self.ratchet is None:
            if self.update_ratchet:
                raise UsageError("--update-ratchet needs --ratchet FILE: which file to write")
            return None
        if shard:
            raise UsageError(
                "--ratchet with --shard: no shard can tell which survivors are duplicates; "
                "give --ratchet to `gatecert merge`"
            )
        from gatecert.certificate.ratchet import Ratchet, parse_ratchet

        try:
            return parse_ratchet(str(self.ratchet), self.ratchet.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if self.update_ratchet:
                return Ratchet()
            raise UsageError(
                f"--ratchet {self.ratchet}: no such file; --update-ratchet writes it, for you to "
                "review and commit"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--ratchet {self.ratchet}: {error}") from None


def hold_against(ratchet: Ratchet | None, certificate: Certificate, scope: Scope) -> Held | None:
    """The run held against the ratchet; None without one."""
    from gatecert.certificate.ratchet import hold

    return None if ratchet is None else hold(ratchet, certificate, whole=scope.whole)


def update_ratchet(
    publishing: Publishing, ratchet: Ratchet, certificate: Certificate, scope: Scope, code: ExitCode
) -> None:
    """Write the run's results into the ratchet, unless nothing can be built on them."""
    from gatecert.certificate.ratchet import render_ratchet, updated

    path = publishing.ratchet
    assert path is not None  # there is a ratchet to update
    if code not in _SOUND:
        say(f"{path} is left as it is: a run with exit code {int(code)} is nothing to go by")
        return
    new = updated(ratchet, certificate, whole=scope.whole)
    write_file(path, render_ratchet(new), option="--ratchet")
    known = new.gates[certificate.gate]
    say(f"{path}: {len(known.survived)} survivors and {len(known.killed)} kills; review and commit")


def publish(
    publishing: Publishing,
    certificate: Certificate,
    held: Held | None,
    *,
    root: Path,
    as_json: bool,
    shard: bool,
) -> None:
    """Write JUnit, annotations and step summary, as asked for or as GitHub Actions has them."""
    from gatecert.reports.github import annotation_lines, step_summary
    from gatecert.reports.junit import render_junit

    if publishing.junit is not None:
        write_file(publishing.junit, render_junit(certificate), option="--junit")
    if publishing.annotations or (publishing.annotations is None and _in_actions() and not shard):
        only = None if held is None else {*held.new_survivors, *held.lost_kills}
        workspace = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
        # With --json stdout is one document; GitHub reads commands on stderr too.
        stream = sys.stderr if as_json else sys.stdout
        for line in annotation_lines(certificate, root=root, workspace=workspace, only=only):
            print(line, file=stream)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        _append(Path(summary), step_summary(certificate, held))


def _in_actions(environment: Mapping[str, str] = os.environ) -> bool:
    return environment.get("GITHUB_ACTIONS") == "true"


def _append(path: Path, text: str) -> None:
    """A summary that cannot be written costs no verdict."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        say(f"no step summary: {path}: {error.strerror}")
