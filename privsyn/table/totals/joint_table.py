"""JointTable: whether tables of exact counts are sums of one table, and what its other sums allow a cell.

A joint table has a cell for each combination of the codes of all attributes, as far as a table tells these
apart. That its sums are those of the tables is a system of linear equations for counts of at least 0.

SciPy's solver and sparse matrices are imported only where they are used, which takes a fifth of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from privsyn.marginals.domain import Attributes, Domain, Floats, Ints, Mask
from privsyn.marginals.marginal import Grouping, Measurement, common_refinement
from privsyn.marginals.structural_zeros import StructuralZeros

MOST_CELLS = 50_000
"""Cells of a joint table for which a linear program is solved, which then takes seconds."""

MOST_STATES = 2**24
"""Cells of a joint table, also those that no table allows: a byte each."""

SECONDS = 20.0
"""Time limit of one linear program."""

WHOLE = 1e-6
"""Least difference of two counts that rounding does not explain."""


@dataclass(frozen=True, eq=False)
class JointTable:
    """The table of which all given tables are sums, if there is one.

    Parameters
    ----------
    tables : tuple of Measurement
        Whole counts, in records, over groups of codes of the domain.
    zeros : StructuralZeros
        Of the codes: only those of attributes that the tables have.
    domain : Domain
        Of the codes.
    """

    tables: tuple[Measurement, ...]
    zeros: StructuralZeros
    domain: Domain

    @cached_property
    def groups(self) -> dict[str, Ints]:
        """The group of each code: the coarsest groups that are finer than those of all tables."""
        sides: dict[str, list[Ints]] = {}
        for table in self.tables:
            for name, group in groups_by_name(table).items():
                sides.setdefault(name, []).append(group)
        return {name: common_refinement(groups) for name, groups in sides.items()}

    @cached_property
    def possible(self) -> Mask | None:
        """Which cells can have a row by the structural zeros; None if there are too many cells."""
        names = tuple(self.groups)
        shape = tuple(int(group.max()) + 1 for group in self.groups.values())
        if prod(shape) > MOST_STATES:
            return None
        possible = np.ones(shape, np.bool_)
        for constrained, mask in self.zeros.masks:
            if set(constrained.names) <= set(names):
                groups = tuple(self.groups[name].astype(np.int32) for name in constrained.names)
                inside = Grouping(groups).join(mask.astype(np.float64)) > 0
                possible &= _lifted(inside, constrained.names, names)
        return possible

    def system(self, tables: Sequence[Measurement]) -> tuple[Any, Floats, Mask] | None:
        """Return the sums of some of the tables as linear equations of the counts of cells.

        Returns
        -------
        matrix of shape (sums, cells), array of shape (sums,), and the mask of these cells
            Cells in which a table counts no row are left out. None if there are too many cells.
        """
        from scipy.sparse import coo_array

        if self.possible is None:
            return None
        possible = self.possible.copy()
        for table in tables:
            possible &= _flat(table)[self._cells_in(table)] > 0
        if (size := int(possible.sum())) > MOST_CELLS:
            return None
        sums = np.concatenate([np.zeros(0), *map(_flat, tables)])
        starts = np.cumsum([0, *(len(_flat(table)) for table in tables)])
        rows = [
            self._cells_in(table)[possible] + start for table, start in zip(tables, starts[:-1], strict=True)
        ]
        indices = np.concatenate([np.zeros(0, np.int64), *rows]), np.tile(np.arange(size), len(rows))
        matrix = coo_array((np.ones(len(indices[0])), indices), shape=(len(sums), size)).tocsc()
        return matrix, sums, possible

    def exists(self, *, integral: bool) -> bool | None:
        """Return whether a table has all these sums; None if it could not be found out.

        With `integral` its counts are whole numbers.
        """
        if (system := self.system(self.tables)) is None:
            return None
        matrix, sums, possible = system
        if not possible.any():
            return not sums.any()
        return _solve(np.zeros(matrix.shape[1]), matrix, sums, integral=integral)[0]

    def farthest_cell(self) -> tuple[tuple[int, ...], float, str]:
        """Return a cell of the last table that the other tables do not allow.

        Returns
        -------
        cell : tuple of int
            The one that differs most in the nearest table that has the sums of the others (in L1).
        count : float
            What the others allow there.
        relation : "at most", "at least" or "nearest"
            Whether it is a bound, or the count of that nearest table.
        """
        from scipy.sparse import coo_array, csc_array, eye_array, hstack, vstack

        *rest, last = self.tables
        matrix, sums, possible = self.system(rest)  # type: ignore[misc]  # has fewer cells than all together
        counts = _flat(last)
        size, cells = matrix.shape[1], len(counts)
        indices = self._cells_in(last)[possible], np.arange(size)
        counted = coo_array((np.ones(size), indices), shape=(cells, size)).tocsc()
        gaps = eye_array(cells, format="csc")
        padding = csc_array((len(sums), 2 * cells))
        nearest = vstack([hstack([matrix, padding]), hstack([counted, gaps, -gaps])], format="csc")
        cost = np.concatenate([np.zeros(size), np.ones(2 * cells)])
        solution = _solve(cost, nearest, np.concatenate([sums, counts]))[1]
        allowed = counts if solution is None else counted @ solution[:size]
        cell = int(np.argmax(np.abs(allowed - counts)))
        count, relation = float(allowed[cell]), "nearest"
        row = counted[[cell], :].toarray().reshape(-1)
        for sign, bound in ((-1.0, "at most"), (1.0, "at least")):
            extreme = _solve(sign * row, matrix, sums)[1]
            if extreme is not None and sign * (row @ extreme - counts[cell]) > WHOLE:
                count, relation = float(row @ extreme), bound
        index = np.unravel_index(cell, last.marginal.counts.shape)
        return tuple(map(int, index)), round(count, 3), relation

    def _cells_in(self, table: Measurement) -> Ints:
        """Return the flat cell of a table in which each cell of the joint table is counted."""
        joins = [group[first_codes(self.groups[name])] for name, group in groups_by_name(table).items()]
        flat = np.ravel_multi_index(np.ix_(*joins), table.marginal.counts.shape)
        shape = [int(group.max()) + 1 for group in self.groups.values()]
        return np.broadcast_to(_lifted(flat, table.attributes, tuple(self.groups)), shape)


def groups_by_name(table: Measurement) -> dict[str, Ints]:
    """Return the group of each code along each axis of a table."""
    groups = table.grouping.of_codes(table.marginal.counts.shape)
    return {name: group.astype(np.int64) for name, group in zip(table.attributes, groups, strict=True)}


def _flat(table: Measurement) -> Floats:
    """Return the counts of a table in one dimension."""
    return table.marginal.counts.reshape(-1)


def first_codes(groups: Ints) -> Ints:
    """Return the first code of each group."""
    return np.asarray(np.unique(groups, return_index=True)[1], np.int64)


def _solve(
    cost: Floats, matrix: Any, sums: Floats, *, integral: bool = False
) -> tuple[bool | None, Floats | None]:
    """Return whether counts of at least 0 have these sums, None if the solver gave up; and the cheapest."""
    from scipy.optimize import LinearConstraint, milp

    solution = milp(
        cost,
        integrality=np.full(matrix.shape[1], int(integral)),
        constraints=LinearConstraint(matrix, sums, sums),
        options={"time_limit": SECONDS},
    )
    if solution.status == 0:
        return True, solution.x
    return (False if solution.status == 2 else None), None


def _lifted(cells: Any, names: Attributes, domain_names: Attributes) -> Any:
    """Return an array over attributes in a shape that broadcasts over more attributes."""
    ordered = [name for name in domain_names if name in names]
    moved = np.transpose(cells, [names.index(name) for name in ordered])
    sizes = iter(moved.shape)
    return moved.reshape([next(sizes) if name in names else 1 for name in domain_names])
