"""A folder of Parquet files as one table: which files it has, and which in the folder are none of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from privsyn.errors import InputError


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; a text that is no path at all is none."""
    with suppress(OSError, ValueError):
        return path.is_dir()
    return False


def parts_of(path: Path) -> tuple[Path, ...]:
    """The files of a table: the one that a path leads to, or all Parquet files in a folder, by name."""
    if not is_folder(path):
        return (path,)
    files = sorted(file for file in _files(path) if _is_part(file))
    if not files:
        raise InputError(f"{path}: is a folder without a file that ends in .parquet")
    if any("=" in name for file in files for name in file.relative_to(path).parts[:-1]):
        raise InputError(
            f"{path}: its folders name values of a column:"
            " give pyarrow.dataset.dataset(path, partitioning='hive')"
        )
    return tuple(files)


def left_out(path: Path) -> tuple[Path, ...]:
    """The files in a folder that are not read, by name, but for others' notes; of a file, none."""
    return tuple(sorted(file for file in _files(path) if not _is_part(file))) if is_folder(path) else ()


def _is_part(file: Path) -> bool:
    return file.suffix == ".parquet"


def _files(folder: Path) -> Iterator[Path]:
    """All files in a folder and in those within; what begins with a dot or an underscore is others' notes.

    No folder is left out because it cannot be read: that would be part of a table, taken for the whole.
    """

    def refuse(error: OSError) -> None:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror})")

    for inside, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if name[0] not in "._"]
        seen = (Path(inside, name) for name in names if name[0] not in "._")
        yield from (file for file in seen if file.is_file())
