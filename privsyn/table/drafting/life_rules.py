"""Rules of lives that nearly all rows of a child table keep, and that random rows would often break.

Not private: it is read from the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privsyn.marginals.domain import Floats, Ints, Numbers
from privsyn.table.database.life_sentences import read_life
from privsyn.table.database.lives import Absorbing, AtMost, Distinct, Last, Lasting, LifeRule, Monotone
from privsyn.table.drafting.candidates import Proposal
from privsyn.table.drafting.drafted_table import FEWEST_PAIRS, NEARLY_ALL, DraftedTable
from privsyn.table.drafting.keys import KeyedTable
from privsyn.table.schema.columns import Categorical, Coded, Datetime, Numerical, Ordinal

MOST_VALUES = 30
"""Listed values of a column for which a rule about one value is proposed."""

MOST_OF_A_KIND = 2
"""Rows of a parent that have a value: of more, no rule says how many there may be."""

MOST_PAIRED = 10
"""Columns that are paired for a key of two columns."""

CHANCE = 0.05
"""Least share of the rows that break a rule if the cells of all rows change places: else it says nothing."""

SELDOM = 0.3
"""Largest share of the rows that have another value than the row before, in a column that lasts."""


@dataclass(frozen=True, eq=False)
class SortedRows:
    """The rows of a table that have a parent, parent by parent and in their order.

    Parameters
    ----------
    columns : mapping of a name to a column
    numbers : mapping of a name to an array of shape (rows,)
        As constraints read the cells, NaN for missing.
    parents : array of shape (rows,)
    order : str, optional
    """

    columns: Mapping[str, Coded]
    numbers: Numbers
    parents: Ints
    order: str | None

    @classmethod
    def of(cls, table: DraftedTable, keyed: KeyedTable, without: Collection[str]) -> SortedRows:
        """Return the rows of a draft, without some columns and those that say nothing from row to row."""
        left_out = {*without, *table.belonging_to_parent(), *table.row_numbers}
        columns = {name: kind for name, kind in table.schema.coded.items() if name not in left_out}
        keys, order = np.zeros(len(table.parents)), table.order
        if order is not None:
            numbers = table.numbers(order) if order in table.frame else None
            keys = keyed.frame[order].to_numpy(np.float64, na_value=np.nan) if numbers is None else numbers
        rows = np.lexsort((keys, table.parents))
        rows = rows[table.parents[rows] >= 0]
        numbers_of = {}
        for name, column in columns.items():
            cells = table.frame[name]
            if isinstance(column, Datetime | Numerical):
                numbers_of[name] = column.numbers(cells)[rows]
            elif column.is_public:
                numbers_of[name] = column.encoder(cells.dtype).read(cells)[rows]
        columns = {name: columns[name] for name in numbers_of}
        return cls(columns, numbers_of, table.parents[rows], table.order)

    def broken(self, rule: LifeRule, numbers: Numbers | None = None) -> int:
        """Return how many rows break a rule, also if they had other numbers."""
        return int(rule.broken(self.columns, numbers or self.numbers, self.parents).sum())

    def proposal(self, rule: LifeRule, rows: int, shuffled: LifeRule | None = None) -> Proposal | None:
        """Return the proposal of a rule; None if too many rows break it, or too few would by chance.

        Parameters
        ----------
        rule : LifeRule
        rows : int
            The rows that could break it.
        shuffled : LifeRule, optional
            What rows would break whose cells changed places. Default: the rule.
        """
        if rows < FEWEST_PAIRS or read_life(str(rule)) != rule:
            return None
        broken = self.broken(rule)
        if broken > (1 - NEARLY_ALL) * rows:
            return None
        shuffle = np.random.default_rng(0).permutation(len(self.parents))
        moved = {name: self.numbers[name][shuffle] for name in rule.columns}
        by_chance = self.broken(shuffled or rule, moved)
        if by_chance < max(FEWEST_PAIRS, CHANCE * rows, 10 * broken):
            return None
        return Proposal(str(rule), rows, broken)


def rules_of_lives(
    table: DraftedTable, keyed: KeyedTable, without: Collection[str]
) -> list[tuple[str, Proposal]]:
    """Return rules on the rows of one parent that nearly all rows keep, each with its first column.

    Parameters
    ----------
    table : DraftedTable
    keyed : KeyedTable
        The same table with all its columns.
    without : collection of str
        The columns that follow from another table.
    """
    if table.parent is None:
        return []
    rows, proposals = SortedRows.of(table, keyed, without), list[tuple[str, Proposal]]()
    taken = set[str]()  # one rule holds a column: rather one that all rows keep
    rules = (*_ways(rows), *_absorbing(rows), *_last(rows), *_lasting(rows), *_keys(rows), *_few(rows))
    for rule, proposal in sorted(rules, key=lambda pair: pair[1].broken > 0):
        if taken.isdisjoint(rule.columns):
            proposals.append((rule.columns[0], proposal))
            taken |= {*rule.columns}
    return proposals


def _ways(rows: SortedRows) -> Iterator[tuple[Monotone, Proposal]]:
    """Yield the columns that rise or fall, of the order only that it rises."""
    for name, column in rows.columns.items():
        if rows.order is None or not isinstance(column, Ordinal):
            continue
        steps = _steps(rows.numbers[name], rows.parents)
        for way, changes in (("rises", steps > 0), ("falls", steps < 0)):
            weak = f"never {'falls' if way == 'rises' else 'rises'}"
            ways = (way,) if name == rows.order else (way, weak)
            if int(changes.sum()) < FEWEST_PAIRS or (name == rows.order and way == "falls"):
                continue
            for rule in (Monotone(name, one_way) for one_way in ways):
                ties = Distinct((name,)) if name == rows.order else None
                if (proposal := rows.proposal(rule, len(steps), ties)) is not None:
                    yield rule, proposal
                    break


def _absorbing(rows: SortedRows) -> Iterator[tuple[Absorbing, Proposal]]:
    """Yield the values that stay, once a row has them; rows change to them, and are followed by others."""
    for name, value, number in _values(rows):
        if rows.order is None:
            return
        has, same = rows.numbers[name] == number, np.diff(rows.parents) == 0
        reached = int((~has[:-1] & has[1:] & same).sum())
        followed = int((has[:-1] & same).sum())
        rule = Absorbing(name, value)
        if min(reached, followed) >= FEWEST_PAIRS:
            proposal = rows.proposal(rule, followed)
            if proposal is not None:
                yield rule, proposal


def _last(rows: SortedRows) -> Iterator[tuple[Last, Proposal]]:
    """Yield the values that only the last row of a parent has, as that of a death."""
    for name, value, number in _values(rows):
        if rows.order is None:
            return
        rule, having = Last(name, value), int((rows.numbers[name] == number).sum())
        if (proposal := rows.proposal(rule, having)) is not None:
            yield rule, proposal


def _lasting(rows: SortedRows) -> Iterator[tuple[Lasting, Proposal]]:
    """Yield the columns whose value is mostly that of the row before, more often than by chance."""
    same = np.diff(rows.parents) == 0
    shuffle, steps = np.random.default_rng(0).permutation(len(rows.parents)), int(same.sum())
    for name, column in rows.columns.items():
        if rows.order is None or not isinstance(column, Categorical) or steps < FEWEST_PAIRS:
            continue
        numbers, rule = rows.numbers[name], Lasting(name)
        changes, by_chance = (int((np.diff(codes)[same] != 0).sum()) for codes in (numbers, numbers[shuffle]))
        if changes <= min(SELDOM * steps, by_chance / 2) and read_life(str(rule)) == rule:
            yield rule, Proposal(str(rule), steps, note=f"{changes:,} with another value than the row before")


def _keys(rows: SortedRows) -> Iterator[tuple[Distinct, Proposal]]:
    """Yield the columns, then pairs of columns, in which the rows of a parent differ."""
    several = int((np.diff(rows.parents) == 0).sum())
    columns = [
        name
        for name, column in rows.columns.items()
        if name != rows.order and (not isinstance(column, Numerical) or column.integer)
    ]
    for names in (*((name,) for name in columns), *combinations(columns[:MOST_PAIRED], 2)):
        rule = Distinct(names)
        if (proposal := rows.proposal(rule, several)) is not None:
            yield rule, proposal


def _few(rows: SortedRows) -> Iterator[tuple[AtMost, Proposal]]:
    """Yield the values that at most one or two rows of a parent have."""
    for name, value, number in _values(rows):
        having = int((rows.numbers[name] == number).sum())
        for largest in range(1, MOST_OF_A_KIND + 1):
            rule = AtMost(name, value, largest)
            if (proposal := rows.proposal(rule, having)) is not None:
                yield rule, proposal
                break


def _values(rows: SortedRows) -> Iterator[tuple[str, object, float]]:
    """Yield each value of the columns that list a few, with its column and its number."""
    for name, column in rows.columns.items():
        if isinstance(column, Categorical) and 2 <= len(column.listed) <= MOST_VALUES:
            for value in column.listed:
                yield name, value, column.number_of(value)


def _steps(numbers: Floats, parents: Ints) -> Floats:
    """Return how much numbers change from row to row of one parent; a missing cell is passed over."""
    present = np.flatnonzero(~np.isnan(numbers))
    same = np.diff(parents[present]) == 0
    return np.asarray(np.diff(numbers[present])[same], np.float64)
