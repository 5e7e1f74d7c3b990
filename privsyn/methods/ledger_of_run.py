"""The ledger of a run: its questions, and in sentences what it takes as public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from privsyn.errors import about_not_found
from privsyn.methods.learning import Inquiry, Learned
from privsyn.methods.randomise import facts_of, ledger_of_randomised, local_promises
from privsyn.methods.reading import looked_up
from privsyn.methods.table_of_run import LearnedTable, RunTable
from privsyn.private.run_ledger import PUBLIC, RunLedger
from privsyn.table.database.database import Database
from privsyn.table.kinds.keys import key_in_words
from privsyn.table.schema.important import in_words

if TYPE_CHECKING:
    from privsyn.methods.run_settings import RunSettings

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
CONDITIONAL = (
    "that everybody knows these totals: the promise holds for every two tables that differ in one record,"
    " with these totals given to both, and everything is conditional on them"
)
WEIGHTS = (
    "that {!r} has the weights of the rows: it is counted in groups with each column, and multiplies no"
    " noise; weighted estimates have more noise than others, and the public page says how much"
)
MATTERS = "which columns matter most together, so that more of the budget goes to their counts: {}"
KEYS = "that one person has one key in {!r} of {!r}, and that two persons never share one"
KEYS_OF_OTHERS = "that one person has one key in {1!r} of {0!r}, and that two persons never share one"
OTHER_PERSONS = (
    "that rows of {0!r} are persons of their own: the same promise protects all rows with one {1!r}, with all"
    " rows below them; the columns of other tables that name them are not read, but what else those rows say"
    " of them is not protected for them"
)
UNIQUE = "that no two rows of {!r} share a key in {!r}, so that no row below them belongs to two persons"
LOOKUP = "the table {!r}{}: it is among the synthetic tables as it is"


@dataclass(frozen=True, eq=False)
class LedgerOfRun:
    """What the ledger of a run says, but for its questions.

    Parameters
    ----------
    database : Database
    tables : tuple of RunTable
    settings : RunSettings
    """

    database: Database
    tables: tuple[RunTable, ...]
    settings: RunSettings

    def ledger(
        self, inquiry: Inquiry, learned: Mapping[str, LearnedTable], public_inputs: tuple[str, ...]
    ) -> RunLedger:
        """Return the ledger of all questions, and of what is public of the tables."""
        tables, settings, noise = [table.learned for table in learned.values()], self.settings, inquiry.noise
        local = tuple(
            replace(promise, column=self.database.shown_column(name, promise.column))
            for name, table in learned.items()
            for promise in local_promises(table.learned.codec)
        )
        inputs = dict.fromkeys(
            [
                *self._method_and_columns(tables),
                *self._promises(),
                *facts_of(local),
                *self._totals(),
                *([about_not_found(lost)] if (lost := columns_not_found(self.database, learned)) else []),
                *(fact for table in self.tables for fact in table.opened.source.public_inputs),
                *public_inputs,
            ]
        )
        if settings.epsilon is None:
            return ledger_of_randomised(local, tuple(inputs))
        epsilon, delta = settings.promise
        key = self.database.tables[self.database.root].key
        unit = key_in_words(key) or None if settings.unit is None else settings.unit
        return RunLedger(
            (*inquiry.log.spends, *local),
            promised_epsilon=epsilon,
            promised_delta=delta,
            accounting=settings.algorithm.accounting_of(noise.law),
            randomness=noise.name,
            private=noise.private,
            public_inputs=(*PUBLIC, *inputs),
            unit=unit,
            rows_per_unit=None if unit is None else max(table.contribution.limit for table in tables),
            squares=any(table.contribution.squares for table in tables),
            root=self.database.shown_name(self.database.root) or None,
            other_roots=self.database.other_persons,
        )

    def _totals(self) -> list[str]:
        """Return the ledger's sentences on known totals: which tables of counts, and what they mean."""
        tables = [fact for table in self.tables for fact in table.opened.totals.facts]
        return [*tables, CONDITIONAL] if tables else []

    def _method_and_columns(self, tables: list[Learned]) -> list[str]:
        """Return the ledger's sentences on the method, what matters most, and where values are looked up."""
        parameters = self.settings.algorithm.parameters_in_words
        sets = [
            tuple(self.database.shown_column(name, column) for column in columns)
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
            *(WEIGHTS.format(name) for table in tables if (name := table.codec.schema.weight) is not None),
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
        if tables[root].key is None and not self.database.other_persons:
            return ()
        inner = [name for name in self.database.below if self.database.children(name)]
        unique = (UNIQUE.format(name, key_in_words(tables[name].key)) for name in inner)
        of_others = [
            fact.format(name, key)
            for name, key in self.database.other_persons
            for fact in (OTHER_PERSONS, KEYS_OF_OTHERS)
        ]
        keys = () if tables[root].key is None else (KEYS.format(key_in_words(tables[root].key), root),)
        return (*keys, *of_others, *unique, *exception)


def columns_not_found(database: Database, learned: Mapping[str, LearnedTable]) -> tuple[str, ...]:
    """Return the columns of which no value and no bound exceeded the noise."""
    return tuple(
        database.shown_column(name, column)
        for name, table in learned.items()
        for column in table.learned.not_found
    )
