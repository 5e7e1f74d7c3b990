"""How a schema writes numbers and dates in a CSV: as text, where that is not how pandas would write them."""

from __future__ import annotations

import pandas as pd

from privsyn.table.dtypes import OBJECT, family
from privsyn.table.kinds import Numerical
from privsyn.table.schema import Schema
from privsyn.table.times import Datetime


def spelt(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The table with its numbers and dates as text, where the schema says how they look.

    Examples
    --------
    >>> frame = pd.DataFrame({"price": [2.5, None]})
    >>> spelt(frame, Schema({"price": Numerical(0, 9, decimals=2)}))["price"].tolist()
    ['2.50', None]

    Whole numbers stay so where a missing cell has made floats of them:

    >>> spelt(pd.DataFrame({"age": [25.0, None]}), Schema({"age": Numerical(integer=True)}))["age"].tolist()
    ['25', None]
    """
    columns = {name: _spelt(frame[name], name, schema) for name in frame.columns}
    return pd.DataFrame(columns, copy=False)


def _spelt(cells: pd.Series, name: str, schema: Schema) -> pd.Series:
    column, kind = schema.columns.get(name), family(cells.dtype)
    if isinstance(column, Datetime) and column.format is not None and kind == "datetime":
        return _texts(cells, cells.dt.strftime(column.format))
    if kind not in ("integer", "real"):
        return cells
    decimals = None
    if isinstance(column, Numerical) and kind == "real":
        decimals = 0 if column.integer else column.decimals
    if decimals is None and schema.csv.spells_plainly:
        return cells
    texts = cells.map(str if decimals is None else f"{{:.{decimals}f}}".format, na_action="ignore")
    return _texts(cells, texts.map(schema.csv.spell, na_action="ignore"))


def _texts(cells: pd.Series, texts: pd.Series) -> pd.Series:
    return texts.astype(OBJECT).mask(cells.isna(), None)
