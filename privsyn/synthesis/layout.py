"""Layout: the cells of all tables in one array, and for each move the tables that it changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from privsyn.marginals.domain import Attributes, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Codes

Indices = npt.NDArray[np.uint32]
"""Unsigned: compiled code need not look whether an index is negative."""

NO_GROUPS: Mapping[int, tuple[Codes, ...]] = MappingProxyType({})


class Move(NamedTuple):
    """One or two attributes that are drawn again, and the tables that hold them, for `_kernels.resample`.

    Here a table's cells lie in rows: one for each combination of its other attributes, with a cell for each
    group of the moved attributes' codes. So the cells that a record could move to lie next to each other.
    Tables with the same groups follow each other.

    Parameters
    ----------
    moved : of shape (2,)
        The attributes; equal if it is one.
    values : of shape (values, 2)
        Their codes in the start. No others are drawn: they are too rare for a record.
    strides : of shape (2,)
    places : flat array
        Place in `values` of codes c and d, at ``c * strides[0] + d * strides[1]``; their number if not there.
    groups : of shape (groupings, values)
        Group of each value.
    widths : of shape (groupings,)
        Number of groups.
    tables : of shape (groupings + 1,)
        First table of each grouping.
    starts : of shape (tables,)
        First cell of each table.
    others : of shape (tables + 1,)
        First of the other attributes of each table, in `axes` and `blocks`.
    axes, blocks : of shape (other attributes of all tables,)
        The attribute. Its code c moves the row of cells by ``offsets[block + c]``.
    offsets : flat array
    cells : of shape (cells,)
        Place of each cell among those of all tables.
    """

    moved: Indices
    values: Indices
    strides: Indices
    places: Indices
    groups: Indices
    widths: Indices
    tables: Indices
    starts: Indices
    others: Indices
    axes: Indices
    blocks: Indices
    offsets: Indices
    cells: Indices


class _Table(NamedTuple):
    """The place of each cell of a table among those of all tables; the groups of its attributes' codes."""

    cells: Indices
    groups: dict[int, Codes]


def lay_out(
    start: Records,
    tables: tuple[Marginal, ...],
    *,
    groups: Mapping[int, tuple[Codes, ...]] = NO_GROUPS,
    together: tuple[Attributes, ...] = (),
    still: Attributes = (),
) -> list[Move]:
    """Return a move of each pair `together` and of each other attribute in a table, but none of `still`.

    `groups` has the group of each code for the tables (by place) that join codes.
    """
    domain = start.domain
    own = [np.arange(size, dtype=np.int32) for size in domain.sizes]
    begin, holding = 0, dict[int, dict[int, _Table]]()
    for place, table in enumerate(tables):
        axes = domain.axes(table.attributes)
        of_axes = groups.get(place) or tuple(own[axis] for axis in axes)
        cells = np.arange(begin, begin + table.domain.cells, dtype=np.uint32).reshape(table.domain.shape)
        begin += table.domain.cells
        for axis in axes:
            holding.setdefault(axis, {})[place] = _Table(cells, dict(zip(axes, of_axes, strict=True)))
    fixed = set(domain.axes(still))
    pairs = [axes for axes in map(domain.axes, together) if not fixed & set(axes)]
    alone = set(holding) - fixed - {axis for axes in pairs for axis in axes}
    moves: list[tuple[int, ...]] = [*((axis,) for axis in sorted(alone)), *pairs]
    return [
        _move(start, moved, {place: t for axis in moved for place, t in holding[axis].items()}.values())
        for moved in moves
    ]


def _move(start: Records, moved: tuple[int, ...], tables: Iterable[_Table]) -> Move:
    sizes = [start.domain.sizes[axis] for axis in moved]
    found = np.unique(np.ravel_multi_index([start.codes[:, axis] for axis in moved], sizes))
    values = dict(zip(moved, np.unravel_index(found, sizes), strict=True))
    places = np.full(prod(sizes), len(found))
    places[found] = np.arange(len(found))
    alike: dict[tuple[int, bytes], list[_Table]] = {}
    for table in tables:
        grouping, moved_last = _rows_of_cells(table, values)
        alike.setdefault(grouping, []).append(moved_last)
    held = [table for group in alike.values() for table in group]
    offsets = [
        group * prod(cells.shape[k + 1 :])
        for cells, groups in held
        for k, group in enumerate(groups.values())
    ]
    move = Move(
        moved=np.array([moved[0], moved[-1]]),
        values=np.stack([values[moved[0]], values[moved[-1]]], axis=1),
        strides=np.array([sizes[1], 1] if len(moved) > 1 else [1, 0]),
        places=places,
        groups=np.array([np.frombuffer(group, np.int64) for _, group in alike]),
        widths=np.array([width for width, _ in alike]),
        tables=np.cumsum([0, *map(len, alike.values())]),
        starts=np.cumsum([0, *(cells.size for cells, _ in held[:-1])]),
        others=np.cumsum([0, *(len(groups) for _, groups in held)]),
        axes=np.array([axis for _, groups in held for axis in groups]),
        blocks=np.cumsum([0, *map(len, offsets)])[:-1],
        offsets=np.concatenate([[], *offsets]),
        cells=np.concatenate([cells.ravel() for cells, _ in held]),
    )
    return Move(*(array.astype(np.uint32, copy=False) for array in move))


def _rows_of_cells(
    table: _Table, values: Mapping[int, npt.NDArray[np.int64]]
) -> tuple[tuple[int, bytes], _Table]:
    """Return the number of groups and the group of each value; the table with the moved attributes last."""
    axes = list(table.groups)
    inner = [axis for axis in values if axis in table.groups]
    cells = np.moveaxis(table.cells, [axes.index(axis) for axis in inner], range(-len(inner), 0))
    shape = cells.shape[-len(inner) :]
    group = np.ravel_multi_index([table.groups[axis][values[axis]] for axis in inner], shape)
    others = {axis: group for axis, group in table.groups.items() if axis not in inner}
    rows = cells.reshape(*cells.shape[: -len(inner)], prod(shape))
    return (prod(shape), group.astype(np.int64).tobytes()), _Table(rows, others)
