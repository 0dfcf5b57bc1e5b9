"""`gatecert doctor`: can this machine do the job?"""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

from gatecert.cli import options
from gatecert.errors import EnvironmentFailure, ExitCode

_LEAST_FREE_BYTES = 1 << 30
_PROBE = """\
import os
os.environ["TRITON_INTERPRET"] = "1"
from gatecert.lanes import interpreter
interpreter.activate()
import torch
from gatecert.corpus.leaky_relu import leaky_relu
got = leaky_relu(torch.tensor([[-2.0, 4.0]]), 0.5)
raise SystemExit(None if got.tolist() == [[-1.0, 4.0]] else f"wrong result: {got.tolist()}")
"""


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    found: str


@click.command("doctor", short_help="Check whether this machine is fit.")
@options.json_option
@options.out_option
def command(as_json: bool, out: Path) -> int:
    """Check Python, torch, Triton, pytest, the interpreter lane, a GPU, and room for results."""
    import msgspec

    results = list(checks(out))
    if as_json:
        document = [check._asdict() for check in results]
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")
    else:
        for check in results:
            click.echo(f"{'ok  ' if check.ok else 'FAIL'}  {check.name}: {check.found}")
    failed = any(not check.ok for check in results)
    return int(ExitCode.ENVIRONMENT_FAILED if failed else ExitCode.MET)


def checks(out: Path) -> Iterator[Check]:
    """Every check, cheap ones first; none raises."""
    for name, look in (
        ("python", _python),
        ("packages", _packages),
        ("pytest", _pytest),
        ("processes", _processes),
        ("room for results", lambda: _room(out)),
        ("interpreter lane", _lane),
        ("gpu", _gpu),
    ):
        yield _checked(name, look)


def _checked(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except EnvironmentFailure as error:
        return Check(name, False, str(error))


def _python() -> str:
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}"


def _packages() -> str:
    from packaging.requirements import Requirement

    found = []
    for line in importlib.metadata.requires("gatecert") or ():
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            raise EnvironmentFailure(f"{requirement.name} is missing; pip install it") from None
        if not requirement.specifier.contains(version, prereleases=True):
            raise EnvironmentFailure(
                f"{requirement.name} {version} is outside {requirement.specifier}"
            )
        found.append(f"{requirement.name} {version}")
    return ", ".join(found)


def _pytest() -> str:
    """Only gates of kind pytest need it: without it the machine is fit for all others."""
    try:
        return f"pytest {importlib.metadata.version('pytest')}"
    except importlib.metadata.PackageNotFoundError:
        return "not installed; a gate of kind pytest needs it: pip install pytest"


def _gpu() -> str:
    """Only gates with `lane = "cuda"` and sanitizers need one."""
    from gatecert.lanes.cuda.gpu import describe_gpu

    return describe_gpu() or 'none; a gate with lane = "cuda" or a sanitizer needs one'


def _processes() -> str:
    if not sys.platform.startswith("linux"):
        raise EnvironmentFailure(f"{platform.system()}: candidates run in forked Linux processes")
    return f"{options.available_cores()} cores"


def _room(out: Path) -> str:
    folder = next(parent for parent in (out.absolute(), *out.absolute().parents) if parent.is_dir())
    free = shutil.disk_usage(folder).free
    if free < _LEAST_FREE_BYTES:
        raise EnvironmentFailure(f"{free >> 20} MiB free in {folder}; 1 GiB is needed")
    return f"{free >> 30} GiB free in {folder}"


def _lane() -> str:
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise EnvironmentFailure(f"a kernel with a known answer failed: {said[-1]}")
    return "a kernel with a known answer gives it"
