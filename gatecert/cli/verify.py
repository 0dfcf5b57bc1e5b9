"""`gatecert verify`: does a certificate still hold for this tree?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.certificate import Certificate
    from gatecert.certificate.verify import Change
    from gatecert.provenance import Provenance


@click.command("verify", short_help="Hold a certificate against this tree.")
@click.argument("path", metavar="CERT", type=click.Path(path_type=Path))
@options.config_option
@options.json_option
def command(path: Path, config_path: Path | None, as_json: bool) -> int:
    """Hold the certificate CERT (a file, or a folder of results) against this tree.

    Says what has changed since: kernels, launchers, tests, configuration, operators, versions.
    Nothing of yours is imported or run. Exit code 0: it holds; 2: something changed; 1: CERT is
    no certificate, or its configuration is not here.
    """
    import msgspec

    from gatecert.campaign.environment import describe_environment
    from gatecert.campaign.provenance import look_again
    from gatecert.certificate.verify import changes
    from gatecert.cli.certificates import read_certificate
    from gatecert.cli.setup import say
    from gatecert.config import load_config
    from gatecert.errors import ExitCode, UsageError
    from gatecert.lanes.cuda.gpu import describe_gpu

    certificate, file, sha256 = read_certificate(path)
    then = certificate.provenance
    if then is None:
        raise UsageError(f"{file}: it holds no hashes, so no tree can be held against it")
    config_file = config_path or find_recorded(then, file)
    say(f"configuration: {config_file}")
    now = look_again(then, load_config(config_file))
    recorded = certificate.environment
    gpu = describe_gpu() if recorded.gpu else ""
    environment = describe_environment(certificate.labels_sha256, recorded.lane, gpu)
    found = changes(certificate, now, environment, sha256)
    if as_json:
        document = {
            "holds": not found,
            "certificate": str(path),
            "changes": found,
            "not_tested": certificate.not_tested,
            "not_mutated": certificate.skipped,
        }
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")
    else:
        for line in _lines(certificate, found):
            click.echo(line)
    return int(ExitCode.REQUIREMENT_NOT_MET if found else ExitCode.MET)


def find_recorded(then: Provenance, certificate: Path) -> Path:
    """The configuration that a certificate was made with: above the certificate, or from here.

    Raises:
        UsageError: it is in neither place.
    """
    from gatecert.config import CORPUS_CONFIG
    from gatecert.errors import UsageError

    if not then.config:
        return CORPUS_CONFIG
    name = Path(then.config)
    # From the folder of the results upwards; a configuration elsewhere is named from here.
    folders = [*certificate.resolve().parents, Path.cwd()]
    for folder in folders:
        if (folder / name).is_file():
            return (folder / name).resolve()
    raise UsageError(f"the certificate is of {name}, which is not here; name it with --config")


def _lines(certificate: Certificate, found: Sequence[Change]) -> Iterator[str]:
    subjects = ", ".join(subject.name for subject in certificate.subjects)
    how = [f"lane {certificate.lane}", f"seed {certificate.seed}"]
    how += ["quick"] if certificate.quick else []
    how += ["interrupted: partial figures"] if certificate.interrupted else []
    yield f"certificate of gate {certificate.gate} on {subjects}; {', '.join(how)}"
    if found:
        things = "1 thing has" if len(found) == 1 else f"{len(found)} things have"
        yield f"does not hold: {things} changed"
        yield from (f"  {change}" for change in found)
    else:
        yield "holds: nothing that it rests on has changed"
    if certificate.not_tested:
        yield "not tested, then or now"
        yield from (f"  {line}" for line in certificate.not_tested)
    if certificate.skipped:
        yield "not mutated"
        yield from (f"  {skip.name}: {skip.reason}" for skip in certificate.skipped)
