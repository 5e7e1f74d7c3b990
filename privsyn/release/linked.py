"""LinkedRelease: the result of `fit` on a database, all of which may be published."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import IO, Any

import numpy as np
import pandas as pd

from privsyn.abilities import LINKED, TOGETHER, check_abilities
from privsyn.arguments import check_whole
from privsyn.errors import InputError, about, plural
from privsyn.marginals.counting import ranks
from privsyn.marginals.domain import Integers, Ints, Records
from privsyn.methods.level import LearnedLevel
from privsyn.methods.levels import OpenedDatabase
from privsyn.private.ledger import Ledger
from privsyn.progress import Progress, no_progress
from privsyn.release.draws.linked import LinkedDraws
from privsyn.release.linked_accuracy import LinkedAccuracy
from privsyn.release.losses import Loss, at_found_bounds, computed_losses, in_order, losses_of_rows
from privsyn.release.outlook import Outlook
from privsyn.release.release import Release
from privsyn.release.saved.file_format import members_of, parts_of, read_file, write_model
from privsyn.release.saved.linked_file import DATABASE, ReleasedLevel, levels_of, pack_levels
from privsyn.synthesis.chains import NUMBER_OF_ROWS, POSITION, Chains
from privsyn.synthesis.limits import Limit, UniqueCode, exactly_one
from privsyn.synthesis.linked import synthesise_linked
from privsyn.table.codec.codec import Codec
from privsyn.table.database.declared import Database
from privsyn.table.database.opened import rows_of
from privsyn.table.database.synthetic import (
    SyntheticRows,
    cells_elsewhere,
    codes_of_ones,
    declared_table,
    dtype_of_keys,
    known_above,
    new_keys,
    places_above,
    schema_of,
)
from privsyn.table.encoding.dtypes import dtype_text
from privsyn.table.io.output_type import OutputType
from privsyn.table.io.write import check_for_tables, write_blocks, write_tables


@dataclass(frozen=True, eq=False, repr=False)
class LinkedRelease:
    """A fitted model of several tables.

    Parameters
    ----------
    database : Database
        Public: the tables and how they are linked.
    levels : mapping of a table to its ReleasedLevel
        Each after its parent.
    ledger : Ledger
    only : str, optional
        The table that `sample` returns, if one table was fitted whose rows belong to persons. Default: all.
    """

    database: Database
    levels: Mapping[str, ReleasedLevel]
    ledger: Ledger
    only: str | None = None

    @classmethod
    def of(
        cls,
        opened: OpenedDatabase,
        learned: Mapping[str, LearnedLevel],
        ledger: Ledger,
        only: str | None = None,
    ) -> LinkedRelease:
        """Return the release of what was learnt of each table."""
        levels = dict[str, ReleasedLevel]()
        for level in opened.levels:
            of, head = learned[level.name], level.opened.source.head
            table = opened.database.tables[level.name]
            copied = {
                column: levels[of].columns[opened.database.tables[of].key or ""]
                for column, of in opened.database.copied_keys(level.name).items()
            }
            elsewhere = {*table.elsewhere} - {*copied}
            keys = {*table.keys, *copied, table.order or ""}
            form = level.opened.output_type(of.learned.codec, {*elsewhere, *keys})
            method, called = opened.settings.algorithm, level.name if only is None else None
            noted = _noted(opened.database, level.name, of, only)
            release = Release(of.learned.codec, of.learned.own, ledger, method, form, noted, called)
            at_bounds = computed_losses(called or "", _at_found_bounds, release, of)
            release = replace(release, noted=(*noted, *at_bounds))
            named = {*table.keys, table.order, *of.learned.codec.names, *table.elsewhere}
            columns = {
                str(name): dtype_text(dtype) or "" if name in elsewhere else dtype_of_keys(dtype)
                for name, dtype in head.dtypes.items()
                if name in named and name not in of.learned.codec.dropped
            }
            columns |= {column: dtype for column, dtype in copied.items() if column in columns}
            levels[level.name] = ReleasedLevel(release, of.links, columns)
        return cls(opened.database, levels, ledger, only)

    @property
    def not_found(self) -> tuple[str, ...]:
        """Columns of which no value and no bound exceeded the noise, each with its table."""
        return tuple(
            f"{name}.{column}"
            for name, level in self.levels.items()
            for column in level.release.accuracy_.not_found
        )

    def __repr__(self) -> str:
        rows = ", ".join(
            f"{name} with about {plural(level.release.fitted.total, 'row')}"
            for name, level in self.levels.items()
        )
        return f"<LinkedRelease: {rows}>"

    def sample(
        self,
        n: int | None = None,
        *,
        given: Any = None,
        balance: None = None,
        seed: int | None = None,
        progress: Progress | None = None,
    ) -> Any:
        """Return synthetic tables, linked by new keys. This costs no further privacy.

        Parameters
        ----------
        n : int, optional
            Number of rows of the root. All that belongs to them comes with them. Default: the private
            estimate.
        given : mapping of a column to a value, range or list, str, or data frame, optional
            Values of the root's rows; see `Release.sample`.
        balance : None
            Linked rows take none.
        seed : int, optional
            Makes the sample repeatable. Sampling adds no noise, so privacy is the same.
        progress : callable, optional

        Returns
        -------
        dict of a table to its rows, of the type that the private table has. A link in a child table is a key
        of its parent's table. Look-up tables are as they are.
        """
        check_abilities(self.kinds, {"given": given, "balance": balance})
        return self.tables_of(self.rows(n, given, seed, progress or no_progress))

    def rows(self, n: int | None, given: Any, seed: int | None, report: Progress) -> dict[str, SyntheticRows]:
        """Return the rows of `sample`, with their derived columns and without keys."""
        seeds = np.random.SeedSequence(None if seed is None else check_whole("seed", seed))
        made: dict[str, SyntheticRows] = {}
        for (name, level), own in zip(self.levels.items(), seeds.spawn(len(self.levels)), strict=True):
            with about(f"table {name!r}"):
                if level.links is None:
                    first = int(own.generate_state(1)[0])
                    made[name] = self.root_rows(_root(level.release, n, given, first, report))
                else:
                    made[name] = self.below(name, made, own, report)
        return made

    def draws(
        self, m: int, n: int | None = None, *, seed: int | None = None, progress: Progress | None = None
    ) -> LinkedDraws:
        """Return `m` samples that differ as the noise does; see `Release.draws` and `sample`."""
        return LinkedDraws(self, m, n, seed, progress)

    def tables_of(self, made: Mapping[str, SyntheticRows]) -> Any:
        """Return all tables with their keys, and the look-up tables; or the one table of `only`."""
        if self.only is not None:
            return self._table(self.only, made)
        kind = self.levels[self.database.root].release.form.kind
        tables = {name: self._table(name, made) for name in self.levels}
        return tables | {name: table.public.as_kind(kind) for name, table in self.database.public.items()}

    def root_rows(self, frame: pd.DataFrame) -> SyntheticRows:
        """Return rows of the root, given with their derived columns."""
        places = np.arange(len(frame))
        release = self.levels[self.database.root].release
        return SyntheticRows.of(release.codec, release.fitted.merging, frame, places, places)

    def below(
        self, name: str, made: Mapping[str, SyntheticRows], seed: np.random.SeedSequence, report: Progress
    ) -> SyntheticRows:
        """Return the rows of a child table."""
        level, table, rng = self.levels[name], self.database.tables[name], np.random.default_rng(seed)
        parent, links = made[table.parent or ""], level.links
        if links is None:
            raise ValueError(f"{name}: nothing links its rows")
        report(f"synthesising {name}", 0, 1)
        numbers = parent.frame[rows_of(name)].to_numpy(np.int64)
        parents = np.repeat(np.arange(len(numbers)), numbers)
        roots = parent.roots[parents]
        release = level.release
        own = {of.attributes[0]: of for of in release.fitted.one_ways}
        order = table.order if table.order in own and own[table.order].domain.ordered[0] > 1 else None
        known, in_order = self._known(name, made, parents, roots), table.order is not None
        chains = Chains.of(parents, links, known, order, in_order=in_order)
        codec, merging = release.codec, release.fitted.merging
        places = self._places_above(name, made, parents)
        above = known_above(name, self.database, self._codecs, made, places)
        limits = [Limit(*of) for of in above.allowed(codec.cells(merging))]
        tables = (*release.fitted.marginals, *links.tables)
        ones = [UniqueCode(*of) for of in codes_of_ones(table, codec)]
        merged = [one.merged(merging) for one in ones]
        codes = synthesise_linked(own, tables, chains, rng, zeros=release.zeros, limits=limits, unique=merged)
        records = Records(merging.merged, np.stack([codes[each] for each in own], axis=1))
        records = exactly_one(
            ones, merging.restore(records, rng), release.fitted.one_ways, merging, parents, rng
        )
        columns = dict(zip(records.domain, records.codes.T, strict=True))
        fixed = {one.attribute: codec.cells()[one.attribute].lows[columns[one.attribute]] for one in ones}
        frame = codec.table(codec.numbers(records, rng, merging, fixed, above), rng)
        if table.order in frame:
            by = np.lexsort((frame[table.order].rank(method="first").to_numpy(), parents))
            first = any(one.first for one in table.one)
            if codec.schema.constraints or (order is None and not first):
                frame = frame.iloc[by].reset_index(drop=True)
            else:  # the codes are in order: only values of the same code change places
                frame[order] = frame[order].array[by]
        report(f"synthesising {name}", 1, 1)
        return SyntheticRows.of(codec, merging, frame, parents, roots)

    def _known(
        self, name: str, made: Mapping[str, SyntheticRows], parents: Ints, roots: Ints
    ) -> dict[tuple[str, str], Integers]:
        """Return what is known of each row before it is made, by the table above and the column."""
        known: dict[tuple[str, str], Integers] = {
            ("", NUMBER_OF_ROWS): np.bincount(roots, minlength=1)[roots],
            ("", POSITION): ranks(parents),
        }
        for table, at in self._places_above(name, made, parents).items():
            known |= {(table, attribute): codes[at] for attribute, codes in made[table].codes.items()}
        return known

    def _places_above(self, name: str, made: Mapping[str, SyntheticRows], parents: Ints) -> dict[str, Ints]:
        """Return the place of each row's row in each table above."""
        known = {table: rows.parents for table, rows in made.items()} | {name: parents}
        return dict(places_above(self.database, name, known, np.arange(len(parents))))

    @property
    def _codecs(self) -> dict[str, Codec]:
        """The codec of each table."""
        return {name: level.release.codec for name, level in self.levels.items()}

    def _table(self, name: str, made: Mapping[str, SyntheticRows]) -> Any:
        """Return a table with its keys, without the derived columns."""
        frame, form = self._frame(name, made)
        frame = self.levels[name].release.with_used_categories(frame)
        return form.cast(frame, schema_of(name, self.database, self._codecs))

    def _frame(self, name: str, made: Mapping[str, SyntheticRows]) -> tuple[pd.DataFrame, OutputType]:
        """Return a table with its keys, and the type of the columns whose own type holds their cells."""
        level, table, rows = self.levels[name], self.database.tables[name], made[name]
        columns: dict[str, Any] = {}
        elsewhere = cells_elsewhere(name, self.database, self._codecs, made, level.columns)
        for column, dtype in level.columns.items():
            if column == table.key:
                columns[column] = new_keys(np.arange(len(rows.parents)), dtype)
            elif column == table.link:
                columns[column] = new_keys(rows.parents, dtype)
            elif column in elsewhere:
                columns[column] = elsewhere[column]
            elif column in rows.frame:
                columns[column] = rows.frame[column]
            else:
                columns[column] = new_keys(ranks(rows.parents), dtype)
        frame = pd.DataFrame(columns, index=range(len(rows.parents)), copy=False)
        follow = (*table.computed, *table.copied)
        wider = {of for of in follow if dtype_text(columns[of].dtype) != level.columns[of]}
        return frame, level.release.form.only(set(columns) - wider)

    def sample_blocks(
        self, n: int | None = None, *, seed: int | None = None, progress: Progress | None = None
    ) -> Iterator[Any]:
        """Yield the one table of `sample`, as a whole."""
        one_release(self, "sample_blocks")
        yield self.sample(n, seed=seed, progress=progress)

    def sample_to(
        self,
        path: str | PathLike[str],
        n: int | None = None,
        *,
        excel_safe: bool = False,
        seed: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[int, int]:
        """Write the one table of `sample` to a file; return its numbers of rows and columns."""
        release, blocks = one_release(self, "sample_to"), self.sample_blocks(n, seed=seed, progress=progress)
        return write_blocks(blocks, path, release.codec.schema, release.form, excel_safe=excel_safe)

    def sample_into(
        self,
        path: str | PathLike[str],
        n: int | None = None,
        *,
        seed: int | None = None,
        ending: str = ".csv",
        excel_safe: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, tuple[int, int]]:
        """Write the tables of `sample`, all or none; return the numbers of rows and columns of each.

        Parameters
        ----------
        path : str or path
            A new folder, whose files get the `ending`, or a .duckdb or .sqlite file.
        n, seed, excel_safe, progress : optional
            See `sample` and `Release.sample_to`.
        """
        check_for_tables(path)
        made, whole = self.rows(n, None, seed, progress or no_progress), dict[str, Any]()
        for name in self.levels:
            schema, (frame, form) = schema_of(name, self.database, self._codecs), self._frame(name, made)
            declared = declared_table(name, self.database, schema.columns)
            whole[name] = (form.cast(frame, schema), schema, form, declared)
        kind = self.levels[self.database.root].release.form.kind
        for name, table in self.database.public.items():
            declared = declared_table(name, self.database, ())
            whole[name] = (table.public.as_kind(kind), None, table.public.form, declared)
        return write_tables(whole, path, ending, excel_safe=excel_safe)

    def outlook(self, target: str | None = None) -> str:
        """Return one sentence on how good the rows of the one table are likely to be."""
        release = one_release(self, "outlook")
        return self.outlooks()[self.only or ""] if target is None else release.outlook(target)

    def outlooks(self) -> dict[str, str]:
        """Return the sentence of `Release.outlook` for each table; none advises to name a target."""
        found = {name: Outlook.of(release) for name, release in self.tables.items()}
        return {name: str(replace(outlook, takes_target=False)) for name, outlook in found.items()}

    @cached_property
    def accuracy_(self) -> Any:
        """Expected errors and intervals: the `LinkedAccuracy` of all tables, or the `Accuracy` of the one."""
        found = {}
        for name, level in self.levels.items():
            of, columns = level.release.accuracy_, level.release.codec.names
            found[name] = replace(
                of, unpublished=tuple(each for each in columns if each not in level.columns)
            )
        parents = {name: table.parent for name, table in self.database.private.items() if table.parent}
        return LinkedAccuracy(found, parents) if self.only is None else found[self.only]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of run that it comes from, as `abilities` calls them."""
        return (LINKED if self.only is None else TOGETHER,)

    @property
    def of_one_table(self) -> Release | None:
        """The release of the one table that was fitted; None if there are several."""
        return None if self.only is None else self.levels[self.only].release

    @property
    def tables(self) -> dict[str, Release]:
        """The release of each table."""
        return {name: level.release for name, level in self.levels.items()}

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the run did to each column of all tables; see `Release.losses`."""
        return in_order(loss for release in self.tables.values() for loss in release.losses)

    @property
    def losses_(self) -> tuple[Loss, ...]:
        """The losses, by the name that they have in a fitted model."""
        return self.losses

    def save(self, path: str | PathLike[str] | IO[bytes]) -> None:
        """Write the release to a file, whole or not at all, after reading it back; see `Release.save`.

        Raises
        ------
        InputError
            If the file cannot be written, or cannot hold the type of a listed value.
        """
        write_model(self.packed(), path, load)

    def packed(self) -> bytes:
        """Return the bytes of the file. The same release gives the same bytes."""
        return pack_levels(self.database, self.levels, self.only)

    @property
    def ledger_(self) -> Ledger:
        """The ledger, by the name that it has in a fitted model."""
        return self.ledger

    @property
    def too_little_signal(self) -> str | None:
        """Say why no tables are made by default; see `Release`.

        The table without a parent decides. A further table whose number of rows is mostly noise is made, and
        its losses and its outlook say so: the others are no worse for it.
        """
        return self.levels[self.database.root].release.too_little_signal

    @property
    def estimated_rows(self) -> int:
        """The private estimate of the number of rows of the table without a parent."""
        return self.levels[self.database.root].release.estimated_rows

    def with_ledger(self, ledger: Ledger) -> LinkedRelease:
        """Return the release with another ledger."""
        levels = {
            name: replace(level, release=level.release.with_ledger(ledger))
            for name, level in self.levels.items()
        }
        return replace(self, levels=levels, ledger=ledger)


def _noted(database: Database, name: str, learned: LearnedLevel, only: str | None) -> tuple[Loss, ...]:
    """Return the losses of rows of a table; those of one table have the name of the column of its persons."""
    table = database.tables[name]
    if table.parent is None:
        return ()
    fitted, contribution = learned.learned.own, learned.learned.contribution
    if only is None:
        return losses_of_rows(name, fitted, contribution, person="person", owner=f"row of {table.parent}")
    unit = table.link or name
    return losses_of_rows(unit, fitted, contribution, person=unit, owner=unit)


def _at_found_bounds(release: Release, level: LearnedLevel) -> Iterator[Loss]:
    """Return the losses at the bounds of a table that were found."""
    return at_found_bounds(release, level.learned.beyond)


def one_release(release: Release | LinkedRelease, what: str) -> Release:
    """Return the release of the one table that was fitted; refuse `what` if there are several."""
    if (found := release.of_one_table) is None:
        raise InputError(
            f"{what} is for one table, and the model has several: in Python, load(path).sample() returns"
            " all, and load(path).tables[...] is one"
        )
    return found


def _root(release: Release, n: int | None, given: Any, seed: int, report: Progress) -> pd.DataFrame:
    """Return the rows of the root."""
    whole = replace(release, form=type(release.form)())  # derived columns are in pandas here
    frame: pd.DataFrame = whole.sample(n, given=given, seed=seed, progress=report)
    return frame


def load(path: str | PathLike[str] | IO[bytes]) -> Release | LinkedRelease:
    """Read a release that `save` wrote; an `InputError` if the file is anything else.

    Parameters
    ----------
    path : path, or file open for reading bytes

    Returns
    -------
    Release, or LinkedRelease if its rows are linked
        ``isinstance(release, LinkedRelease)`` tells type checkers which.
    """

    def read(file: zipfile.ZipFile) -> Release | LinkedRelease:
        if DATABASE not in file.namelist():
            return Release(*parts_of(file))
        database, levels, only = levels_of(members_of(file))
        return LinkedRelease(database, levels, levels[database.root].release.ledger, only)

    return read_file(path, read)
