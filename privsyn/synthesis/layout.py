"""Where the cells of all tables lie when they are laid end to end, and which of them a move touches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privsyn.marginals._kernels import add_counts
from privsyn.marginals.domain import Attributes, Domain
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Codes, Floats, Ints


class Layout(NamedTuple):
    """Tables and moves as the arrays of `_kernels.anneal`; a move changes one attribute of a row, or two.

    The cell of a row in table t is ``starts[t] + sum over q < widths[t] of
    codes[row, columns[t, q]] * strides[t, q]``. Move m touches the tables ``held[firsts[m]:firsts[m + 1]]``.

    Parameters
    ----------
    starts, widths : of shape (tables,)
        First cell of each table, and its number of attributes.
    columns, strides : of shape (tables, most attributes of one table)
    moved : of shape (moves, 2)
        The columns that a move changes, twice the same if it is one.
    firsts : of shape (moves + 1,)
    held : of shape (all tables of all moves,)
    steps : of shape (all tables of all moves, 2)
        By how much the cell moves in that table when the moved columns grow by 1.
    """

    starts: Ints
    widths: Ints
    columns: Ints
    strides: Ints
    moved: Ints
    firsts: Ints
    held: Ints
    steps: Ints

    def count_rows(self, codes: Codes, cells: int) -> Floats:
        """How many rows lie in each of the `cells` of all tables."""
        counts = np.zeros(cells, np.int64)
        used = np.arange(self.columns.shape[1]) < self.widths[:, np.newaxis]
        firsts = np.cumsum([0, *self.widths])
        add_counts(codes.T, firsts, self.columns[used], self.strides[used], self.starts, counts)
        return counts.astype(np.float64)


def lay_out(
    domain: Domain,
    tables: tuple[Marginal, ...],
    *,
    together: tuple[Attributes, ...] = (),
    still: Attributes = (),
) -> Layout:
    """The layout of `tables`: a move for each attribute and each pair `together`, but none of `still`."""
    widths = [len(table.domain) for table in tables]
    columns, strides = np.zeros((2, len(tables), max(widths)), np.int64)
    stride: list[dict[int, int]] = []
    for place, table in enumerate(tables):
        stride.append(dict(zip(domain.axes(table.attributes), table.domain.strides, strict=True)))
        columns[place, : widths[place]] = list(stride[place].keys())
        strides[place, : widths[place]] = list(stride[place].values())
    moves = [(axis, axis) for axis in range(len(domain))] + [domain.axes(pair) for pair in together]
    moves = [move for move in moves if not set(move) & set(domain.axes(still))]
    held = [[place for place, of in enumerate(stride) if set(of) & set(move)] for move in moves]
    steps = [
        (stride[place].get(a, 0), stride[place].get(b, 0) if b != a else 0)
        for (a, b), places in zip(moves, held, strict=True)
        for place in places
    ]
    return Layout(
        starts=np.cumsum([0, *(table.domain.cells for table in tables[:-1])]),
        widths=np.array(widths),
        columns=columns,
        strides=strides,
        moved=np.array(moves, np.int64).reshape(-1, 2),
        firsts=np.cumsum([0, *map(len, held)]),
        held=np.array([place for places in held for place in places], np.int64),
        steps=np.array(steps, np.int64).reshape(-1, 2),
    )
