"""Whose rows are whose, and how many rows of each person are counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from privsyn.inference.composition import Composition
from privsyn.inference.rows_per_person import RowsOfGroups, RowsPerPerson
from privsyn.marginals.counting import Block, Packing, Walk, ranks
from privsyn.marginals.domain import NO_ATTRIBUTES, Attributes, Codes, Domain, Floats, Integers, Ints, Mask
from privsyn.private.contribution import (
    MOST,
    NOBODY,
    ONE_ROW_EACH,
    Contribution,
    NumbersInMemory,
    NumbersOfRows,
    classes,
    previous_rows,
    random_order,
    rows_of_all,
    rows_per_person,
)
from privsyn.private.rows import PersonsTogether, Rows
from privsyn.table.codec.codec import Codec
from privsyn.table.database.opened import positions as positions_of
from privsyn.table.io.identifiers import codes_of
from privsyn.table.io.source import RawTable
from privsyn.table.kinds.keys import Key

if TYPE_CHECKING:
    import pandas as pd

    from privsyn.private.noise_laws import Law
    from privsyn.private.randomness import Bits, Noise
    from privsyn.private.spend import QueryLog
    from privsyn.table.database.linked_table import LinkedTable

MOST_TESTED = 1000  # rows of a person that the tests of criteria compare: the noise grows with them


@dataclass(frozen=True, eq=False, repr=False)
class Above:
    """What each row of a linked table has besides its own columns, and what stands above it. Private.

    All of it depends on the rows of the same person alone.

    Parameters
    ----------
    codes : tuple
        Of the columns of the rows above, in groups, and of the position among the rows of the parent; see
        `Persons.codes_below`.
    domain : Domain
        Of these codes.
    linked : bool
        Whether the table has a parent.
    lags : int
        How many rows before each row of the same parent are looked at.
    numbers : tuple of str
        Columns with the number of rows of a child table below each row, or of changes among them.
    weights : mapping of a column to a number
        Of columns that sum up the rows below each row: the weight of an error in a table with one of them.
    lasting : tuple of str
        Columns that seldom change from row to row of a parent.
    """

    codes: tuple[Any, ...] = ()
    domain: Domain = NO_ATTRIBUTES
    linked: bool = False
    lags: int = 1
    numbers: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    lasting: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AboveInMemory(Above):
    """The same of rows in this process.

    Parameters
    ----------
    parents : integer array of shape (rows,)
        The row of the parent table to which a row belongs.
    keys : array of shape (rows,), optional
        By which the rows of a parent are sorted. Default: their order is random.
    also : tuple of str
        Columns of keys, besides that of identifiers.
    added : pandas.DataFrame
        Columns that sum up the rows below each row.
    """

    parents: Ints
    keys: Floats | None
    also: tuple[str, ...]
    added: pd.DataFrame


class Persons(ABC):
    """Whose rows are whose, and the order of the rows of each person, wherever the rows are. Private.

    The order of a person's rows depends on these rows and on random bits alone.

    Attributes
    ----------
    unit : str or tuple of str
        The columns of identifiers.
    above : Above, optional
        What each row belongs to in linked tables.
    puts_together : bool
        Whether the rows of a person can be put together. It decides which questions are asked.
    """

    unit: Key
    above: Above | None
    puts_together: bool

    @property
    @abstractmethod
    def numbers(self) -> NumbersOfRows:
        """The numbers of rows of all persons."""

    @abstractmethod
    def bounded(self, source: RawTable, bound: int | None) -> RawTable:
        """Return the first `bound` rows of each person, all with None, without the identifiers."""

    @abstractmethod
    def coded(
        self, rows: RawTable, codec: Codec, bound: int | None, row_classes: RowClasses, memory: float
    ) -> Rows:
        """Return the encoded `rows` of `bounded`, of which each question counts some rows of a person.

        Each row has the class of the number of rows of its person. In linked tables it also has the columns
        of the rows above it, and those of the rows before it of the same parent.
        """

    @abstractmethod
    def with_above(self, above: Above) -> Persons:
        """Return the same with other columns of rows above."""

    @abstractmethod
    def codes_below(self, codes: tuple[Any, ...], positions: int) -> tuple[Any, ...]:
        """Return the codes of the parents' rows for the rows, and the position of each.

        Parameters
        ----------
        codes : tuple
            Of `codes_above` of the parent table.
        positions : int
            Classes of the position of a row among those of its parent, the last of which has all others. With
            0 there is no position.
        """

    @abstractmethod
    def codes_above(
        self, rows: RawTable, codec: Codec, groups: Mapping[int, Codes], above: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Return what the rows of child tables may have of each row: an array, or a column in a database.

        Parameters
        ----------
        rows : RawTable
            Of `bounded`, all rows.
        codec : Codec
        groups : mapping of an axis to an array of shape (codes,)
            The group of each code, from released counts.
        above : tuple
            What the rows themselves may have of the rows above.
        """

    def attributes(self, row_classes: RowClasses) -> Domain:
        """Return the attributes that each row has before its own: of its person, and of the rows above it."""
        return row_classes.domain if self.above is None else row_classes.domain.joined(self.above.domain)

    def count(self, log: QueryLog, noise: Noise, rho: float) -> RowsPerPerson:
        """Return the numbers of rows per person, estimated from two noisy answers with half the budget each.

        The first is a histogram. It shows how many rows of a person the second, the number of all rows, needs
        at most.
        """
        noisy, variance = rows_per_person(self.numbers, log, noise, rho / 2)
        rows = RowsPerPerson.of(classes(MOST), noisy, variance)
        return rows.with_total(*rows_of_all(self.numbers, rows.largest, log, noise, rho / 2))


@dataclass(frozen=True, eq=False, repr=False)
class PersonsInMemory(Persons):
    """Whose rows are whose, and the random order of the rows of each person, in this process. Private.

    Parameters
    ----------
    unit : str or tuple of str
        The columns of identifiers.
    prints : tuple of arrays
        The fingerprints of the rows of each part of the table.
    codes : integer array of shape (rows,)
        The same for all rows of a person, `NOBODY` where there is no identifier.
    order : integer array
        The places of the rows that belong to somebody; see `random_order`.
    above : AboveInMemory, optional
        What each row belongs to in linked tables. Default: to a person, of whom nothing else is known.
    puts_together : bool
        Whether all rows pass through this process.
    """

    unit: Key
    prints: tuple[Ints, ...]
    codes: Ints
    order: Ints
    above: AboveInMemory | None = None
    puts_together: bool = True

    @classmethod
    def of(cls, source: RawTable, unit: Key, bits: Bits) -> PersonsInMemory:
        """Read the identifiers, and draw the order of each person's rows. No row is counted."""
        source.require_again("whose rows they are")
        prints = tuple(source.fingerprints(unit))
        codes = codes_of(np.concatenate(prints))
        return cls(unit, prints, codes, random_order(codes, bits), puts_together=source.near)

    @classmethod
    def of_linked(cls, table: LinkedTable, order: Ints) -> PersonsInMemory:
        """Return whose rows are whose in one of several tables, given the random order of their rows."""
        above = AboveInMemory(parents=table.parents, keys=table.keys, also=table.also, added=table.added)
        return cls(table.unit, table.prints, table.persons, order, above)

    @property
    def numbers(self) -> NumbersInMemory:
        """The numbers of rows of all persons."""
        return NumbersInMemory(self.codes)

    def first(self, bound: int | None) -> Ints:
        """Return the part of the order that has the first `bound` rows of each person; all rows with None."""
        return self.order if bound is None else self.order[ranks(self.codes[self.order]) < bound]

    def bounded(self, source: RawTable, bound: int | None) -> RawTable:
        """Return the first `bound` rows of each person, in the source's order, without the identifiers."""
        mask = self._marked(self.first(bound))
        if self.above is None:
            return source.bounded(self.unit, self.prints, mask)
        return source.bounded(self.unit, self.prints, mask, self.above.also, self.above.added)

    def _marked(self, rows: Ints) -> Mask:
        """Return the mask of these rows."""
        mask = np.zeros(len(self.codes), np.bool_)
        mask[rows] = True
        return mask

    def with_above(self, above: Above) -> PersonsInMemory:
        """Return the same with other columns of rows above."""
        if not isinstance(above, AboveInMemory):
            raise ValueError("rows above that are elsewhere")
        return replace(self, above=above)

    def codes_below(self, codes: tuple[Any, ...], positions: int) -> tuple[Any, ...]:
        """Return the codes of the parents' rows for the rows, and the position of each."""
        if self.above is None:
            return ()
        parents = self.above.parents  # -1 if there is none
        below = tuple(np.append(column, np.zeros(1, column.dtype))[parents] for column in codes)
        if not positions:
            return below
        position = np.minimum(positions_of(parents, self.above.keys), positions - 1)
        return (*below, position.astype(np.uint8))

    def codes_above(
        self, rows: RawTable, codec: Codec, groups: Mapping[int, Codes], above: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Return arrays of shape (rows,)."""
        rows_of_persons, columns = np.flatnonzero(self.codes != NOBODY), _columns(rows.walk(codec))
        grouped = []
        for axis, groups_of_codes in groups.items():
            codes = np.zeros(len(self.codes), np.uint8)
            codes[rows_of_persons] = groups_of_codes[columns[axis]]
            grouped.append(codes)
        return (*grouped, *self.codes_below(above, 0))

    def coded(
        self, rows: RawTable, codec: Codec, bound: int | None, row_classes: RowClasses, memory: float
    ) -> Rows:
        """Return the encoded `rows` of `bounded`, in which those of a person stand together."""
        walk = self._together(rows, codec, bound, row_classes, memory / 2)
        return Rows(codec.domain.joined(self.attributes(row_classes)), walk, memory / 4, of_persons=True)

    def _together(
        self, rows: RawTable, codec: Codec, bound: int | None, row_classes: RowClasses, memory: float
    ) -> PersonsTogether:
        """Return a walk over the encoded rows of all persons, of which half of the memory keeps codes."""
        first = self.first(bound)
        mask = self._marked(first)
        had = np.bincount(self.codes[self.order], minlength=1)[self.codes[first]]
        of_persons = (row_classes.codes(had),) if row_classes else ()
        previous, lags = None, 0
        if self.above is not None:
            of_persons = (*of_persons, *(codes[first] for codes in self.above.codes))
            keys = None if self.above.keys is None else self.above.keys[first]
            previous, lags = previous_rows(self.above.parents[first], keys), self.above.lags
        order, packing = (np.cumsum(mask) - 1)[first], Packing(codec.domain.sizes)
        check = rows.require_unchanged  # also where no walk would see that the source has changed
        return PersonsTogether(
            rows.walk(codec), self.codes[mask], order, of_persons, packing, memory, check, previous, lags
        )


def _columns(walk: Walk) -> list[Integers]:
    """Return the codes of all rows, by column."""
    parts: list[Block] = []

    def collect(blocks: Iterable[Block]) -> list[Ints]:
        parts.extend(blocks)
        return []

    walk(collect)
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


@dataclass(frozen=True, eq=False)
class RowClasses:
    """Classes of the number of rows of a person, as one more attribute of each row.

    Persons with many rows may have other rows than persons with few, and bounds leave out more of theirs. The
    dependence of a column on these classes shows how it would be distributed with all rows.

    Parameters
    ----------
    name : str
        Of the attribute.
    begins : integer array of shape (classes,)
        The first number of rows of each class, from 1. With one class there is no attribute.
    rows : RowsOfGroups
        Of all persons of each.
    tested : Contribution, optional
        What a person adds to the tests of criteria.
    composition : Composition, optional
        Of the rows that are counted in columns, and of all rows.
    """

    name: str
    begins: Ints
    rows: RowsOfGroups
    tested: Contribution = ONE_ROW_EACH
    composition: Composition | None = None

    @classmethod
    def of(cls, name: str, rows: RowsPerPerson) -> RowClasses:
        """Return the groups of the numbers of rows.

        >>> numbers = RowsPerPerson(np.array([1, 2, 3, 4, 5]), np.array([600.0, 50.0, 50.0, 25.0, 0.0]))
        >>> groups = RowClasses.of("rows", numbers)
        >>> groups.begins.tolist(), groups.rows.numbers.tolist(), groups.codes(np.array([1, 3, 9])).tolist()
        ([1, 2, 4], [600.0, 250.0, 100.0], [0, 1, 2])
        """
        return cls(name, rows.begins[rows.groups], rows.of_groups, tested_of(rows))

    @classmethod
    def without_classes(cls, rows: RowsPerPerson) -> RowClasses:
        """Return one class of all persons."""
        return cls("", rows.begins[:1], rows.in_one_group, tested_of(rows))

    def counted_within(self, rows: RowsPerPerson, bound: int) -> RowClasses:
        """Return the same with what `bound` rows of each person show of the persons of each class."""
        single = rows.single_rows(bound, np.searchsorted(rows.begins, self.begins))
        composition = Composition.of(rows.persons * rows.rows_within(bound), rows.persons * rows.rows)
        return replace(self, rows=replace(self.rows, single=single), composition=composition)

    def __bool__(self) -> bool:
        return len(self.begins) > 1

    def apart(self, names: Attributes) -> RowClasses:
        """Return the same with a name that is none of these."""
        name = self.name
        while name in names:
            name += "'"
        return replace(self, name=name)

    def codes(self, rows: Ints) -> npt.NDArray[np.unsignedinteger]:
        """Return the class of each number of rows."""
        return (np.searchsorted(self.begins, rows, side="right") - 1).astype(np.uint8)

    @property
    def domain(self) -> Domain:
        """Return the domain of this attribute, or of none."""
        classes = len(self.begins)
        return Domain((self.name,), (classes,), (classes,)) if self else NO_ATTRIBUTES


ONE_CLASS = RowClasses("", np.ones(1, np.int64), RowsOfGroups.exact(np.zeros(1)))


def contribution_of(rows: RowsPerPerson, bound: int, law: Law, *, together: bool) -> Contribution:
    """Return what one person may add to the answers.

    Parameters
    ----------
    rows : RowsPerPerson
    bound : int
    law : Law
    together : bool
        Whether the rows of a person can be put together. If not, the same rows are kept for all questions.
    """
    in_tables, in_columns, alone, of_all = (
        max(float(rows.persons @ counted), 1.0)
        for counted in (
            rows.rows_within_squares(bound),
            rows.rows_within(bound),
            rows.rows_within(1),
            rows.rows,
        )
    )
    bounded = Contribution(bound, of_columns=in_columns / of_all, of_person=in_columns / alone)
    if not together or law.name == "laplace" or bound == 1:  # one row is within squares of 1
        return bounded
    return replace(bounded, squares=True, of_tables=in_tables / in_columns)


def tested_of(rows: RowsPerPerson) -> Contribution:
    """Return what one person adds to the tests of criteria: nearly always all rows.

    A criterion compares the private table with a synthetic table that stands for all rows. The bound of other
    questions leaves out rows of persons with many rows. Classes of persons correct this in counts, but not in
    a test: its excess is no sum over classes, and its stated risk does not include the random choice of rows.
    """
    bound = min(rows.largest, MOST_TESTED)
    return Contribution(
        bound, of_columns=float(rows.persons @ rows.rows_within(bound)) / max(rows.total, 1.0) or 1.0
    )
