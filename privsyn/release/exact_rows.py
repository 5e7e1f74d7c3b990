"""Rows that keep all constraints, and whose counts are those of their codes in columns with known totals."""

from __future__ import annotations

import numpy as np

from privsyn.errors import InputError, warn_missed_totals
from privsyn.inference.fitted import Fitted
from privsyn.marginals.domain import Floats, Ints, Records
from privsyn.table.codec.codec import Codec


def numbers_of_records(
    codec: Codec, fitted: Fitted, records: Records, rng: np.random.Generator
) -> dict[str, Floats]:
    """Return the numbers of all columns of rows with these codes, which keep all constraints.

    A row that breaks a constraint is repaired. The listed values of columns with known totals stay, and their
    numbers stay in their groups; if the repair leaves one, all of these numbers stay as they are drawn.

    Parameters
    ----------
    codec : Codec
    fitted : Fitted
    records : Records
        In merged codes.
    rng : numpy.random.Generator

    Warns
    -----
    TotalsWarning
        If no row with the same codes keeps the constraints, so that totals are missed.
    """
    restored, names = fitted.merging.restore(records, rng), fitted.totals.attributes
    listed = [name for name in names if codec.listed(name)]
    numbers = codec.numbers(restored, rng, fitted.merging, still=listed)
    if not (changed := _changed(codec, fitted, records, numbers)).any():
        return numbers
    try:
        return codec.numbers(restored, rng, fitted.merging, still=names)
    except InputError:
        warn_missed_totals(int(changed.sum()))
        return numbers


def _changed(codec: Codec, fitted: Fitted, records: Records, numbers: dict[str, Floats]) -> Ints:
    """Return for each row 1 if it has another code than its record in a column with totals, else 0."""
    names, cells = fitted.totals.attributes, codec.cells(fitted.merging)
    changed = np.zeros(len(records), np.int64)
    for name, axis in zip(names, records.domain.axes(names), strict=True):
        changed[cells[name].merged_codes(numbers[name]) != records.codes[:, axis]] = 1
    return changed
