"""What a run may be expected to give, from public facts alone."""

from __future__ import annotations

from dataclasses import dataclass

from privsyn.app.study import Study
from privsyn.studies.plan import Plan, plan

LARGEST = 0.5
"""Errors from this share on are drawn alike: such a table is noise."""


@dataclass(frozen=True)
class Expected:
    """The expected errors for a number of rows, as shares of rows that would have to change.

    Parameters
    ----------
    rows : int
    column, pair : float
        Of one column, and of two; the second is NaN if there is one column.
    """

    rows: int
    column: float
    pair: float

    @property
    def lengths(self) -> tuple[float, float]:
        """The lengths of the bars for both, from 0 to 1."""
        first, second = (min(error / LARGEST, 1.0) for error in (self.column, self.pair))
        return first, second


def expected(study: Study) -> tuple[list[Expected], tuple[str, ...]]:
    """Return the expected errors of a run for several numbers of rows, and notes. It reads no row.

    Raises
    ------
    InputError
        If the settings cannot work.
    """
    schema, unit = study.schema(), study.unit
    planned = plan(study.data, study.epsilon, study.delta, schema, unit=unit, target=study.target)
    if not isinstance(planned, Plan):  # a study is of one table
        raise TypeError(type(planned).__name__)
    sizes = [Expected(each.rows, each.one_way_error, each.pair_error) for each in planned.expectations]
    return sizes, planned.notes
