"""The command line: one file per command, imported when it is used."""

from gatecert.cli.app import main

__all__ = ["main"]
