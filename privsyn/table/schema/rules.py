"""Rules and computations: constraints in terms of the numbers of rows.

`possible` gives the structural zeros, which are applied to codes before records are made. Codes cannot
decide everything, such as the order of two dates within one group of days. `repair` then draws numbers
again within their groups, so that no table changes.

Constraints are enforced on the numbers of `privsyn.table.schema.condition`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Integers, Mask, Numbers
from privsyn.table.encoding.encoders import Encoder
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.draws import Cells, DrawnRows

ROUNDING = 1e-6
"""Largest relative error of what is computed of reals: a column may hold float32."""


class Rule(ABC):
    """One constraint on the numbers of its columns."""

    if TYPE_CHECKING:  # a property, or a field

        @property
        def columns(self) -> tuple[str, ...]:
            """The columns that the rule is about."""

    may_be_broken: ClassVar[bool] = False
    """Whether a row that cannot keep it stays as it is, because it was made below a row that is given."""

    @abstractmethod
    def holds(self, numbers: Numbers) -> Mask:
        """Return which rows keep the rule."""

    @abstractmethod
    def possible(self, cells: list[Cells]) -> Mask:
        """Return which cells of the table over the columns, in merged codes, can contain allowed rows."""

    @abstractmethod
    def repair(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Change the rows `at`, which break the rule, so that they keep it, if their groups allow it."""

    @property
    def intervals(self) -> list[tuple[str, Floats, Floats]]:
        """The columns that are compared with constants, each with the low and the high ends of intervals."""
        return []

    def numbers_of(self, column: str) -> list[float]:
        """Return the constants with which a column is compared."""
        return [
            number
            for name, *ends in self.intervals
            if name == column
            for number in np.concatenate(ends).tolist()
        ]


class Computation(ABC):
    """Computes a column from the columns in `by`."""

    column: str

    if TYPE_CHECKING:  # a property, or a field

        @property
        def by(self) -> tuple[str, ...]:
            """The columns from which the column is computed."""

    decimals: int | None = 0
    """Number of decimals of a numerical result; None for reals."""

    @abstractmethod
    def make(self, numbers: Numbers) -> Floats:
        """Return the number of each row; NaN where it is missing."""

    def tolerance(self, column: Coded, numbers: Numbers) -> Floats:
        """Return the largest difference allowed between the given and the computed numbers."""
        return np.array(column.resolution / 2)


def find_rows(listed: Floats, values: Floats) -> npt.NDArray[np.intp]:
    """Return for each row of `values` the place of the equal row in `listed`, -1 where there is none.

    >>> find_rows(np.array([[1.0, 2.0], [1.0, 5.0]]), np.array([[1.0, 5.0], [2.0, 2.0]])).tolist()
    [1, -1]
    """
    positions, wanted = np.zeros(len(listed), np.int64), np.zeros(len(values), np.int64)
    for j in range(listed.shape[1]):
        distinct = np.unique(listed[:, j])
        rank = np.minimum(np.searchsorted(distinct, values[:, j]), len(distinct) - 1)
        wanted = np.where((wanted >= 0) & (distinct[rank] == values[:, j]), wanted * len(distinct) + rank, -1)
        positions = positions * len(distinct) + np.searchsorted(distinct, listed[:, j])
        # Renumber after each column, because the product of many sizes would overflow.
        keys, positions = np.unique(positions, return_inverse=True)
        rank = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        wanted = np.where((wanted >= 0) & (keys[rank] == wanted), rank, -1)
    order = np.empty(len(listed), np.intp)
    order[positions] = np.arange(len(listed))
    return np.where(wanted >= 0, order[wanted], -1)


def check_computed(
    computations: Sequence[Computation], encoders: Mapping[str, Encoder], nullable: Mapping[str, bool]
) -> None:
    """Refuse a computed column that cannot hold the decimals or the missing values of its parts."""
    for maker in computations:
        encoder: Any = encoders[maker.column]
        if maker.decimals != 0 and encoder.grid.decimals == 0:
            raise InputError(
                f"column {maker.column!r} is whole, and not all parts of its sum are: say integer: true"
            )
        for name in maker.by:
            if nullable[name] and not nullable[maker.column]:
                raise InputError(
                    f"column {maker.column!r} is computed from {name!r}, which may be missing: "
                    f"say nullable=False of {name!r}, or choose a dtype that holds missing cells"
                )
