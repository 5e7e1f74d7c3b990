"""Complete the schema with values and bounds that are found under privacy.

Values that enough rows share are found in two rounds. Bounds are found with up to two grids. The cells of the
first grow with the numbers. If it sees only numbers far from zero, the second divides the range that it saw
evenly.

Grids: one count for each column whose numbers may lie on a grid that the schema does not give shows on which.
It is made in the walk of the second grid for bounds.

Frequent numbers: on a fine grid that is given or found, one count of each number shows which ones many rows
share, if there are enough rows.

Spreads: one count of each column of an order and of its gap shows which of the two spreads less, and
whether many gaps are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.abilities import PURE, check_abilities
from privsyn.marginals.domain import Ints
from privsyn.methods.budget import (
    FOR_BOUNDS,
    FOR_CLOSER_BOUNDS,
    FOR_COMMON_VALUES,
    FOR_LATTICES,
    FOR_SIZE,
    FOR_SPREADS,
    FOR_VALUES,
    LEAST_FOR_FREQUENT,
    MOST_FOR_BOUNDS,
    MOST_FOR_FREQUENT,
    MOST_FOR_SEARCH,
    MOST_FOR_VALUES,
    THRESHOLDS,
)
from privsyn.private.find_values import (
    CLOSER,
    FREQUENT,
    GRIDS,
    SPREADS,
    VOTE,
    VOTING_ROUNDS,
    Finder,
    Found,
    Votes,
    add_parts,
    by_kind,
    count_votes,
    threshold,
    vote_weights,
)
from privsyn.private.noise_laws import GAUSSIAN, Law
from privsyn.progress import no_progress
from privsyn.table.discovery.beyond import Beyond
from privsyn.table.discovery.frequent import FALSE_DISCOVERY_RATE, Frequent, FrequentQuestion
from privsyn.table.discovery.lattices import LatticeQuestion, Released
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.discovery.spreads import SpreadQuestion
from privsyn.table.discovery.tally import OpenValues, Tally
from privsyn.table.encoding.bounds_cells import BoundsGrid
from privsyn.table.encoding.steps import Heap, Heaps

if TYPE_CHECKING:
    import pandas as pd

    from privsyn.methods.run_settings import RunSettings
    from privsyn.table.io.source import RawTable
    from privsyn.table.schema.schema import Schema

Counted = tuple[BoundsGrid, Ints, float]
"""Cells in which the numbers of a column were counted, the noisy counts, and the deviation of their noise."""

Counts = Any
"""The votes for values, or the number of rows in each cell of bounds or on each lattice. Private."""

SHARES_TRIED = 16  # from the least to the most
CLEAR, LOST = 32.0, 8.0  # numbers in a column over the noise of a cell: enough, and too few for any bounds
COMMON, MOST_COMMON = 0.05, 0.8  # shares of the rows with a value that should, and must, be found
OPEN = 0.25  # share of a column's votes without which it has values to be found
PLANNED_DELTA = 1e-10  # of thresholds, in a plan: they hardly depend on it
CLEAR_MONTHS = 1000.0  # the same: enough for months of a century; with fewer, dates are counted by year
FREQUENT_ROWS, LEAST_FREQUENT = 0.01, 0.03  # shares of the rows that should, and must, stand out
WALKS = 4  # over the rows, at most


def expected_share(
    open_schema: OpenSchema, rows: int, rho: float, law: Law = GAUSSIAN, rows_per_unit: int = 1
) -> float:
    """Return the share of the budget that completing the schema takes, without what depends on found bounds.

    Parameters
    ----------
    open_schema : OpenSchema
    rows : int
    rho : float
        Budget of a person for all questions to this table.
    law : Law
    rows_per_unit : int
        The most rows of one person.
    """
    schema = open_schema.fill({}, {})
    lattices = open_schema.lattices(schema)
    values = len(open_schema.values)
    for_values = values_share(rows, values, values, rho, PLANNED_DELTA, rows_per_unit)
    parts = (
        (FOR_SIZE + FOR_COMMON_VALUES) * bool(values) + for_values,
        FOR_SIZE * bool(open_schema.bounds),
        min(
            bounds_share(rows, len(open_schema.bounds), rho, law, rows_per_unit), MOST_FOR_SEARCH - for_values
        ),
        FOR_LATTICES * bool(lattices.columns),
        FOR_SPREADS * bool(open_schema.spreads(schema).columns),
        frequent_share(rows / rows_per_unit, FrequentQuestion.of(lattices), rho, law),
    )
    return fsum(parts)


def values_share(
    size: float, columns: int, values_left: float, rho: float, delta: float, rows_per_unit: int
) -> float:
    """Return the share of the budget for the second round of values: the fewer rows there are, the more.

    A column without values is invented, which is worse than any noise. A row that votes for c values gives
    each 1 / sqrt(c) of its vote, so a value of a share s of the rows has s * `size` / sqrt(c) votes.

    Parameters
    ----------
    size : float
        Rows. Public or released.
    columns : int
        How many have no list of values.
    values_left : float
        Number of values of a row that the first round did not find, on average. Released, or `columns`.
    rho, delta : float
        Budget of a person for all questions to this table, and delta of this round.
    rows_per_unit : int
        The most rows of one person.

    Examples
    --------
    >>> [round(values_share(size, 6, 3.0, 0.0166, 1e-10, 1), 2) for size in (9000, 3000, 900, 90)]
    [0.12, 0.19, 0.4, 0.12]
    """
    if not columns:
        return 0.0
    votes = size / sqrt(max(values_left, 1.0))

    def stands_out(share: float, of_rows: float = COMMON) -> bool:
        sigma = GAUSSIAN.scale(share * rho, float(rows_per_unit * VOTE))
        enough = threshold(sigma, delta, columns=columns, rows_per_unit=rows_per_unit)
        return of_rows * votes * VOTE >= enough

    if not values_left or not stands_out(MOST_FOR_VALUES, MOST_COMMON):
        return FOR_VALUES
    return _least_share(FOR_VALUES, MOST_FOR_VALUES, stands_out)


def open_columns(votes: Sequence[float]) -> float:
    """Return how many of a row's values are not found yet, on average.

    In the column with most votes all values are taken to be found. A column that has most of these votes is
    taken to be complete, since noise may hide the rest.

    Parameters
    ----------
    votes : sequence of float
        Noisy votes for the values found of each column. Released.

    Examples
    --------
    >>> open_columns([500.0, 450.0, 100.0]), open_columns([0.0, 0.0])
    (0.8, 2.0)
    """
    complete = max(votes)
    shares = [1 - column / complete if complete > 0 else 1.0 for column in votes]
    return fsum(share for share in shares if share > OPEN)


def bounds_share(size: float, columns: int, rho: float, law: Law, rows_per_unit: int) -> float:
    """Return the share of the budget for bounds: the fewer numbers there are, the more.

    A column without bounds has invented numbers, which is worse than any noise.

    Parameters
    ----------
    size : float
        Numbers in a column, on average. Public or released.
    columns : int
        How many have no bounds.
    rho : float
        Budget of a person for all questions to this table.
    law : Law
    rows_per_unit : int
        The most rows of one person.

    Examples
    --------
    >>> [round(bounds_share(size, 10, 0.0166, GAUSSIAN, 1), 2) for size in (9000, 1000, 500, 50)]
    [0.1, 0.32, 0.4, 0.1]
    """
    if not columns:
        return 0.0

    def stands_out(share: float, factor: float = CLEAR) -> bool:
        return size >= factor * _tail_sigma(share * rho, columns, law, rows_per_unit)

    if not stands_out(MOST_FOR_BOUNDS, LOST):
        return FOR_BOUNDS
    return _least_share(FOR_BOUNDS, MOST_FOR_BOUNDS, stands_out)


def frequent_share(
    size: float, frequent: FrequentQuestion, rho: float, law: Law, rows_per_unit: int = 1
) -> float:
    """Return the share of the budget for frequent numbers: the more rows there are, the less.

    Parameters
    ----------
    size : float
        Numbers in a column, on average. Public or released.
    frequent : FrequentQuestion
    rho : float
        Budget of a person for all questions to this table.
    law : Law
    rows_per_unit : int
        The most rows of one person that are counted.

    Examples
    --------
    Of prices from 0 to 1,500 in cents, at epsilon 1:

    >>> from privsyn.table.discovery.frequent import Points
    >>> prices = FrequentQuestion({"price": (None, Points.between(0.0, 1500.0, 0.01))})
    >>> [round(frequent_share(size, prices, 0.0166, GAUSSIAN), 3) for size in (5e3, 1e4, 3e4, 1e6)]
    [0.0, 0.02, 0.01, 0.005]
    """
    points = sum(points.size for _, points in frequent.columns.values())
    if not points:
        return 0.0
    clear, columns = float(law.deviations(FALSE_DISCOVERY_RATE / points)), len(frequent.columns)

    def stands_out(share: float, of_rows: float = FREQUENT_ROWS) -> bool:
        return of_rows * size >= clear * _deviation(share * rho, columns, law, rows_per_unit)

    if not stands_out(MOST_FOR_FREQUENT, LEAST_FREQUENT):
        return 0.0
    return _least_share(LEAST_FOR_FREQUENT, MOST_FOR_FREQUENT, stands_out)


def _least_share(smallest: float, largest: float, is_enough: Callable[[float], bool]) -> float:
    """Return the smallest of `SHARES_TRIED` shares of the budget that is enough, or the largest."""
    shares: list[float] = np.linspace(smallest, largest, SHARES_TRIED).tolist()
    return next(filter(is_enough, shares), largest)


def _tail_sigma(rho: float, columns: int, law: Law, rows_per_unit: int) -> float:
    """Return the sigma of Gaussian noise whose far tail is that of a cell in the grid of each column."""
    return law.tail(law.scale(rho, rows_per_unit * law.joint(columns)))


def _deviation(rho: float, columns: int, law: Law, rows_per_unit: int) -> float:
    """Return the standard deviation of the noise in a cell of the grid of each column."""
    return sqrt(law.variance(law.scale(rho, rows_per_unit * law.joint(columns))))


def reserved_delta(delta: float, open_schema: OpenSchema) -> float:
    """Return the part of `delta` for thresholds: public, and fixed before the first question.

    Raises
    ------
    InputError
        If values are to be found with a delta of 0. A search adds noise only to values that occur, so a value
        that one person has is found with some probability, and nobody else's table could release it.
    """
    if delta == 0:
        columns = ", ".join(map(repr, open_schema.values))
        check_abilities([PURE], {"values": [*open_schema.values]}, columns=columns)
    return THRESHOLDS * delta if open_schema.values else 0.0


@dataclass(frozen=True)
class VoteQuestion:
    """The votes of each row for its values that are not found yet.

    Parameters
    ----------
    open_schema : OpenSchema
    released : Found
        Values that were found before.
    """

    open_schema: OpenSchema
    released: Found

    @property
    def open_values(self) -> OpenValues:
        """For which values a row votes, wherever it is."""
        columns = self.open_schema.values
        marks = {name: self.open_schema.marks(name) for name in columns}
        return OpenValues(marks, self.released, vote_weights(len(columns)))

    def count(self, table: pd.DataFrame) -> Votes:
        """Return the votes of some rows. Private."""
        return count_votes(self.open_schema.distinct_values(table), self.released)


@dataclass(frozen=True)
class SearchQuestion:
    """A question to all rows, fixed by public facts and by the answers to those before it.

    Parameters
    ----------
    columns : collection of str
        Those that it is about. Without any, nothing is asked.
    counted : Tally or VoteQuestion
        What is counted of the rows.
    use : function of the exact counts of the table
        Add noise to them, log what that cost, and keep what follows.
    one_row : bool
        Whether one row of each person is counted, if there is such a table.
    """

    columns: Collection[str]
    counted: Tally | VoteQuestion
    use: Callable[[Counts], None]
    one_row: bool = False


@dataclass(frozen=True, eq=False)
class Discovered:
    """What was found of what a schema leaves open.

    Parameters
    ----------
    schema : Schema
        Complete: it leaves nothing open.
    heaps : mapping of a column to the heaps of its numbers
    frequent : mapping of a column to its frequent numbers
    counted : mapping of a column to Counted
        The first grid of each column of numbers without bounds, and its released counts.
    beyond : mapping of a column to two of Beyond
        What the released counts show below and above the bounds that were found.
    not_found : tuple of str
        Columns of which no value and no bound exceeded the noise.
    without_gaps : tuple of str
        The columns of orders that are counted, not encoded as gaps.
    share : float
        Share of the table's budget that was spent. A question that no column needs costs nothing.
    """

    schema: Schema
    heaps: Mapping[str, Heaps]
    frequent: Mapping[str, Frequent]
    counted: Mapping[str, Counted]
    beyond: Mapping[str, tuple[Beyond, Beyond]]
    not_found: tuple[str, ...]
    without_gaps: tuple[str, ...]
    share: float


class Search:
    """The questions that find what a schema leaves open. Each follows from the answers to those before it.

    Parameters
    ----------
    open_schema : OpenSchema
    finder : Finder
    rho, delta : float
        As for `discover`.
    one_row : bool
        Whether frequent numbers are counted in one row of each person.
    """

    def __init__(
        self, open_schema: OpenSchema, finder: Finder, rho: float, delta: float, *, one_row: bool
    ) -> None:
        self.schema, self.heaps = open_schema.schema, dict[str, Heaps]()
        self.frequent: dict[str, Frequent] = {}
        self._public, self._finder, self._rho, self._delta = open_schema, finder, rho, delta
        self._of_one_row = replace(finder, rows_per_unit=1) if one_row else finder
        self._values: dict[str, tuple[Any, ...]] = dict.fromkeys(open_schema.values, ())
        self._cells: Released = {}
        self._closer: Mapping[str, BoundsGrid] = {}
        self._closer_cells: Released = {}
        self._whole: tuple[str, ...] = ()
        self._on_lattices: Released = {}
        self._without_gaps: tuple[str, ...] | None = None
        self._for_values, self._shares = 0.0, list[float]()

    @property
    def result(self) -> Discovered:
        """What was found, at the end of all walks."""
        grids = self._public.grids
        counted = {
            name: (grids[name], *counts) for name, counts in self._cells.items() if grids[name].around_zero
        }
        beyond = self._public.beyond(self._cells, self._closer, self._closer_cells, self._whole)
        beyond = {name: ends for name, ends in beyond.items() if name not in self.schema.computed}
        not_found = self._public.not_found(self._values, self._cells)
        without_gaps = self._without_gaps
        if without_gaps is None:
            without_gaps = self._public.without_gaps_by_default(self.schema)
        share = fsum(self._shares)
        return Discovered(
            self.schema, self.heaps, self.frequent, counted, beyond, not_found, without_gaps, share
        )

    def walks(self, *, all_lattices: bool) -> Iterator[tuple[SearchQuestion, ...]]:
        """Yield the questions of each walk over the rows; the next follow from what was found by then.

        Without `all_lattices`, only times are tried on lattices, and no frequent numbers are counted.
        """
        public = self._public
        near = SearchQuestion(public.bounds, public.bounds_question(public.grids), self._use_bounds)
        yield (self._vote(self._use_first_votes),)
        yield self._vote(self._use_second_votes), near
        closer = self._closer = public.closer(self._cells)
        bounds = public.bounds_of(self._cells, {}, {})
        schema = public.fill(self._values, bounds, public.interquartile_ranges(self._cells))
        lattices = public.lattices(schema)
        lattices = lattices if all_lattices else lattices.of_times
        yield (
            SearchQuestion(closer, public.bounds_question(closer), self._use_closer_bounds),
            SearchQuestion(lattices.columns, lattices, self._use_lattices),
        )
        self._complete(lattices, ())
        self._complete(lattices, public.integer_columns(self.schema))  # a grid shows which numbers are whole
        frequent = FrequentQuestion.of(public.lattices(self.schema) if all_lattices else LatticeQuestion({}))
        last = []
        if share := self._share_of(frequent):
            use = partial(self._use_points, frequent, share)
            last.append(SearchQuestion(frequent.columns, frequent, use, one_row=True))
        if all_lattices:
            spreads = public.spreads(self.schema)
            last.append(SearchQuestion(spreads.columns, spreads, partial(self._use_spreads, spreads)))
        yield tuple(last)
        for name, numbers in self.frequent.items():
            single = tuple(Heap(0.0, number, 0.0) for number in numbers.numbers.tolist())
            self.heaps[name] = (*self.heaps.get(name, ()), *single)
        if all_lattices:
            for name, crowd in public.crowds(self._cells).items():
                self.heaps[name] = (*self.heaps.get(name, ()), crowd)

    def _complete(self, lattices: LatticeQuestion, whole_numbers: tuple[str, ...]) -> None:
        """Complete the schema from the answers; columns of `whole_numbers` have wider bounds."""
        self._whole = whole_numbers
        bounds = self._public.bounds_of(self._cells, self._closer, self._closer_cells, whole_numbers)
        schema = self._public.fill(self._values, bounds, self._public.interquartile_ranges(self._cells))
        self.schema, self.heaps = lattices.fill(
            schema, self._on_lattices, self._public.looks_whole(self._cells)
        )

    def _vote(self, use: Callable[[Counts], None]) -> SearchQuestion:
        """Return the question of a round, in which a row votes for the values that are not found yet."""
        return SearchQuestion(self._values, VoteQuestion(self._public, by_kind(self._values)), use)

    def _use_first_votes(self, votes: Counts) -> None:
        columns, rows_per_unit = len(self._values), self._finder.rows_per_unit
        size = self._finder.voters(tuple(self._values), votes, FOR_SIZE * self._rho)
        first = self._find_values(1, votes, FOR_COMMON_VALUES)
        delta = self._delta / VOTING_ROUNDS
        self._for_values = values_share(size, columns, open_columns(first), self._rho, delta, rows_per_unit)
        self._shares.append(FOR_SIZE)

    def _use_second_votes(self, votes: Counts) -> None:
        self._find_values(2, votes, self._for_values)

    def _find_values(self, number: int, votes: Counts, share: float) -> list[float]:
        """Find the values of a round, and return the sum of the noisy votes for those of each column."""
        rho, delta = share * self._rho, self._delta / VOTING_ROUNDS
        new = self._finder.values(tuple(self._values), votes, number=number, rho=rho, delta=delta)
        self._values = {name: (*values, *new[name].values) for name, values in self._values.items()}
        self._shares.append(share)
        return [column.votes for column in new.values()]

    def _use_bounds(self, near: Counts) -> None:
        columns, law, rows_per_unit = len(near), self._finder.noise.law, self._finder.rows_per_unit
        size = self._finder.numbers(near, FOR_SIZE * self._rho)
        share = bounds_share(size, columns, self._rho, law, rows_per_unit)
        share = min(share, MOST_FOR_SEARCH - self._for_values)
        if size < CLEAR_MONTHS * _tail_sigma(share * self._rho, columns, law, rows_per_unit):
            near = self._public.by_year(near)
        self._cells = self._public.settled(self._finder.cells(near, share * self._rho))
        self._shares += [FOR_SIZE, share]

    def _use_closer_bounds(self, close: Counts) -> None:
        self._closer_cells = self._finder.cells(close, FOR_CLOSER_BOUNDS * self._rho, look=CLOSER)
        self._shares.append(FOR_CLOSER_BOUNDS)

    def _use_lattices(self, counts: Counts) -> None:
        self._on_lattices = self._finder.cells(counts, FOR_LATTICES * self._rho, question=GRIDS)
        self._shares.append(FOR_LATTICES)

    def _share_of(self, frequent: FrequentQuestion) -> float:
        """Return the share of the budget for frequent numbers; 0 if none would stand out."""
        counted = [
            counts.sum() for name, (counts, _) in self._on_lattices.items() if name in frequent.columns
        ]
        rows_of_person, law = self._of_one_row.rows_per_unit, self._finder.noise.law
        size = float(np.mean(counted)) * rows_of_person / self._finder.rows_per_unit if counted else 0.0
        return frequent_share(size, frequent, self._rho, law, rows_of_person)

    def _use_points(self, question: FrequentQuestion, share: float, counts: Counts) -> None:
        finder, rho = self._of_one_row, share * self._rho
        seen = {name: noisy for name, (noisy, _) in finder.cells(counts, rho, question=FREQUENT).items()}
        sigma = _deviation(rho, len(counts), finder.noise.law, finder.rows_per_unit)
        self.frequent = question.frequent_numbers(seen, sigma, finder.noise.law.deviations)
        self._shares.append(share)

    def _use_spreads(self, question: SpreadQuestion, counts: Counts) -> None:
        released = self._finder.cells(counts, FOR_SPREADS * self._rho, question=SPREADS)
        self._without_gaps = question.without_gaps(released)
        self._shares.append(FOR_SPREADS)


def discover(
    open_schema: OpenSchema,
    table: RawTable,
    settings: RunSettings,
    *,
    rho: float,
    delta: float,
    finder: Finder,
    one_row: RawTable | None = None,
) -> Discovered:
    """Find the values, bounds, grids and frequent numbers that the schema leaves open.

    Parameters
    ----------
    open_schema : OpenSchema
    table : RawTable
        Private. It is read up to four times. If it can be read only once, no grids are asked for.
    settings : Settings
        Grids matter only to a method that counts numbers in fine cells.
    rho : float
        Budget of a person for this table, without what tests and numbers of rows per person cost. A share of
        it is spent here.
    delta : float
        Largest probability that a value which only one person has is found.
    finder : Finder
        Knows the most rows of a person in the table.
    one_row : RawTable, optional
        Private. At most one row of each person, in which frequent numbers are counted: a person with k rows
        adds up to k to a count, and k times the noise hides more numbers. Default: the table.
    """
    report, is_open = settings.progress or no_progress, bool(open_schema.open)
    if is_open:
        table.require_again("what values and bounds the schema leaves out")
    search = Search(open_schema, finder, rho, delta, one_row=one_row is not None)
    for done, questions in enumerate(
        search.walks(all_lattices=settings.algorithm.fine_cells and not table.once)
    ):
        if is_open:
            report("finding values and bounds", done, WALKS)
        open_questions = [question for question in questions if question.columns]
        for source, part in _by_table(open_questions, table, table if one_row is None else one_row):
            counts = source.tally([question.counted for question in part], _add)
            for question, exact in zip(part, counts, strict=True):
                question.use(exact)
    if is_open:
        report("finding values and bounds", WALKS, WALKS)
    return search.result


def _by_table(
    questions: Sequence[SearchQuestion], table: RawTable, one_row: RawTable
) -> Iterator[tuple[RawTable, Sequence[SearchQuestion]]]:
    """Return each table with the questions to it. If both are the same, it is read once."""
    parts = [(table, questions)]
    if table is not one_row:
        parts = [
            (source, [q for q in questions if (source is one_row) == q.one_row])
            for source in (table, one_row)
        ]
    return ((source, part) for source, part in parts if part)


def _add(first: Sequence[Counts], second: Sequence[Counts]) -> list[Counts]:
    """Add the counts of two parts of a table; neither argument is changed."""
    return list(map(add_parts, first, second))
