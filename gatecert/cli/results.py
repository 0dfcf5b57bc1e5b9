"""Where a run's results go, and what is said of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from gatecert.cli.publishing import Publishing, hold_against, publish, update_ratchet
from gatecert.cli.setup import say, write_file
from gatecert.errors import INTERRUPTED, ExitCode

if TYPE_CHECKING:
    from gatecert.campaign.records import Run
    from gatecert.certificate import Certificate
    from gatecert.certificate.ratchet import Held, Ratchet
    from gatecert.config import Require
    from gatecert.store import RunRecord, Scope


def conclude(
    run: Run,
    record: RunRecord,
    scope: Scope,
    require: Require,
    as_json: bool,
    earlier: Certificate | None = None,
    *,
    publishing: Publishing | None = None,
    ratchet: Ratchet | None = None,
) -> int:
    """Write certificate and report, print them, finish the run; gives the exit code.

    Only a whole and finished run takes the plain names. Any other is named after its id, and
    what an earlier session of it wrote under that name gives way.
    """
    from gatecert.certificate import exit_code

    publishing = publishing or Publishing()
    certificate = _certificate(run, require, earlier)
    # An interrupted run has nothing to say of what it did not judge.
    held = None if run.interrupted else hold_against(ratchet, certificate, scope)
    if held is not None and not publishing.update_ratchet:
        certificate = _with_unmet(certificate, held.failures)
    place = _write(certificate, run, record, scope)
    if not run.interrupted:
        record.finish()
    nothing = run.interrupted and not _judges_a_mutant(certificate)
    if as_json or not nothing:
        print_certificate(certificate, as_json)
    if not nothing:
        _tell(certificate, held, place)
    publish(
        publishing,
        certificate,
        held,
        root=Path(run.root),
        as_json=as_json,
        shard=scope.shard is not None,
    )
    if run.interrupted:
        what = "no mutant is judged yet" if nothing else "the figures are partial"
        say(f"interrupted: {what}; the same command goes on where it stopped")
        return INTERRUPTED
    code = exit_code(certificate, require)
    if ratchet is not None and publishing.update_ratchet:
        update_ratchet(publishing, ratchet, certificate, scope, code)
    elif held is not None and held.failures and code is ExitCode.MET:
        return int(ExitCode.REQUIREMENT_NOT_MET)
    if scope.shard is not None and code is ExitCode.NOTHING_SCORED:
        return int(ExitCode.MET)  # A share may hold no scored mutant; the whole will.
    if code is ExitCode.NOTHING_SCORED:
        say(_why_nothing(certificate))
    return int(code)


def _certificate(run: Run, require: Require, earlier: Certificate | None) -> Certificate:
    from gatecert.certificate import certify, unmet
    from gatecert.certificate.against import held_against

    certificate = held_against(certify(run), earlier)
    return _with_unmet(certificate, unmet(certificate, require))


def _with_unmet(certificate: Certificate, lines: Iterable[str]) -> Certificate:
    import msgspec

    return msgspec.structs.replace(certificate, unmet=(*certificate.unmet, *lines))


def _write(
    certificate: Certificate, run: Run, record: RunRecord, scope: Scope
) -> tuple[Path, Path]:
    """Certificate and report on disk; gives their paths."""
    from gatecert.reports.json import render_json
    from gatecert.reports.markdown import render_markdown

    by_id = paths_of(record.folder, record.id)
    plain = scope.whole and not run.interrupted
    paths = paths_of(record.folder) if plain else by_id
    if plain:
        _say_what_is_replaced(record, scope, paths[0])
    write_file(paths[0], render_json(certificate))
    write_file(paths[1], render_markdown(certificate))
    if plain:
        for path in by_id:
            path.unlink(missing_ok=True)
    return paths


def _judges_a_mutant(certificate: Certificate) -> bool:
    """Did any gate answer on any mutant?"""
    counts = (certificate.mutants, *(score.mutants for score in certificate.beside))
    return any(one.scored + one.crashed + one.timeout + one.unreported for one in counts)


def _tell(certificate: Certificate, held: Held | None, paths: tuple[Path, Path]) -> None:
    from gatecert.certificate.doubts import doubt_lines
    from gatecert.reports.tables import gates_of

    for score in gates_of(certificate):
        for line in doubt_lines(score):
            say(line)
    chosen = certificate.selection
    if chosen.note:
        say(chosen.note)
    if chosen.tests_changed:
        say(
            f"tests changed since {chosen.since} ({', '.join(chosen.tests_changed)}): --in-diff "
            "judges no mutant for that; the whole run sees it"
        )
    if chosen.not_reached:
        spent = f"time budget of {chosen.time_budget_s:g} s spent"
        say(f"{spent}: {chosen.not_reached} mutants not reached")
    for line in held.remarks if held is not None else ():
        say(f"ratchet: {line}")
    for line in certificate.unmet:
        say(f"requirement not met: {line}")
    say(f"certificate: {paths[0]}; report: {paths[1]}")


def _why_nothing(certificate: Certificate) -> str:
    counts = certificate.mutants
    found = {name: getattr(counts, name) for name in counts.__struct_fields__}
    said = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in found.items() if n)
    hint = "; raise --time-budget" if certificate.selection.not_reached else ""
    whys = Counter(one.why for one in certificate.inconclusive)
    why = f", most of them since {whys.most_common(1)[0][0]}" if whys else ""
    return f"nothing scored: of {counts.total} mutants {said or 'none'}{why}{hint}"


def paths_of(folder: Path, run: str = "") -> tuple[Path, Path]:
    """Certificate and report of the last whole run, or of the run of that id."""
    suffix = f"-{run}" if run else ""
    return folder / f"certificate{suffix}.json", folder / f"report{suffix}.md"


def print_certificate(certificate: Certificate, as_json: bool) -> None:
    """The certificate on stdout, for people or as one JSON document."""
    from rich.console import Console

    from gatecert.reports.json import render_json
    from gatecert.reports.terminal import print_report

    if as_json:
        sys.stdout.write(render_json(certificate))
    else:
        print_report(certificate, Console(highlight=False))


def _say_what_is_replaced(record: RunRecord, scope: Scope, path: Path) -> None:
    """A whole run of another kind (gate, seed, --quick) takes the place: say which it was."""
    last = record.last_whole_run()
    if path.exists() and last is not None and not last.scope.like(scope):
        say(
            f"{path} was of run {last.id} (`gatecert {last.scope}`) and is replaced; "
            f"`gatecert report {last.id}` shows it"
        )
