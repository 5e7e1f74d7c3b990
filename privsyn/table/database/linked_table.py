"""LinkedTable: one table of a database, with the parent and the person of each row. It is private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from privsyn.marginals.domain import Floats, Ints
from privsyn.table.encoding.encoders import STRAY
from privsyn.table.engine.rows_in_order import RowsInOrder
from privsyn.table.io.source import RawTable
from privsyn.table.kinds.keys import Key
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.schema import Schema


@dataclass(frozen=True, eq=False, repr=False)
class LinkedTable:
    """One table of a database.

    Parameters
    ----------
    source : RawTable
        With all columns, keys too.
    unit : str or tuple of str
        The columns by which rows belong to something: the link or, in the root, the key.
    prints : tuple of arrays
        The fingerprints of `unit`.
    persons : integer array of shape (rows,)
        The same code for all rows of a person, `NOBODY` where a row belongs to none.
    parents : integer array of shape (rows,)
        The place of the parent's row; in the root, that of the row itself.
    keys : array of shape (rows,), optional
        By which the rows of a parent are sorted.
    also : tuple of str
        Columns that are no data, besides `unit`.
    added : pandas.DataFrame
        The derived columns: one row for each row.
    schema : Schema, optional
        Of the data and the derived columns.
    computed_above : mapping of a column that is computed from rows above to its kind
        Public: declared, or by its name and dtype. No cell of it is read.
    elsewhere : RowsInOrder, optional
        The rows, if a database has them. Then all arrays are empty, and `added` has no row.
    """

    source: RawTable
    unit: Key
    prints: tuple[Ints, ...]
    persons: Ints
    parents: Ints
    keys: Floats | None
    also: tuple[str, ...]
    added: pd.DataFrame
    schema: Schema
    computed_above: Mapping[str, Coded] = field(default_factory=dict)
    elsewhere: RowsInOrder | None = None


def codes_of_listed(linked: LinkedTable, column: str) -> tuple[Ints, int]:
    """Return the code of each cell of a column with a public list of values, and the number of codes.

    The codes are private. Cells that are missing or not listed have the last code.
    """
    cells, kind = linked.source.column(column), linked.schema.coded[column]
    encoder = kind.encoder(cells.dtype)
    codes = encoder.encode(cells)
    return np.where(codes == STRAY, encoder.size, codes), encoder.size + 1
