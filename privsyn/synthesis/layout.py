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

    The cell of a row in table t is ``starts[t] + sum over q < widths[t] of
    places[bases[t, q] + codes[row, columns[t, q]]]``. Move m touches the tables
    ``held[firsts[m]:firsts[m + 1]]``.

    Parameters
    ----------
    starts, widths : of shape (tables,)
        First cell of each table, and its number of attributes.
    columns, bases : of shape (tables, most attributes of one table)
    places : flat array
        Offset of the cell for each code of an attribute; equal for codes that a table joins. It begins
        with zeros, for an attribute that a table does not hold.
    moved : of shape (moves, 2)
        The columns that a move changes; equal if it is one.
    firsts : of shape (moves + 1,)
    held : of shape (all tables of all moves,)
    steps : of shape (all tables of all moves, 2)
        Start in `places` of the moved columns, for that table.
    """

    starts: Indices
    widths: Indices
    columns: Indices
    bases: Indices
    places: Indices
    moved: Indices
    firsts: Indices
    held: Indices
    steps: Indices

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
    widths = [len(table.domain) for table in tables]
    columns, bases = np.zeros((2, len(tables), max(widths)), np.uint32)
    places = _Places(max(domain.sizes))
    base: list[dict[int, int]] = []
    for place, table in enumerate(tables):
        axes = domain.axes(table.attributes)
        codes = groups.get(place) or tuple(np.arange(domain.sizes[axis], dtype=np.int32) for axis in axes)
        base.append({})
        for axis, group, stride in zip(axes, codes, table.domain.strides, strict=True):
            base[place][axis] = places.find(stride * group.astype(np.int64))
        columns[place, : widths[place]] = list(base[place].keys())
        bases[place, : widths[place]] = list(base[place].values())
    moves = [(axis, axis) for axis in range(len(domain))] + [domain.axes(pair) for pair in together]
    moves = [move for move in moves if not set(move) & set(domain.axes(still))]
    holding: list[list[int]] = [[] for _ in range(len(domain))]
    for place, of in enumerate(base):
        for axis in of:
            holding[axis].append(place)
    held = [sorted({*holding[a], *holding[b]}) for a, b in moves]
    steps = [
        (base[place].get(a, 0), base[place].get(b, 0) if b != a else 0)
        for (a, b), of_move in zip(moves, held, strict=True)
        for place in of_move
    ]
    layout = Layout(
        starts=np.cumsum([0, *(table.domain.cells for table in tables[:-1])]),
        widths=np.array(widths),
        columns=columns,
        bases=bases,
        places=np.concatenate(places.parts),
        moved=np.array(moves).reshape(-1, 2),
        firsts=np.cumsum([0, *map(len, held)]),
        held=np.array([place for of_move in held for place in of_move]),
        steps=np.array(steps).reshape(-1, 2),
    )
    return Layout(*(array.astype(np.uint32) for array in layout))


class _Places:
    """Concatenated arrays, equal ones stored once, so that they fit the cache."""

    def __init__(self, longest: int) -> None:
        self.parts = [np.zeros(longest, np.int64)]
        self._length = longest
        self._known: dict[bytes, int] = {}

    def find(self, part: Integers) -> int:
        """Return where `part` starts; append it if it is new."""
        key = part.astype(np.int64).tobytes()
        if key not in self._known:
            self._known[key] = self._length
            self.parts.append(part.astype(np.int64))
            self._length += len(part)
        return self._known[key]
