"""The dtypes that a CSV file has by its schema alone."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from privsyn.table.encoding.dtypes import dtype_text
from privsyn.table.schema.schema import Schema


def dtypes_in_file(schema: Schema) -> dict[str, str]:
    """Return the dtype that each column of a CSV file with this schema has, as text. No row is read.

    >>> from privsyn import Categorical, Numerical
    >>> dtypes_in_file(Schema({"sex": Categorical(["F", "M"]), "age": Numerical(0, 9, integer=True)}))
    {'sex': 'str', 'age': 'Int64'}
    """
    dtypes = {}
    for name, column in schema.columns.items():
        if column.lists_values and name in schema.coded:
            cells = pd.Series(list(column.listed), dtype=None)
            if cells.dtype.kind in "iub" and schema.coded[name].nullable:
                cells = cells.convert_dtypes()
        else:
            cells = column.read_cells(pa.chunked_array([], pa.string()), schema.csv)
        dtypes[name] = dtype_text(cells.dtype) or "object"
    return dtypes
