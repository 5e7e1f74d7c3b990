"""Compiled loops that recode and count rows, fit pairs to margins, and hash identifiers.

Tests compare them with slow twins, most of them in tests/reference.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import intrinsic

from privsyn.compiled import INNER, KERNEL
from privsyn.marginals.domain import Floats, Integers, Ints

STRETCH = 8192
"""Rows counted in one table before the next: two columns of them stay in the first-level cache."""

SMALL = 100
"""Most cells of a table that is counted cell by cell, 64 rows at once: 0.002 to 0.004 ns a cell and row. The
other way takes 0.5 to 1 ns a row."""

SHORT = 2**16
"""Most cells of a table in which the number of a cell, from 0, fits in two bytes."""

Short = npt.NDArray[np.uint16]
Words = npt.NDArray[np.uint64]

Bits = Words
"""Of shape (planes, words). The bits of a plane say which rows of a stretch have one value of one column."""


@intrinsic
def count_ones(context: Any, word: Any) -> Any:
    """Return the number of bits of a word that are 1."""

    def compile_it(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), compile_it


@njit(**KERNEL)
def recode(column: Integers, group: Integers, recoded: Integers) -> None:
    """Write the group of each code to `recoded`. In numpy, each code would first become an index of 8 bytes.

    Parameters
    ----------
    column, recoded : arrays of shape (rows,)
    group : array of shape (codes,)
        Every code of `column` has a group: no bounds are checked.
    """
    for row in range(len(column)):
        recoded[row] = group[column[row]]


class CountedTables(NamedTuple):
    """The tables that one core counts.

    Parameters
    ----------
    sizes : of shape (d,), number of codes of each column
    firsts : of shape (tables + 1,)
        Table t is over the attributes ``columns[firsts[t]:firsts[t + 1]]``.
    columns, strides : of shape (attributes of all tables,)
    starts : of shape (tables,)
        First cell of each table. A row's cell is the start plus the sum of its codes times their strides.
    first_planes : of shape (d,)
        First plane of each column of a table of several columns and at most `SMALL` cells; -1 for the others.
    planes : of shape (planes + 1, STRETCH // 64), overwritten; the last is no column's
    """

    sizes: Ints
    firsts: Ints
    columns: Ints
    strides: Ints
    starts: Ints
    first_planes: Ints
    planes: Bits


@njit(**KERNEL)
def add_counts(codes: Short, tables: CountedTables, counts: Ints) -> None:
    """Count every row in every table in one pass over the rows, and add to `counts` in place.

    Parameters
    ----------
    codes : of shape (d, n), column by column
    tables : CountedTables
    counts : of shape (cells of all tables,)
    """
    sizes, firsts, columns, strides, starts, first_planes, planes = tables
    n = codes.shape[1]
    rows = planes[len(planes) - 1]
    cells, short = np.empty(STRETCH, np.int64), np.empty(STRETCH, np.uint16)
    for begin in range(0, n, STRETCH):
        end = min(begin + STRETCH, n)
        set_bits(codes, begin, end, first_planes, planes)
        for t in range(len(starts)):
            first, last = firsts[t], firsts[t + 1]
            size = sizes[columns[first]] * strides[first] if last > first else 1
            attributes, steps, table_counts = columns[first:last], strides[first:last], counts[starts[t] :]
            if last - first > 1 and size <= SMALL:
                words = rows[: (end - begin + 63) // 64]
                add_small(planes, words, attributes, first_planes, sizes, table_counts)
            elif size <= SHORT:
                add_rows(codes, begin, attributes, steps, short[: end - begin], table_counts)
            else:
                add_rows(codes, begin, attributes, steps, cells[: end - begin], table_counts)


@njit(**INNER)
def add_rows(codes: Short, begin: int, columns: Ints, strides: Ints, cells: Integers, counts: Ints) -> None:
    """Count the rows of a stretch, from the row `begin` on, in the cells of one table, and add to `counts`.

    If `cells` has two bytes a number, 16 rows or more are computed at once. Each conversion to its type is
    needed: numba would compute in 8 bytes without it.

    Parameters
    ----------
    codes : of shape (d, n), column by column
    columns, strides : of shape (attributes of the table,)
    cells : of shape (rows of the stretch,), overwritten with the cell of each row
    counts : of shape (cells of this table and of all after it,)
    """
    number, end = cells.dtype.type, begin + len(cells)
    for i in range(len(cells)):
        cells[i] = 0
    for q in range(len(columns)):
        column, step = codes[columns[q]][begin:end], number(strides[q])
        for i in range(len(column)):
            cells[i] = number(cells[i] + number(number(column[i]) * step))
    for i in range(len(cells)):
        counts[cells[i]] += 1


@njit(**INNER)
def set_bits(codes: Short, begin: int, end: int, first_planes: Ints, planes: Bits) -> None:
    """Write the planes of the columns that have a place, from the rows of a stretch.

    Parameters
    ----------
    codes : of shape (d, n), column by column
    first_planes : of shape (d,), first plane of each column, or -1
    planes : of shape (planes, words)
    """
    for plane in range(planes.shape[0]):
        for word in range(planes.shape[1]):
            planes[plane, word] = 0
    for c in range(len(first_planes)):
        column, first_plane = codes[c][begin:end], first_planes[c]
        if first_plane >= 0:
            for i in range(len(column)):
                planes[first_plane + np.int64(column[i]), i >> 6] |= np.uint64(1) << np.uint64(i & 63)


@njit(**INNER)
def add_small(
    planes: Bits, rows: Words, columns: Ints, first_planes: Ints, sizes: Ints, counts: Ints
) -> None:
    """Count the rows of some words in each cell of a table over some columns, and add to `counts`.

    Parameters
    ----------
    planes : of shape (planes, words)
    rows : of shape (words that have rows,), overwritten
    columns : of shape (attributes of the table,)
    first_planes, sizes : of shape (d,), first plane and number of codes of each column
    counts : of shape (cells of this table and of all after it,)
    """
    cells, last, words = 1, columns[len(columns) - 1], len(rows)
    for q in range(len(columns)):
        cells *= sizes[columns[q]]
    for cell in range(0, cells, sizes[last]):
        for w in range(words):
            rows[w] = ~np.uint64(0)
        before = cell // sizes[last]  # the codes of all columns but the last
        for q in range(len(columns) - 2, -1, -1):
            column = columns[q]
            plane = planes[first_planes[column] + before % sizes[column]]
            before //= sizes[column]
            for w in range(words):
                rows[w] &= plane[w]
        for code in range(sizes[last]):
            plane = planes[first_planes[last] + code]
            number = np.uint64(0)
            for w in range(words):
                number += count_ones(rows[w] & plane[w])  # type: ignore[call-arg]
            counts[cell + code] += np.int64(number)


@njit(**KERNEL)
def add_within_squares(
    codes: Integers, before: Integers, firsts: Ints, offsets: Ints, bound: int, counts: Ints
) -> None:
    """Count rows in one table, and add to `counts` in place.

    The rows of a person are counted in their order until one would lift the sum of the squared counts of
    this person over ``bound**2``. This row and all later ones of the person are left out.

    Parameters
    ----------
    codes : of shape (attributes, rows)
        The rows of a person stand together.
    before : of shape (rows,)
        Number of rows of the same person before each row.
    firsts : of shape (attributes,)
        Code c of attribute q moves a row's cell by ``offsets[firsts[q] + c]``.
    offsets : flat array
    bound : root of the largest sum
    counts : of shape (cells,)
    """
    rows = codes.shape[1]
    cells = np.empty(min(rows, STRETCH), np.uint64)
    longest = int(before.max()) + 1 if rows else 0
    slots = 4  # at least 4 times as many as a person has cells with counted rows, so few of these collide
    while slots < 4 * min(bound * bound, longest, len(counts)):
        slots *= 2
    owners = np.full(slots, -1, np.int64)  # the table of a hash with open addressing: the person,
    cells_of_slots = np.empty(slots, np.uint64)  # the cell,
    times = np.empty(slots, np.int64)  # and how many rows of this person were counted in it
    person, room = -1, 0
    for start in range(0, rows, STRETCH):
        end = min(start + STRETCH, rows)
        cells[:] = 0
        for q in range(len(firsts)):
            steps = offsets[firsts[q] :]
            for row in range(start, end):
                cells[row - start] += np.uint64(steps[np.uint64(codes[q, row])])
        for row in range(start, end):
            if before[row] == 0:
                person, room = person + 1, bound * bound
            if room <= 0:
                continue
            cell = cells[row - start]
            at = (cell ^ cell >> np.uint64(7)) & np.uint64(slots - 1)
            while owners[at] == person and cells_of_slots[at] != cell:
                at = (at + np.uint64(1)) & np.uint64(slots - 1)
            if owners[at] != person:
                owners[at], cells_of_slots[at], times[at] = person, cell, 0
            added = 2 * times[at] + 1  # (t + 1)^2 - t^2
            if added > room:
                room = 0
                continue
            times[at] += 1
            room -= added
            counts[cell] += 1


@njit(**KERNEL)
def fit_pairs(
    counts: Floats, rows: Floats, columns: Floats, iterations: int, enough: float, stalled: float
) -> Floats:
    """Scale tables of two attributes to their one-way margins, in place, and return their totals.

    See `ipf.fit_alike`.

    Parameters
    ----------
    counts : of shape (tables, rows, columns)
    rows : of shape (tables, rows)
    columns : of shape (tables, columns)
    iterations : most iterations over both margins
    enough : end when the largest gap is at most this share of the total
    stalled : or when an iteration reduces the sum of all gaps by less than this share
    """
    factors, totals = np.empty(counts.shape[2]), np.empty(len(counts))
    for t in range(counts.shape[0]):
        gaps, totals[t] = np.inf, 0.0
        for _ in range(iterations):
            before, gaps, missed, total = gaps, 0.0, 0.0, 0.0
            for j in range(counts.shape[2]):
                factors[j] = 0.0
            for i in range(counts.shape[1]):
                row_sum = 0.0
                for j in range(counts.shape[2]):
                    row_sum += counts[t, i, j]
                gap = abs(row_sum - rows[t, i])
                gaps, missed = gaps + gap, max(missed, gap)
                factor = rows[t, i] / row_sum if row_sum > 0 else 0.0
                for j in range(counts.shape[2]):
                    counts[t, i, j] *= factor
                    factors[j] += counts[t, i, j]
            for j in range(counts.shape[2]):
                gap = abs(factors[j] - columns[t, j])
                gaps, missed = gaps + gap, max(missed, gap)
                factors[j] = columns[t, j] / factors[j] if factors[j] > 0 else 0.0
            for i in range(counts.shape[1]):
                row_sum = 0.0
                for j in range(counts.shape[2]):
                    counts[t, i, j] *= factors[j]
                    row_sum += counts[t, i, j]
                total += row_sum
            totals[t] = total
            if missed <= enough * total or before - gaps <= stalled * gaps:
                break
    return totals


@njit(**INNER)
def turn(word: np.uint64, by: int) -> np.uint64:
    """Return a word of 64 bits turned left."""
    return word << np.uint64(by) | word >> np.uint64(64 - by)


@njit(**KERNEL)
def hash_texts(letters: npt.NDArray[np.uint8], ends: Ints, key: Words, hashes: Words) -> None:
    """Write the 128 bits of SipHash-2-4 of each text to `hashes`.

    Parameters
    ----------
    letters : array of bytes
        Of all texts, one after the other.
    ends : array of shape (texts + 1,)
        Where the first text begins and where each ends. No bounds are checked.
    key : array of shape (2,)
    hashes : array of shape (texts, 2)

    References
    ----------
    J.-P. Aumasson, D. J. Bernstein: SipHash: a fast short-input PRF. INDOCRYPT 2012. The values of 128 bits
    are those of the authors' reference implementation and of OpenSSL.
    """
    for row in range(len(hashes)):
        start, size = ends[row], ends[row + 1] - ends[row]
        a = key[0] ^ np.uint64(0x736F6D6570736575)
        b = key[1] ^ np.uint64(0x646F72616E646F6D) ^ np.uint64(0xEE)
        c = key[0] ^ np.uint64(0x6C7967656E657261)
        d = key[1] ^ np.uint64(0x7465646279746573)
        words = size // 8 + 1
        for step in range(words + 2):
            word = np.uint64(0)
            if step < words:
                for letter in range(min(8, size - 8 * step)):
                    word |= np.uint64(letters[start + 8 * step + letter]) << np.uint64(8 * letter)
                if step == words - 1:
                    word |= np.uint64(size & 255) << np.uint64(56)
                d ^= word
            elif step == words:
                c ^= np.uint64(0xEE)
            else:
                b ^= np.uint64(0xDD)
            for _ in range(2 if step < words else 4):
                a += b
                c += d
                b = turn(b, 13) ^ a
                d = turn(d, 16) ^ c
                a = turn(a, 32) + d
                c += b
                b = turn(b, 17) ^ c
                d = turn(d, 21) ^ a
                c = turn(c, 32)
            if step < words:
                a ^= word
            else:
                hashes[row, step - words] = a ^ b ^ c ^ d
