"""What makes a schema wrong, such as rows that break its constraints. It counts rows: NOT PRIVATE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
import pandas as pd

from privsyn.marginals.domain import Floats
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.encoding.encoders import missing_cells
from privsyn.table.enforcement.repair import rows_that_keep
from privsyn.table.schema.constraint import Constraint
from privsyn.table.schema.schema import Schema

BROKEN = "rows break a constraint or rule: correct the rows, or correct or delete it"
ADVICE = (
    OTHER_COLUMNS := "the table lacks columns of the codebook: is it the right codebook?",
    NO_CELL_FITS := "no cell of a column fits: correct its kind, values or bounds",
    SHARED_KEY := "rows of two persons share a key, and both are less protected: give each row its own key",
    NO_PARENT := "no row of a table has a parent: correct the link, or write keys and links alike",
    NO_ORDER := "no row of a table has an order: name a column of numbers or times, or declare its format",
    BROKEN,
)
"""How a schema that is wrong is corrected, the worst first."""


class Misfit(str):
    """A line about what makes a schema wrong, with one of `ADVICE`."""

    advice: str

    def __new__(cls, line: str, advice: str) -> Self:
        """Return the line."""
        misfit = super().__new__(cls, line)
        misfit.advice = advice
        return misfit


def numbers_of(open_schema: OpenSchema, frame: pd.DataFrame) -> tuple[Schema, dict[str, Floats]]:
    """Return the schema with all values and bounds, and the cells of each column as constraints read them."""
    kinds, dtypes = open_schema.schema, open_schema.dtypes
    widest = {name: kinds.ordinal(name).widest(dtypes[name]).bounds for name in open_schema.bounds}
    schema = open_schema.fill({}, widest)  # bounds in which every cell can be read
    numbers = Codec.for_table(schema, frame).read(frame)
    for name, column in schema.coded.items():
        if column.fixed_decimals is not None:  # single precision is off
            with np.errstate(over="ignore"):  # a warning would be about a cell
                numbers[name] = np.round(numbers[name], column.fixed_decimals)
    for name in open_schema.values:  # a value that is left to be found is no missing cell
        unlisted = np.isnan(numbers[name]) & ~missing_cells(frame[name])
        numbers[name] = np.where(unlisted, -1.0, numbers[name])
    return schema, numbers


def rows_that_break(schema: Schema, numbers: Mapping[str, Floats]) -> list[tuple[Constraint, int]]:
    """Return each constraint, and how many rows break it, given what `numbers_of` returns. Not private."""
    return [
        (constraint, int((~rows_that_keep(schema.coded, constraint, numbers)).sum()))
        for constraint in schema.constraints
    ]
