"""The rows to learn from: at most a number of rows of each person, encoded and kept in memory if they fit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from privsyn.arguments import check_bytes, check_column
from privsyn.errors import warn_columns
from privsyn.marginals.packing import Packing
from privsyn.methods.fit_randomised import check_dtypes
from privsyn.private.contribution import kept_rows
from privsyn.private.rows import CachedWalk, Rows
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.open_schema import OpenSchema, declared_or_by_names
from privsyn.table.io.source import RawTable
from privsyn.table.kinds.column_settings import flag
from privsyn.table.schema.schema import Schema, declared
from privsyn.table.schema.yaml_file import as_schema

if TYPE_CHECKING:
    from privsyn.private.sampler import Bits


def bounded(rows: RawTable, unit: str | None, rows_per_unit: int, bits: Bits) -> RawTable:
    """Return the rows to learn from: at most `rows_per_unit` of each person, without the identifiers.

    No row was counted before this, and the other rows are never looked at again.
    """
    if unit is None:
        return rows
    rows.require_again("whose rows they are")
    return rows.bounded(unit, partial(kept_rows, rows_per_unit=rows_per_unit, bits=bits))


def given_schema(schema: object, *, nullable: bool) -> Schema | None:
    """Return a schema or that of a YAML file, `nullable` or not; None if it declares no column."""
    known = declared(as_schema(schema))
    return known if flag("nullable", nullable) or known is None else known.without_missing()


def open_schema_of(
    rows: RawTable, schema: Schema | None, guessed: Schema | None, target: str | None, *, nullable: bool
) -> OpenSchema:
    """Return what is public about the columns, checked; warn of columns that come out differently.

    Parameters
    ----------
    rows : RawTable
        Only its names, dtypes and Arrow's declarations "not null" are read.
    schema : Schema, optional
    guessed : Schema, optional
        How a file without dtypes was read. It counts if there is no schema.
    target : str, optional
    nullable : bool
        With False no column may have missing cells.
    """
    known = declared_or_by_names(schema, rows.head, guessed)
    known = known.without_missing(rows.form.never_missing if nullable else None)
    open_schema = OpenSchema.of(known, rows.head)
    check_dtypes(open_schema.schema, rows.head)
    if target is not None:
        check_column("target", target, open_schema.schema.coded, read=True)
    warn_columns(open_schema.schema.dropped, open_schema.objects, open_schema.unordered)
    return open_schema


def coded(rows: RawTable, codec: Codec, limit: int | str) -> Rows:
    """Return the encoded rows. They may take half of the memory, or all that an iterator needs."""
    memory = check_bytes("memory", limit)
    walk = rows.walk(codec, memory / 2)
    if rows.near:
        most = np.inf if rows.once else memory / 2
        walk = CachedWalk(walk, Packing(codec.domain.sizes), most, rows.require_unchanged)
    return Rows(codec.domain, walk, memory / 4)
