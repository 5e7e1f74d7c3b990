"""Release: the result of `fit`, all of which may be published. ReleasedModel: a model that has one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec

import numpy as np

from privsyn.arguments import check_whole
from privsyn.errors import InputError, not_found_in, plural, warn_absent, warn_disagreements
from privsyn.inference.fitted import Fitted
from privsyn.marginals.domain import Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.methods.methods import Method
from privsyn.notebook import html
from privsyn.private.discovery import bounds_noise
from privsyn.private.ledger import Ledger
from privsyn.progress import Progress, no_progress, with_progress
from privsyn.release.accuracy import Accuracy
from privsyn.release.agreement import Agreement
from privsyn.release.computed import released_weights
from privsyn.release.conditional import absent, balanced, completed
from privsyn.release.draws.draws import Draws, frames_of
from privsyn.release.given import Given, read_given
from privsyn.release.losses import Loss, losses_of
from privsyn.release.outlook import Outlook
from privsyn.release.pool import Pool
from privsyn.release.saved.file_format import Parts, pack, write_model
from privsyn.synthesis.synthesise import ENOUGH, block_ends, in_blocks
from privsyn.table.codec.codec import Codec
from privsyn.table.io.output_type import PANDAS, OutputType, without_category
from privsyn.table.io.write import stacked, write_blocks
from privsyn.table.kinds.categorical import OTHER, Categorical

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeVar  # every type checker has it; it is not needed at run time

    TableT = TypeVar("TableT", default=pd.DataFrame)  # the type of the private and the synthetic table
else:
    from typing import TypeVar

    TableT = TypeVar("TableT")


POOL = 50_000
"""Most records in which `sample` searches for the given values."""


@dataclass(frozen=True, eq=False, repr=False)
class Release(Generic[TableT]):
    """A fitted model: consistent tables of noisy counts, and the ledger of their cost.

    Parameters
    ----------
    codec : Codec
        Public: names, types and dtypes of the columns.
    fitted : Fitted
        The tables of counts from which records are made.
    ledger : Ledger
    method : Method
        The algorithm that makes the records.
    form : OutputType
        Public: the type of the private table. Synthetic tables have the same type.
    noted : tuple of Loss
        Losses that only `fit` could know, from released answers and public facts.
    table : str, optional
        Its name among linked tables, which stands before its columns in their ledger.
    """

    codec: Codec
    fitted: Fitted
    ledger: Ledger
    method: Method
    form: OutputType = PANDAS
    noted: tuple[Loss, ...] = ()
    table: str | None = None

    def __repr__(self) -> str:
        promise = f"epsilon {self.ledger.promised_epsilon:g} at delta {self.ledger.promised_delta:g}"
        kept = promise if self.ledger.private else "NOT PRIVATE"
        kept = kept if self.ledger.elsewhere is None else "measured elsewhere"
        shape = f"{plural(len(self.codec.domain), 'column')}, about {plural(self.fitted.total, 'row')}"
        return f"<Release: {shape}, {kept}>"

    def _repr_html_(self) -> str:
        return html("Release", [repr(self).strip("<>")], self.ledger._repr_html_())

    def sample(
        self,
        n: int | None = None,
        *,
        given: Any = None,
        balance: str | None = None,
        seed: int | None = None,
        progress: Progress | None = None,
    ) -> TableT:
        """Return a synthetic table of the same type as the private one. This costs no further privacy.

        Parameters
        ----------
        n : int, optional
            Number of rows, from 0 up. Default: the private estimate of the table's row count.
        given : mapping of a column to a value, range or list, str, or data frame, optional
            In a mapping, what holds for all rows: ``{"sex": "Female"}`` a value, ``{"age": (30, 40)}`` a
            range with both ends, either of which may be None, ``{"job": ["clerk", "cook"]}`` any of several
            values (also a set, array, Series or Index), ``{"age": None}`` a missing cell. Values in a range
            or list are as frequent as in the release. Text is a condition, ``"age >= 65"``. A data frame of
            pandas, polars or pyarrow has a value for each row; its missing cells are filled in.
        balance : str, optional
            A column of listed values, or of at most 1,000 different numbers, each drawn equally often. Those
            with no row in the release are left out; an `AbsentWarning` names them.
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
        """
        if balance is not None:
            self.codec.schema.check_coded("balance", balance)
        if given is None and balance is None:
            frame = stacked(self._with_warning(self.blocks(n, seed, progress)))
        else:
            frame = self._completed(n, given, balance, seed, progress)
        return self.form.cast(frame, self.codec.schema)

    def sample_blocks(
        self, n: int | None = None, *, seed: int | None = None, progress: Progress | None = None
    ) -> Iterator[TableT]:
        """Yield the table of `sample` in blocks of about 100,000 rows. All together are about as accurate."""
        blocks = self._with_warning(self.blocks(n, seed, progress))
        return (self.form.cast(block, self.codec.schema) for block in blocks)

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
        blocks = self.sample_blocks(n, seed=seed, progress=progress)
        return write_blocks(blocks, path, self.codec.schema, self.form, excel_safe=excel_safe)

    @property
    def is_mostly_noise(self) -> bool:
        """Whether the number of rows is; not if it is known, or somebody else vouches for the counts."""
        ledger = self.ledger
        return not ledger.all_local and ledger.elsewhere is None and self.fitted.is_mostly_noise

    @property
    def too_little_signal(self) -> str | None:
        """Say why no table is made by default: its number of rows is mostly noise. None if it is not.

        It follows from released counts. A table that respondents randomised has a known number of rows.
        The caller vouches for counts that were measured elsewhere.
        """
        if not self.is_mostly_noise:
            return None
        rows, error = self.fitted.total, self.fitted.noise_of_total
        return (
            f"too little signal: about {plural(rows, 'row')}, give or take {error:,.0f}: mostly noise. Raise"
            " epsilon, or take a table of more rows"
        )

    def number_of_rows(self, n: int | None) -> int:
        """Return `n`, or else the private estimate; an `InputError` if that is mostly noise."""
        if n is not None:
            return check_whole("n", n)
        if (why := self.too_little_signal) is not None:
            raise InputError(f"{why}. To look at the noise all the same, say how many rows: n (--rows)")
        return self.estimated_rows

    @property
    def estimated_rows(self) -> int:
        """The private estimate of the table's number of rows."""
        return round(self.fitted.total)

    def blocks(self, n: int | None, seed: int | None, progress: Progress | None) -> Iterator[pd.DataFrame]:
        """Yield the table of `sample` in blocks of rows, as pandas data frames."""
        rows = self.number_of_rows(n)
        seeds = np.random.SeedSequence(None if seed is None else check_whole("seed", seed))
        tables = self.fitted.one_ways + self._tables
        ends = block_ends(rows, len(self.codec.domain))
        rng = np.random.default_rng(seeds)
        if len(ends) == 1:
            enough = max(rows, min(round(self.fitted.total), ENOUGH))
            yield self._decoded(self._records(tables, enough, rng, progress), rng, 0, rows)
            return
        records = in_blocks(tables, ends, self._records, seeds)
        blocks = with_progress(records, "synthesising", len(ends), progress or no_progress)
        for start, block in zip((0, *ends), blocks, strict=False):
            yield self._decoded(block, rng, start)

    def _with_warning(self, blocks: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Yield the blocks of a table, and warn after the last if the rows differ from the release."""
        agreement = self._new_agreement()
        for block in blocks:
            agreement.add(block)
            yield block
        warn_disagreements(agreement.disagreements())

    def _new_agreement(self) -> Agreement:
        return Agreement(self.codec, self.fitted, self.accuracy_.not_found)

    def _completed(
        self, n: int | None, given: Any, balance: str | None, seed: int | None, progress: Progress | None
    ) -> pd.DataFrame:
        """Return rows that have the given values, with balanced classes if asked."""
        rows = self.number_of_rows(n)
        rng = np.random.default_rng(None if seed is None else check_whole("seed", seed))
        asked = Given() if given is None else read_given(self.codec, given, n, rows)
        numbers, spans = dict(asked.numbers), asked.spans
        rows = next((len(cells) for cells in numbers.values()), rows)
        if balance is not None:
            if balance in {*numbers, *spans}:
                raise InputError(f"balance {balance!r}: this column is given")
            numbers[balance] = balanced(self.codec, self.fitted, balance, rows, rng)
            warn_absent(balance, self.absent(balance))
        if not rows or not (numbers or spans):
            return stacked(self.blocks(rows, seed, progress))
        enough = max(min(round(self.fitted.total), POOL), ENOUGH)
        pool = Pool(self.codec, self.fitted, self._tables, self.records(enough, rng, progress), rng)
        return self.with_used_categories(completed(pool, numbers, spans, rows, asked.missing))

    def absent(self, column: str) -> tuple[Any, ...]:
        """Return the listed values of a column with no row in the release: no sample has them."""
        self.codec.schema.check_coded("absent", column)
        return absent(self.codec, self.fitted, column)

    @cached_property
    def zeros(self) -> StructuralZeros:
        """The structural zeros of the merged codes, which the constraints imply."""
        return self.codec.possible(self.fitted.merging)

    @property
    def _tables(self) -> tuple[Marginal, ...]:
        """The marginals, and tables for structural zeros that no marginal covers."""
        fitted = self.fitted
        return (*fitted.marginals, *self.zeros.missing_from(fitted.marginals, fitted.one_ways))

    def records(self, n: int, rng: np.random.Generator, progress: Progress | None = None) -> Records:
        """Return `n` records in merged codes."""
        return self._records(self.fitted.one_ways + self._tables, n, rng, progress)

    def _records(
        self, tables: tuple[Marginal, ...], n: int, rng: np.random.Generator, progress: Progress | None = None
    ) -> Records:
        """Make `n` records, in merged codes, from the one-ways and the other tables."""
        domain, one_ways = self.fitted.merging.merged, tables[: len(self.codec.domain)]
        return self.method.synthesise(
            domain, one_ways, tables[len(one_ways) :], n, rng, progress=progress, zeros=self.zeros
        )

    def _decoded(
        self, records: Records, rng: np.random.Generator, start: int, rows: int | None = None
    ) -> pd.DataFrame:
        """Return all records, or `rows` of them, as a table in random order; `start` records precede them."""
        chosen = Records(records.domain, records.codes[rng.permutation(len(records))[:rows]])
        restored = self.fitted.merging.restore(chosen, rng)
        return self.with_used_categories(self.codec.decode(restored, rng, self.fitted.merging, start))

    def with_used_categories(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows whose categories lack the value for all others, if the release has no row of it."""
        for name, column in self.codec.schema.coded.items():
            dtype = frame[name].dtype if name in frame else None
            if not isinstance(column, Categorical) or column.other != OTHER or dtype != "category":
                continue
            counts = released_weights(self.codec, self.fitted, name)
            if counts[column.listed.index(OTHER)] == 0 and not (frame[name] == OTHER).any():
                frame[name] = without_category(frame[name], OTHER)
        return frame

    def compared(self, n: int, seed: int) -> Agreement:
        """Draw `n` rows and compare them with the release. This costs no privacy."""
        rng, merging, agreement = np.random.default_rng(seed), self.fitted.merging, self._new_agreement()
        numbers = self.codec.numbers(merging.restore(self.records(n, rng), rng), rng, merging)
        codes = [cells.merged_codes(numbers[name]) for name, cells in self.codec.cells(merging).items()]
        agreement.add_records(Records(merging.merged, np.stack(codes, axis=1)))
        return agreement

    def draws(
        self, m: int, n: int | None = None, *, seed: int | None = None, progress: Progress | None = None
    ) -> Draws:
        """Return `m` synthetic tables that differ as the noise does. This costs no further privacy.

        Each is a table that the private one could be, given the noisy answers. Pool what is estimated from
        each with `privsyn.pool` or `privsyn.pooled`. The tables are made when they are asked for.

        Parameters
        ----------
        m : int
            Number of tables, at least 2. Use about 20.
        n, seed, progress : optional
            See `sample`.
        """
        return Draws(self, m, n, seed, progress)

    @property
    def ledger_(self) -> Ledger:
        """The ledger, by the name that it has in a fitted model."""
        return self.ledger

    def with_ledger(self, ledger: Ledger) -> Release[TableT]:
        """Return the release with another ledger."""
        return replace(self, ledger=ledger)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of run that it comes from, as `abilities` calls them."""
        return ()

    @property
    def of_one_table(self) -> Release[TableT]:
        """The release itself; see `LinkedRelease.of_one_table`."""
        return self

    @cached_property
    def accuracy_(self) -> Accuracy:
        """Expected errors of all measurements, and intervals for counts. They cost no privacy."""
        laplace = self.ledger.accounting == "pure" and not self.ledger.all_local
        not_found = not_found_in(self.ledger.public_inputs, self.codec.names, self.table)
        noise = bounds_noise(self.ledger, self.codec.names, self.table)
        draw = partial(frames_of, self)
        return Accuracy(self.codec, self.fitted, laplace, draw, not_found, bounds_noise=noise)

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """What the run did to each column, the largest share of lost cells first. It costs no privacy."""
        return losses_of(self)

    @property
    def losses_(self) -> tuple[Loss, ...]:
        """The losses, by the name that they have in a fitted model."""
        return self.losses

    def outlook(self, target: str | None = None) -> str:
        """Return one sentence on how good the synthetic rows are likely to be, and what would help.

        It names single columns, relationships between columns and, if there is a `target`, a model of it. It
        follows from released counts, so it costs no privacy. See docs/epsilon.md for how often it was right.
        """
        if target is not None:
            self.codec.schema.check_coded("target", target)
        return str(Outlook.of(self, target))

    def save(self, path: str | PathLike[str] | IO[bytes]) -> None:
        """Write the release to a file, whole or not at all, after reading it back; see `file_format`.

        Parameters
        ----------
        path : path, or file open for writing bytes

        Raises
        ------
        InputError
            If the file cannot be written, or cannot hold the type of a listed value.
        """
        write_model(self.packed(), path)

    def packed(self) -> bytes:
        """Return the bytes of the file. The same release gives the same bytes."""
        return pack(Parts(self.codec, self.fitted, self.ledger, self.method, self.form, self.noted))


P = ParamSpec("P")
R = TypeVar("R")


def _of_release(
    method: Callable[Concatenate[Release[TableT], P], R],
) -> Callable[Concatenate[ReleasedModel[TableT], P], R]:
    """Return a method of `Release` as one of the model, whose seed and progress are the defaults."""

    @wraps(method)
    def of_model(self: ReleasedModel[TableT], /, *args: P.args, **options: P.kwargs) -> R:
        for name in ("seed", "progress"):
            if options.get(name) is None:
                options[name] = getattr(self, name)
        return getattr(self._fitted, method.__name__)(*args, **options)

    return of_model


class ReleasedModel(Generic[TableT]):
    """A model whose `fit` makes a release; base of `PrivSyn`."""

    release_: Any  # a Release, or a LinkedRelease if rows are linked
    seed: int | None
    progress: Progress | None

    sample = _of_release(Release.sample)
    """Return a synthetic table; see `Release.sample`. The seed of the model is the default."""

    sample_blocks = _of_release(Release.sample_blocks)
    """Yield the same table in blocks of rows; see `Release.sample_blocks`."""

    sample_to = _of_release(Release.sample_to)
    """Write the same table to a file; see `Release.sample_to`."""

    draws = _of_release(Release.draws)
    """Return several synthetic tables that carry the noise; see `Release.draws`."""

    def save(self, path: str | PathLike[str] | IO[bytes]) -> None:
        """Write the release to one file; see `Release.save`."""
        self._fitted.save(path)

    @property
    def ledger_(self) -> Ledger:
        """The ledger: all private queries and their cost."""
        ledger: Ledger = self._fitted.ledger
        return ledger

    @property
    def losses_(self) -> tuple[Loss, ...]:
        """What the run did to each column, the largest share of lost cells first; see `Release.losses`."""
        losses: tuple[Loss, ...] = self._fitted.losses
        return losses

    @property
    def accuracy_(self) -> Any:
        """Error bars of the release, an `Accuracy`; of each table, if there are several."""
        return self._fitted.accuracy_

    @property
    def _fitted(self) -> Any:
        if not hasattr(self, "release_"):
            raise InputError("the model is not fitted: call fit(table) first")
        return self.release_
