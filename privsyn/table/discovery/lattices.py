"""Find the grid on which nearly all numbers of a column lie, and its heaps, from one noisy count a column."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import log, sqrt

import numpy as np
from scipy.special import ndtri

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Ints, Numbers
from privsyn.table.discovery.tally import RowCells, Tally
from privsyn.table.encoding.dtypes import OBJECT, Dtype, family, real_type
from privsyn.table.encoding.encoders import OrderedEncoder, has_grid
from privsyn.table.encoding.grid import FINE
from privsyn.table.encoding.steps import NUMBERS, Heap, Heaps, Lattice
from privsyn.table.enforcement.repair import check_constraints
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.schema import Schema

Released = Mapping[str, tuple[Ints, float]]
"""For each column, the noisy counts of cells, and the standard deviation of their noise."""

LEFT_OUT = 0.01
"""Share of the numbers that may lie off a grid that is found."""

MARGIN = 2.0
"""Standard deviations of noise by which more numbers may seem to lie off it."""

SURE, MOST_MARGIN = 0.06, 0.2
"""Shares of the numbers. If the margin is larger than the first, no grid of tens, hundreds and so on is taken
(many rows might lie off it): heaps keep it. Decimals and times are usually rounded in all rows alike. If the
margin is larger than the second, the table is too small to tell, and no grid is found at all."""

LIKELY = 0.998
"""Probability from which a grid of reals is taken although noise might hide many numbers that lie off it."""

GRIDS = tuple(lattice for lattice in NUMBERS if lattice.step <= 1 and not lattice.offset)
"""The grids of whole numbers and of decimals."""

WHOLE_ODDS = 1e4
"""Odds that a column of reals holds whole numbers if its counts around 1 look so. Few others do: 0, 1.25. Of
1,000 rows of 13 columns at epsilon 1, 96 % of the flags with missing cells come out whole, and 54 % without
it; of scores of 1 to 5 all and 23 %. The mean of 0, 1.25 and 2.5 is off by .25 deviations in place of .07
(10 seeds)."""

ROUNDS = 30
"""Rounds in which the columns of a table learn from each other which grids are usual. Ten are enough."""

TIMES_STAND_OUT = 4.0
"""Standard deviations by which times of day stand out of the noise. With 2, as for other grids, pure dates
gained times in a quarter of the small tables of eight columns; with 4, in less than one of a thousand."""

STANDS_OUT = 3.0
"""Standard deviations by which a heap exceeds its share of evenly spread points, and the numbers of one finer
lattice the share that may lie off a grid."""

FALSE_HEAPS = 0.01
"""Probability, about, that noise alone makes a heap in any column of a table."""

LEAST_HEAP = 0.01
"""Share of all numbers by which a heap exceeds that of evenly spread points, too."""

CENT = 0.01
"""The step of prices: only on it are prices that end in .99 looked for."""


@dataclass(frozen=True, eq=False)
class LatticeCells(RowCells):
    """The coarsest lattice on which the number of a row lies, or the place after the last.

    Zero lies on all lattices, and is in no cell.
    """

    column: str
    encoder: OrderedEncoder
    lattices: tuple[Lattice, ...]

    @property
    def encoders(self) -> dict[str, OrderedEncoder]:
        """The encoder of the column."""
        return {self.column: self.encoder}

    @property
    def size(self) -> int:
        """Number of lattices, and one for numbers on none."""
        return len(self.lattices) + 1

    def positions(self, numbers: Numbers) -> Floats:
        """Return the place of each row's lattice."""
        cells, dtype = numbers[self.column], real_type(self.encoder.dtype)
        positions = np.where(np.isnan(cells) | (cells == 0), np.nan, float(len(self.lattices)))
        for index in range(len(self.lattices) - 1, -1, -1):
            positions = np.where(
                self.lattices[index].holds(cells, dtype) & (cells != 0), float(index), positions
            )
        return positions


@dataclass(frozen=True)
class LatticeQuestion(Tally):
    """The columns whose grid matters and is not public, and the lattices that are counted for each.

    It is made from public facts and released answers.

    Parameters
    ----------
    columns : mapping of a column to the encoder that reads its numbers, and its lattices, the coarsest first
    times : mapping of a column of dates to the one that it is if its dates have times of day
    """

    columns: Mapping[str, tuple[OrderedEncoder, tuple[Lattice, ...]]]
    times: Mapping[str, Coded] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema, dtypes: Mapping[str, Dtype], finest: Mapping[str, Coded]) -> LatticeQuestion:
        """Return the question about a complete schema.

        A column is asked about if its numbers are real, or have more points than a column has cells. With
        fewer points, its own counts show the grid.

        Parameters
        ----------
        schema : Schema
        dtypes : mapping of each column of the table to its dtype
        finest : mapping of a column to the column that it may be, such as one of times in place of dates
        """
        counted, times = {}, {}
        for name, column in schema.coded.items():
            dtype = dtypes.get(name, OBJECT)
            if name in schema.computed or family(dtype) == "nothing":
                continue
            column = finest.get(name, column)
            low, high = column.bounds
            if column != schema.coded[name]:
                times[name] = column
            if listed := tuple(x for x in column.lattices(dtype) if x.step <= high - low):
                encoder = column.encoder(dtype)
                if has_grid(encoder) and encoder.grid.points > FINE:
                    counted[name] = encoder, listed
        return cls(counted, times)

    @property
    def of_times(self) -> LatticeQuestion:
        """The part of the question that decides which dates have times of day."""
        return replace(
            self, columns={name: self.columns[name] for name in self.times if name in self.columns}
        )

    @property
    def cells(self) -> dict[str, LatticeCells]:
        """The lattices of each column: a row is on the coarsest one that holds its number."""
        return {name: LatticeCells(name, *column) for name, column in self.columns.items()}

    def fill(
        self, schema: Schema, seen: Released, integers: Collection[str] = ()
    ) -> tuple[Schema, dict[str, Heaps]]:
        """Return the schema with the steps found, and the heaps of each column, from released counts.

        Columns of `integers` look like whole numbers in other released counts.
        """
        heaps: dict[str, Heaps] = {}
        clear = -float(ndtri(FALSE_HEAPS / max(sum(noisy.size for noisy, _ in seen.values()), 1)))
        lattices = {name: (*counts, self.columns[name][1]) for name, counts in seen.items()}
        likely = likely_grids(lattices, integers)
        for name, (noisy, sigma) in seen.items():
            encoder, listed = self.columns[name]
            if name in self.times:
                if not have_times(noisy, sigma):
                    continue
                schema = _with_column(schema, name, self.times[name], encoder.dtype) or schema
            base = None if encoder.grid.decimals is None else Lattice(encoder.grid.step)
            grid = grid_of(noisy, sigma, listed)
            if name in likely and (grid is None or grid.step < likely[name].step):
                grid = likely[name]
            if grid is not None and (finer := _with_step(schema, name, grid, encoder.dtype)):
                schema, base = finer, grid
            if base is not None:
                heaps[name] = heaps_of(noisy, sigma, listed, base, clear)
        return schema, {name: grid for name, grid in heaps.items() if grid}


def have_times(noisy: Ints, sigma: float) -> bool:
    """Return whether dates have times of day, from the noisy counts of days, and of times on each finer grid.

    Dates that have none must not gain any, also in a small table. So the counts of times must stand out.

    >>> have_times(np.array([900, 40, -100, 60, -80]), 60.0), have_times(np.array([30, 40, 9, 60, 800]), 60.0)
    (False, True)
    """
    times, some = noisy[1:], LEFT_OUT * max(float(noisy.sum()), 0.0)
    clear = TIMES_STAND_OUT * sigma
    return bool(times.max() > some + clear or times.sum() > some + clear * sqrt(len(times)))


def grid_of(noisy: Ints, sigma: float, listed: Sequence[Lattice]) -> Lattice | None:
    """Return the coarsest grid that holds nearly all numbers; None if there is none.

    Examples
    --------
    Most numbers are multiples of 10:

    >>> listed = (Lattice(100), Lattice(10), Lattice(1))
    >>> grid_of(np.array([310, 2650, 12, -20]), 10.0, listed)
    Lattice(step=10, offset=0.0)
    """
    total = float(noisy.sum())
    finest = None
    for lattice in listed:
        fits, margin = _may_hold(lattice, noisy, sigma, listed)
        if fits and not lattice.offset and margin <= MOST_MARGIN * total:
            if margin <= SURE * total or lattice.step <= 1 or lattice not in NUMBERS:
                return lattice
            finest = lattice
    return finest


def _may_hold(lattice: Lattice, noisy: Ints, sigma: float, listed: Sequence[Lattice]) -> tuple[bool, float]:
    """Return whether a grid may hold nearly all numbers, and how many of the others noise can hide."""
    outside = np.array([*(not counted.within(lattice) for counted in listed), True])
    margin, some = MARGIN * sigma * sqrt(outside.sum()), LEFT_OUT * float(noisy.sum())
    few = noisy[outside].sum() <= some + margin and noisy[outside].max() <= some + STANDS_OUT * sigma
    return bool(few), margin


def likely_grids(
    seen: Mapping[str, tuple[Ints, float, Sequence[Lattice]]], integers: Collection[str] = ()
) -> dict[str, Lattice]:
    """Return the grid of whole numbers, or of decimals, of each column of reals of which one is `LIKELY`.

    With much noise, `grid_of` cannot tell how many numbers lie off a grid. But if the numbers of a column lie
    on another grid, nearly all of them are counted elsewhere. So each grid predicts the proportions of the
    counts, and the likelihoods of all columns together say how usual it is in this table (empirical Bayes).

    Parameters
    ----------
    seen : mapping of a column to its noisy counts, the standard deviation of their noise, and its lattices
    integers : collection of str
        Columns that look like whole numbers: the odds of their grid are `WHOLE_ODDS` times as high.

    Examples
    --------
    >>> listed = (Lattice(10), Lattice(5), Lattice(1), Lattice(0.5), Lattice(0.1), Lattice(0.01))
    >>> counts = np.array([90, 140, 700, 150, -120, 90, -110])
    >>> grid_of(counts, 120.0, listed), likely_grids({"rooms": (counts, 120.0, listed)})
    (None, {'rooms': Lattice(step=1.0, offset=0.0)})
    """
    of_reals = {
        name: counts for name, counts in seen.items() if Lattice(1.0) in counts[2] and counts[2][-1].step < 1
    }
    if not of_reals:
        return {}
    fits = np.array([_fits(*counts) for counts in of_reals.values()])
    fits[[name in integers for name in of_reals], 0] += log(WHOLE_ODDS)
    usual = np.full(fits.shape[1], 1 / fits.shape[1])
    for _ in range(ROUNDS):
        likely = usual * np.exp(fits - fits.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        usual = (1 + likely.sum(axis=0)) / (len(likely) + likely.shape[1])
    grids = {}
    for index, (name, counts) in enumerate(of_reals.items()):
        probabilities = likely[index]
        grid = (*GRIDS, None)[int(probabilities.argmax())]
        if grid is not None and probabilities.max() >= LIKELY and _may_hold(grid, *counts)[0]:
            grids[name] = grid
    return grids


def _fits(noisy: Ints, sigma: float, listed: Sequence[Lattice]) -> list[float]:
    """Return the log-likelihood of each grid from whole numbers to thousandths, and of numbers on none.

    The multiples of a grid are evenly spread, or half of them on one ten times as coarse. Of other numbers,
    half may be whole. Their number is unknown.
    """
    steps = [grid.step for grid in GRIDS]
    on_none = np.eye(len(noisy))[-1]
    parts = [(_evenly(step, listed), _evenly(10 * step, listed)) for step in steps]
    parts.append((on_none, _evenly(1.0, listed)))
    return [max(_fit(noisy, sigma, fine), _fit(noisy, sigma, fine + coarse)) for fine, coarse in parts]


def _evenly(step: float, listed: Sequence[Lattice]) -> Floats:
    """Return the shares of numbers, evenly spread on a grid, that are counted on each lattice."""
    on = [step / x.step if step <= x.step and not x.offset else 0.0 for x in listed]
    reached = np.maximum.accumulate(on)
    return np.append(np.diff(reached, prepend=0.0), 1.0 - reached[-1])


def _fit(noisy: Ints, sigma: float, shares: Floats) -> float:
    """Return the log-likelihood of counts in these proportions, less that of no number at all."""
    along = max(float(noisy @ shares), 0.0)
    return along**2 / float(2 * sigma**2 * (shares @ shares))


def heaps_of(
    noisy: Ints, sigma: float, listed: Sequence[Lattice], base: Lattice, clear: float = STANDS_OUT
) -> Heaps:
    """Return the lattices within a grid that hold clearly more numbers than evenly spread points would.

    Examples
    --------
    >>> listed = (Lattice(100), Lattice(10), Lattice(1))
    >>> heaps_of(np.array([400, 60, 540, 0]), 5.0, listed, Lattice(1))
    (Heap(step=100, offset=0.0, share=0.4),)
    """
    # Numbers on none of the lattices lie on the public grid.
    inside = np.array([*(lattice.within(base) for lattice in listed), base not in listed])
    stands_out = noisy > STANDS_OUT * sigma
    rest = noisy[inside & ~stands_out]  # mostly noise: what their sum shows counts, less its error
    total = float(noisy[inside & stands_out].sum()) + max(float(rest.sum()) - sigma * sqrt(len(rest)), 0.0)
    heaps: list[tuple[Lattice, float]] = []
    coarser: list[float] = []  # counts of coarser lattices that are no heaps: their numbers lie on this one
    even = 0.0
    for lattice, count in zip(listed, np.where(stands_out, noisy, 0).tolist(), strict=False):
        if lattice == base or not lattice.within(base) or (lattice.offset and base.step != CENT):
            continue
        counts = [count] if lattice.offset else [*coarser, count]
        share = base.step / lattice.step - (0.0 if lattice.offset else even)
        noise = sigma * sqrt(max(sum(number > 0 for number in counts), 1))
        is_heap = sum(counts) - share * total > max(clear * noise, LEAST_HEAP * total)
        if is_heap:
            heaps.append((lattice, sum(counts) / total))
        if not lattice.offset:
            even, coarser = (base.step / lattice.step, []) if is_heap else (even, counts)
    scale = max(1.0, sum(share for _, share in heaps))
    return tuple(Heap(lattice.step, lattice.offset, share / scale) for lattice, share in heaps)


def _with_step(schema: Schema, name: str, lattice: Lattice, dtype: Dtype) -> Schema | None:
    """Return the schema with a step, or None if the schema has more to say about the column's numbers.

    Decimals that the schema or the dtype fixes are kept. So are numbers that constraints name.
    """
    column = schema.coded[name].on_lattice(lattice.step, dtype)
    filled = None if column is None else _with_column(schema, name, column, dtype)
    if filled is None:
        return None
    rules = [rule for constraint in filled.constraints for rule in constraint.rules(filled.coded)]
    numbers = np.array([number for rule in rules for number in rule.numbers_of(name)])
    lies_on = lattice.holds(numbers[np.isfinite(numbers)], np.dtype(np.float64))
    return filled if lies_on.all() else None


def _with_column(schema: Schema, name: str, column: Coded, dtype: Dtype) -> Schema | None:
    """Return the schema with a column in place of another, or None if its dtype or constraints exclude it.

    The column follows from what was found, so nothing may be raised.
    """
    with suppress(InputError):
        column.encoder(dtype)
        filled = replace(schema, columns={**schema.columns, name: column})
        check_constraints(filled.coded, filled.constraints)
        return filled
    return None
