"""Find the command, run it, and turn every ending into one line and an exit code."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Sequence

import click

import gatecert
from gatecert.cli.stopping import stoppable
from gatecert.errors import INTERRUPTED, ExitCode, GatecertError, described

COMMANDS = (
    "accept",
    "calibrate",
    "certify",
    "controls",
    "doctor",
    "gates",
    "hunt",
    "init",
    "limits",
    "merge",
    "mutants",
    "operations",
    "operators",
    "remedies",
    "replay",
    "report",
    "runs",
    "show",
    "verify",
)


_HELP: type[click.ClickException] | tuple[()] = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""What click 8.2 and later raise for a group without a command: its message is the help."""


class LazyGroup(click.Group):
    """Imports `gatecert.cli.NAME` when NAME is used: `--help` must not wait for torch."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in alphabetical order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        if cmd_name not in COMMANDS:
            near = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            if near:
                raise click.UsageError(f"No such command {cmd_name!r}; did you mean {near[0]!r}?")
            return None
        module = importlib.import_module(f"gatecert.cli.{cmd_name}")
        command: click.Command = module.command
        return command


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(gatecert.__version__, prog_name="gatecert")
def group() -> None:
    """Plant bugs in correct Triton kernels, and see which ones your gate catches."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    with stoppable() as stops:
        code = _run(arguments)
        return stops.exit_status if code == INTERRUPTED else code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        result = group.main(args=arguments, prog_name="gatecert", standalone_mode=False)
        return int(result or ExitCode.MET)
    except click.ClickException as error:
        if isinstance(error, _HELP):
            print(error.format_message(), file=sys.stderr)
            return int(ExitCode.USAGE)
        return _say(error.format_message(), ExitCode.USAGE)
    except (click.Abort, KeyboardInterrupt):
        return _say("interrupted; the same command goes on where it stopped", INTERRUPTED)
    except GatecertError as error:
        return _say(str(error), error.exit_code)
    except BrokenPipeError:
        # The reader went away (`gatecert ... | head`). Python would flush stdout once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.MET
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "gatecert":
            return _internal(error)
        hint = f"{error.name} is not installed; `gatecert doctor` shows what is missing"
        return _say(hint, ExitCode.ENVIRONMENT_FAILED)
    except Exception as error:
        return _internal(error)


def _internal(error: Exception) -> int:
    if os.environ.get("GATECERT_DEBUG"):
        raise error
    return _say(
        f"internal error: {described(error)}; please report it with the output "
        "under GATECERT_DEBUG=1",
        ExitCode.INTERNAL,
    )


def _say(message: str, code: int) -> int:
    print(f"gatecert: {' '.join(message.split())}", file=sys.stderr)
    return int(code)
