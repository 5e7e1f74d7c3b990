"""Learn one table, or the tables of a database, level by level from the root, for one promise.

A row of a child table has more than its own columns: those of the rows above it, in groups that released
counts make; the class of the number of rows that its person has in the table; its position among the rows of
its parent; and the columns of the rows before it. Counts over these are what links the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from privsyn.errors import InputError, about, about_not_found
from privsyn.inference.all_rows import reweighted
from privsyn.inference.child_rows import agreed, largest_if_geometric
from privsyn.inference.rows_per_person import RowsPerPerson
from privsyn.methods.discovery import reserved_delta
from privsyn.methods.learning import Inquiry, Learned, learn_randomised_table, learn_table
from privsyn.methods.level import NOTHING, LearnedLevel, OpenedLevel, check_compared, covering
from privsyn.methods.links import OF_PREVIOUS, groups_for, lags_for, rows_before
from privsyn.methods.persons import FOR_ROWS, NO_SIZES, Above, Persons, Sizes
from privsyn.methods.randomise import facts_of, ledger_of_randomised, local_promises
from privsyn.methods.reading import Opened, looked_up, open_schema_of, pairs_of
from privsyn.private.accounting import rho_for
from privsyn.private.bounds import ONE_ROW_EACH, Contribution, random_order
from privsyn.private.ledger import PUBLIC, Ledger
from privsyn.progress import MEASURING, one_of
from privsyn.synthesis.chains import EXACT, NEXT, NUMBER_OF_ROWS, OF_ROWS, POSITION, Context, Links, Previous
from privsyn.table.database.declared import ROWS, Database, Table
from privsyn.table.database.lookups import with_lookups
from privsyn.table.database.opened import ROW, named_tables, number_of_rows, open_tables, rows_of
from privsyn.table.schema.columns import Numerical
from privsyn.table.schema.important import in_words

if TYPE_CHECKING:
    from privsyn.methods.run_settings import RunSettings
    from privsyn.private.laws import Law
    from privsyn.private.randomness import Bits

# The bound on each person's rows relies on these facts too.
OF_PERSONS = (
    "that one person has one identifier in {!r}",
    "that two persons never share one in {!r}, where 7 and 007 are two identifiers",
)

FINGERPRINTS = (
    "that no two identifiers have the same fingerprint, a keyed hash of 128 bits: with delta 0 this is the"
    " one exception, of a probability of at most n / 2^128 for each identifier of a person beside n others"
)
"""What the ledger of a pure run says of persons: any other delta is far above it."""

PARAMETERS = "parameters of the method that are not its defaults: {}"
MATTERS = "which columns matter most together, so that more of the budget goes to their counts: {}"
KEYS = "that one person has one key in {!r} of {!r}, and that two persons never share one"
UNIQUE = "that no two rows of {!r} share a key in {!r}, so that no row below them belongs to two persons"
LOOKUP = "the table {!r}{}: it is among the synthetic tables as it is"
OF_KEYS = 0.01  # factor of the budget of a table of keys alone: only the number of its rows is of use


@dataclass(frozen=True)
class Share:
    """What a table gets of the budget.

    Parameters
    ----------
    cost : float
        In rho, or an epsilon with Laplace noise.
    groups : int
        Number of groups of each number of a row above, in counts with the columns of a row of this table.
    lags : int
        Number of rows before each row whose columns its row has.
    """

    cost: float
    groups: int
    lags: int


@dataclass(frozen=True)
class Budget:
    """What a run may cost, for all rows of a person.

    Parameters
    ----------
    questions, tests : float
        Cost of all questions of discovery and of the method, and of the tests of criteria.
    deltas : mapping of a table to its delta for the thresholds of values
    """

    questions: float
    tests: float
    deltas: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class OpenedDatabase:
    """The tables of a run before the first question: those of a database, or a single one.

    Parameters
    ----------
    database : Database
    levels : tuple of OpenedLevel
        Each after its parent.
    settings : Settings
    tests : float
        Share of the budget for the tests of criteria.
    """

    database: Database
    levels: tuple[OpenedLevel, ...]
    settings: RunSettings
    tests: float = 0.0

    @classmethod
    def of_one(cls, opened: Opened, tests: float = 0.0) -> OpenedDatabase:
        """Return the run of a single table, whose rows are persons or belong to persons."""
        level = OpenedLevel(ROWS, Table(), None, opened, pairs_of(len(opened.schema.schema.coded)))
        return cls(Database({ROWS: level.table}, single=ROWS), (level,), opened.settings, tests)

    @classmethod
    def of(cls, database: Database, tables: object, settings: RunSettings, bits: Bits) -> OpenedDatabase:
        """Open all tables, with random `bits` for the order of each person's rows. No row is counted."""
        levels: list[OpenedLevel] = []
        declared, database = database, with_lookups(database)
        given = named_tables(declared, tables)
        for name, rows in open_tables(database, given, lambda codes: random_order(codes, bits)).items():
            table = database.tables[name]
            linked = table.parent is not None
            numbers = tuple(map(rows_of, database.children(name)))
            above = Above(rows.parents, rows.keys, rows.also, rows.added, linked=linked, numbers=numbers)
            persons = Persons(rows.unit, rows.prints, rows.persons, random_order(rows.persons, bits), above)
            bare = persons.bounded(rows.source, 0)
            with about(f"table {name!r}"):
                schema = open_schema_of(bare, rows.schema, None, None, nullable=settings.nullable)
                reserved_delta(settings.promise[1], schema)  # refuses values to be found with a delta of 0
                own = tuple(schema.schema.coded)
                columns_above = [
                    f"{each.name}.{column}"
                    for each in levels
                    if each.name in database.above(name)
                    for column in each.opened.schema.schema.coded
                ]
                neighbours = [which + column for which in (*OF_PREVIOUS, *NEXT, EXACT) for column in own]
                _check_names(own, (*columns_above, *OF_ROWS, *neighbours))
            compared = tuple(rule.column for rule in table.compared)
            opened = Opened(
                rows.source, bare.unordered(schema.unordered), persons, schema, None, settings, compared
            )
            with about(f"table {name!r}"):
                check_compared(opened, table, {each.name: each.opened.schema.schema for each in levels})
            links = len(own) * (1 + len(columns_above) + len(own)) if linked else 0
            pairs = pairs_of(len(own)) + links
            levels.append(OpenedLevel(name, table, rows, opened, pairs, database.children(name)))
        return cls(database, tuple(levels), settings)

    def learn(
        self, inquiry: Inquiry, public_inputs: tuple[str, ...] = ()
    ) -> tuple[dict[str, LearnedLevel], Ledger]:
        """Ask and learn each table after its parent; return what was learnt, and the ledger.

        The numbers of rows per person are asked first in all tables, because they decide how the rest of the
        budget is divided among the tables.

        Parameters
        ----------
        inquiry : Inquiry
        public_inputs : tuple of str
            What else the ledger says is public.
        """
        learn = self._from_randomised_cells if self.settings.epsilon is None else self._from_answers
        learned = learn(inquiry)
        return learned, self._ledger(inquiry, learned, public_inputs)

    def _from_randomised_cells(self, inquiry: Inquiry) -> dict[str, LearnedLevel]:
        """Count the randomised cells. The respondents added the noise, so these counts need no more."""
        return {
            level.name: LearnedLevel(learn_randomised_table(level.opened, inquiry), None, NOTHING)
            for level in self.levels
        }

    def _from_answers(self, inquiry: Inquiry) -> dict[str, LearnedLevel]:
        """Discover what schemas leave open, put questions to the rows, and estimate from the answers."""
        law, report = inquiry.noise.law, inquiry.report
        report(MEASURING, 0, self.settings.algorithm.rounds * len(self.levels))  # before any question
        budget = self.budget(law)
        rows_per_person = self._rows_per_person(inquiry, budget.questions)
        shares = self.shares(rows_per_person, law, (1 - FOR_ROWS * bool(rows_per_person)) * budget.questions)
        found: dict[str, LearnedLevel] = {}
        for place, whole in enumerate(self.levels):
            level = whole.with_most(self.numbers_of(whole.name, rows_per_person))
            name, rho, delta = level.name, shares[level.name].cost, budget.deltas[level.name]
            opened, sizes, contribution = self._bounded(level, found, rows_per_person, law, shares[name])
            opened = covering(opened, level.table, found)
            asked = replace(inquiry.about(level.title), report=one_of(report, place, len(self.levels)))
            with about(f"table {name!r}") if level.title else nullcontext():
                learned = learn_table(opened, sizes, contribution, asked, rho=rho, delta=delta)
            learned, rows_per_person = self._with_rows(learned, name, rows_per_person)
            found[name] = self._linked(level, learned, found, shares)
        return found

    def budget(self, law: Law) -> Budget:
        """Return what the run may cost. It follows from public facts alone.

        Tables that search for values share the delta that is reserved.
        """
        epsilon, delta = self.settings.promise
        reserved = {level.name: reserved_delta(delta, level.opened.schema) for level in self.levels}
        rho = rho_for(epsilon, delta - max(reserved.values()), self.settings.algorithm.accounting_of(law))
        searching = max(sum(part > 0 for part in reserved.values()), 1)
        deltas = {name: part / searching for name, part in reserved.items()}
        return Budget(rho - self.tests * rho, self.tests * rho, deltas)

    def _rows_per_person(self, inquiry: Inquiry, rho: float) -> dict[str, RowsPerPerson]:
        """Return the released numbers of rows per person of each table but the root; `rho` is of the run."""
        counted = [level for level in self.levels if level.opened.counts_rows]
        return {
            level.name: level.persons.count(
                inquiry.about(level.title).log, inquiry.noise, FOR_ROWS * rho / len(counted)
            )
            for level in counted
        }

    def numbers_of(self, name: str, rows_per_person: Mapping[str, RowsPerPerson]) -> dict[str, Numerical]:
        """Return the column of the number of rows of each child table, whose bounds follow from releases."""
        found = {}
        for child in self.database.children(name):
            rows = rows_per_person[child]
            if name == self.database.root:  # a person has one row of it: a larger bound adds no noise
                most = max(rows.largest, largest_if_geometric(rows))
            else:  # a row above is not a person: it has fewer rows
                most = rows.largest_of(rows_per_person[name].total)
            found[child] = number_of_rows(self.database.tables[child], most)
        return found

    def _with_rows(
        self, learned: Learned, name: str, rows_per_person: Mapping[str, RowsPerPerson]
    ) -> tuple[Learned, dict[str, RowsPerPerson]]:
        """Return the model of a table and the numbers of rows per person, which agree on its child rows.

        In the root, a row is a person, so both count the same: see `agreed`. Further down, the sum of a
        column of numbers of child rows is one more answer on the number of all rows of the child table.
        """
        whole = dict(rows_per_person)
        for child in self.database.children(name):
            column, rows = rows_of(child), whole[child]
            if name == self.database.root:
                fitted, rows = agreed(learned.fitted, column, learned.middles_of(column), rows)
                learned = replace(learned, fitted=fitted)
            else:
                rows = rows.with_all(*learned.sum_of(column))
            whole[child] = rows
        return learned, whole

    def shares(self, rows_per_person: Mapping[str, RowsPerPerson], law: Law, rho: float) -> dict[str, Share]:
        """Return what each table gets of the budget `rho`, so that the sum of the errors is smallest.

        Let a table have m pairs of columns, the bound C, n counted rows and the budget rho. The noise in each
        pair is in proportion to C sqrt(m / rho) / n, so the sum over pairs is a / sqrt(rho) with
        a = m^(3/2) C / n. The sum over tables is smallest, for a given sum of budgets, where the derivatives
        a rho^(-3/2) are equal: rho is in proportion to a^(2/3) = m (C / n)^(2/3).

        A pair of columns of a row and of one above it counts in the tables of both: it is wrong where either
        is.
        """
        even = rho / len(self.levels)  # the bound decides the shares: it is chosen for equal ones
        counted = {level.name: self._counted(level, rows_per_person, law, even) for level in self.levels}
        weights = {level.name: self._weight(level, *counted[level.name]) for level in self.levels}
        shares = {}
        for level in self.levels:
            bound, rows = counted[level.name]
            cost = rho  # exactly, for a single table
            if len(weights) > 1:
                cost = rho * weights[level.name] / sum(weights.values())
            sigma = bound * sqrt(level.pairs / (2 * law.rho(cost)))
            lags = 1
            if level.table.order is not None:  # in random order, any two rows are alike
                lags = lags_for(rows * rows_per_person[level.name].share_after(2), sigma)
            shares[level.name] = Share(cost, groups_for(rows, sigma), lags)
        return shares

    def _counted(
        self, level: OpenedLevel, rows_per_person: Mapping[str, RowsPerPerson], law: Law, rho: float
    ) -> tuple[int, float]:
        """Return the bound of a person's rows in a table for a budget `rho`, and how many rows then count."""
        if level.table.parent is None:
            persons = max((float(of.persons.sum()) for of in rows_per_person.values()), default=1.0)
            return 1, max(persons, 1.0)
        of = rows_per_person[level.name]
        bound = level.opened.sizes_and_contribution(of, law, rho, level.pairs)[1].most
        return bound, max(float(of.persons @ of.rows_within_squares(bound)), 1.0)

    def _weight(self, level: OpenedLevel, bound: int, rows: float) -> float:
        """Return what a table gets of the budget relative to others: see `shares`."""
        below = sum(each.columns for each in self.levels if level.name in self.database.above(each.name))
        weight = (level.pairs + level.columns * below) * (bound / rows) ** (2 / 3)
        is_bare = tuple(level.opened.schema.schema.coded) == (ROW,)  # no value of its rows is made
        return weight * OF_KEYS if is_bare else weight

    def _bounded(
        self,
        level: OpenedLevel,
        found: Mapping[str, LearnedLevel],
        rows_per_person: Mapping[str, RowsPerPerson],
        law: Law,
        share: Share,
    ) -> tuple[Opened, Sizes, Contribution]:
        """Return a table with the codes of the rows above, and how a person is bounded in it."""
        if level.name not in rows_per_person:
            return level.opened, NO_SIZES, ONE_ROW_EACH
        rows = rows_per_person[level.name]
        sizes, contribution = level.opened.sizes_and_contribution(rows, law, share.cost, level.pairs)
        if level.table.parent is None:
            return level.opened, sizes, contribution
        sizes = replace(sizes, name=NUMBER_OF_ROWS) if sizes else sizes
        return level.below(found[level.table.parent].below, share.lags), sizes, contribution

    def _linked(
        self,
        level: OpenedLevel,
        learned: Learned,
        found: Mapping[str, LearnedLevel],
        shares: Mapping[str, Share],
    ) -> LearnedLevel:
        """Return the model of all rows of a table, how they are linked, and what the tables below need."""
        links, known = None, NOTHING
        if level.table.parent is None:
            learned = learned.of_all_rows
        else:
            parent = found[level.table.parent]
            learned = _of_all_rows(learned, parent.learned, rows_of(level.name))
            links = _links_of(learned, level.known(parent.below).given)
            known = parent.below.at(level.linked.parents)
        below = NOTHING
        if level.children:
            most = max(shares[child].groups for child in level.children)
            below = level.for_below(learned, most).joined(known)
        return LearnedLevel(learned, links, below)

    def _ledger(
        self, inquiry: Inquiry, learned: Mapping[str, LearnedLevel], public_inputs: tuple[str, ...]
    ) -> Ledger:
        """Return the ledger of all questions, and of what is public of the tables."""
        tables, settings, noise = [level.learned for level in learned.values()], self.settings, inquiry.noise
        local = tuple(promise for table in tables for promise in local_promises(table.codec))
        inputs = dict.fromkeys(
            [
                *self._method_and_columns(tables),
                *self._promises(),
                *facts_of(local),
                *([about_not_found(lost)] if (lost := self.not_found(learned)) else []),
                *(fact for level in self.levels for fact in level.opened.source.public_inputs),
                *public_inputs,
            ]
        )
        if settings.epsilon is None:
            return ledger_of_randomised(local, tuple(inputs))
        epsilon, delta = settings.promise
        unit = settings.unit or self.database.tables[self.database.root].key
        return Ledger(
            (*inquiry.log.spends, *local),
            promised_epsilon=epsilon,
            promised_delta=delta,
            accounting=settings.algorithm.accounting_of(noise.law),
            randomness=noise.name,
            private=noise.private,
            public_inputs=(*PUBLIC, *inputs),
            unit=unit,
            rows_per_unit=None if unit is None else max(table.contribution.most for table in tables),
            squares=any(table.contribution.squares for table in tables),
            root=None if self.database.single is not None else self.database.root,
        )

    def _method_and_columns(self, tables: list[Learned]) -> list[str]:
        """Return the ledger's sentences on the method, what matters most, and where values are looked up."""
        parameters = self.settings.algorithm.parameters_in_words
        sets = [
            tuple(self._named(name, column) for column in columns)
            for name, table in zip(self.database.names, tables, strict=True)
            for columns in table.codec.schema.important
        ]
        lookups = [
            LOOKUP.format(name, f" of the file {table.public.source!r}" if table.public.source else "")
            for name, table in self.database.public.items()
        ]
        return [
            *([PARAMETERS.format(parameters)] if parameters else []),
            *([MATTERS.format(in_words(tuple(sets)))] if sets else []),
            *lookups,
            *(fact for table in tables for fact in looked_up(table.codec.schema)),
        ]

    def _promises(self) -> tuple[str, ...]:
        """Return the sentences for the ledger on what keys promise."""
        root, tables = self.database.root, self.database.tables
        exception = () if self.settings.delta else (FINGERPRINTS,)
        if (unit := self.settings.unit) is not None:
            return (*(fact.format(unit) for fact in OF_PERSONS), *exception)
        if self.database.single is not None:
            return ()
        inner = [name for name in self.database.names[1:] if self.database.children(name)]
        unique = (UNIQUE.format(name, tables[name].key) for name in inner)
        return (KEYS.format(self.levels[0].linked.unit, root), *unique, *exception)

    def not_found(self, learned: Mapping[str, LearnedLevel]) -> tuple[str, ...]:
        """Return the columns of which no value and no bound exceeded the noise."""
        return tuple(
            self._named(name, column) for name, level in learned.items() for column in level.learned.not_found
        )

    def _named(self, table: str, column: str) -> str:
        """Return how a column is called: two linked tables may have a column of one name."""
        return column if self.database.single is not None else f"{table}.{column}"


def _check_names(own: tuple[str, ...], linking: tuple[str, ...]) -> None:
    """Refuse columns with the names of attributes that link rows, before anything is spent."""
    for name in own:
        if name in linking:
            raise InputError(f"the column {name!r} has a name that links need: rename it")


def _of_all_rows(learned: Learned, parent: Learned, column: str) -> Learned:
    """Return the model of all rows. Their number is the sum of `column` over the parent's rows."""
    counts, numbers = parent.cells_of(column)
    total = max(float(counts @ numbers), 1.0)
    fitted, sizes = learned.fitted, learned.sizes
    before = rows_before(learned.codec.domain.names, len(OF_PREVIOUS))
    firsts = {
        name: float(counts @ np.clip(numbers, 0, lag))
        for name, (_, lag) in before.items()
        if name in fitted.merging.merged.names
    }
    rows = sizes.rows.scaled_to(total)
    return replace(learned, fitted=reweighted(fitted, sizes.name, rows, firsts if sizes else {}))


def _links_of(learned: Learned, above: Mapping[str, Context]) -> Links:
    """Return how the rows are linked: tables with attributes of other rows, and where these come from."""
    merging, own, sizes = learned.fitted.merging, learned.codec.domain.names, learned.sizes
    merged = dict(zip(merging.original.names, merging.groups, strict=True))
    before = rows_before(own, len(OF_PREVIOUS))
    given: dict[str, Context] = {}
    previous: dict[str, Previous] = {}
    for name, groups in merged.items():
        if name in own:
            continue
        if name in before:
            column, lag = before[name]
            of_column = np.zeros(int(merged[column].max()) + 1, np.int32)
            of_column[merged[column]] = groups[: len(merged[column])]
            previous[name] = Previous(column, of_column, lag)
        elif name == NUMBER_OF_ROWS:
            numbers = np.maximum(np.arange(int(sizes.begins[-1]) + 1), 1)
            given[name] = Context("", NUMBER_OF_ROWS, groups[sizes.codes(numbers)].astype(np.int32))
        elif name == POSITION:
            given[name] = Context("", POSITION, groups)
        else:
            given[name] = replace(above[name], groups=groups[above[name].groups].astype(np.int32))
    fitted, first = learned.fitted, len(learned.fitted.one_ways)
    linking = [
        (table, certainty.measured, certainty.error)
        for table, certainty in zip(fitted.marginals, fitted.certainties[first:], strict=True)
        if not set(own).issuperset(table.attributes)
    ]
    tables, measured, errors = zip(*linking, strict=True) if linking else ((), (), ())
    return Links(given, previous, tables, measured, errors)
