"""How synthetic rows keep the rules of lives: in their codes, and in the numbers that codes become.

All of it is computed after the release, from what is public or released.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from privsyn.errors import InputError, did_you_mean
from privsyn.marginals.domain import Floats, Integers, Ints, Mask, Records
from privsyn.marginals.recoding import Merging
from privsyn.synthesis.limits import Limit, RowsWithCode
from privsyn.synthesis.linked import Apart
from privsyn.synthesis.siblings import SiblingRules, Step
from privsyn.table.codec.codec import Codec
from privsyn.table.database.declared import Table
from privsyn.table.database.lives import AtMost, ValueRule
from privsyn.table.enforcement.compared import KnownAbove
from privsyn.table.schema.columns import Coded, Ordinal
from privsyn.table.schema.draws import Cells


@dataclass(frozen=True, eq=False)
class KeptLives:
    """The rules of lives of one table, for its rows in codes.

    Parameters
    ----------
    codec : Codec
    merging : Merging
        The merging of the release, in which the codes of some columns are apart: their values must be known
        to keep a rule.
    rules : SiblingRules
        In codes of `merging`.
    columns : tuple of str
        The columns that rules name, and the order.
    ways : mapping of a column to a bool
        The columns whose numbers go one way from row to row, and whether they rise.
    distinct : frozenset of str
        The columns whose numbers differ among the rows of a parent, also where their codes are equal.
    never_missing : tuple of str
        The columns whose codes are apart, and of which the release makes no missing cell.
    ones : tuple of RowsWithCode
        The codes, before they are merged, that exactly one row of each parent has.
    """

    codec: Codec
    merging: Merging
    rules: SiblingRules
    columns: tuple[str, ...]
    ways: Mapping[str, bool]
    distinct: frozenset[str]
    never_missing: tuple[str, ...]
    ones: tuple[RowsWithCode, ...]

    @classmethod
    def of(
        cls,
        table: Table,
        codec: Codec,
        merging: Merging,
        order: str | None,
        above: KnownAbove,
        most_rows: int,
    ) -> KeptLives:
        """Return the rules of a table.

        Parameters
        ----------
        table : Table
        codec : Codec
        merging : Merging
            That of the release.
        order : str, optional
            The column of codes by which the rows of a parent are in order.
        above : KnownAbove
            What the rows above allow.
        most_rows : int
            The largest number of rows of a parent.
        """
        lives = table.kept_lives if most_rows > 1 else ()
        ones = tuple(only_one.in_codes(codec.schema.coded) for only_one in table.one)
        compared = {rule.drawn_column for rule in above.rules}
        cells = codec.cells(merging)
        separated = dict.fromkeys(name for rule in lives if rule.separates for name in rule.columns)
        apart = tuple(
            name for name in separated if cells[name].crowded(most_rows, compared=name in compared).any()
        )
        excluded = [name for name in apart if cells[name].nullable and cells[name].missing < 0]
        merging = merging.apart(apart)
        cells = codec.cells(merging)
        crowded = {name: cells[name].crowded(most_rows, compared=name in compared) for name in cells}
        columns = tuple(dict.fromkeys([*filter(None, [order]), *(n for rule in lives for n in rule.columns)]))
        parts = [rule.in_codes(codec.schema.coded, cells, crowded) for rule in lives]
        ways = {name: rising for rule in lives for name, rising in rule.ways.items()}
        if order is not None and order not in ways:
            ways[order] = True
            parts.insert(0, SiblingRules(steps=(Step.never_falling(order, merging.merged.size_of[order]),)))
        merged = tuple(unique.merged(merging.group_of[unique.attribute]) for unique in ones)
        rules = SiblingRules.of([SiblingRules(few=merged), *parts])
        differing = {name for rule in lives for name in rule.differing if not crowded[name].all()}
        return cls(codec, merging, rules, columns, ways, frozenset(differing), tuple(excluded), ones)

    def limits(self, above: KnownAbove, rows: int) -> list[Limit]:
        """Return which codes of `merging` rows may have: by the rows above, and as some cells never miss."""
        limits = [Limit(*limit) for limit in above.allowed(self.codec.cells(self.merging))]
        for name in self.never_missing:
            size = self.merging.merged.size_of[name]
            possible = np.arange(size)[:, np.newaxis] < size - 1
            limits.append(Limit(name, np.zeros(rows, np.int64), possible))
        return limits

    def apart(self, merging: Merging) -> dict[str, Apart]:
        """Return the columns whose codes `merging` joins, and whose codes the rows have apart."""
        domain = self.merging.original
        return {
            name: Apart(group, merging.share_of[name], domain.ordered_of[name])
            for name, group in merging.group_of.items()
            if not np.array_equal(group, self.merging.group_of[name])
        }

    def numbers(
        self, records: Records, parents: Ints, above: KnownAbove, rng: np.random.Generator
    ) -> dict[str, Floats]:
        """Return the numbers of the columns that rules name, and of the order; NaN for missing.

        Parameters
        ----------
        records : Records
            In original codes; in merged codes they keep the rules.
        parents : array of shape (rows,)
            Rows of the same parent stand together.
        above : KnownAbove
        rng : numpy.random.Generator
        """
        drawn = self.codec.drawn(self.columns, records, self.merging, above, rng)
        codes = dict(zip(records.domain, self.merging.merge(records).codes.T, strict=True))
        cells = self.codec.cells(self.merging)
        return {
            name: self._arranged(name, drawn[name], codes[name], parents, cells[name])
            for name in self.columns
        }

    def _arranged(self, name: str, numbers: Floats, codes: Integers, parents: Ints, cells: Cells) -> Floats:
        """Return numbers of which those of the same parent and code are in order, and differ if they must."""
        if name not in self.ways and name not in self.distinct:
            return numbers
        rising = self.ways.get(name, True)
        order = np.lexsort((numbers if rising else -numbers, cells.ranks(rising=rising)[codes], parents))
        arranged = numbers[order]
        if name in self.distinct and cells.grid is not None:
            groups = np.flatnonzero(
                (np.diff(parents[order], prepend=-1) != 0) | (np.diff(codes[order], prepend=-1) != 0)
            )
            lows, highs = (ends[codes[order]] for ends in cells.reach)
            steps = np.rint((arranged - lows if rising else highs - arranged) / cells.grid.step)
            changed = _different(steps, np.rint((highs - lows) / cells.grid.step), groups)
            moved = changed * cells.grid.step
            different = cells.snap(lows + moved if rising else highs - moved)
            arranged = np.where(np.isnan(steps) | (changed == steps), arranged, different)
        if name not in self.ways:  # each row keeps its place
            arranged[order] = arranged.copy()
        return arranged


def codes_that_come_once(table: Table, codec: Codec, merging: Merging) -> dict[str, Mask]:
    """Return by column which merged codes at most one row of a parent has, by the rules of the table.

    A code that is merged with another one may come more often.
    """
    columns, cells, once = codec.schema.coded, codec.cells(merging), dict[str, Mask]()
    codes = [
        (rule.column, rule.code(columns, cells))
        for rule in table.kept_lives
        if isinstance(rule, ValueRule) and rule.comes_once
    ]
    ones = (rule.in_codes(columns) for rule in table.one)
    codes += [(only.attribute, int(merging.group_of[only.attribute][only.code])) for only in ones]
    for name, code in codes:
        if np.count_nonzero(merging.group_of[name] == code) == 1:
            once.setdefault(name, np.zeros(cells[name].merged, np.bool_))[code] = True
    return once


def check_kept(table: Table, columns: Mapping[str, Coded], counted: Collection[str]) -> None:
    """Refuse rules that synthetic rows could not keep, before anything is spent.

    Parameters
    ----------
    table : Table
    columns : mapping of a name to a column
        All columns that are counted.
    counted : collection of str
        The columns that are counted as they are.
    """
    for rule in table.kept_lives:
        for name in rule.columns:
            if name not in columns:
                meant = did_you_mean(name, columns)
                raise InputError(f"{str(rule)!r}: there is no column {name!r} that is counted{meant}")
            if name not in counted:
                raise InputError(
                    f"{str(rule)!r}: {name!r} is computed from other columns of the table, or measured from"
                    " one: leave out the constraint that says so, or this one"
                )
        rule.check_counted(columns)
    _check_numbers(table, columns)
    order = table.order
    if table.in_order_of_life and order is not None and order in columns:
        rule = next(rule for rule in table.kept_lives if rule.needs_order)
        if order not in counted or not isinstance(columns[order], Ordinal):
            raise InputError(
                f"{str(rule)!r}: the order {order!r} is no column of numbers or times that is counted"
            )


def _check_numbers(table: Table, columns: Mapping[str, Coded]) -> None:
    """Refuse rules that leave a row no value, or a parent fewer rows than `children` says it has at least."""
    fewest = (table.children or (0, None))[0]
    few: dict[str, list[AtMost]] = {}
    for rule in table.kept_lives:
        if isinstance(rule, AtMost):
            few.setdefault(rule.column, []).append(rule)
        if fewest > (largest := rule.most_rows(columns)):
            raise InputError(
                f"{str(rule)!r}: a parent has at most {largest:,.0f} rows then, and children: says at"
                f" least {fewest:,}: change one of them"
            )
    for name, rules in few.items():
        if not columns[name].nullable and {*columns[name].listed} <= {rule.value for rule in rules}:
            raise InputError(
                f"{str(rules[0])!r}: each value of {name!r} has such a rule, so further rows have none to"
                " take: leave out one of these rules"
            )


def _different(steps: Floats, largest: Floats, groups: Integers) -> Floats:
    """Return whole numbers that strictly increase within each group, and are at most `largest`.

    Number j of a group, from 0, moves up to the least k with k - j not below that of any number before it.
    Then all that passed what leaves each later one a number move down.

    Parameters
    ----------
    steps : array of shape (rows,)
        They do not decrease within a group; NaN stays.
    largest : array of shape (rows,)
        The same in a group, at least the number of its rows less 1.
    groups : integer array
        The first row of each group.

    Examples
    --------
    >>> _different(np.array([0.0, 0, 0, 7, 7]), np.array([9.0, 9, 9, 7, 7]), np.array([0, 3])).tolist()
    [0.0, 1.0, 2.0, 6.0, 7.0]
    """
    sizes = np.diff(groups, append=len(steps))
    index = np.arange(len(steps)) - np.repeat(groups, sizes)
    changed = steps.copy()
    for first, size in zip(groups.tolist(), sizes.tolist(), strict=True):
        if size > 1:
            rows = slice(first, first + size)
            lowest = np.maximum.accumulate(steps[rows] - index[rows])
            changed[rows] = np.minimum(lowest, largest[rows] - (size - 1)) + index[rows]
    return changed
