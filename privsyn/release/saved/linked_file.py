"""The releases of several tables and their links in a file: plain data and arrays, and back.

A file may come from anywhere.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privsyn.marginals.domain import Array, Domain
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.release.release import Release
from privsyn.release.saved.arrays import array_in, check_groups, most_memory, packed_arrays, unpacked_size
from privsyn.release.saved.file_format import (
    OTHER_VERSION,
    OtherVersionError,
    TooLargeError,
    parsed,
    parts_in,
    zipped,
)
from privsyn.synthesis.chains import OF_ROWS, Context, Links, Previous
from privsyn.table.database.declared import Database
from privsyn.table.database.lookups import LookupTable
from privsyn.table.database.yaml_form import LINKS, database_from_plain, database_to_plain
from privsyn.table.encoding.dtypes import parse_dtype

FORMAT = 3  # of a file with several tables
MOST_CODE = 2**31 - 1
DATABASE = "database.json"
"""The member of a file that says how its tables are linked."""


@dataclass(frozen=True, eq=False)
class ReleasedLevel:
    """The release of one table of a database.

    Parameters
    ----------
    release : Release
        Of its own columns, and of those derived from the tables below.
    links : Links, optional
        How its rows depend on other rows; None for the root.
    columns : mapping of a name to a dtype
        The columns of the table, in order, with those of keys; the dtypes of the latter count.
    """

    release: Release
    links: Links | None
    columns: Mapping[str, str]


def pack_levels(database: Database, levels: Mapping[str, ReleasedLevel], only: str | None) -> bytes:
    """Return the bytes of the file. The same release gives the same bytes."""
    members: dict[str, str | bytes] = {}
    plain: dict[str, Any] = {}
    for name, level in levels.items():
        members[f"{name}.privsyn"] = level.release.packed()
        plain[name] = {"columns": level.columns}
        if level.links is not None:
            links, arrays = unlinked(level.links)
            plain[name] |= links
            members[f"{name}.npz"] = packed_arrays(arrays)
    whole = {"format": FORMAT, "only": only, "levels": plain, "tables": plain_of(database)}
    return zipped({DATABASE: json.dumps(whole, indent=1), **members})


def levels_of(members: Mapping[str, bytes]) -> tuple[Database, dict[str, ReleasedLevel], str | None]:
    """Return what `pack_levels` wrote; raise if its parts do not fit together."""
    whole = parsed(members[DATABASE])
    if whole["format"] != FORMAT:
        raise OtherVersionError(OTHER_VERSION)
    levels: dict[str, ReleasedLevel] = {}
    database, only = database_of(whole["tables"]), whole["only"]
    for name in database.names:
        text, called = whole["levels"][name], name if only is None else None
        release = Release(*parts_in(members[f"{name}.privsyn"]), called)
        links = None
        if database.tables[name].parent is not None:
            above = {table: levels[table].release for table in database.above(name)}
            links = linked_again(text, members[f"{name}.npz"], release, above)
        columns = {str(column): str(dtype) for column, dtype in text["columns"].items()}
        for dtype in filter(None, columns.values()):
            parse_dtype(dtype)
        levels[name] = ReleasedLevel(release, links, columns)
    if only is not None and only not in levels:
        raise ValueError("no such table")
    return database, levels, only


def plain_of(database: Database) -> dict[str, Any]:
    """Return the tables of a database and how they are linked, with the cells of look-up tables."""
    tables = {name: replace(table, schema=None) for name, table in database.tables.items()}
    bare = Database(tables, bare=True)
    plain: dict[str, Any] = database_to_plain(bare)["tables"]
    for name, table in database.public.items():
        plain[name]["public"] = table.public.to_plain()
    return plain


def database_of(plain: Mapping[str, Any]) -> Database:
    """Return the database that `plain_of` wrote; raise if it did not write it."""
    for table in plain.values():
        if set(table) - {*LINKS, "constraints"}:
            raise ValueError("`plain_of` writes no schema")
        if "public" in table:  # cells, never a path: a model names no other file to be read
            table["public"] = LookupTable.from_plain(table["public"], table["key"])
    return database_from_plain({"tables": plain}, bare=True)


def unlinked(links: Links) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the links as plain data and arrays."""
    arrays: dict[str, Array] = {}
    parts: tuple[tuple[str, list[Array]], ...] = (
        ("given", [of.groups for of in links.context.values()]),
        ("previous", [of.groups for of in links.previous.values()]),
        ("table", [table.counts for table in links.tables]),
        ("measured", [measured.marginal.counts for measured in links.measured]),
        ("noise", [measured.variance for measured in links.measured]),
    )
    arrays["errors"] = np.array(links.errors, np.float64)
    for kind, groups in parts:
        arrays |= {f"{kind}_{j}": array for j, array in enumerate(groups)}
    for j, measured in enumerate(links.measured):
        arrays |= {f"measured_{j}_{axis}": group for axis, group in enumerate(measured.grouping.groups)}
    plain = {
        "given": {name: [of.table, of.attribute] for name, of in links.context.items()},
        "previous": {name: [of.column, of.lag] for name, of in links.previous.items()},
        "tables": [list(table.attributes) for table in links.tables],
        "ordered": [list(table.domain.ordered) for table in links.tables],
    }
    return plain, arrays


def linked_again(
    text: Mapping[str, Any],
    packed: bytes,
    release: Release,
    above: Mapping[str, Release],
) -> Links:
    """Return the links of a table; raise if they do not fit the tables above it."""
    with zipfile.ZipFile(io.BytesIO(packed)) as file:
        if unpacked_size(file) > most_memory(len(packed)):
            raise TooLargeError("needs far more memory than a release of its size")
        reader = _Reader(file)
        links = _links(text, reader, release.fitted.merging.merged.size_of, above)
        reader.end()
    return links


class _Reader:
    """Reads the arrays of a file, each of which must be read."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file, self._unread = file, set(file.namelist())
        if len(self._unread) < len(file.namelist()):
            raise ValueError("two arrays have one name: one of them would not be read")

    def has(self, name: str) -> bool:
        """Return whether there is an array of this name that was not read."""
        return f"{name}.npy" in self._unread

    def read(self, name: str) -> Array:
        """Return an array."""
        self._unread.remove(f"{name}.npy")
        return array_in(self._file, f"{name}.npy")

    def end(self) -> None:
        """Raise a `ValueError` if an array was not read."""
        if self._unread:
            raise ValueError("there are other arrays")


def _links(
    text: Mapping[str, Any], reader: _Reader, sizes: Mapping[str, int], above: Mapping[str, Release]
) -> Links:
    """Return the links; `sizes` are the numbers of codes of the table's own attributes."""
    given, previous = {}, {}
    linking: dict[str, tuple[int, int]] = {}  # the least and largest number of codes of each attribute
    for j, (name, (table, attribute)) in enumerate(text["given"].items()):
        groups = reader.read(f"given_{j}")
        whole = groups.ndim == 1 and groups.dtype.kind in "iu" and len(groups) > 0
        if not whole or groups.min() < 0 or groups.max() >= MOST_CODE:
            raise ValueError(f"{name}: no groups of codes")
        if table and len(groups) != above[table].fitted.merging.merged.size_of[attribute]:
            raise ValueError(f"{name}: other groups than the table above")
        if not table and attribute not in OF_ROWS:
            raise ValueError(f"{name}: of no column, and of no number of rows")
        given[name] = Context(str(table), str(attribute), groups.astype(np.int32))
        linking[name] = int(groups.max()) + 1, MOST_CODE
    for j, (name, (own, lag)) in enumerate(text["previous"].items()):
        previous[name] = Previous(str(own), check_groups(reader.read(f"previous_{j}"), sizes[own]), lag)
        if lag not in (1, 2):
            raise ValueError(f"{name}: of no row before")
        linking[name] = (previous[name].none + 1,) * 2
    tables = []
    for j, (names, ordered) in enumerate(zip(text["tables"], text["ordered"], strict=True)):
        counts = reader.read(f"table_{j}").astype(np.float64)
        if not (counts >= 0).all():
            raise ValueError("negative counts")
        for name, size in zip(names, counts.shape, strict=True):
            least, most = (sizes[name],) * 2 if name in sizes else linking[name]
            if not least <= size <= most:
                raise ValueError(f"{name}: other codes than the column")
        tables.append(Marginal(Domain(tuple(names), counts.shape, tuple(ordered)), counts))
    measured = tuple(_measured(reader, j, table.domain) for j, table in enumerate(tables))
    errors = reader.read("errors").astype(np.float64)
    if errors.shape != (len(tables),) or not ((errors >= 0) & (errors <= 1)).all():
        raise ValueError("an error of a table is a share of its rows")
    return Links(given, previous, tuple(tables), measured, tuple(errors.tolist()))


def _measured(reader: _Reader, j: int, domain: Domain) -> Measurement:
    """Return the measurement of the j-th table of this domain, or of groups of its codes."""
    names = [f"measured_{j}_{axis}" for axis in range(len(domain))]
    groups = tuple(
        check_groups(reader.read(name), size)
        for name, size in zip(names, domain.shape, strict=True)
        if reader.has(name)
    )
    grouping = Grouping(groups)
    if groups and len(groups) < len(domain):
        raise ValueError("other groups than of the table")
    counts, variance = (reader.read(f"{kind}_{j}").astype(np.float64) for kind in ("measured", "noise"))
    measured = grouping.domain(domain) if grouping else domain
    if not (counts.shape == variance.shape == measured.shape):
        raise ValueError("other counts than of the table")
    return Measurement(Marginal(measured, counts), variance, grouping)
