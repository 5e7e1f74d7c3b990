"""LinkedRows: how the rows of linked tables are made, each table after its parent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from privsyn.arguments import check_rows, check_whole
from privsyn.errors import about
from privsyn.marginals.counting import ranks
from privsyn.marginals.domain import Attributes, Integers, Ints, Mask, Records
from privsyn.progress import Progress
from privsyn.release.conditional.conditions import read_given
from privsyn.release.table_model import TableModel
from privsyn.sizes import WITH_ROWS_BELOW, check_memory
from privsyn.synthesis.chains import NUMBER_OF_ROWS, POSITION, Chains, unused
from privsyn.synthesis.exchanged_numbers import exchanged_numbers
from privsyn.synthesis.limits import exactly_one
from privsyn.synthesis.linked import Requirements, synthesise_linked
from privsyn.synthesis.paths import Path, alike_until_changed
from privsyn.synthesis.targets import Targets
from privsyn.table.codec.codec import Codec
from privsyn.table.database.database import Database
from privsyn.table.database.derived_columns import changes_of, rows_of, start_of
from privsyn.table.database.kept_lives import KeptLives
from privsyn.table.database.synthetic import (
    SyntheticRows,
    cells_elsewhere,
    dealt_rows,
    key_cells,
    known_above,
    new_keys,
    places_above,
    schema_of,
)
from privsyn.table.encoding.dtypes import dtype_text
from privsyn.table.encoding.encoders import STRAY
from privsyn.table.enforcement.compared import KnownAbove
from privsyn.table.enforcement.repair import Repair
from privsyn.table.io.output_type import OutputType
from privsyn.table.io.write import stacked
from privsyn.table.schema.schema import Schema

Rows = Mapping[str, SyntheticRows]
NO_COLUMNS: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class LinkedRows:
    """Makes the rows of linked tables.

    Parameters
    ----------
    database : Database
        Public: the tables and how they are linked.
    tables : mapping of a table to its TableModel
        Each after its parent.
    """

    database: Database
    tables: Mapping[str, TableModel]

    def sample(
        self, n: int | None, given: Any, seed: int | None, report: Progress
    ) -> dict[str, SyntheticRows]:
        """Return the rows of `Release.sample`, with their derived columns and without keys."""
        seeds = np.random.SeedSequence(None if seed is None else check_whole("seed", seed))
        rows: dict[str, SyntheticRows] = {}
        *its_seeds, seed_of_dealt = seeds.spawn(len(self.tables) + 1)
        root, columns = self.tables[self.database.root], frozenset[str]()
        self._check_memory(n)
        if given is not None:
            with about(f"table {self.database.root!r}"):
                columns = read_given(root.codec, given, n, root.number_of_rows(n)).columns
        for (name, model), its_seed in zip(self.tables.items(), its_seeds, strict=True):
            with about(f"table {name!r}"):
                if model.links is not None:
                    rows[name] = self.child_rows(name, rows, its_seed, report, columns)
                    continue
                number, wanted = (
                    (n, given) if name == self.database.root else (self.rows_of_other(name), None)
                )
                first = int(its_seed.generate_state(1)[0])
                if wanted is None:
                    frame = stacked(model.blocks(number, first, report))
                else:
                    frame = model.frame(number, given=wanted, seed=first, progress=report)
                rows[name] = self.root_rows(frame, name)
        return self.with_dealt(rows, seed_of_dealt)

    def _check_memory(self, n: int | None) -> None:
        """Refuse `n` rows of the root if memory cannot hold them and the rows below them."""
        if n is None:
            return
        rows, roots = check_rows(n), max(self.tables[self.database.root].fitted.total, 1.0)
        cells = sum(model.fitted.total / roots * len(model.codec.names) for model in self.tables.values())
        check_memory(rows, rows * cells, WITH_ROWS_BELOW)

    def root_rows(self, frame: pd.DataFrame, name: str | None = None) -> SyntheticRows:
        """Return rows of the root, or of another table without a parent, given with their derived columns."""
        root, indices = self.tables[name or self.database.root], np.arange(len(frame))
        return SyntheticRows.of(root.codec, root.fitted.merging, frame, indices, indices)

    def rows_of_other(self, name: str) -> int:
        """Return how many rows to make of another table without a parent: at least one, if noise hides it.

        Few rows there, such as eight members of staff, must not end a run of thousands of patients.
        """
        return max(self.tables[name].estimated_rows, 1)

    def with_dealt(self, rows: Rows, seed: np.random.SeedSequence) -> dict[str, SyntheticRows]:
        """Return the rows of all tables with the rows to which columns lead that are dealt."""
        rng, with_dealt = np.random.default_rng(seed), dict(rows)
        for name, its_rows in rows.items():
            targets = {
                column: dealt_rows(
                    len(its_rows.parents), len(rows[target].parents), rng, earlier=target == name
                )
                for column, target in self.database.tables[name].dealt.items()
            }
            with_dealt[name] = replace(its_rows, dealt=targets)
        return with_dealt

    def child_rows(
        self,
        name: str,
        rows: Rows,
        seed: np.random.SeedSequence,
        report: Progress,
        conditions: frozenset[str] = NO_COLUMNS,
    ) -> SyntheticRows:
        """Return the rows of a child table, given the rows of the tables above.

        `conditions` are the columns of the root whose values are given.
        """
        model, table, rng = self.tables[name], self.database.tables[name], np.random.default_rng(seed)
        parent, links = rows[table.parent or ""], model.links
        if links is None:
            raise ValueError(f"{name}: nothing links its rows")
        report(f"synthesising {name}", 0, 1)
        numbers = parent.frame[rows_of(name)].to_numpy(np.int64)
        codec, merging = model.codec, model.fitted.merging
        one_ways = {marginal.attributes[0]: marginal for marginal in model.fitted.one_ways}
        is_counted = table.order in one_ways and (
            one_ways[table.order].domain.ordered[0] > 1 or table.in_order_of_life
        )
        order = table.order if is_counted else None
        parents = np.repeat(np.arange(len(numbers)), numbers)
        above = self._above(name, rows, parents)
        lives = KeptLives.of(table, codec, merging, order, above, int(numbers.max(initial=0)))
        limits = lives.limits(above, len(parents))
        largest = np.zeros(len(numbers))
        largest[parents] = lives.rules.most_rows(limits, parents)
        if (numbers > largest).any():
            if rows_of(name) not in conditions:
                keeps = self._keeps(table.parent or "", rows_of(name), parent.frame)
                numbers = exchanged_numbers(numbers, largest, keeps, rng)
            # No further row of these parents could keep the rules.
            parents = np.repeat(np.arange(len(numbers)), np.minimum(numbers, largest).astype(np.int64))
            above = self._above(name, rows, parents)
            limits = lives.limits(above, len(parents))
        roots = parent.roots[parents]
        context = self.numbers_before(name, rows, parents, roots)
        chains = Chains.of(parents, links, context, in_order=table.order is not None)
        marginals = (*model.fitted.marginals, *links.tables)
        targets = Targets(model.fitted.one_ways, marginals, model.zeros)
        paths = [self._path(name, column, parent.frame, parents, conditions) for column in table.lasting]
        attributes, of_firsts = self._of_firsts(name, parent, parents)
        chains = replace(chains, context={**chains.context, **attributes})
        is_given, apart = bool(conditions), lives.apart(merging)
        requirements = Requirements(limits, lives.rules, paths, of_firsts, is_given, apart)
        codes = synthesise_linked(targets, chains, rng, requirements=requirements)
        domain = lives.merging.merged
        records = Records(domain, np.stack([codes[attribute] for attribute in domain], axis=1))
        records = alike_until_changed(paths, records, lives.merging.restore(records, rng), parents)
        records = exactly_one(lives.ones, records, model.fitted.one_ways, merging, parents, rng)
        columns = dict(zip(records.domain, records.codes.T, strict=True))
        cells = codec.cells()
        fixed = {
            unique.attribute: cells[unique.attribute].lows[columns[unique.attribute]] for unique in lives.ones
        }
        stays_sorted = bool(table.kept_lives) or not codec.schema.constraints
        if stays_sorted:
            fixed |= lives.numbers(records, parents, above, rng)
        frame = codec.table(codec.numbers(records, rng, lives.merging, fixed, above), rng)
        first = any(only_one.first for only_one in table.one)
        if table.order in frame and not (stays_sorted and order is not None) and not first:
            by = np.lexsort((frame[table.order].rank(method="first").to_numpy(), parents))
            named = {name for rule in codec.schema.constraints for name in rule.columns}
            paths_of_rows = frame[[column for column in table.lasting if column not in named]]
            frame = frame.iloc[by].reset_index(drop=True).assign(**paths_of_rows)  # in their rows' places
        report(f"synthesising {name}", 1, 1)
        return SyntheticRows.of(codec, merging, frame, parents, roots)

    def _keeps(self, name: str, column: str, frame: pd.DataFrame) -> Callable[[Ints], Mask]:
        """Return a function of the numbers in a column: which rows of a table keep all rules about it."""
        schema = self.tables[name].codec.schema
        rules = [rule for rule in Repair.of(schema.coded, schema.constraints).rules if column in rule.columns]
        numbers = self.tables[name].codec.read(frame) if rules else {}

        def keeps(values: Ints) -> Mask:
            changed = {**numbers, column: values.astype(np.float64)}
            return np.all([np.full(len(values), True), *(rule.holds(changed) for rule in rules)], axis=0)

        return keeps

    def _above(self, name: str, rows: Rows, parents: Ints) -> KnownAbove:
        """Return what the rows above allow the rows of a table."""
        indices = dict(self._places_above(name, rows, parents))
        return known_above(name, self.database, self._codecs, rows, indices, self.tables[name].computed_above)

    def _path(
        self, name: str, column: str, above: pd.DataFrame, parents: Ints, fixed: frozenset[str]
    ) -> Path:
        """Return the first value and the number of changes of a lasting column, for the rows of a table.

        Parameters
        ----------
        name, column : str
        above : pandas.DataFrame
            The rows of the parent table, with their derived columns.
        parents : integer array of shape (rows,)
        fixed : set of str
            Columns of the root whose values are given.
        """
        codec, merging = self.tables[name].codec, self.tables[name].fitted.merging
        (axis,) = codec.domain.axes((column,))
        start, changes = (name_of(self.database, name, column) for name_of in (start_of, changes_of))
        codec_above = self.tables[self.database.tables[name].parent or ""].codec
        codes = codec_above.encoder_of[start].encode(above[start])
        missing = codec.domain.sizes[axis] - 1  # the code of missing cells, if the column may have some
        first = merging.groups[axis][np.where(codes == STRAY, missing, codes)]
        numbers = np.minimum(above[changes].to_numpy(np.int64)[parents], np.bincount(parents)[parents] - 1)
        keeps_first = self.database.tables[name].parent == self.database.root and start in fixed
        return Path(column, first[parents], numbers, keeps_first)

    def _of_firsts(
        self, name: str, parent: SyntheticRows, parents: Ints
    ) -> tuple[dict[str, Integers], list[Attributes]]:
        """Return which tables of the parent have first values of lasting columns, and their other columns.

        Returns
        -------
        attributes : mapping of an attribute to an array of shape (rows,)
            Columns of the parent, by names that no column of the table has.
        sets : list of tuple of str
            Of each table. A first value has the name of the column.
        """
        above = self.database.tables[name].parent or ""
        columns = {
            start_of(self.database, name, column): column for column in self.database.tables[name].lasting
        }
        codes, attributes, sets = self.tables[name].codec.domain.names, dict[str, Integers](), []
        for table in self.tables[above].fitted.tables if columns else ():
            if columns.keys().isdisjoint(table.attributes):
                continue
            names = {its: columns.get(its) or unused(f"{above}: {its}", codes) for its in table.attributes}
            attributes |= {names[its]: parent.codes[its][parents] for its in names.keys() - columns.keys()}
            sets.append(tuple(names.values()))
        return attributes, sets

    def published(self, name: str, rows: Rows) -> tuple[Any, Schema, OutputType]:
        """Return a table with its keys, without the derived columns; its schema; and its type.

        The type lacks the columns whose cells it does not hold.
        """
        model, table, its_rows = self.tables[name], self.database.tables[name], rows[name]
        columns: dict[str, Any] = {}
        elsewhere = cells_elsewhere(
            name, self.database, self._codecs, rows, model.columns, model.computed_above
        )
        every = {name: np.arange(len(its_rows.parents))} | dict(
            self._places_above(name, rows, its_rows.parents)
        )
        for column, dtype in model.columns.items():
            if column in table.dealt:
                columns[column] = self._dealt_keys(table.dealt[column], its_rows.dealt[column], rows, dtype)
            elif column in table.keys:
                origin = self.database.origin(name, column)
                columns[column] = key_cells(*origin, self.database, rows, every, dtype)
            elif column in elsewhere:
                columns[column] = elsewhere[column]
            elif column in its_rows.frame:
                columns[column] = its_rows.frame[column]
            else:
                columns[column] = new_keys(ranks(its_rows.parents), dtype)
        frame = pd.DataFrame(columns, index=range(len(its_rows.parents)), copy=False)
        elsewhere_columns = (*table.computed, *table.copied, *table.computed_above)
        wider = {name for name in elsewhere_columns if dtype_text(columns[name].dtype) != model.columns[name]}
        form, schema = (
            model.form.only(set(columns) - wider),
            schema_of(name, self.database, self._codecs, model.computed_above),
        )
        return form.cast(model.with_used_categories(frame), schema), schema, form

    def _dealt_keys(self, target: str, indices: Ints, rows: Rows, dtype: str) -> pd.Series:
        """Return the keys of some rows of a table; missing where the row is -1, if the dtype allows it."""
        missing = indices < 0
        if not len(rows[target].parents):
            return pd.Series(None, index=range(len(indices)), dtype=dtype if dtype == "str" else "Int64")
        by_table = {table: above.parents for table, above in rows.items()}
        above = dict(places_above(self.database, target, by_table, np.maximum(indices, 0)))
        origin = self.database.origin(target, self.database.tables[target].key_columns[0])
        every = {target: np.maximum(indices, 0)} | above
        cells = key_cells(*origin, self.database, rows, every, dtype)
        return cells.mask(missing) if missing.any() and dtype != "int64" else cells

    @property
    def lookups(self) -> dict[str, Any]:
        """The look-up tables as they are, in the type of the root."""
        kind = self.tables[self.database.root].form.kind
        return {name: table.public.as_kind(kind) for name, table in self.database.public.items()}

    def numbers_before(
        self, name: str, rows: Rows, parents: Ints, roots: Ints
    ) -> dict[tuple[str, str], Integers]:
        """Return what is known of each row before it is made, by the table above and the column."""
        codes_of_rows: dict[tuple[str, str], Integers] = {
            ("", NUMBER_OF_ROWS): np.bincount(roots, minlength=1)[roots],
            ("", POSITION): ranks(parents),
        }
        for table, indices in self._places_above(name, rows, parents):
            codes_of_rows |= {
                (table, attribute): codes[indices] for attribute, codes in rows[table].codes.items()
            }
        return codes_of_rows

    def _places_above(self, name: str, rows: Rows, parents: Ints) -> Iterator[tuple[str, Ints]]:
        """Yield each table above with the place of each row's row there."""
        by_table = {table: above.parents for table, above in rows.items()} | {name: parents}
        return places_above(self.database, name, by_table, np.arange(len(parents)))

    @property
    def _codecs(self) -> dict[str, Codec]:
        return {name: model.codec for name, model in self.tables.items()}
