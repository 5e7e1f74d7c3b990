"""Learn the tables of a database, level by level from the root, for one promise.

A row of a child table has, beside its own columns, those of the rows above it, in few groups; the class of
the number of rows that its person has in the table; its position among the rows of its parent; and the
columns of the previous row. Counts over these are what links the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from privsyn.errors import about
from privsyn.inference.all_rows import multiplied, reweighted
from privsyn.inference.fitted import Fitted
from privsyn.inference.rows_per_person import RowsPerPerson
from privsyn.marginals.domain import NO_ATTRIBUTES, Codes, Domain, Integers, Ints
from privsyn.marginals.marginal import Marginal
from privsyn.methods.discovery import THRESHOLDS
from privsyn.methods.learning import Learned, learn_table
from privsyn.methods.links import OF_PREVIOUS, groups_of
from privsyn.methods.persons import FOR_ROWS, NO_SIZES, Above, Persons, Sizes
from privsyn.methods.reading import Opened, open_schema_of, pairs_of
from privsyn.private.accounting import rho_for
from privsyn.private.ledger import PUBLIC, Ledger
from privsyn.private.persons import ONE_ROW_EACH, Contribution, random_order
from privsyn.private.spend import QueryLog
from privsyn.synthesis.linked import Given, Links
from privsyn.table.io.database import LinkedTable, open_tables, rows_of

if TYPE_CHECKING:
    from privsyn.owners.owners import Run
    from privsyn.private.laws import Law
    from privsyn.private.noise import Alone, Noise
    from privsyn.private.sampler import Bits
    from privsyn.progress import Progress
    from privsyn.settings import Settings
    from privsyn.table.schema.database import Database

UNIQUE = "that no two rows of {!r} share a key in {!r}, so that no row below belongs to two persons"
OF_PERSONS = "that one person has one key in {!r}, {!r}, and that two persons never share one"
POSITIONS = 4  # 1, 2, 3, and 4 and more: of a row among those of its parent
ROWS, POSITION = "rows", "position"


@dataclass(frozen=True, eq=False)
class Level:
    """One table of a database before the first question.

    Parameters
    ----------
    name : str
    opened : Opened
    rows : LinkedTable
    """

    name: str
    opened: Opened
    rows: LinkedTable

    @property
    def columns(self) -> int:
        """Number of columns that are counted."""
        return len(self.opened.schema.schema.coded)

    def below(self, parent: LearnedLevel, *, ordered: bool) -> Opened:
        """Return the opened table whose rows have the codes of the rows above them. Private."""
        rows, persons = self.rows, self.opened.persons
        known = rows.parents >= 0
        still = [np.where(known, codes[rows.parents], 0).astype(codes.dtype) for codes in parent.codes]
        domain = parent.domain
        if ordered:
            still.append(positions(rows.parents, rows.keys))
            domain = domain.joined(Domain((POSITION,), (POSITIONS,), (POSITIONS,)))
        if persons is None or persons.above is None:
            raise ValueError(f"{self.name}: nothing is known of its rows")
        above = replace(persons.above, still=tuple(still), domain=domain)
        return replace(self.opened, persons=replace(persons, above=above))


def positions(parents: Ints, keys: object) -> Integers:
    """Return the position of each row among those of its parent, from 0; the last one stands for all later.

    >>> positions(np.array([4, 4, 2, 4]), np.array([3.0, 1.0, 7.0, 2.0])).tolist()
    [2, 0, 0, 1]
    """
    order = np.lexsort((np.arange(len(parents)) if keys is None else np.asarray(keys), parents))
    begins = np.flatnonzero(np.diff(parents[order], prepend=-2))
    ranks = np.arange(len(parents)) - np.repeat(begins, np.diff(begins, append=len(parents)))
    found = np.empty(len(parents), np.uint8)
    found[order] = np.minimum(ranks, POSITIONS - 1)
    return found


@dataclass(frozen=True, eq=False)
class LearnedLevel:
    """What was learnt of one table of a database.

    Parameters
    ----------
    learned : Learned
        Of all rows.
    links : Links, optional
        How its rows are linked; None for the root.
    codes : tuple of arrays of shape (rows,)
        Private: for the tables below, the codes of each row and of those above it.
    domain : Domain
        Of the latter.
    given : mapping of an attribute of the latter to a Given
    """

    learned: Learned
    links: Links | None
    codes: tuple[Integers, ...]
    domain: Domain
    given: Mapping[str, Given]

    @property
    def total(self) -> float:
        """Estimated number of rows."""
        return self.learned.fitted.total


@dataclass(frozen=True, eq=False)
class OpenedDatabase:
    """The tables of a database before the first question.

    Parameters
    ----------
    database : Database
    levels : tuple of Level
        Each after its parent.
    settings : Settings
    """

    database: Database
    levels: tuple[Level, ...]
    settings: Settings

    @classmethod
    def of(cls, database: Database, tables: object, settings: Settings, bits: Bits) -> OpenedDatabase:
        """Open all tables, with random `bits` for the order of each person's rows. No row is counted."""

        def one_of_each(persons: Ints) -> Ints:
            order = random_order(persons, bits)
            return order[np.diff(persons[order], prepend=-1) != 0]

        levels = []
        for name, rows in open_tables(database, tables, one_of_each).items():
            above = Above(
                rows.parents,
                rows.keys,
                rows.also,
                rows.added,
                linked=database.tables[name].parent is not None,
            )
            persons = Persons(rows.unit, rows.prints, rows.persons, random_order(rows.persons, bits), above)
            bare = persons.bounded(rows.source, 0)
            with about(f"table {name!r}"):
                schema = open_schema_of(bare, rows.schema, None, None, nullable=settings.nullable)
            bare = bare.unordered(schema.unordered)
            opened = Opened(rows.source, bare, persons, schema, None, settings, None)
            levels.append(Level(name, opened, rows))
        return cls(database, tuple(levels), settings)

    def learn(self, run: Alone | Run, report: Progress) -> tuple[dict[str, LearnedLevel], Ledger]:
        """Return what is learnt of each table, and the ledger."""
        log, noise, rng, settings = QueryLog(), run.noise, run.generator(), self.settings
        epsilon, delta = settings.promise
        is_open = [level.name for level in self.levels if level.opened.schema.values]
        reserved = THRESHOLDS * delta if is_open else 0.0
        accounting = settings.algorithm.accounting_of(noise.law)
        rho = rho_for(epsilon, delta - reserved, accounting)
        persons = self._rows_per_person(log, noise, FOR_ROWS * rho)
        left = (1 - FOR_ROWS * bool(persons)) * rho
        shares = self._shares(persons, noise.law, left)
        found: dict[str, LearnedLevel] = {}
        for level in self.levels:
            cost = shares[level.name] * left
            threshold = reserved / len(is_open) if level.name in is_open else 0.0
            sizes, contribution, opened = self._bounded(level, found, persons, noise.law, cost)
            with about(f"table {level.name!r}"):
                learned = learn_table(
                    opened,
                    sizes,
                    contribution,
                    noise,
                    log.about(level.name),
                    rng,
                    report,
                    rho=cost,
                    delta=threshold,
                )
            found[level.name] = self._linked(level, learned, found)
        most = max(each.learned.contribution.most for each in found.values())
        ledger = Ledger(
            log.spends,
            promised_epsilon=epsilon,
            promised_delta=delta,
            accounting=accounting,
            randomness=noise.name,
            private=noise.private,
            public_inputs=(*PUBLIC, *self._promises(), *self._inputs(found)),
            unit=self.database.root,
            rows_per_unit=most,
            squares=any(each.learned.contribution.squares for each in found.values()),
        )
        return found, ledger

    def _rows_per_person(self, log: QueryLog, noise: Noise, rho: float) -> dict[str, RowsPerPerson]:
        """Return the numbers of rows that persons have in each table but the root, from noisy answers."""
        children = self.levels[1:]
        return {
            level.name: level.opened.persons.count(log.about(level.name), noise, rho / len(children))
            for level in children
            if level.opened.persons is not None
        }

    def _tables(self, level: Level) -> int:
        """Return the number of tables of two columns that are asked about: own ones, and those that link."""
        own, parent = level.columns, self.database.tables[level.name].parent
        if parent is None:
            return pairs_of(own)
        above = {each.name: each.columns for each in self.levels}
        still = 1 + sum(above[name] for name in self.database.above(level.name))
        return pairs_of(own) + own * (still + own)

    def _shares(self, rows: Mapping[str, RowsPerPerson], law: Law, rho: float) -> dict[str, float]:
        """Return the share of the budget of each table, with which the errors of all together are smallest.

        The noise in each of m tables of two columns is in proportion to C sqrt(m / rho) / n, where a person
        is bounded by C and n rows are counted. So the sum of their errors is in proportion to m^(3/2) C / n /
        sqrt(rho), and the best budgets to its power 2/3.
        """
        weights = {}
        for level in self.levels:
            tables = self._tables(level)
            if level.name in rows:
                of = rows[level.name]
                _, bound = level.opened.bounded(of, law, rho / len(self.levels), tables)
                kept = max(float(of.persons @ of.kept_within(bound.most)), 1.0)
                weights[level.name] = tables * (bound.most / kept) ** (2 / 3)
            else:
                persons = max((float(of.persons.sum()) for of in rows.values()), default=1.0)
                import os
                weights[level.name] = float(os.environ.get("ROOT",1))*tables * max(persons, 1.0) ** (-2 / 3)
        return {name: weight / sum(weights.values()) for name, weight in weights.items()}

    def _bounded(
        self,
        level: Level,
        found: Mapping[str, LearnedLevel],
        persons: Mapping[str, RowsPerPerson],
        law: Law,
        rho: float,
    ) -> tuple[Sizes, Contribution, Opened]:
        """Return how a person is bounded in a table, and the table with the codes of the rows above."""
        table = self.database.tables[level.name]
        if table.parent is None:
            return NO_SIZES, ONE_ROW_EACH, level.opened
        sizes, contribution = level.opened.bounded(persons[level.name], law, rho, self._tables(level))
        sizes = replace(sizes, name=ROWS) if sizes else sizes
        return sizes, contribution, level.below(found[table.parent], ordered=table.order is not None)

    def _linked(
        self, level: Level, learned: Learned, found: Mapping[str, LearnedLevel]
    ) -> LearnedLevel:
        """Return what was learnt of all rows of a table, and what the tables below need of it."""
        links, name = None, level.name
        parent = self.database.tables[name].parent
        if parent is not None:
            learned = _of_all_rows(learned, found[parent], name)
            links = links_of(learned, found[parent].given)
        if not self.database.children(name):
            return LearnedLevel(learned, links, (), NO_ATTRIBUTES, {})
        return LearnedLevel(learned, links, *_for_children(level, learned, found, parent))

    def _promises(self) -> tuple[str, ...]:
        """Return the sentences for the ledger on what keys promise."""
        root = self.database.root
        unit = next(level.rows.unit for level in self.levels if level.name == root)
        inner = [name for name in self.database.names[1:] if self.database.children(name)]
        return (
            OF_PERSONS.format(unit, root),
            *(UNIQUE.format(name, self.database.tables[name].key) for name in inner),
        )

    def _inputs(self, found: Mapping[str, LearnedLevel]) -> tuple[str, ...]:
        remarks = [remark for each in found.values() for remark in each.learned.discovered.remarks]
        public = [fact for level in self.levels for fact in level.opened.source.public_inputs]
        return tuple(dict.fromkeys([*remarks, *public]))


def _for_children(
    level: Level, learned: Learned, found: Mapping[str, LearnedLevel], parent: str | None
) -> tuple[tuple[Integers, ...], Domain, Mapping[str, Given]]:
    """Return the codes of each row for the tables below, in few groups; their domain; and what they are of."""
    codec, merging, rows = learned.codec, learned.fitted.merging, len(level.rows.persons)
    walk = level.opened.bound(None).walk(codec)
    kept = np.flatnonzero(level.rows.persons != -1)
    parts: list[list[Integers]] = []

    def collect(blocks: object) -> list[Ints]:
        parts.extend([list(block) for block in blocks])  # type: ignore[attr-defined]
        return []

    walk(collect)
    names, codes, sizes, ordered, given = [], [], [], [], {}
    for place, attribute in enumerate(codec.domain.names):
        of_merged = groups_of(_one_way(learned.fitted, attribute))
        size = int(of_merged.max(initial=0)) + 1
        if size < 2:
            continue
        name = f"{level.name}.{attribute}"
        own = np.concatenate([part[place] for part in parts]) if parts else np.zeros(0, np.int64)
        whole = np.zeros(rows, np.uint8)
        whole[kept] = of_merged[merging.groups[merging.original.names.index(attribute)][own]]
        names.append(name)
        codes.append(whole)
        sizes.append(size)
        first = _one_way(learned.fitted, attribute).domain.ordered[0]
        ordered.append(int(of_merged[first - 1]) + 1 if first else 0)
        given[name] = Given(level.name, attribute, of_merged)
    domain = Domain(tuple(names), tuple(sizes), tuple(ordered))
    if parent is None:
        return tuple(codes), domain, given
    above = found[parent]
    known = level.rows.parents >= 0
    inherited = [np.where(known, of[level.rows.parents], 0).astype(of.dtype) for of in above.codes]
    return (*codes, *inherited), domain.joined(above.domain), {**given, **above.given}


def _one_way(fitted: Fitted, name: str) -> Marginal:
    return next(table for table in fitted.one_ways if table.attributes == (name,))


def _of_all_rows(learned: Learned, parent: LearnedLevel, name: str) -> Learned:
    """Return the model of all rows: as many as the parent's released numbers of rows say."""
    column = rows_of(name)
    counts = expected_rows(parent.learned, column)
    total, without = float(counts @ numbers_of(parent.learned, column)), float(counts[0])
    with_rows = max(float(counts.sum()) - without, 1.0)
    fitted = learned.fitted
    if learned.sizes:
        firsts = {each: with_rows for each in fitted.merging.merged.names if each.startswith(OF_PREVIOUS)}
        known = max(float(learned.sizes.rows.sum()), 1.0)
        fitted = reweighted(fitted, learned.sizes.name, learned.sizes.rows * (total / known), firsts)
    else:
        fitted = multiplied(fitted, max(total, 1.0) / max(fitted.total, 1.0))
    return replace(learned, fitted=fitted)


def expected_rows(learned: Learned, column: str) -> np.ndarray:
    """Return the estimated number of rows with each fine cell of a column."""
    fitted, place = learned.fitted, learned.fitted.merging.original.names.index(column)
    merging = fitted.merging
    counts = _one_way(fitted, column).counts
    return np.asarray(counts[merging.groups[place]] * merging.shares[place])


def numbers_of(learned: Learned, column: str) -> np.ndarray:
    """Return the middle of each fine cell of a column of numbers."""
    lows, highs = dict(zip(learned.codec.domain.names, learned.codec.encoders, strict=True))[column].extents
    return np.asarray((lows + highs) / 2)


def links_of(learned: Learned, above: Mapping[str, Given]) -> Links:
    """Return how the rows are linked: tables over attributes of other rows, and what these are of."""
    fitted, own, sizes = learned.fitted, learned.codec.domain.names, learned.sizes
    merging = fitted.merging
    given: dict[str, Given] = {}
    previous: dict[str, tuple[str, Codes]] = {}
    for place, name in enumerate(merging.original.names):
        merged = merging.groups[place]
        if name in own:
            continue
        if name.startswith(OF_PREVIOUS):
            of = name.removeprefix(OF_PREVIOUS)
            fine = merging.groups[merging.original.names.index(of)]
            groups = np.zeros(int(fine.max()) + 1, np.int32)
            groups[fine] = merged[: len(fine)]
            previous[name] = (of, groups)
        elif sizes and name == sizes.name:
            classes = sizes.codes(np.maximum(np.arange(int(sizes.begins[-1]) + 1), 1))
            given[name] = Given("", ROWS, merged[classes].astype(np.int32))
        elif name == POSITION:
            given[name] = Given("", POSITION, merged)
        else:
            of_above = above[name]
            given[name] = Given(of_above.table, of_above.attribute, merged[of_above.groups].astype(np.int32))
    between = tuple(table for table in fitted.marginals if not set(own).issuperset(table.attributes))
    return Links(given, previous, between)

