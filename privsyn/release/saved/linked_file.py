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
from privsyn.release.saved.arrays import most_memory, packed_arrays, unpacked_size
from privsyn.release.saved.file_format import (
    OTHER_VERSION,
    OtherVersionError,
    TooLargeError,
    parts_in,
    zipped,
)
from privsyn.synthesis.chains import Given, Links, Previous
from privsyn.table.lookups import LookupTable
from privsyn.table.schema.database import Database
from privsyn.table.schema.database_file import LINKS, database_from_plain, database_to_plain

FORMAT = 3  # of a file with several tables
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
    whole = json.loads(members[DATABASE])
    if whole["format"] != FORMAT:
        raise OtherVersionError(OTHER_VERSION)
    levels: dict[str, ReleasedLevel] = {}
    database, only = database_of(whole["tables"]), whole["only"]
    for name in database.names:
        text, called = whole["levels"][name], name if only is None else None
        release = Release(*parts_in(members[f"{name}.privsyn"]), called)
        links = None
        if database.tables[name].parent is not None:
            above = {table: level.release for table, level in levels.items()}
            links = linked_again(text, members[f"{name}.npz"], release, above)
        columns = {str(column): str(dtype) for column, dtype in text["columns"].items()}
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
        ("given", [of.groups for of in links.given.values()]),
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
        "given": {name: [of.table, of.attribute] for name, of in links.given.items()},
        "previous": {name: [of.column, of.lag] for name, of in links.previous.items()},
        "tables": [list(table.attributes) for table in links.tables],
        "ordered": [list(table.domain.ordered) for table in links.tables],
    }
    return plain, arrays


def linked_again(
    text: Mapping[str, Any], packed: bytes, release: Release, above: Mapping[str, Release]
) -> Links:
    """Return the links of a table; raise if they do not fit the tables above it."""
    with zipfile.ZipFile(io.BytesIO(packed)) as file:
        if unpacked_size(file) > most_memory(len(packed)):
            raise TooLargeError("needs far more memory than a release of its size")
    arrays = np.load(io.BytesIO(packed), allow_pickle=False)
    sizes = release.fitted.merging.merged.size_of
    given = {}
    for j, (name, (table, attribute)) in enumerate(text["given"].items()):
        groups = arrays[f"given_{j}"].astype(np.int32)
        if table and len(groups) != above[table].fitted.merging.merged.size_of[attribute]:
            raise ValueError(f"{name}: other groups than the table above")
        given[name] = Given(str(table), str(attribute), groups)
    previous = {}
    for j, (name, (own, lag)) in enumerate(text["previous"].items()):
        groups = arrays[f"previous_{j}"].astype(np.int32)
        if len(groups) != sizes[own]:
            raise ValueError(f"{name}: other groups than the column")
        if lag not in (1, 2):
            raise ValueError(f"{name}: of no row before")
        previous[name] = Previous(str(own), groups, lag)
    tables = []
    for j, (names, ordered) in enumerate(zip(text["tables"], text["ordered"], strict=True)):
        counts = arrays[f"table_{j}"].astype(np.float64)
        if not (counts >= 0).all() or not np.isfinite(counts).all():
            raise ValueError("negative counts")
        for name, size in zip(names, counts.shape, strict=True):
            if name in sizes and size != sizes[name]:
                raise ValueError(f"{name}: other codes than the column")
        tables.append(Marginal(Domain(tuple(names), counts.shape, tuple(ordered)), counts))
    measured = tuple(_measured(arrays, j, table.domain) for j, table in enumerate(tables))
    errors = arrays["errors"].astype(np.float64)
    if errors.shape != (len(tables),) or not ((errors >= 0) & (errors <= 1)).all():
        raise ValueError("an error of a table is a share of its rows")
    return Links(given, previous, tuple(tables), measured, tuple(errors.tolist()))


def _measured(arrays: Mapping[str, Array], j: int, domain: Domain) -> Measurement:
    """Return the measurement of the j-th table of this domain, or of groups of its codes."""
    names = [f"measured_{j}_{axis}" for axis in range(len(domain))]
    grouping = Grouping(tuple(arrays[name].astype(np.int32) for name in names if name in arrays))
    for group, size in zip(grouping.groups, domain.shape, strict=bool(grouping)):
        if len(group) != size or not np.array_equal(np.unique(group), np.arange(group.max() + 1)):
            raise ValueError("other groups than of the table")
    counts, variance = (arrays[f"{kind}_{j}"].astype(np.float64) for kind in ("measured", "noise"))
    measured = grouping.domain(domain) if grouping else domain
    if not (counts.shape == variance.shape == measured.shape) or not np.isfinite(counts).all():
        raise ValueError("other counts than of the table")
    return Measurement(Marginal(measured, counts), variance, grouping)
