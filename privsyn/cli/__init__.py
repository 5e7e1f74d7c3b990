"""The command line: one file per command, and `main`, which runs one."""

from privsyn.cli.main import main

__all__ = ["main"]
