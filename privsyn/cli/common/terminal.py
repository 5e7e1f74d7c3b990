"""Print to the terminal. Control characters in names, paths and models are escaped, never executed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EIO
from stat import S_ISCHR
from typing import Any, TextIO

import typer

from privsyn.errors import printable

DONE, FAILED, MISTAKE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: success, a failed check or a defect, an error of the user, Ctrl-C."""

PASSWORD = re.compile(r"([A-Za-z][\w+.-]*:/{1,2})\S*@")
"""The user and password of a URL, also where a path has lost one of its slashes."""

SHOWN = r"\1...@"


def say(*lines: str, err: bool = False) -> None:
    """Print lines, with every control character escaped, including line ends, and without passwords of URLs.

    Characters that the terminal's encoding lacks are escaped too. A closed pipe or terminal is no error.
    Neither makes a run fail.
    """
    stream = sys.stderr if err else sys.stdout
    text = "".join(f"{printable(PASSWORD.sub(SHOWN, line))}\n" for line in lines)
    encoding = stream.encoding or "utf-8"
    with _silenced_if_closed(stream):
        typer.echo(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, nl=False)


@contextmanager
def _silenced_if_closed(stream: TextIO) -> Iterator[None]:
    """Send what is written from now on to nowhere if its pipe or terminal is closed."""
    try:
        yield
    except OSError as error:
        closed_terminal = error.errno == EIO and S_ISCHR(os.fstat(stream.fileno()).st_mode)
        if not isinstance(error, BrokenPipeError) and not closed_terminal:
            raise
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())  # or Python would fail when it flushes at exit
        os.close(nothing)


class Lasting:
    """A stream for progress bars that outlasts its terminal: a run that is paid for does not fail with it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, or nothing if the terminal is closed."""
        with _silenced_if_closed(self._stream):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream, if its terminal is there."""
        with _silenced_if_closed(self._stream):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def say_text(text: str) -> None:
    """Print a text of several lines."""
    say(*text.removesuffix("\n").split("\n"))
