"""Files must stay as they are while a table is learnt: each walk must find the same one.

Noise and its cost do not need it: every answer is about the table as it was read then, in which each row
counts once (see docs/privacy.md). But answers about several tables fit no table, and whoever writes to a file
that is being read has made a mistake that is better known. Whether the rows are read once or several times
follows from their number, so the files are looked at once more when all is learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from privsyn.errors import InputError

T = TypeVar("T")

Stamps = tuple[tuple[Path, tuple[int, int] | None], ...]
"""Files, each with its size and when it was last written to: what can be said without a look at a row."""


def stamps_of(files: Sequence[Path]) -> Stamps:
    """What the files are before anything is read of them."""
    return tuple((file, _stamp(file)) for file in files)


def unchanged(stamps: Stamps, walk: Callable[[], Iterator[T]]) -> Iterator[T]:
    """One walk, refused before it begins and when it ends if a file is no longer what it was."""
    failed: InputError | None = None
    require_unchanged(stamps)
    try:
        yield from walk()
    except InputError as error:
        failed = error
    require_unchanged(stamps)  # before all else: a file that is cut short meanwhile looks damaged
    if failed is not None:
        raise failed


def require_unchanged(stamps: Stamps) -> None:
    """Refuse files that are no longer what they were."""
    for file, before in stamps:
        if _stamp(file) != before:
            raise InputError(f"{file}: was changed while it was read: let nothing write to it, and run again")


def _stamp(file: Path) -> tuple[int, int] | None:
    """None if there is no such file, or none that can be looked at."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
