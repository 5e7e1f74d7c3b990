"""Which tables this process has fitted already: what several runs on the same rows spend adds up.

Only public facts tell tables apart: the path, the object in memory, and the names of the columns. To compare
cells would reveal whether two tables are the same. So a table with the names of another may be the same, or
be about other people: the warning says what holds in either case, once for each table.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from privsyn.errors import warn_refit
from privsyn.table.io.formats import file_of

Key = tuple[str, ...]


class FittedTables:
    """The tables that were fitted, each by its path, its object and the names of its columns."""

    def __init__(self) -> None:
        self._keys: set[Key] = set()
        self._warned: set[Key] = set()
        self._objects: dict[int, weakref.ref[Any]] = {}

    def note(self, table: Any, columns: Iterable[Iterable[object]], *, stacklevel: int) -> None:
        """Warn, the first time, if a table was fitted before; remember it.

        Parameters
        ----------
        table : any table that `fit` takes
        columns : iterable of names of columns
            Of each table, if there are several.
        stacklevel : int
            Of the function whose caller is warned.
        """
        parts = list(table.values()) if isinstance(table, Mapping) else [table]
        arrays = all(isinstance(part, np.ndarray) for part in parts)  # the names of their columns are made up
        keys = {_place(part) for part in parts if isinstance(part, str | PathLike)}
        keys |= set() if arrays else {("columns", *map(str, names)) for names in columns}
        keys |= {self._of_object(part) for part in parts if not isinstance(part, str | PathLike)}
        before = keys & self._keys
        self._keys |= keys
        if before and not before & self._warned:
            self._warned |= before
            warn_refit(stacklevel=stacklevel + 1)

    def _of_object(self, part: object) -> Key:
        """Return the key of an object in memory. One that takes the place of another is new."""
        key, before = ("object", str(id(part))), self._objects.get(id(part))
        if before is None or before() is not part:
            self._keys.discard(key)
            self._warned.discard(key)
            with suppress(TypeError):  # of a type that cannot be referred to weakly
                self._objects[id(part)] = weakref.ref(part)
        return key


def _place(path: str | PathLike[str]) -> Key:
    """Return the place of a table: its file, and its name within."""
    file = file_of(Path(path))
    return "path", os.path.realpath(file), str(path)[len(str(file)) :]


FITTED = FittedTables()
"""The tables that this process has fitted, without a seed."""
