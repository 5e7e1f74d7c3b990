"""A database and the links of a table in a file: plain data and arrays, and back.

A file may come from anywhere.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from privsyn.marginals.domain import Array, Domain
from privsyn.marginals.marginal import Marginal
from privsyn.release.file_format import TooLargeError, most_memory, unpacked_size
from privsyn.release.release import Release
from privsyn.synthesis.linked import Given, Links
from privsyn.table.lookups import LookupTable
from privsyn.table.schema.database import LINKS, Database, database_from_plain, database_to_plain


def plain_of(database: Database) -> dict[str, Any]:
    """Return the tables of a database and how they are linked, with the cells of look-up tables."""
    bare = Database({name: replace(table, schema=None) for name, table in database.tables.items()})
    plain: dict[str, Any] = database_to_plain(bare)["tables"]
    for name, table in database.public.items():
        plain[name]["public"] = table.public.to_plain()
    return plain


def database_of(plain: Mapping[str, Any]) -> Database:
    """Return the database that `plain_of` wrote; raise if it did not write it."""
    for table in plain.values():
        if set(table) - {*LINKS}:
            raise ValueError("`plain_of` writes no schema")
        if "public" in table:  # cells, never a path: a model names no other file to be read
            table["public"] = LookupTable.from_plain(table["public"], table["key"])
    return database_from_plain({"tables": plain})


def unlinked(links: Links) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the links as plain data and arrays."""
    arrays: dict[str, Array] = {}
    parts: tuple[tuple[str, list[Array]], ...] = (
        ("given", [of.groups for of in links.given.values()]),
        ("previous", [of for _, of in links.previous.values()]),
        ("table", [table.counts for table in links.tables]),
    )
    for kind, groups in parts:
        arrays |= {f"{kind}_{j}": array for j, array in enumerate(groups)}
    plain = {
        "given": {name: [of.table, of.attribute] for name, of in links.given.items()},
        "previous": {name: own for name, (own, _) in links.previous.items()},
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
    for j, (name, own) in enumerate(text["previous"].items()):
        groups = arrays[f"previous_{j}"].astype(np.int32)
        if len(groups) != sizes[own]:
            raise ValueError(f"{name}: other groups than the column")
        previous[name] = (str(own), groups)
    tables = []
    for j, (names, ordered) in enumerate(zip(text["tables"], text["ordered"], strict=True)):
        counts = arrays[f"table_{j}"].astype(np.float64)
        if not (counts >= 0).all() or not np.isfinite(counts).all():
            raise ValueError("negative counts")
        for name, size in zip(names, counts.shape, strict=True):
            if name in sizes and size != sizes[name]:
                raise ValueError(f"{name}: other codes than the column")
        tables.append(Marginal(Domain(tuple(names), counts.shape, tuple(ordered)), counts))
    return Links(given, previous, tuple(tables))
