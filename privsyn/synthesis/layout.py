"""Layout: the cells of all tables in one array, and the tables that each move changes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from privsyn.marginals.domain import Attributes, Domain
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Codes, Floats, Integers
from privsyn.synthesis import _kernels

Indices = npt.NDArray[np.uint32]
"""Unsigned: compiled code need not look whether an index is negative."""

NO_GROUPS: Mapping[int, tuple[Codes, ...]] = MappingProxyType({})


class Layout(NamedTuple):
    """Tables and moves as arrays for `_kernels.anneal`; a move changes one or two attributes of a row.

    There is a move for each attribute, in their order, then one for each pair. Move m changes the cell in the
    tables ``held[firsts[m]:firsts[m + 1]]``. Code c of its attribute adds to their cells
    ``offsets[blocks[m, 0] + c * width]`` and those behind it, where `width` is the number of these tables. So
    one proposal reads two short stretches of memory.

    Parameters
    ----------
    starts : of shape (tables,)
        First cell of each table.
    moved : of shape (moves, 2)
        The attributes that a move changes; equal if it is one.
    offered : of shape (moves that are proposed,)
    firsts : of shape (moves + 1,)
    held : of shape (all tables of all moves,)
    offsets : flat array
        One block for each attribute of each move, of shape (codes, tables of the move). It has equal rows for
        codes that a table joins, and zeros for tables that do not have the attribute.
    blocks : of shape (moves, 2)
        Start in `offsets` of the blocks of the moved attributes.
    """

    starts: Indices
    moved: Indices
    offered: Indices
    firsts: Indices
    held: Indices
    offsets: Indices
    blocks: Indices

    def count_rows(self, codes: Codes, cells: int) -> Floats:
        """Count the rows in each of the `cells` of all tables."""
        counts = np.zeros(cells, np.int64)
        _kernels.count_layout(codes, self, counts)
        return counts.astype(np.float64)


def lay_out(
    domain: Domain,
    tables: tuple[Marginal, ...],
    *,
    groups: Mapping[int, tuple[Codes, ...]] = NO_GROUPS,
    together: tuple[Attributes, ...] = (),
    still: Attributes = (),
) -> Layout:
    """Return the layout of `tables`: a move per attribute and per pair `together`, none of `still`.

    `groups` has the group of each code for the tables (by place) that join codes.
    """
    moves = [(axis, axis) for axis in range(len(domain))] + [domain.axes(pair) for pair in together]
    parts = [_parts(domain, table, groups.get(place)) for place, table in enumerate(tables)]
    holding: list[list[int]] = [[] for _ in range(len(domain))]
    for place, part in enumerate(parts):
        for axis in part:
            holding[axis].append(place)
    held = [sorted({*holding[a], *holding[b]}) for a, b in moves]
    blocks: list[Indices] = []
    for (a, b), of_move in zip(moves, held, strict=True):
        for axis, wanted in ((a, True), (b, a != b)):
            block = np.zeros((domain.sizes[axis] * wanted, len(of_move)), np.uint32)
            for column, place in enumerate(of_move if wanted else ()):
                block[:, column] = parts[place].get(axis, 0)
            blocks.append(block.ravel())
    layout = Layout(
        starts=np.cumsum([0, *(table.domain.cells for table in tables[:-1])]),
        moved=np.array(moves).reshape(-1, 2),
        offered=np.array([m for m, move in enumerate(moves) if not set(move) & set(domain.axes(still))]),
        firsts=np.cumsum([0, *map(len, held)]),
        held=np.array([place for of_move in held for place in of_move]),
        offsets=np.concatenate(blocks),
        blocks=np.cumsum([0, *map(len, blocks)])[:-1].reshape(-1, 2),
    )
    return Layout(*(array.astype(np.uint32, copy=False) for array in layout))


def _parts(domain: Domain, table: Marginal, groups: tuple[Codes, ...] | None) -> dict[int, Integers]:
    """Return what each code of each of the table's attributes adds to the cell."""
    axes = domain.axes(table.attributes)
    groups = groups or tuple(np.arange(domain.sizes[axis], dtype=np.int32) for axis in axes)
    return {
        axis: stride * group.astype(np.int64)
        for axis, group, stride in zip(axes, groups, table.domain.strides, strict=True)
    }
