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

    def note(self, table: Any, columns: Iterable[Iterable[object]]) -> None:
        """Warn, the first time, if a table was fitted before; remember it.

        Parameters
        ----------
        table : any table that `fit` takes
        columns : iterable of names of columns
            Of each table, if there are several.
        """
        parts = list(table.values()) if isinstance(table, Mapping) else [table]
        arrays = all(isinstance(part, np.ndarray) for part in parts)  # the names of their columns are made up
        keys: set[Key] = set() if arrays else {("columns", *map(str, names)) for names in columns}
        for part in parts:
            if isinstance(part, str | PathLike):
                file = file_of(Path(part))  # the table may be one of several in it
                keys.add(("path", os.path.realpath(file), str(part)[len(str(file)) :]))
                continue
            keys.add(key := ("object", str(id(part))))
            noted = self._objects.get(id(part))
            if noted is None or noted() is not part:  # an object that takes the place of another is new
                self._keys.discard(key)
                self._warned.discard(key)
                with suppress(TypeError):  # of a type that cannot be referred to weakly
                    self._objects[id(part)] = weakref.ref(part)
        before = keys & self._keys
        self._keys |= keys
        if before and not before & self._warned:
            self._warned |= before
            warn_refit()


FITTED = FittedTables()
"""The tables that this process has fitted, without a seed."""
