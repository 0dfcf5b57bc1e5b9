"""Every ending of the command line is one line and a documented exit code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import click
import pytest

from gatecert.cli import main
from gatecert.cli.app import COMMANDS, INTERRUPTED, group
from gatecert.errors import (
    ControlRejected,
    EnvironmentFailure,
    ExitCode,
    InternalError,
    NothingScored,
    RequirementNotMet,
    UsageError,
)


@pytest.fixture
def ends_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException | int], int]:
    """Run a command line whose only command ends with that error or result."""

    def run(ending: BaseException | int) -> int:
        @click.command("end")
        def end() -> int:
            if isinstance(ending, BaseException):
                raise ending
            return ending

        monkeypatch.setattr("gatecert.cli.app.group", click.Group(commands={"end": end}))
        return main(["end"])

    return run


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 1),
        (RequirementNotMet("x"), 2),
        (ControlRejected("x"), 3),
        (EnvironmentFailure("x"), 4),
        (NothingScored("x"), 5),
        (InternalError("x"), 70),
        (ZeroDivisionError("x"), 70),
        (ModuleNotFoundError("x", name="triton.language"), 4),
        (ModuleNotFoundError("x", name="gatecert.nowhere"), 70),
        (KeyboardInterrupt(), INTERRUPTED),
    ],
)
def test_an_error_is_one_line_on_stderr_and_its_exit_code(
    ends_with: Callable[[BaseException | int], int],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
) -> None:
    assert ends_with(error) == code
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.split("\n")[:-1] if code != INTERRUPTED else err.strip().splitlines()
    assert line.startswith("gatecert: ")


def test_a_message_of_several_lines_is_joined(
    ends_with: Callable[[BaseException | int], int], capsys: pytest.CaptureFixture[str]
) -> None:
    ends_with(UsageError("first\n  second"))
    assert capsys.readouterr().err == "gatecert: first second\n"


def test_a_commands_result_is_the_exit_code(
    ends_with: Callable[[BaseException | int], int],
) -> None:
    assert ends_with(int(ExitCode.CONTROL_REJECTED)) == 3
    assert ends_with(0) == 0


def test_the_traceback_is_there_for_who_asks(
    ends_with: Callable[[BaseException | int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATECERT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        ends_with(ZeroDivisionError("x"))


@pytest.mark.parametrize(
    "arguments",
    [["bogus"], ["certify", "--bogus"], ["certify", "--jobs", "0"], ["show"], ["mutants", "lst"]],
)
def test_clicks_own_usage_errors_exit_with_one(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == ExitCode.USAGE
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there_and_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: gatecert {name}")


def test_the_list_of_commands_cuts_no_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["mutants"], ["runs"]):
        assert main([*arguments, "--help"]) == 0
        commands = capsys.readouterr().out.partition("\nCommands:\n")[2]
        assert commands and "..." not in commands


def test_every_command_takes_json() -> None:
    context = click.Context(group)
    for name in COMMANDS:
        command = group.get_command(context, name)
        leaves = command.commands.values() if isinstance(command, click.Group) else [command]
        assert all("as_json" in {p.name for p in leaf.params} for leaf in leaves), name


def test_help_imports_neither_torch_nor_triton_nor_scipy() -> None:
    code = (
        "import sys; from gatecert.cli import main; main(['--help']); "
        "print(sorted({'torch', 'triton', 'scipy', 'libcst'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
