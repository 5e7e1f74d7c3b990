"""Rules: each constraint as what it does. Which rows keep it, which cells of a table it leaves, how to mend.

What codes can decide (a zero of a table) is decided before records are made: `possible`. What they cannot,
two dates within one group of days, is decided among the numbers: `mend` draws them anew within their groups,
so that no table changes by it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from privsyn.marginals.nearest_rows import nearest_rows
from privsyn.marginals.types import Array, Floats, Integers, Mask
from privsyn.table.enforcement.draws import Cells, DrawnRows
from privsyn.table.enforcement.ranges import Span

TRADES = 12  # times that all rows are paired anew

Numbers = Mapping[str, Floats]


class Rule(ABC):
    """One constraint, on numbers."""

    columns: tuple[str, ...]

    @abstractmethod
    def holds(self, numbers: Numbers) -> Mask:
        """Which rows keep it."""

    @abstractmethod
    def possible(self, cells: Sequence[Cells]) -> Mask:
        """Which cells of the table over its columns, in merged codes, can hold a row that keeps it."""

    @abstractmethod
    def mend(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Change the rows `at`, which break it, so that they keep it, as far as their room allows."""

    @property
    def spoken(self) -> list[tuple[str, list[float]]]:
        """The numbers that it speaks of, by column."""
        return []


@dataclass(frozen=True, eq=False)
class ForbiddenRule(Rule):
    """A combination that does not occur.

    Parameters
    ----------
    spans : mapping of a column to the values that do not occur together
    lost : str, optional
        The column that is made missing where they do.
    """

    spans: Mapping[str, Span]
    lost: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The columns of the combination."""
        return tuple(self.spans)

    @property
    def spoken(self) -> list[tuple[str, list[float]]]:
        """The ends of its spans."""
        return [(name, span.ends) for name, span in self.spans.items()]

    def holds(self, numbers: Numbers) -> Mask:
        """Where not all values are of the combination."""
        return ~reduce(np.logical_and, (span.holds(numbers[name]) for name, span in self.spans.items()))

    def possible(self, cells: Sequence[Cells]) -> Mask:
        """All cells but those that are of the combination as a whole."""
        whole = [
            _all(c, span.covers(c.lows, c.highs)) for c, span in zip(cells, self.spans.values(), strict=True)
        ]
        return ~reduce(np.logical_and.outer, whole)

    def mend(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Make the one column missing, or draw numbers anew on either side of their span."""
        if self.lost is not None and rows.is_free(self.lost):
            rows.numbers[self.lost][at] = np.nan
            return
        for name, span in self.spans.items():
            if rows.is_free(name) and rows.cells[name].grid is not None and len(span.lows) == 1:
                lows, highs = rows.room(name, at)
                step = rows.cells[name].grid.step  # type: ignore[union-attr]
                below, above = np.fmin(highs, span.lows[0] - step), np.fmax(lows, span.highs[0] + step)
                under = rows.cells[name].draw(lows, below, rng)
                over = rows.cells[name].draw(above, highs, rng)
                drawn = np.where(
                    rng.random(len(at)) * (below - lows + highs - above) < below - lows, under, over
                )
                drawn = np.where(np.isnan(drawn), np.where(np.isnan(under), over, under), drawn)
                rows.numbers[name][at] = np.where(np.isnan(drawn), rows.numbers[name][at], drawn)
                at = at[np.isnan(drawn)]


@dataclass(frozen=True, eq=False)
class AllowedRule(Rule):
    """The only combinations that occur, but for rows that lack a cell.

    Parameters
    ----------
    columns : tuple of str
    rows : array of shape (combinations, columns)
    """

    columns: tuple[str, ...]
    rows: Floats

    @property
    def spoken(self) -> list[tuple[str, list[float]]]:
        """The values of the combinations."""
        return [(name, self.rows[:, j].tolist()) for j, name in enumerate(self.columns)]

    def holds(self, numbers: Numbers) -> Mask:
        """Where the combination is listed."""
        values = np.stack([numbers[name] for name in self.columns], axis=1)
        return np.isnan(values).any(axis=1) | (self.find(values) >= 0)

    def find(self, values: Floats) -> Integers:
        """The combination that each row has, -1 where it is not listed."""
        return find_rows(self.rows, values)

    def possible(self, cells: Sequence[Cells]) -> Mask:
        """The cells that a combination lies in, and those of rows that lack something."""
        mask = np.zeros([c.merged for c in cells], np.bool_)
        mask[tuple(c.groups[c.find(self.rows[:, j])] for j, c in enumerate(cells))] = True
        for axis, c in enumerate(cells):
            if c.nullable:
                mask[(slice(None),) * axis + (c.groups[-1],)] = True
        return mask

    def mend(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Take a combination of the row's own groups, by its weight; else the next in order."""
        if not all(name in rows.cells for name in self.columns):
            return
        # Numbers that may not change lead the order, so that the next in order has them as well.
        order = sorted(range(len(self.columns)), key=lambda j: self.columns[j] not in rows.fixed)
        listed: list[Array] = []
        wanted: list[Array] = []
        weights = np.ones(len(self.rows))
        for j in order:
            name, c = self.columns[j], rows.cells[self.columns[j]]
            codes = c.find(self.rows[:, j])
            fixed = name in rows.fixed
            listed.append(self.rows[:, j] if fixed else c.groups[codes])
            wanted.append(rows.numbers[name][at] if fixed else rows.merged(name, at))
            weights *= c.shares[codes]
        picked = nearest_rows(listed, weights + np.finfo(float).tiny, wanted, rng)
        keep = np.ones(len(at), np.bool_)
        for j, name in enumerate(self.columns):
            if name in rows.fixed:
                keep &= rows.numbers[name][at] == self.rows[picked, j]
        for j, name in enumerate(self.columns):
            rows.numbers[name][at[keep]] = self.rows[picked[keep], j]


@dataclass(frozen=True, eq=False)
class IncreasingRule(Rule):
    """Numbers of which none lies above the next."""

    columns: tuple[str, ...]
    strict: bool
    scales: tuple[float, ...]  # what one unit of each column is worth

    def _trade(self, rows: DrawnRows, rng: np.random.Generator) -> None:
        """Pair rows of one group at random and trade their numbers, where fewer break the rule for it."""
        free = [name for name in self.columns if rows.is_free(name)]
        for turn in range(TRADES if free else 0):
            name = free[turn % len(free)]
            lost = np.isnan(rows.numbers[name])
            groups = np.where(lost, -1, rows.cells[name].groups[rows.codes[name]])
            order = np.argsort(groups + rng.random(len(groups)))
            one, two = order[0:-1:2], order[1::2]
            near = {other: (rows.numbers[other][one], rows.numbers[other][two]) for other in self.columns}
            kept = [self.holds({other: both[k] for other, both in near.items()}) for k in (0, 1)]
            near[name] = near[name][::-1]
            then = [self.holds({other: both[k] for other, both in near.items()}) for k in (0, 1)]
            better = (groups[one] == groups[two]) & (
                then[0].astype(int) + then[1] > kept[0].astype(int) + kept[1]
            )
            rows.numbers[name][one[better]] = near[name][0][better]
            rows.numbers[name][two[better]] = near[name][1][better]

    def _step(self, rows: DrawnRows, name: str, scale: float) -> float:
        """By how much a number of a column must lie above the one before."""
        if not self.strict or name not in rows.cells:
            return 0.0
        return rows.cells[name].grid.step * scale  # type: ignore[union-attr]  # only such columns rise

    def holds(self, numbers: Numbers) -> Mask:
        """Where each is above all before it; what is missing is left out."""
        kept, before = np.array(True), np.array(-np.inf)
        for name, scale in zip(self.columns, self.scales, strict=True):
            number = numbers[name] * scale
            kept = kept & ~(number <= before if self.strict else number < before)
            before = np.fmax(before, number)
        return np.asarray(kept)

    def possible(self, cells: Sequence[Cells]) -> Mask:
        """Where the largest numbers of the later groups are above the least of the earlier."""
        kept, before = np.array(True), np.array(-np.inf)
        for axis, (c, scale) in enumerate(zip(cells, self.scales, strict=True)):
            shape = [-1 if axis == other else 1 for other in range(len(cells))]
            low, high = (end.reshape(shape) * scale for end in c.reach)
            kept = kept & ~(high <= before if self.strict else high < before)
            before = np.fmax(before, low)
        return np.broadcast_to(kept, [c.merged for c in cells])

    def mend(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Trade numbers with rows of the same groups; what is left is drawn anew within its groups.

        Trading changes the counts of no value. Bringing a row's own numbers in order would: those of the
        first column would crowd at the lower ends of their groups.
        """
        self._trade(rows, rng)
        at = at[~self.holds({name: rows.numbers[name][at] for name in self.columns})]
        scales = np.array(self.scales)[:, np.newaxis]
        room = [rows.room(name, at) for name in self.columns]
        lows, highs = (np.stack([side[k] for side in room]) * scales for k in (0, 1))
        steps = [self._step(rows, name, scale) for name, scale in zip(self.columns, self.scales, strict=True)]
        tops, above = highs.copy(), np.full(len(at), np.inf)
        for j in range(len(tops) - 1, -1, -1):
            tops[j] = np.minimum(tops[j], above)  # where it is missing it stays so
            above = np.fmin(above, tops[j] - (steps[j - 1] if j else 0.0))
        drawn = np.sort(np.stack([rows.numbers[name][at] for name in self.columns]) * scales, axis=0)
        sorted_fits = ((drawn >= lows) & (drawn <= highs)).all(axis=0)
        if self.strict:
            sorted_fits &= (np.diff(drawn, axis=0) > 0).all(axis=0)
        floor = np.full(len(at), -np.inf)
        for j, name in enumerate(self.columns):
            number = rows.numbers[name][at]
            if rows.is_free(name):
                lowest = np.fmax(lows[j], floor + steps[j]) / self.scales[j]
                new = rows.cells[name].draw(lowest, tops[j] / self.scales[j], rng)
                new = np.where(sorted_fits, drawn[j] / self.scales[j], new)
                number = rows.numbers[name][at] = np.where(np.isnan(new), number, new)
            floor = np.fmax(floor, number * self.scales[j])


def _all(cells: Cells, of_codes: Mask) -> Mask:
    """Of which merged codes all codes are so."""
    return np.bincount(cells.groups, ~of_codes, minlength=cells.merged) == 0


def find_rows(listed: Floats, values: Floats) -> npt.NDArray[np.intp]:
    """For each row of `values` the place of its equal in `listed`, -1 where there is none.

    >>> find_rows(np.array([[1.0, 2.0], [1.0, 5.0]]), np.array([[1.0, 5.0], [2.0, 2.0]])).tolist()
    [1, -1]
    """
    places, wanted = np.zeros(len(listed), np.int64), np.zeros(len(values), np.int64)
    for j in range(listed.shape[1]):
        known = np.unique(listed[:, j])
        rank = np.minimum(np.searchsorted(known, values[:, j]), len(known) - 1)
        wanted = np.where((wanted >= 0) & (known[rank] == values[:, j]), wanted * len(known) + rank, -1)
        places = places * len(known) + np.searchsorted(known, listed[:, j])
        # Numbered anew after each column: the product of many sizes would overflow.
        keys, places = np.unique(places, return_inverse=True)
        rank = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        wanted = np.where((wanted >= 0) & (keys[rank] == wanted), rank, -1)
    order = np.empty(len(listed), np.intp)
    order[places] = np.arange(len(listed))
    return np.where(wanted >= 0, order[wanted], -1)
