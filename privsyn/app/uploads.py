"""Uploads: streamed from the browser into the private folder, never held in memory or in a shared folder."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import IO, Any

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import Request

from privsyn.errors import InputError
from privsyn.table.io.formats import ENDINGS

UNSAFE = re.compile(r"[^\w.() -]")
"""What a file name loses."""

MOST_CHARACTERS = 60
"""Characters of a file name: of four bytes each they fit in the 255 of a file system."""

MOST_PARTS = 50
"""Parts of a form: the files, and the button."""

MOST_HEADER_BYTES = 4096
"""Bytes of a header of a part."""


async def receive_upload(request: Request, folder: Path, most_bytes: int) -> Path:
    """Write the files of a form to a folder; return the path of the one file, or of a folder with several.

    That folder is named after its files, so that the same tables have the same budget file again.

    Parameters
    ----------
    request : Request
        A form of type multipart/form-data with files.
    folder : Path
        A private folder for these files alone. It is removed if the upload fails.
    most_bytes : int
        The largest size of all together, in bytes.

    Raises
    ------
    InputError
        If the form has no table, two of one name, or tables that are too large. No file is left.
    """
    upload, size, path = _Upload(folder), 0, None
    try:
        kind, options = parse_options_header(request.headers.get("content-type"))
        if kind != b"multipart/form-data" or not options.get(b"boundary"):
            raise InputError("choose a file to upload")
        parser = MultipartParser(options[b"boundary"], upload.callbacks())
        async for part in request.stream():
            size += len(part)
            if size > most_bytes:
                limit = f"the upload is larger than {most_bytes / 1e9:g} GB"
                raise InputError(f"{limit}: put it in the start folder, and choose it there")
            parser.write(part)
        parser.finalize()
        path = upload.finished()
        return path
    except (FormParserError, OSError):
        raise InputError("the upload was not complete: try again") from None
    finally:
        upload.close()
        if path is None:  # for any reason: the browser may be gone, or the app stop
            shutil.rmtree(folder, ignore_errors=True)


class _Upload:
    """The parts of a form, of which the files are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[Path] = []
        self._file: IO[bytes] | None = None
        self._header = [b"", b""]
        self._disposition = b""
        self._parts, self._whole = 0, False

    def callbacks(self) -> Any:
        """Return what the parser calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._more(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._more(1, data[start:end]),
            "on_header_end": self._end_of_header,
            "on_headers_finished": self._open,
            "on_part_data": self._write,
            "on_part_end": self.close,
            "on_end": self._finish,
        }

    def finished(self) -> Path:
        """Return the path of the file, or of a new folder with several; refuse a form without one."""
        if not self.files or not self._whole:
            raise InputError("choose a file to upload")
        if len(self.files) == 1:
            return self.files[0]
        names = sorted(file.name.partition(".")[0] for file in self.files)
        together = self.folder / "+".join(names)[:MOST_CHARACTERS]
        together.mkdir(mode=0o700)
        for file in self.files:
            file.rename(together / file.name)
        return together

    def close(self) -> None:
        """End the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self) -> None:
        self._disposition, self._header = b"", [b"", b""]
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise InputError("choose a file to upload")

    def _more(self, which: int, data: bytes) -> None:
        self._header[which] += data
        if len(self._header[which]) > MOST_HEADER_BYTES:
            raise InputError("choose a file to upload")

    def _end_of_header(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = value
        self._header = [b"", b""]

    def _open(self) -> None:
        _, options = parse_options_header(self._disposition)
        name = options.get(b"filename", b"").decode("utf-8", "replace")
        if not name:
            return
        file = self.folder / safe_name(name)
        if file in self.files:
            raise InputError("two of the files have one name: rename one")
        self.files.append(file)
        self._file = os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")

    def _write(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])

    def _finish(self) -> None:
        self._whole = True


def safe_name(name: str) -> str:
    r"""Return a file name without folders and odd signs; refuse a name that is not the name of a table.

    >>> safe_name("../../etc/my table.csv"), safe_name("C:\\data\\.people$.CSV")
    ('my table.csv', 'people_.CSV')
    """
    last = UNSAFE.sub("_", re.split(r"[\\/]", name)[-1]).lstrip(". ")[-MOST_CHARACTERS:].lstrip(". ")
    if not last.lower().endswith(ENDINGS):
        raise InputError(f"upload a table: {', '.join(ENDINGS)}")
    return last
