"""Read a certificate back, from its file or from the store of its run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gatecert.errors import UsageError

if TYPE_CHECKING:
    from gatecert.certificate import Certificate


class ReadCertificate(NamedTuple):
    """A certificate, the file it is from, and the hash of what stands in that file."""

    certificate: Certificate
    path: Path
    sha256: str


def read_certificate(path: Path) -> ReadCertificate:
    """A certificate.json, or that of a folder of results.

    Raises:
        UsageError: there is no such file, or it is no certificate of this format.
    """
    import msgspec

    from gatecert.certificate.records import FORMAT
    from gatecert.certificate.seal import hash_of
    from gatecert.reports.json import parse_json

    file = path / "certificate.json" if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8")
        document = msgspec.json.decode(text)
        certificate = parse_json(text)
    except FileNotFoundError:
        hint = "; no whole run has finished there" if path.is_dir() else ""
        raise UsageError(f"{file}: no such file{hint}") from None
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        why = "it is no JSON" if type(error) is msgspec.DecodeError and text[:1] != "{" else error
        raise UsageError(f"{file}: not a certificate: {why}{_beside(file)}") from None
    if certificate.format != FORMAT:
        raise UsageError(
            f"{file}: a certificate of format {certificate.format}; this version reads {FORMAT}"
        )
    return ReadCertificate(certificate, file, hash_of(document))


def _beside(file: Path) -> str:
    """The certificate of the same run, where a report was named."""
    name = file.name.replace("report", "certificate", 1)
    other = file.with_name(name).with_suffix(".json")
    return f"; did you mean {other}?" if other != file and other.is_file() else ""


def read_earlier(path: Path) -> Certificate:
    """A certificate to hold a run against: a file, or a store of runs, of which the latest counts.

    Raises:
        UsageError: there is none, or it does not say what controls gave.
        EnvironmentFailure, NothingScored: the store cannot be read, or its run holds nothing.
    """
    if _is_store(path):
        certificate = _of_store(path)
    else:
        read = read_certificate(path)
        certificate = read.certificate
        if read.sha256 != certificate.sha256:
            raise UsageError(f"{read.path}: it does not match its own hash: it was edited or cut")
    if not certificate.control_results:
        raise UsageError(f"{path}: it does not say what became of each control; certify again")
    return certificate


def _is_store(path: Path) -> bool:
    from gatecert.store import DATABASE

    if path.is_dir():
        return (path / DATABASE).is_file() and not (path / "certificate.json").is_file()
    return path.suffix == ".sqlite"


def _of_store(path: Path) -> Certificate:
    from gatecert.certificate import certify
    from gatecert.store import open_runs
    from gatecert.store.records import RunState
    from gatecert.store.runs import as_run

    with open_runs(path) as runs:
        finished = [
            info
            for info in runs.all()
            if info.scope.command == "certify" and info.state is RunState.FINISHED
        ]
        if not finished:
            raise UsageError(f"{runs.path}: it holds no finished run of certify")
        return certify(as_run(runs.load(finished[-1].id)))
