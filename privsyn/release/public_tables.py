"""PublicTables: one public table or several linked ones beside a release, and what becomes of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from privsyn.errors import InputError, did_you_mean, safe_repr, spelled
from privsyn.inference.ordered.tails import Tails
from privsyn.inference.public.relations import predict_relations
from privsyn.inference.public.weights import with_public_rows
from privsyn.marginals.counting import ranks
from privsyn.marginals.domain import Floats, Integers, Records
from privsyn.progress import no_progress
from privsyn.release.linked_fit import (
    joined_domain,
    joined_fit,
    links_with_tables_of,
    with_noise_alone,
    with_tables_of,
)
from privsyn.release.linked_rows import LinkedRows
from privsyn.release.public_links import linked_frames
from privsyn.release.public_table import NOTHING_COMMON, PublicTable, attributes_behind, refuse_release
from privsyn.release.table_model import TableModel
from privsyn.table.codec.codec import Codec
from privsyn.table.database.database import Database
from privsyn.table.database.derived_columns import rows_of
from privsyn.table.database.lookups import is_same_table
from privsyn.table.database.opened import named_tables
from privsyn.table.database.synthetic import SyntheticRows
from privsyn.table.io.formats import every_table, holds_tables, tables_in
from privsyn.table.schema.schema import Schema

ROWS = "{:.0%} of the synthetic rows are rows of it as they are"
COUNTS = "a weight of {:.0%} in the counts of rows from which synthetic ones are made"
WITHOUT_TARGET = "; no row of it is a synthetic one, because it lacks the target {}"
FAR = "it is far from the released answers, so that nothing is made from it"
EMPTY = "no row of it has only values of the schema, so that nothing is made from it"
DEFECT = "{}: it could not be used ({}), so that nothing is made from it: please report this defect"
LACKING = "they lack it or the table above it, so that it follows its own answers"
PERSONS = "what is counted once for each person of the public tables, as their numbers of rows"
MOST_ABOVE = 50_000  # persons who are drawn to see how many rows have which context


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """The rows of a public table that can be used, in the codes of the release.

    Parameters
    ----------
    records : Records
        In merged codes, of the attributes that the rows have: their own, and those of other rows.
    left_out : str
        What the ledger says of the other rows.
    """

    records: Records
    left_out: str


@dataclass(frozen=True, eq=False)
class PublicTables:
    """The tables that their user says are public: one table, or some or all of linked tables.

    Parameters
    ----------
    tables : mapping of the name of a private table to a PublicTable
    database : Database
        How the private tables are linked, and so the public ones.
    """

    tables: Mapping[str, PublicTable]
    database: Database

    @classmethod
    def read(cls, public: Any, database: Database, schemas: Mapping[str, Schema]) -> PublicTables:
        """Read public tables.

        Parameters
        ----------
        public : table or its path; of linked tables a mapping or a folder
        database : Database
            Of the private tables.
        schemas : mapping of a table to its Schema
            How the cells of CSV files are read.
        """
        if not database.is_linked:
            return cls({database.root: PublicTable.read(public, schemas[database.root])}, database)
        refuse_release(public)
        tables = dict[str, PublicTable]()
        for name, table in _named_tables(public, database).items():
            declared = database.tables[name]
            unit = tuple(column for column in (*declared.keys, declared.order) if column is not None)
            with database.naming_errors(name):
                tables[name] = PublicTable.read(table, schemas[name], unit, database.shown_name(name))
        return cls(tables, database)

    def check(self, codecs: Mapping[str, Codec]) -> None:
        """Refuse tables that cannot be linked or coded, with an `InputError`."""
        if not self.database.is_linked:
            self.tables[self.database.root].encoded(codecs[self.database.root])
            return
        frames = linked_frames(self.tables, self.database, codecs)
        if not any(attributes_behind(codecs[name], linked.columns) for name, linked in frames.items()):
            raise InputError(f"{spelled('public')}: {NOTHING_COMMON}")

    def improve(
        self, models: Mapping[str, TableModel], *, rows: bool, target: str | None = None
    ) -> dict[str, TableModel]:
        """Return the models of the release, improved by these tables; see `Release.with_public`."""
        encoded, better, facts = self._encoded(models), dict[str, TableModel](), list[str]()
        drawn_rows = dict[str, SyntheticRows]()
        for name, model in models.items():
            better[name] = model
            if name not in encoded:
                facts.append(f"{self._title(name)}: {LACKING}")
                continue
            table = self.tables.get(name)
            attributes = encoded[name].records.domain.names
            has_target = target is None or any(target in model.codec.columns_behind(a) for a in attributes)
            drawn = rows and has_target and table is not None and model.links is None
            above = LinkedRows(self.database, better)
            if self._is_far(name, above, encoded[name].records, drawn_rows):
                facts.append(f"{self._title(name)}: {FAR}{encoded[name].left_out}")
                continue
            better[name], fact = _improved(model, encoded[name].records, drawn=drawn)
            if rows and not has_target and better[name] is not model:
                fact += WITHOUT_TARGET.format(safe_repr(target))
            facts.append(f"{self._title(name)}: {fact}{encoded[name].left_out}")
        return _with_facts(better, facts)

    def _is_far(
        self, name: str, above: LinkedRows, records: Records, drawn_rows: dict[str, SyntheticRows]
    ) -> bool:
        """Return whether rows of a child table do not predict its relations; see `predict_relations`."""
        model = above.tables[name]
        if model.links is None or not len(records):
            return False
        context = _context_counts(name, above, drawn_rows)
        return not predict_relations(joined_fit(model.fitted, model.links, context), records)

    def unused(self, models: Mapping[str, TableModel], error: Exception) -> dict[str, TableModel]:
        """Return the models, whose ledger says that a defect kept these tables from being used."""
        facts = [DEFECT.format(self._title(name), type(error).__name__) for name in models]
        return _with_facts(models, facts)

    def _title(self, name: str) -> str:
        """Return what the ledger calls the public table that stands for a private one."""
        if name in self.tables:
            return self.tables[name].title
        return PERSONS if name == self.database.root else f"the public tables without {name!r}"

    def _encoded(self, models: Mapping[str, TableModel]) -> dict[str, EncodedTable]:
        """Return the rows of each table that can be used."""
        if not self.database.is_linked:
            ((name, model),) = models.items()
            records, left_out = self.tables[name].encoded(model.codec)
            merged = model.fitted.merging.project(records.domain.names).merge(records)
            return {name: EncodedTable(merged, left_out)}
        codecs = {name: model.codec for name, model in models.items()}
        made, attributes = dict[str, SyntheticRows](), dict[str, Collection[str]]()
        frames = linked_frames(self.tables, self.database, codecs)
        for name, linked in frames.items():
            codec, merging = codecs[name], models[name].fitted.merging
            made[name] = SyntheticRows.of(codec, merging, linked.frame, linked.parents, linked.roots)
            attributes[name] = attributes_behind(codec, linked.columns)
        linked_rows, encoded = LinkedRows(self.database, models), dict[str, EncodedTable]()
        for name, linked in frames.items():
            domain = models[name].fitted.merging.merged
            codes = {attribute: made[name].codes[attribute] for attribute in attributes[name]}
            if (links := models[name].links) is not None:
                domain = joined_domain(domain, links)
                codes |= _codes_of_other_rows(name, linked_rows, made, attributes)
            names = tuple(attribute for attribute in domain if attribute in codes)
            table = np.empty((len(linked.frame), len(names)), np.int32)
            for axis, attribute in enumerate(names):
                table[:, axis] = codes[attribute]
            encoded[name] = EncodedTable(Records(domain.project(names), table), linked.left_out)
        return encoded


def refuse_private(public: Any, private: Any, database: Database) -> None:
    """Refuse a public table that is a private one, by its object or its place. No cell is compared.

    A copy is not known, nor is a query that reads a private table.

    Parameters
    ----------
    public, private : table or its path; of linked tables a mapping, a folder or a database
    database : Database
        Of the private tables.
    """
    refuse_release(public)
    tables = _named_tables(public, database) if database.is_linked else {database.root: public}
    private_tables = named_tables(database, database.by_name(private)).values()
    if any(is_same_table(*pair) for pair in product(tables.values(), private_tables)):
        raise InputError(
            f"{spelled('public')} is the private table itself: give a table that anybody may read, such as"
            " last year's"
        )


def _named_tables(public: Any, database: Database) -> dict[str, Any]:
    """Return the public tables by the names of the private ones; some may be lacking."""
    tables = database.by_name(public)
    if isinstance(tables, str | PathLike):
        paths = tables_in(tables, database.names, database.may_lack)
        present = every_table(Path(tables)) if holds_tables(tables) else paths
        tables = {name: path for name, path in paths.items() if name in present}
    if not isinstance(tables, Mapping):
        raise InputError(f"{spelled('public')}: give a folder, or a mapping of names to tables, as to `fit`")
    for name in tables:
        if name not in database.private:
            meant = did_you_mean(name, database.names)
            raise InputError(
                f"{spelled('public')}: there is no table {safe_repr(name)} in the database{meant}"
            )
    if not tables:
        raise InputError(f"{spelled('public')} has none of the tables {', '.join(map(repr, database.names))}")
    return dict(tables)


def _codes_of_other_rows(
    name: str,
    linked_rows: LinkedRows,
    made: Mapping[str, SyntheticRows],
    attributes: Mapping[str, Collection[str]],
) -> dict[str, Integers]:
    """Return the codes that the rows of a table have from other rows, as far as these have the columns."""
    rows, links = made[name], linked_rows.tables[name].links
    if links is None:
        return {}
    numbers = linked_rows.numbers_before(name, made, rows.parents, rows.roots)
    codes = {
        attribute: context.codes(numbers[context.table, context.attribute])
        for attribute, context in links.context.items()
        if not context.table or context.attribute in attributes[context.table]
    }
    positions, indices = ranks(rows.parents), np.arange(len(rows.parents))
    return codes | {
        attribute: previous.codes(rows.codes[previous.column], positions, indices)
        for attribute, previous in links.previous.items()
        if previous.column in attributes[name]
    }


def _context_counts(name: str, above: LinkedRows, drawn_rows: dict[str, SyntheticRows]) -> dict[str, Floats]:
    """Return how many rows of a table have each code of their context, by rows above that are drawn for this.

    Parameters
    ----------
    name : str
    above : LinkedRows
        Of the tables above, and of this one.
    drawn_rows : dict of a table to its SyntheticRows
        Those of the tables above are added.
    """
    database, links = above.database, above.tables[name].links
    for table in reversed(database.above(name)):
        if table in drawn_rows:
            continue
        model = above.tables[table]
        if model.links is None:
            rows = min(max(model.estimated_rows, 1), MOST_ABOVE)
            drawn_rows[table] = above.root_rows(model.frame(rows, seed=0))
        else:
            drawn_rows[table] = above.child_rows(table, drawn_rows, np.random.SeedSequence(0), no_progress)
    parent = drawn_rows[str(database.tables[name].parent)]
    numbers = parent.frame[rows_of(name)].to_numpy(np.int64)
    parents = np.repeat(np.arange(len(numbers)), numbers)
    numbers_above = above.numbers_before(name, drawn_rows, parents, parent.roots[parents])
    codes = {
        attribute: context.codes(numbers_above[context.table, context.attribute])
        for attribute, context in ({} if links is None else links.context).items()
    }
    return {attribute: np.bincount(column).astype(np.float64) for attribute, column in codes.items()}


def _improved(model: TableModel, records: Records, *, drawn: bool) -> tuple[TableModel, str]:
    """Return the model of a table, improved by public rows, and what becomes of these.

    The rows are weighted to the answers of a child table as they are. Answers that are scaled to the numbers
    of rows above let persons with many rows lean more: at epsilon 5 sums and numbers of purchases were worse
    than without public rows.

    Parameters
    ----------
    model : TableModel
    records : Records
        Over its own attributes, and those of other rows.
    drawn : bool
        Whether a share of the synthetic rows is drawn from the public ones.
    """
    if not records.domain.names:
        return model, NOTHING_COMMON
    if not len(records):
        return model, EMPTY
    joined = with_noise_alone(
        model.fitted if model.links is None else joined_fit(model.fitted, model.links, {})
    )
    tails = Tails(joined.merging, model.codec.axes, ranked=model.codec.ranked)
    linked_names = set(joined.merging.merged).difference(model.codec.domain)
    joined = with_public_rows(joined, records, model.zeros, tails, np.random.default_rng(0), linked_names)
    if (public := joined.public_rows) is None:
        return model, FAR
    fitted = replace(with_tables_of(model.fitted, joined), public_rows=public if drawn else None)
    links = None if model.links is None else links_with_tables_of(model.links, joined)
    return replace(model, fitted=fitted, links=links), (ROWS if drawn else COUNTS).format(public.share)


def _with_facts(models: Mapping[str, TableModel], facts: list[str]) -> dict[str, TableModel]:
    """Return the models, whose ledger has further facts about what is public."""
    ledger = next(iter(models.values())).ledger
    ledger = replace(ledger, public_inputs=(*ledger.public_inputs, *facts))
    return {name: replace(model, ledger=ledger) for name, model in models.items()}
