"""Rare values that a release counts together: the real table is compared with the same values pooled.

They are not an error of the counts that were kept. Their share is a score of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
import pandas as pd

from privsyn.errors import plural
from privsyn.marginals.domain import Floats
from privsyn.table.encoding.dtypes import OBJECT
from privsyn.table.kinds.categorical import OTHER
from privsyn.table.schema.columns import Categorical, Column
from privsyn.table.schema.schema import Schema

MOST_POOLED = 5
"""Number of columns with pooled values that the summary names."""


def pool_rare(
    frames: Mapping[str, pd.DataFrame], schema: Schema | None
) -> tuple[dict[str, pd.DataFrame], dict[str, Floats]]:
    """Return the tables with the real values pooled that the synthetic table pools.

    A schema names the value that stands for the others, or it is ``"other"``, as in `Categorical`. Without a
    list of values, those that the synthetic table lacks are pooled, if it has that value and, unless the
    schema names it, the real table has not.

    Parameters
    ----------
    frames : mapping of str to pandas.DataFrame
        "real", "synthetic" and perhaps "test".
    schema : Schema, optional

    Returns
    -------
    frames : dict
    pooled : dict of str to array
        For each column with pooled values, the share of the real cells that each of these values has.

    Examples
    --------
    >>> real = pd.DataFrame({"city": ["Rome", "Rome", "Bari", "Lodi"]})
    >>> synthetic = pd.DataFrame({"city": ["Rome", "other"]})
    >>> frames, pooled = pool_rare({"real": real, "synthetic": synthetic}, None)
    >>> frames["real"]["city"].tolist(), pooled["city"].tolist()
    (['Rome', 'Rome', 'other', 'other'], [0.25, 0.25])
    """
    tables, pooled = dict(frames), {}
    for name in frames["synthetic"].columns if schema is None else schema.coded:
        column = Categorical() if schema is None else schema.columns[name]
        if not column.lists_values or any(name not in one.columns for one in frames.values()):
            continue
        with suppress(TypeError):  # cells that cannot be compared: encoding refuses them
            marks = () if schema is None else schema.markers(name)
            if (found := _pooled(tables, name, column, marks)) is not None:
                pooled[name] = found
    return tables, pooled


def _pooled(
    tables: dict[str, pd.DataFrame], name: str, column: Column, marks: tuple[str, ...]
) -> Floats | None:
    """Pool the values of one column in the real and the test table; return their real shares, if any."""
    word = OTHER if column.other is None else column.other
    listed, real = column.listed, tables["real"][name]
    if not listed:
        synthetic = set(tables["synthetic"][name].dropna().unique())
        if word not in synthetic or (column.other is None and (real == word).any()):
            return None
        kept = synthetic | {word, *marks}
    elif column.other is None:
        return None
    else:
        kept = {*listed, *marks}
    columns = {which: tables[which][name] for which in tables.keys() - {"synthetic"}}
    texts = all(isinstance(one, str) for one in kept)
    if texts and not any(isinstance(one, str) for one in real.dropna()[:1]):
        # Of a column of whole numbers, the values beside the word may be their texts.
        columns = {which: cells.convert_dtypes().astype("string") for which, cells in columns.items()}
        real = columns["real"]
    lost = real.notna() & ~real.isin(kept)
    if not lost.any():
        return None
    shares = real[lost].astype(OBJECT).value_counts() / len(real)
    for which, cells in columns.items():
        rest = cells.astype(OBJECT).where(cells.isna() | cells.isin(kept), word)
        tables[which] = tables[which].assign(**{name: rest})
    return np.asarray(shares, np.float64)


def pooled_line(columns: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return a line on the columns with pooled values, the most pooled first; none if nothing is pooled.

    >>> print(*pooled_line({"a": {"pooled": 0.25, "pooled_values": 2.0}, "b": {"pooled": 0.0}}))
    pooled rare values, which the errors leave out: a 25.0% of the cells (2 values)
    """
    shares = {name: of["pooled"] for name, of in columns.items() if of["pooled"] > 0}
    ranked = sorted(shares, key=lambda name: -shares[name])
    words = [
        f"{name} {shares[name]:.1%} of the cells ({plural(int(columns[name]['pooled_values']), 'value')})"
        for name in ranked[:MOST_POOLED]
    ]
    words += [plural(len(ranked) - MOST_POOLED, "more column")] if len(ranked) > MOST_POOLED else []
    text = "pooled rare values, which the errors leave out: "
    return [text + ", ".join(words)] if words else []
