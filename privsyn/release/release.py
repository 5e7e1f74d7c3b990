"""Release: the result of `fit`, all of which may be published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Generic, overload

from privsyn.abilities import POPULATION, check_abilities
from privsyn.errors import InputError, about, plural, safe_repr, spelled, warn_disagreements
from privsyn.inference.fitted import Fitted
from privsyn.notebook import html
from privsyn.private.run_ledger import RunLedger, over_time_lines
from privsyn.progress import Progress, no_progress
from privsyn.release.accuracy.accuracy import Accuracy
from privsyn.release.conditional.conditions import condition_as_given
from privsyn.release.draws.draws import Draws
from privsyn.release.earlier_releases import EarlierReleases, refuse_promise_apart
from privsyn.release.linked_agreement import agreements, in_words
from privsyn.release.linked_rows import LinkedRows, Rows
from privsyn.release.losses.kinds import Loss, in_order, of_rows_without
from privsyn.release.places import PlaceLevel, levels_of_places
from privsyn.release.public_tables import PublicTables
from privsyn.release.questions.answer import Answer
from privsyn.release.questions.answers import Answers
from privsyn.release.saved.file_format import pack, read_model, write_model
from privsyn.release.table_model import TableModel
from privsyn.table.codec.codec import Codec
from privsyn.table.database.database import ROWS, Database
from privsyn.table.database.derived_columns import of_lasting, same_in_all_rows
from privsyn.table.database.synthetic import declared_table
from privsyn.table.io.write import check_for_tables, write_blocks, write_tables
from privsyn.table.schema.about import About, read_about

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeVar  # every type checker has it; it is not needed at run time

    TableT = TypeVar("TableT", default=pd.DataFrame)  # the type of the private and the synthetic table
else:
    from typing import TypeVar

    TableT = TypeVar("TableT")


@dataclass(frozen=True, eq=False, repr=False)
class Release(Generic[TableT]):
    """A fitted model: consistent tables of noisy counts for each table, and the ledger of their cost.

    One table is a database of one table. If it was given without a database, a sample is a table; else it is
    a dict of tables by their names.

    Parameters
    ----------
    database : Database
        Public: the tables and how they are linked.
    tables : mapping of a table to its TableModel
        Each after its parent. All have the same ledger.
    """

    database: Database
    tables: Mapping[str, TableModel]

    @classmethod
    def of_table(cls, model: TableModel) -> Release[TableT]:
        """Return the release of one table that was given without a database."""
        return cls(Database.of_one(), {ROWS: model})

    @property
    def ledger(self) -> RunLedger:
        """All private queries and their cost."""
        return self._root.ledger

    @property
    def ledger_(self) -> RunLedger:
        """The ledger, by the name that it has in a fitted model."""
        return self.ledger

    def with_ledger(self, ledger: RunLedger) -> Release[TableT]:
        """Return the release with another ledger."""
        return replace(
            self, tables={name: replace(model, ledger=ledger) for name, model in self.tables.items()}
        )

    def with_about(self, about: About | Mapping[str, Any] | None) -> Release[TableT]:
        """Return the release with more of the publisher's words, such as a title forgotten before the run.

        The words are public and no answer depends on them, so this costs no privacy.

        Parameters
        ----------
        about : About, mapping or None
            Its settings replace those of the schema; settings that it does not have stay.

        Raises
        ------
        InputError
            If a setting has another form, or another name.
        """
        before, added = (words.to_plain() if words else {} for words in (self.about, read_about(about)))
        words = read_about(before | added)
        if (model := self.single) is None:
            return replace(self, database=replace(self.database, about=words))
        codec = replace(model.codec, schema=replace(model.codec.schema, about=words))
        with_words = {name: replace(model, codec=codec) for name in self.tables if self.tables[name] is model}
        return replace(self, tables={**self.tables, **with_words})

    def with_public(self, tables: Any, *, rows: bool = True, target: str | None = None) -> Release[TableT]:
        """Return the release, improved by tables that are public, such as last year's. This costs no privacy.

        A table that is not public breaks the promise: its rows may be among the synthetic rows as they are.
        Its rows are weighted until they have the released counts, and a share of the synthetic rows is drawn
        from them. The released answers decide how large the share is. If the public table is far from
        them, it is 0, and the release stays as it is. ``ledger_.public_inputs`` says which.

        Linked tables are linked by their keys, as the private ones are. Each is judged on its own. Only rows
        of the table without a parent are drawn as they are. Those of the other tables improve the counts: of
        their columns, and of what links them to the rows above and before.

        Parameters
        ----------
        tables : pandas, polars or pyarrow table, or path
            It may lack columns. Rows with values that the schema does not have are left out. Linked tables
            are given as to `fit`, by their names or in a folder. Some may be lacking, and rows that lead to
            nobody are left out. For an earlier release see `with_since`.
        rows : bool
            With False no synthetic row is drawn from the public rows, which improve the counts alone.
        target : str, optional
            The column to be predicted. A public table that lacks it improves the counts alone: a target
            that is added to its rows can be predicted less well.

        Raises
        ------
        InputError
            If the tables have no column of the release or cells of other types, a linked table lacks a column
            of keys, or the target is no column to be synthesised; if they are a release.
        """
        check_abilities(self.kinds, {"target": target})
        if not isinstance(tables, PublicTables):  # `fit` checked its own before
            if target is not None:
                self._root.codec.schema.check_coded("target", target)
            schemas = {name: model.codec.schema for name, model in self.tables.items()}
            tables = PublicTables.read(tables, self.database, schemas)
            tables.check({name: model.codec for name, model in self.tables.items()})
        return replace(self, tables=tables.improve(self.tables, rows=rows, target=target))

    def with_since(
        self, since: Any, *, disjoint: bool = False, rows: bool = True, target: str | None = None
    ) -> Release[TableT]:
        """Return the release, improved by earlier releases of a table that grows.

        Rows drawn from them serve as the public table of `with_public`. The synthetic rows then rest on all
        these releases, so their promises add up: ``ledger_.over_time`` is the promise of all together.

        Parameters
        ----------
        since : Release, path of a saved one, or list of them
            Each may rest on earlier ones itself, which count once.
        disjoint : bool
            Your statement that nobody in the table of this release is in an earlier one, be it that of a
            release given or of one on which it rests; and that nobody is in the tables of two releases given.
            Then the promises do not add up, and the largest counts. It cannot be checked.
        rows, target : optional
            See `with_public`.

        Raises
        ------
        InputError
            If the promise of one of the releases is not known, or they protect others than this one does.
        """
        earlier, ledger = EarlierReleases.read(since), self.ledger
        refuse_promise_apart("this release", ledger, f"leave out {spelled('since')}")
        earlier.check(ledger.protects, ledger.promised_delta, private=ledger.private)
        if target is not None:
            self._root.codec.schema.check_coded("target", target)
        tables = earlier.drawn(self.database)
        tables.check({name: model.codec for name, model in self.tables.items()})
        resting = self.with_ledger(earlier.before(ledger, disjoint=disjoint))
        return resting.with_public(tables, rows=rows, target=target)

    @property
    def single(self) -> TableModel | None:
        """The model of the one table that was given without a database; None if there was a database."""
        return None if self.database.single is None else self.tables[self.database.single]

    @property
    def is_linked(self) -> bool:
        """Whether a sample has rows of several tables: rows depend on rows of another table."""
        return self.database.is_linked

    def table(self, purpose: str = "this") -> TableModel:
        """Return the model of the one table; refuse a `purpose` if there are several."""
        if (model := self.single) is None:
            raise InputError(
                f"{purpose} is for one table, and the model has several: in Python, load(path).sample()"
                " returns all, and load(path).tables[...] is the model of one"
            )
        return model

    @property
    def about(self) -> About | None:
        """The publisher's words on the table, or on all tables; None if the schema has none."""
        return self.database.about if self.single is None else self.codec.schema.about

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of run that it comes from, as `abilities` calls them."""
        return self.database.kinds

    @property
    def codec(self) -> Codec:
        """The codec of the one table: names, types and dtypes of its columns."""
        return self.table("codec").codec

    @property
    def fitted(self) -> Fitted:
        """The tables of counts from which the rows of the one table are made."""
        return self.table("fitted").fitted

    @property
    def _root(self) -> TableModel:
        return self.tables[self.database.root]

    @cached_property
    def linked_rows(self) -> LinkedRows:
        """What makes the rows of linked tables."""
        return LinkedRows(self.database, self.tables)

    def __repr__(self) -> str:
        shapes = []
        for table in self.database.shown:
            model, name = self.tables[table], self.database.shown_name(table)
            subject = f"{name} with" if name else f"{plural(len(model.codec.domain), 'column')},"
            shapes.append(f"{subject} about {plural(model.fitted.total, 'row')}")
        return f"<Release: {', '.join(shapes)}, {self._promise}>"

    @property
    def _promise(self) -> str:
        ledger = self.ledger
        if ledger.elsewhere is not None:
            return "measured elsewhere"
        if not ledger.private:
            return "NOT PRIVATE"
        promise = f"epsilon {ledger.promised_epsilon:g} at delta {ledger.promised_delta:g}"
        return ", ".join([promise, *over_time_lines(ledger)])

    def _repr_html_(self) -> str:
        return html("Release", [repr(self).strip("<>")], self.ledger._repr_html_())

    def sample(
        self,
        n: int | None = None,
        *,
        given: Any = None,
        balance: str | None = None,
        population: bool = False,
        seed: int | None = None,
        progress: Progress | None = None,
    ) -> TableT:
        """Return a synthetic table of the same type as the private one. This costs no further privacy.

        Parameters
        ----------
        n : int, optional
            Number of rows, from 0 up. Default: the number that known totals count, or else the private
            estimate of the table's row count. By default rows have known totals exactly. For another number
            totals are scaled, and rounded to within 1 where whole numbers allow it.
        given : mapping of a column to a value, range or list, str, or data frame, optional
            In a mapping, what holds for all rows: ``{"sex": "Female"}`` a value, ``{"age": (30, 40)}`` a
            range with both ends, either of which may be None, ``{"job": ["clerk", "cook"]}`` any of several
            values (also a set, array, Series or Index), ``{"age": None}`` a missing cell. Values in a range
            or list are as frequent as in the release. Text is a condition, ``"age >= 65"``. A data frame of
            pandas, polars or pyarrow has a value for each row; its missing cells are filled in. Of linked
            tables it is about the table without a parent; of one table whose rows belong to persons, about
            columns that are the same in all rows of one.
        balance : str, optional
            A column of listed values, or of at most 1,000 different numbers, each drawn equally often. Those
            with no row in the release are left out; an `AbsentWarning` names them.
        population : bool
            Draw rows of the population, in proportion to their weights, and leave the column of weights out.
            The table then needs no weights. A row of a large weight occurs several times. Default: rows of
            the sample, with their weights.
        seed : int, optional
            Makes the sample repeatable. Sampling adds no noise, so privacy is the same.
        progress : callable, optional
            Called as ``progress(stage, done, total)``.

        Raises
        ------
        InputError
            If `n` or `seed` is not a whole number of at least 0, no row can have the given values, or there
            is no `n` and the private estimate is mostly noise (`too_little_signal`).

        Warns
        -----
        DisagreementWarning
            If the rows differ from the release by more than chance: `Accuracy.agreement` lists where. Rows
            with given values or balanced classes are not compared, nor fewer than 100.
        TotalsWarning
            If rows miss known totals, because no row was found in their cells that keeps the constraints.
            Rows with given values or balanced classes never have totals.
        """
        check_abilities(self.kinds, {"given": given, "balance": balance, "population": population})
        if population:
            check_abilities([POPULATION], {"given": given, "balance": balance})
            model = self._root
            return model.form.cast(model.population(n, seed, progress), model.codec.schema)
        if not self.is_linked:
            model = self._root
            frame = model.frame(n, given=given, balance=balance, seed=seed, progress=progress)
            return model.form.cast(frame, model.codec.schema)
        self._check_given(given)
        return self.published(self._compared_rows(n, given, seed, progress))

    def _compared_rows(
        self, n: int | None, conditions: Any, seed: int | None, progress: Progress | None
    ) -> Rows:
        """Return the rows of linked tables; warn if they differ from the release and no cell is given."""
        rows = self.linked_rows.sample(n, conditions, seed, progress or no_progress)
        if conditions is None:
            warn_disagreements(in_words(self.database, agreements(self.linked_rows, rows)))
        return rows

    @property
    def not_given(self) -> dict[str, str]:
        """The columns of linked tables that `sample` cannot be given, each with the reason."""
        if self.single is not None:
            return {}
        root, words = self.database.root, dict[str, str]()
        for table, model in self.tables.items():
            columns = list(model.codec.schema.coded)
            reason = (
                f"it is a column of {table!r}, and only those of {root!r} can be given: sample without it,"
                " and keep the rows that have it"
            )
            if table == root:
                words |= {f"{root}.{column}": f"write {column!r}, without its table" for column in columns}
            else:
                words |= dict.fromkeys([*columns, *(f"{table}.{column}" for column in columns)], reason)
        return {name: reason for name, reason in words.items() if name not in self.tables[root].codec.names}

    def _check_given(self, conditions: Any) -> None:
        """Refuse given cells of columns that differ from row to row of a person, or of tables below."""
        if (rows := self.single) is None:
            for column in conditions if isinstance(conditions, Mapping) else ():
                if column in self.not_given:
                    raise InputError(f"given: {safe_repr(column)}: {self.not_given[column]}")
            return
        if isinstance(conditions, str):
            of_persons = self.tables[self.database.root].codec.schema.coded
            columns = {**of_persons, **rows.codec.schema.coded, **rows.computed_above}
            with about("given"):
                conditions = condition_as_given(columns, conditions)
        for column in conditions if isinstance(conditions, Mapping) else ():
            if column in rows.codec.names or column in rows.computed_above:
                constant = same_in_all_rows(self.database, self.database.shown[0])
                names = ", ".join(map(repr, constant)) or "none"
                computed = f", as {rows.formulas[column]} says" if column in rows.formulas else ""
                raise InputError(
                    f"given: {column!r} may differ from row to row of a person{computed}: give columns or"
                    f" sums that are constant ({names})"
                )

    def published(self, rows: Rows) -> TableT:
        """Return the tables with their keys, and the look-up tables; or the one table."""
        tables = {name: self.linked_rows.published(name, rows)[0] for name in self.database.shown}
        synthetic: TableT = self.database.without_names(tables | self.linked_rows.lookups)
        return synthetic

    def sample_blocks(
        self, n: int | None = None, *, seed: int | None = None, progress: Progress | None = None
    ) -> Iterator[TableT]:
        """Yield the table of `sample` in blocks of about 100,000 rows. All together are about as accurate.

        Rows of persons that belong together come in one block.
        """
        model = self.table("sample_blocks")
        if self.is_linked:
            return iter([self.sample(n, seed=seed, progress=progress)])
        blocks = model.with_warning(model.blocks(n, seed, progress))
        return (model.form.cast(block, model.codec.schema) for block in blocks)

    def sample_to(
        self,
        path: str | PathLike[str],
        n: int | None = None,
        *,
        seed: int | None = None,
        excel_safe: bool = False,
        progress: Progress | None = None,
    ) -> tuple[int, int]:
        """Write the table of `sample` to a file, the whole or none; return its numbers of rows and columns.

        Parameters
        ----------
        path : str or path
            Ends in .csv, .csv.gz, .parquet, .xlsx, .dta, .sav, .duckdb or .sqlite. A table in a database or
            workbook is ``out.duckdb::orders``.
        n, seed, progress : optional
            See `sample`.
        excel_safe : bool, optional
            In a CSV, put an apostrophe before text that a spreadsheet would run as a formula: text that
            begins with ``=``, ``+``, ``-``, ``@``, a tab or a line end. This changes values.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        model, blocks = self.table("sample_to"), self.sample_blocks(n, seed=seed, progress=progress)
        return write_blocks(blocks, path, model.codec.schema, model.form, excel_safe=excel_safe)

    def sample_into(
        self,
        path: str | PathLike[str],
        n: int | None = None,
        *,
        given: Any = None,
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
        n, given, seed, excel_safe, progress : optional
            See `sample` and `sample_to`.
        """
        check_for_tables(path)
        rows, tables = self._compared_rows(n, given, seed, progress), dict[str, Any]()
        for name in self.tables:
            table, schema, form = self.linked_rows.published(name, rows)
            tables[name] = table, schema, form, declared_table(name, self.database, schema.columns)
        for name, table in self.linked_rows.lookups.items():
            form = self.database.tables[name].public.form
            tables[name] = table, None, form, declared_table(name, self.database, ())
        return write_tables(tables, path, ending, excel_safe=excel_safe)

    def draws(
        self, m: int, n: int | None = None, *, seed: int | None = None, progress: Progress | None = None
    ) -> Draws:
        """Return `m` samples that differ as the noise does. This costs no further privacy.

        Each is a table, or several linked ones, that the private data could be, given the noisy answers. Pool
        what is estimated from each with `privsyn.pool` or `privsyn.pooled`. The tables are made when they are
        asked for.

        Parameters
        ----------
        m : int
            Number of samples, at least 2. Use about 20.
        n, seed, progress : optional
            See `sample`.
        """
        return Draws(self, m, n, seed, progress)

    def absent(self, column: str) -> tuple[Any, ...]:
        """Return the listed values of a column with no row in the release: no sample has them."""
        return self.table("absent").absent(column)

    @property
    def too_little_signal(self) -> str | None:
        """Say why no table is made by default: its number of rows is mostly noise. None if it is not.

        It follows from released counts. A table that respondents randomised has a known number of rows. The
        caller vouches for counts that were measured elsewhere. Of linked tables the one without a parent
        decides. A further table whose number of rows is mostly noise is made, and its losses and its outlook
        say so: the others are no worse for it.
        """
        return self._root.too_little_signal

    @property
    def estimated_rows(self) -> int:
        """The private estimate of the number of rows; of linked tables, of the one without a parent."""
        return self._root.estimated_rows

    @cached_property
    def accuracy_(self) -> Accuracy:
        """Expected errors of all measurements, and intervals for counts. They cost no privacy."""
        return Accuracy({name: model.accuracy_ for name, model in self.tables.items()}, self.database)

    @overload
    def ask(self, question: str, *, by: None = None) -> Answer: ...
    @overload
    def ask(self, question: str, *, by: str) -> tuple[Answer, ...]: ...
    def ask(self, question: str, *, by: str | None = None) -> Answer | tuple[Answer, ...]:
        """Answer a question in words from released answers alone, with a verdict. This costs no privacy.

        Parameters
        ----------
        question : str
            ``share of CONDITION [among CONDITION]``, ``number of CONDITION``, ``mean of COLUMN [among
            CONDITION]``, ``median of COLUMN`` or ``correlation of COLUMN and COLUMN``, such as ``"share of
            severe among age >= 65"``. Conditions are those of `Accuracy.share`; a column of True and False
            alone means True. Names with spaces are put in backticks. ``weighted share of`` and ``weighted
            mean of`` count each row by its weight, a column of kind `Weight`; all else is about the rows of
            the sample. With several tables it begins with one: ``"visits: mean of days"``.
        by : str, optional
            A column of the same table, or of a table above it, as in ``"patients: sex"``. A share or a mean
            is answered for each of its values, or for each quarter of its numbers.

        Returns
        -------
        Answer, or with `by` a tuple of them
            The estimate, its 95 % interval, a verdict, and what synthetic rows and independent columns give.

        Raises
        ------
        InputError
            If it is no such question, or names what the schema does not have.
        """
        return self._answers.answer(question) if by is None else self._answers.answers_by(question, by)

    def place_levels(self) -> tuple[PlaceLevel, ...]:
        """Say at which level of each hierarchy of places (`Within`) each other column differs.

        It follows from released answers alone and costs no privacy. ``ask(question, by="place")`` gives a
        table by place, with intervals.

        Returns
        -------
        tuple of PlaceLevel
            One for each hierarchy and each other column of its table; none without a hierarchy.
        """
        return tuple(level for model in self.tables.values() for level in levels_of_places(model))

    @cached_property
    def _answers(self) -> Answers:
        return Answers(self.database, self.tables, self.accuracy_)

    def drift(self, rows: Any) -> pd.DataFrame:
        """Compare new rows with the private table, by its released answers: NOT PRIVATE, it reads `rows`.

        It answers whether new rows, such as last week's, may still come from the population of which the
        private table was a sample. The private table is not read, and no epsilon is spent. All rows are taken
        to be independent of each other, and not to be those of the private table.

        Parameters
        ----------
        rows : pandas, polars or pyarrow table, or path
            New rows with the dtypes of a sample. Columns that are absent are not compared, nor are columns
            that the release does not have.

        Returns
        -------
        pandas.DataFrame
            A line for each column and each measured set of ``columns``, the smallest ``p_value`` first;
            ``where`` they differ most, and the share of such cells in the ``rows`` and, with its noise, in
            the ``release``. Without drift the smallest p-value is below 0.01 with a probability of at most
            1 %. See docs/engineer.md for how often it was.

        Raises
        ------
        InputError
            If the release has several tables or persons with many rows, or cells are of other types.
        """
        return self.table("drift").accuracy_.drift(rows)

    @property
    def not_found(self) -> tuple[str, ...]:
        """The columns, each with its table if there are several, of which nothing exceeded the noise."""
        return self.accuracy_.not_found

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """What the run did to each column, the largest share of lost cells first. It costs no privacy."""
        without_rows = {
            f"{self.database.shown_column(table, column)}": (table, summary.table)
            for table, declared in self.database.tables.items()
            for column, summary in declared.derive.items()
        }
        paths = {  # the column that lasts has the same losses
            self.database.shown_column(str(self.database.tables[child].parent), column)
            for child in self.database.below
            for column in of_lasting(self.database, child)
        }
        return in_order(
            of_rows_without(loss, *without_rows[loss.column]) if loss.column in without_rows else loss
            for model in self.tables.values()
            for loss in model.losses
            if loss.column not in paths
        )

    @property
    def losses_(self) -> tuple[Loss, ...]:
        """The losses, by the name that they have in a fitted model."""
        return self.losses

    def outlook(self, target: str | None = None) -> str:
        """Return one sentence on how good the synthetic rows are likely to be, and what would help.

        It names single columns, relationships between columns and, if there is a `target`, a model of it. It
        follows from released counts, so it costs no privacy. See docs/epsilon.md for how often it was right.
        """
        return self.table("outlook").outlook(target)

    def outlooks(self, target: str | None = None) -> dict[str, str]:
        """Return the sentence of `outlook` for each table."""
        return {name: self.tables[name].outlook(target) for name in self.database.shown}

    def save(self, path: str | PathLike[str] | IO[bytes]) -> None:
        """Write the release to a file, whole or not at all, after reading it back; see `file_format`.

        Parameters
        ----------
        path : path, URL such as ``s3://bucket/people.privsyn``, or file open for writing bytes
            A URL needs fsspec (extra ``fsspec``), and the package for its storage, such as s3fs.

        Raises
        ------
        InputError
            If the file cannot be written, or cannot hold the type of a listed value.
        """
        write_model(self.packed(), path)

    def packed(self) -> bytes:
        """Return the bytes of the file. The same release gives the same bytes."""
        return pack(self.database, self.tables)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the saved file, in hexadecimal: two releases with one digest are the same."""
        return sha256(self.packed()).hexdigest()


def load(path: str | PathLike[str] | IO[bytes]) -> Release[Any]:
    """Read a release that `save` wrote; an `InputError` if the file is anything else.

    Parameters
    ----------
    path : path, URL such as ``s3://bucket/people.privsyn``, or file open for reading bytes
        Or the name of a published model, such as ``"adult"``: `privsyn gallery` lists them.
    """
    return Release(*read_model(path))
