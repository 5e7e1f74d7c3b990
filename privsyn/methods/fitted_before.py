"""Which tables this process has fitted already: what several runs on the same rows spend adds up.

Only public facts tell tables apart: the path, the object in memory, and the names of the columns. To compare
cells would reveal whether two tables are the same. So a table with the names of another counts as the same.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping
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
        self._objects: dict[int, weakref.ref[Any]] = {}

    def note(self, table: Any, columns: Iterable[Iterable[object]], *, stacklevel: int) -> None:
        """Warn if a table was fitted before; remember it.

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
        objects = [part for part in parts if not isinstance(part, str | PathLike)]
        if keys & self._keys or any(self._has(part) for part in objects):
            warn_refit(stacklevel=stacklevel + 1)
        self._keys |= keys
        for part in objects:
            self._remember(part)

    def _has(self, part: object) -> bool:
        before = self._objects.get(id(part))
        return before is not None and before() is part

    def _remember(self, part: object) -> None:
        try:
            self._objects[id(part)] = weakref.ref(part)
        except TypeError:  # of a type that cannot be referred to weakly
            return


def _place(path: str | PathLike[str]) -> Key:
    """Return the place of a table: its file, and its name within."""
    file = file_of(Path(path))
    return "path", os.path.realpath(file), str(path)[len(str(file)) :]


FITTED = FittedTables()
"""The tables that this process has fitted, without a seed."""
