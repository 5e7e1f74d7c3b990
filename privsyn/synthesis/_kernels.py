"""Compiled loops over rows and cells; their callers explain the algorithms.

`round_with_offset`, `swap_blocks` and `resample`, with what it calls, have slow twins in
tests/reference.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from privsyn.compiled import INNER, KERNEL
from privsyn.marginals.domain import Floats, Ints

LANES = 16
"""Numbers that are added at once, as a vector: 64 bytes, as much as memory delivers at once."""

BARRED = np.float32(1e18)
"""The cost of a code that a row may not take: no other cost comes near it."""

EXCHANGES = 1 / 3
"""Part of the proposals of `move_changes` that changes a first value, where there are others."""

STRETCH = 128
"""Rows whose cells are found together, table by table. Their places stay in the cache."""

Indices = npt.NDArray[np.uint32]
"""Unsigned: compiled code need not look whether an index is negative."""


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
    indices : flat array
        Place in `values` of codes c and d, at ``c * strides[0] + d * strides[1]``; their number if not there.
    groups : of shape (groupings, values)
        Group of each value.
    widths : of shape (groupings,)
        Number of groups.
    tables : of shape (groupings + 1,)
        First table of each grouping.
    starts : of shape (tables,)
        First cell of each table.
    axis_starts : of shape (tables + 1,)
        First of the other attributes of each table, in `axes` and `blocks`.
    axes, blocks : of shape (other attributes of all tables,)
        The attribute. Its code c moves the row of cells by ``offsets[block + c]``.
    offsets : flat array
    cells : of shape (cells,)
        Place of each cell among those of all tables.
    barred_ends : of shape (rows + 1,), or (1,) if no code is barred
        End of the codes that are barred before each row, in `barred`.
    barred : flat array
        Codes of the one moved attribute that the row may not take.
    """

    moved: Indices
    values: Indices
    strides: Indices
    indices: Indices
    groups: Indices
    widths: Indices
    tables: Indices
    starts: Indices
    axis_starts: Indices
    axes: Indices
    blocks: Indices
    offsets: Indices
    cells: Indices
    barred_ends: Indices
    barred: Indices


class Swap(NamedTuple):
    """A block of attributes that two rows exchange, and the tables over some of them and some others.

    Parameters
    ----------
    block : of shape (attributes of the block,)
    crossing : of shape (attributes,)
        All attributes of the tables.
    starts : of shape (tables,)
        First cell of each table.
    ends : of shape (tables + 1,)
        End of the attributes of the tables before each table, in `axes` and `blocks`.
    middles : of shape (tables,)
        First attribute of each table that is not in the block.
    axes, blocks : of shape (attributes of all tables,)
        The attribute. Its code c moves the cell by ``offsets[block + c]``.
    offsets : flat array
    """

    block: Indices
    crossing: Indices
    starts: Indices
    ends: Indices
    middles: Indices
    axes: Indices
    blocks: Indices
    offsets: Indices


@intrinsic
def add_up(
    context: Any, values: Any, starts: Any, first: Any, last: Any, at: Any, sums: Any, steps: Any, offset: Any
) -> Any:
    """Set ``sums[at:at + LANES]`` to the sum over t of ``values[starts[t] + at:][:LANES]``.

    Here t goes from `first` to `last` - 1, in this order. Return the sum of ``steps[starts[t] + offset]``:
    while one sum waits for its last addition, the other goes on. The sums stay in registers, which the
    compiler would write to memory and read again for each t. Nothing checks that the arrays are long enough.
    """

    def compile_it(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.FloatType(), LANES)
        first, last, at, _, _, offset = arguments[2:]

        def address(argument: int, index: Any) -> Any:
            array = context.make_array(signature.args[argument])(context, builder, arguments[argument])
            return builder.gep(array.data, [builder.zext(index, ir.IntType(64))])

        def lanes(argument: int, index: Any) -> Any:
            return builder.bitcast(address(argument, index), vector.as_pointer())

        none = ir.Constant(vector, [0.0] * LANES)
        total = cgutils.alloca_once_value(builder, none)  # type: ignore[no-untyped-call]
        zero = ir.Constant(ir.FloatType(), 0.0)
        step_total = cgutils.alloca_once_value(builder, zero)  # type: ignore[no-untyped-call]
        builder.store(none, total)
        builder.store(zero, step_total)
        with cgutils.for_range_slice(builder, first, last, first.type(1)) as (t, _):
            start = builder.load(address(1, t))
            cells = builder.load(lanes(0, builder.add(start, at)), align=4)
            builder.store(builder.fadd(builder.load(total), cells), total)
            step = builder.load(address(6, builder.add(start, offset)))
            builder.store(builder.fadd(builder.load(step_total), step), step_total)
        builder.store(builder.load(total), lanes(5, at), align=4)
        return builder.load(step_total)

    number = types.uint32
    return types.float32(values, starts, number, number, number, sums, steps, number), compile_it


@njit(**KERNEL)
def round_with_offset(values: Floats, offset: float) -> Ints:
    """Round values up or down so that they sum to floor(sum + offset); unbiased for a uniform offset."""
    rounded = np.empty(len(values), np.int64)
    total, before = offset, 0
    for v in range(len(values)):
        total += values[v]
        # If the running total rounds over an integer, a value must not gain an extra row: a cell cannot give
        # up more rows than it has.
        rounded[v] = min(int(np.floor(total)) - before, int(np.ceil(values[v])))
        before += rounded[v]
    return rounded


@njit(**KERNEL)
def resample(
    codes: npt.NDArray[np.unsignedinteger],
    move: Move,
    costs: npt.NDArray[np.float32],
    steps: npt.NDArray[np.float32],
    counts: Ints,
    heat: float,
    noise: npt.NDArray[np.float32],
    rng: np.random.Generator,
) -> None:
    """Draw the move's attributes of each row again, each value in proportion to exp(-cost / heat).

    Parameters
    ----------
    codes : of shape (n, d), column by column, of an unsigned type: an index that cannot be negative is faster
    move : Move
    costs, steps : of shape (cells,), in the order of `move.cells`
        By how much one row more raises the misfit, and by how much this grows with each row.
    counts : of shape (cells,)
    heat : if 0, the value of the least cost is taken
    noise : Gumbel variates, more than values; each draw starts at a random place
    """
    a, b, size = move.moved[0], move.moved[1], np.uint32(len(move.values))
    widest = 0
    for g in range(len(move.widths)):
        widest = max(widest, int(move.widths[g]))
    total_costs, part = np.empty(len(move.values), np.float32), np.empty(widest + LANES, np.float32)
    longer = np.empty(len(costs) + LANES, np.float32)  # a vector may reach beyond the last cell
    for cell in range(len(longer)):
        longer[cell] = costs[cell] if cell < len(costs) else np.float32(0)
    rows_of_cells = np.empty((STRETCH, len(move.starts)), np.uint32)
    warmth = np.float32(heat)
    for row in range(codes.shape[0]):
        if row % STRETCH == 0:  # the codes that are read do not change
            find_rows_of_cells(codes, row, move, rows_of_cells)
        begins = rows_of_cells[row % STRETCH]
        old = move.indices[codes[row, a] * move.strides[0] + codes[row, b] * move.strides[1]]
        if old == size:
            continue
        # The least cost - heat * noise is a draw from the distribution (Gumbel's method).
        drawn = np.uint32(rng.random() * (len(noise) - size)) if heat > 0 else np.uint32(0)
        for v in range(size):
            total_costs[v] = -warmth * noise[drawn + np.uint32(v)]
        if len(move.barred_ends) > 1:
            for k in range(move.barred_ends[row], move.barred_ends[row + 1]):
                index = move.indices[move.barred[k] * move.strides[0]]
                if index < size:
                    total_costs[index] += BARRED
        for g in range(len(move.widths)):
            leaves, old_group = np.float32(0), move.groups[g, old]
            first, last = move.tables[g], move.tables[g + 1]
            for at in range(np.uint32(0), move.widths[g], np.uint32(LANES)):
                leaves = add_up(longer, begins, first, last, np.uint32(at), part, steps, old_group)  # type: ignore[call-arg]
            part[old_group] -= leaves  # the row leaves its cells first
            for v in range(size):
                total_costs[v] += part[move.groups[g, v]]
        new, lowest = np.uint32(0), total_costs[0]
        for v in range(1, size):
            if total_costs[v] < lowest:
                new, lowest = np.uint32(v), total_costs[v]
        if new == old:
            continue
        codes[row, a], codes[row, b] = move.values[new, 0], move.values[new, 1]
        for g in range(len(move.widths)):
            old_group, new_group = move.groups[g, old], move.groups[g, new]
            for t in range(move.tables[g], move.tables[g + 1]):
                cell_left, entered = begins[t] + old_group, begins[t] + new_group
                longer[cell_left] -= steps[cell_left]
                longer[entered] += steps[entered]
                counts[cell_left] -= 1
                counts[entered] += 1
    for cell in range(len(costs)):
        costs[cell] = longer[cell]


@njit(**KERNEL)
def swap_blocks(
    codes: npt.NDArray[np.unsignedinteger],
    swap: Swap,
    pairs: Indices,
    changes: npt.NDArray[np.float32],
    steps: npt.NDArray[np.float32],
    counts: Ints,
    heat: float,
    rng: np.random.Generator,
) -> None:
    """Exchange the block between the two rows of each pair with probability exp(-change of misfit / heat).

    In each table a row with the code b of the block and o of the other attributes leaves the cell (b, o). Two
    rows that differ in both leave two cells and enter two others.

    Parameters
    ----------
    codes : of shape (n, d), column by column
    swap : Swap
    pairs : of shape (2, pairs)
    changes : of shape (cells of all tables, 2)
        By how much a row that enters the cell raises the misfit, and a row that leaves it.
    steps : of shape (cells,)
        By how much the first of these numbers grows with each row, and the second falls.
    counts : of shape (cells,)
    heat : if 0, only exchanges that lower the misfit happen
    """
    first, second = np.empty(codes.shape[1], np.uint32), np.empty(codes.shape[1], np.uint32)
    exits, entries = np.empty((len(swap.starts), 2), np.uint32), np.empty((len(swap.starts), 2), np.uint32)
    for pair in range(pairs.shape[1]):
        i, k = pairs[0, pair], pairs[1, pair]
        differ = False
        for axis in swap.block:
            differ |= codes[i, axis] != codes[k, axis]
        if not differ:
            continue
        for axis in swap.crossing:  # the tables look codes up several times, here next to each other
            first[axis], second[axis] = codes[i, axis], codes[k, axis]
        change, changed = 0.0, np.uint32(0)
        for t in range(len(swap.starts)):
            inside_first = outside_first = inside_second = outside_second = np.uint32(0)
            for a in range(swap.ends[t], swap.middles[t]):
                inside_first += swap.offsets[swap.blocks[a] + first[swap.axes[a]]]
                inside_second += swap.offsets[swap.blocks[a] + second[swap.axes[a]]]
            if inside_first == inside_second:
                continue
            for a in range(swap.middles[t], swap.ends[t + 1]):
                outside_first += swap.offsets[swap.blocks[a] + first[swap.axes[a]]]
                outside_second += swap.offsets[swap.blocks[a] + second[swap.axes[a]]]
            if outside_first == outside_second:
                continue
            exits[changed, 0] = swap.starts[t] + inside_first + outside_first
            exits[changed, 1] = swap.starts[t] + inside_second + outside_second
            entries[changed, 0] = swap.starts[t] + inside_second + outside_first
            entries[changed, 1] = swap.starts[t] + inside_first + outside_second
            for row in range(2):
                change += changes[entries[changed, row], 0] + changes[exits[changed, row], 1]
            changed += np.uint32(1)
        if change >= (-heat * np.log(1 - rng.random()) if heat > 0 else 0.0):
            continue
        for axis in swap.block:
            codes[i, axis], codes[k, axis] = codes[k, axis], codes[i, axis]
        for t in range(changed):
            for row in range(2):
                for cell, more in ((exits[t, row], -1), (entries[t, row], 1)):
                    changes[cell, 0] += more * steps[cell]
                    changes[cell, 1] -= more * steps[cell]
                    counts[cell] += more


@njit(**INNER)
def find_rows_of_cells(
    codes: npt.NDArray[np.unsignedinteger], begin: int, move: Move, rows_of_cells: npt.NDArray[np.uint32]
) -> None:
    """Write for each row of a stretch, and each table, the first of the cells between which the row can move.

    Parameters
    ----------
    codes : of shape (n, d)
    begin : first row of the stretch
    move : Move
    rows_of_cells : of shape (STRETCH, tables)
    """
    rows = STRETCH if begin + STRETCH < len(codes) else len(codes) - begin
    for t in range(len(move.starts)):
        start, first, last = move.starts[t], move.axis_starts[t], move.axis_starts[t + 1]
        if first == last:
            for row in range(rows):
                rows_of_cells[row, t] = start
            continue
        axis, block = move.axes[first], move.blocks[first]
        for row in range(rows):
            rows_of_cells[row, t] = start + move.offsets[block + codes[begin + row, axis]]
        for k in range(first + np.uint32(1), last):
            axis, block = move.axes[k], move.blocks[k]
            for row in range(rows):
                rows_of_cells[row, t] += move.offsets[block + codes[begin + row, axis]]


@njit(**KERNEL)
def _find_changes(codes: Ints, begin: int, end: int, changes: Ints) -> int:
    """Write the rows whose code differs from that of the row before; return how many there are."""
    number = 0
    for row in range(begin + 1, end):
        if codes[row] != codes[row - 1]:
            changes[number] = row
            number += 1
    return number


@njit(**KERNEL)
def _exchange(codes: Ints, value: int, new: Ints) -> None:
    """Write the codes of a parent with its first value and another one exchanged."""
    for row in range(len(codes)):
        new[row] = value if codes[row] == codes[0] else codes[0] if codes[row] == value else codes[row]


@njit(**KERNEL)
def move_changes(
    codes: Ints,
    keeps_first: bool,
    ends: Ints,
    cells: npt.NDArray[np.uint32],
    groups: Ints,
    strides: Ints,
    counts: Floats,
    targets: Floats,
    weights: Floats,
    heat: float,
    rng: np.random.Generator,
) -> None:
    """Move the changes along the rows of each parent, or draw values again.

    A third of the proposals exchanges the first value with another one in all rows of the parent. The others
    move a change to another row between its neighbours, or draw a value between two changes that differs from
    those before and after it. None changes the number of changes. A proposal is taken with probability
    exp(-change of misfit / heat).

    Parameters
    ----------
    codes : of shape (rows,)
        Of the column. The rows of a parent stand together.
    keeps_first : whether no proposal changes a first value
    ends : of shape (parents, 2)
        The first row of each parent, and the row after its last.
    cells : of shape (rows, tables)
        The cell of each row in each table, without what the column and its earlier values add.
    groups : of shape (lags, codes + 1)
        Of lag 0 the code itself, of other lags the group of the code; the last is that of no such row.
    strides : of shape (lags, tables)
        What the group of each lag adds to the cell.
    counts, targets, weights : of shape (cells of all tables,)
    heat : if 0, only proposals that lower the misfit are taken
    """
    lags, tables, size = strides.shape[0], strides.shape[1], groups.shape[1] - 1
    longest = 0
    for parent in range(len(ends)):
        longest = max(longest, ends[parent, 1] - ends[parent, 0])
    new = np.empty(longest, np.int64)
    changes = np.empty(longest + 1, np.int64)
    moved = np.empty((2, longest * tables), np.int64)
    for parent in range(len(ends)):
        begin, end = ends[parent, 0], ends[parent, 1]
        for _ in range(end - begin):
            number = _find_changes(codes, begin, end, changes)
            if not keeps_first and size > 1 and (number == 0 or rng.random() < EXCHANGES):
                first, last, value = begin, end, int(rng.random() * size)
                if value == codes[begin]:
                    continue
                _exchange(codes[begin:end], value, new)
            elif number:
                changes[number] = end
                chosen = int(rng.random() * number)
                first, last = change, after = changes[chosen], changes[chosen + 1]
                if size < 3 or rng.random() < 0.5:
                    before = changes[chosen - 1] + 1 if chosen else begin + 1
                    to = before + int(rng.random() * (after - before))
                    if to == change:
                        continue
                    first, last = min(to, change), max(to, change)
                    value = codes[change] if to < change else codes[change - 1]
                else:
                    value = int(rng.random() * size)
                    if value in (codes[change - 1], codes[change]) or (after < end and value == codes[after]):
                        continue
                new[: end - begin] = codes[begin:end]
                new[first - begin : last - begin] = value
            else:
                break
            cost, entered = 0.0, 0
            for row in range(first, min(last + lags - 1, end)):
                for table in range(tables):
                    old_cell = new_cell = cells[row, table]
                    for lag in range(lags):
                        old_code, new_code = size, size
                        if row - lag >= begin:
                            old_code, new_code = codes[row - lag], new[row - lag - begin]
                        old_cell += strides[lag, table] * groups[lag, old_code]
                        new_cell += strides[lag, table] * groups[lag, new_code]
                    if old_cell == new_cell:
                        continue
                    cost += weights[old_cell] * (1 - 2 * (counts[old_cell] - targets[old_cell]))
                    counts[old_cell] -= 1
                    cost += weights[new_cell] * (1 + 2 * (counts[new_cell] - targets[new_cell]))
                    counts[new_cell] += 1
                    moved[0, entered], moved[1, entered] = old_cell, new_cell
                    entered += 1
            if cost >= (-heat * np.log(1 - rng.random()) if heat > 0 else 0.0):
                for index in range(entered):
                    counts[moved[0, index]] += 1
                    counts[moved[1, index]] -= 1
                continue
            for row in range(first, last):
                codes[row] = new[row - begin]
