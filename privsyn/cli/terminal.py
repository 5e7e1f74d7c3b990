"""The one way to the screen: what names, paths and models hold is shown there and never obeyed."""

from __future__ import annotations

import os
import sys

import typer

from privsyn.errors import printable


def say(*lines: str, err: bool = False) -> None:
    """Print lines, with every control character in them escaped: line ends, too.

    A character that the terminal's encoding lacks is escaped as well, and a reader that has gone away is no
    error: neither is a reason for a run to fail.
    """
    stream = sys.stderr if err else sys.stdout
    text = "".join(f"{printable(line)}\n" for line in lines)
    encoding = stream.encoding or "utf-8"
    try:
        typer.echo(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, nl=False)
    except BrokenPipeError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())  # or Python would try again at its end, and complain
        os.close(nothing)


def say_text(text: str) -> None:
    """Print a text of several lines."""
    say(*text.removesuffix("\n").split("\n"))
