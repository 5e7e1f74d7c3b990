"""Print to the terminal. Control characters in names, paths and models are escaped, never executed."""

from __future__ import annotations

import os
import sys

import typer

from privsyn.errors import printable


def say(*lines: str, err: bool = False) -> None:
    """Print lines, with every control character escaped, including line ends.

    Characters that the terminal's encoding lacks are escaped too. A closed pipe is no error. Neither makes a
    run fail.
    """
    stream = sys.stderr if err else sys.stdout
    text = "".join(f"{printable(line)}\n" for line in lines)
    encoding = stream.encoding or "utf-8"
    try:
        typer.echo(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, nl=False)
    except BrokenPipeError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())  # or Python would fail when it flushes at exit
        os.close(nothing)


def say_text(text: str) -> None:
    """Print a text of several lines."""
    say(*text.removesuffix("\n").split("\n"))
