"""Write a whole file or none, and check paths before work begins."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO

from privsyn.errors import InputError, replace_errors


@contextmanager
def atomic_path(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path whose file gets its real name only on success, and is removed otherwise.

    Yields
    ------
    Path
        A new name with the same ending, in the same folder.
    """
    target = Path(os.path.realpath(path))
    part = target.parent / f".{secrets.token_hex(4)}-{target.name[-64:]}"
    try:
        check_target(path)
        yield part
        part.replace(target)
    except OSError as error:
        # Not the text of the error: a library's message may quote a row.
        reason = os.strerror(error.errno) if error.errno else "the disk failed"
        raise InputError(f"{path}: cannot be written ({reason})") from None
    finally:
        with suppress(OSError):
            part.unlink()


@contextmanager
def new_folder(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder that gets its real name only on success, and is removed otherwise."""
    target = Path(os.path.realpath(path))
    check_new_folder(path)
    part = target.parent / f".{secrets.token_hex(4)}-{target.name[-64:]}"
    try:
        part.mkdir()
        yield part
        with suppress(FileNotFoundError):
            target.rmdir()  # an empty one
        part.rename(target)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "the disk failed"
        raise InputError(f"{path}: cannot be written ({reason})") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check_new_folder(path: str | PathLike[str]) -> None:
    """Refuse a path at which no new folder can be made."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_dir():
        raise InputError(f"{path} is a file: several tables are written into a new folder")
    if target.is_dir() and any(target.iterdir()):
        raise InputError(f"{path} is not empty: several tables are written into a new folder")
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}: create it first")


def check_target(path: str | PathLike[str]) -> None:
    """Refuse a path at which no file can be written."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"{path} is a folder: give the name of a file in it")
    if target.exists() and not target.is_file():  # a rename would replace a device by a file
        raise InputError(f"{path} is not a file: give the name of a file")
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}: create it first")


URL = re.compile(r"[A-Za-z][\w+.:-]*://")
"""How a URL begins."""


def is_url(path: object) -> bool:
    """Return whether this is the text of a URL, such as ``s3://bucket/people.privsyn``.

    >>> is_url("s3://bucket/people.privsyn"), is_url("people.privsyn")
    (True, False)
    """
    return isinstance(path, str) and URL.match(path) is not None


@contextmanager
def opened_url(url: str, mode: str) -> Iterator[IO[bytes]]:
    """Open the file behind a URL with fsspec, for reading ("rb") or writing ("wb").

    Raises
    ------
    InputError
        If fsspec or the package for this storage is missing, or the file cannot be read or written.
    """
    with replace_errors("a URL needs fsspec: run pip install fsspec (extra [fsspec])", ImportError):
        import fsspec
    act = "read" if mode == "rb" else "written"
    try:
        with fsspec.open(url, mode) as file:
            yield file
    except Exception as error:  # packages of storages raise many kinds
        raise InputError(
            f"{url}: cannot be {act} ({type(error).__name__}): check the URL, your rights, and that the"
            " package for this storage is installed, such as s3fs"
        ) from None


OTHERS = {
    b"PAR1\x15": "is a Parquet file: let its name end in .parquet",
    b"PK\x03\x04": "is an Excel or a ZIP file: let its name end in .xlsx, or unpack it",
    b"SQLite format 3\0": "is an SQLite file: let its name end in .sqlite",
    b"\x1f\x8b": "is compressed with gzip: let its name end in .csv.gz",
    b"ARROW1\0\0": "is an Arrow or Feather file: convert it to Parquet",
    b'[{"': "is JSON: convert it to CSV or Parquet",
    b'{"': "is JSON: convert it to CSV or Parquet",
    b"\xff\xfe": "is text in UTF-16: save it as CSV in UTF-8",
    b"\xfe\xff": "is text in UTF-16: save it as CSV in UTF-8",
}
"""What files that are no CSV begin with. No value is in it."""


def check_no_other(path: Path, start: bytes) -> None:
    """Refuse a file of another format under the name of a CSV file; `start` are its first bytes."""
    if why := next((why for first, why in OTHERS.items() if start.startswith(first)), None):
        raise InputError(f"{path}: {why}")


_OPENED: ContextVar[ExitStack | None] = ContextVar("opened", default=None)


@contextmanager
def closing_files() -> Iterator[None]:
    """Close at the end whatever is opened within. An error keeps alive what its traceback names.

    So after a failure a file would stay open, and a database locked, for as long as somebody keeps the error.
    """
    with ExitStack() as opened:
        token = _OPENED.set(opened)
        try:
            yield
        finally:
            _OPENED.reset(token)


def close_at_end(close: Callable[[], object]) -> None:
    """Let the innermost `closing_files` call this at its end. Outside of any, nobody does.

    >>> with closing_files():
    ...     close_at_end(lambda: print("closed"))
    ...     print("used")
    used
    closed
    """
    opened = _OPENED.get()
    if opened is not None:
        opened.callback(close)


@dataclass(frozen=True)
class UnpackedLimit:
    """To how many bytes a packed file may unpack.

    Parameters
    ----------
    free : int
        Bytes that any file may unpack to.
    ratio : int
        Bytes that each packed byte may add to these.
    """

    free: int
    ratio: int

    @property
    def fact(self) -> str:
        """What the ledger says about every file with this limit."""
        limit = f"{self.free / 1e9:.1f} GB and {self.ratio} times its size"
        return f"that the file does not unpack to more than {limit}"

    def check(self, path: Path, size: int) -> None:
        """Refuse a file that is made to fill the memory, by the `size` in bytes to which it unpacks.

        That it unpacks to less is public. How large it is, is not: the message says neither size.
        """
        if size > self.free + self.ratio * path.stat().st_size:
            raise InputError(
                f"{path}: unpacks to more than {self.free / 1e6:,.0f} MB and {self.ratio} times its size, as"
                " no table does: if it is a table, save it as .csv"
            )


MOST_TEXT = 2**26
"""Bytes of a file that somebody writes: a schema, a policy, criteria, a public table to look up (67 MB)."""


def read_small(path: Path, limit: int = MOST_TEXT) -> bytes:
    """Return the content of a regular file; refuse a device, which may have no end, or a larger file."""
    if problem := _problem_of(path):
        raise InputError(f"{path}: cannot be read: {problem}")
    with path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise InputError(f"{path}: is larger than {limit / 1e6:,.0f} MB: is it the right file?")
    return content


def read_text(path: Path) -> str:
    """Return the text of such a file, in UTF-8; a mark of the byte order is left out."""
    try:
        return read_small(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file in UTF-8") from None


def check_file(path: Path) -> None:
    """Refuse a path without a file, or whose file cannot be read."""
    if problem := _problem_of(path):
        raise InputError(f"{path}: {problem}")


def _problem_of(path: Path) -> str:
    """Return why a file cannot be read, "" if it can."""
    try:
        if not path.exists():
            return "there is no such file"
        if not path.is_file():
            return "is a folder or device, not a file"
        with path.open("rb", buffering=0) as file:
            file.read(1)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return ""
