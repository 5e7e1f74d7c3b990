"""Write files whole or not at all, and check paths before work begins."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

from privsyn.errors import InputError


@contextmanager
def atomic_path(path: str | PathLike[str], within: Path | None = None) -> Iterator[Path]:
    """A place to write a file that gets its name only when all is well, and else vanishes.

    Yields
    ------
    Path
        A new name with the same ending, in the same folder or `within` another one of the same disk.
    """
    target = Path(os.path.realpath(path))
    part = (within or target.parent) / f".{secrets.token_hex(4)}-{target.name[-64:]}"
    try:
        check_target(path)
        yield part
        part.replace(target)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "the disk failed"  # in no library's words
        raise InputError(f"{path}: cannot be written ({reason})") from None
    finally:
        with suppress(OSError):
            part.unlink()


def check_target(path: str | PathLike[str]) -> None:
    """Refuse a path at which no file can be."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"{path}: is a folder: give a file name in it")
    if target.exists() and not target.is_file():  # a rename would put a file in a device's place
        raise InputError(f"{path}: is not a file: give the name of one")
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}: create it first")


def check_file(path: Path) -> None:
    """Refuse a path that leads to no file, or to one that cannot be read."""
    complaint = ""
    try:
        if not path.exists():
            complaint = "there is no such file"
        elif not path.is_file():
            complaint = "is a folder or device, not a file"
        else:
            with path.open("rb", buffering=0) as file:
                file.read(1)
    except OSError as error:
        complaint = f"cannot be read ({error.strerror})"
    if complaint:
        raise InputError(f"{path}: {complaint}")
