"""FittedTable: what was learnt of one table, and how rows are made from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.arguments import check_rows, check_whole
from privsyn.errors import (
    InputError,
    not_found_in,
    plural,
    spelled,
    warn_absent,
    warn_disagreements,
    warn_missed_totals,
)
from privsyn.inference.fitted import Fitted
from privsyn.inference.rare_values import PooledValues
from privsyn.marginals.domain import Floats, Ints, Records
from privsyn.marginals.known_totals import NO_TOTALS
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.marginals.tolerances import TINY_SHARE
from privsyn.methods.methods import Method
from privsyn.private.find_values import bounds_noise, count_variance
from privsyn.private.run_ledger import RunLedger
from privsyn.progress import Progress, no_progress, with_progress
from privsyn.release.accuracy.agreement import Agreement
from privsyn.release.conditional.computed_columns import released_weights
from privsyn.release.conditional.conditions import Conditions, read_given
from privsyn.release.conditional.partial_rows import absent, balanced, completed
from privsyn.release.conditional.pool import Pool
from privsyn.release.losses.kinds import BEYOND_BOUND, Loss
from privsyn.sizes import check_memory
from privsyn.synthesis.annealing import finish
from privsyn.synthesis.chains import Links
from privsyn.synthesis.synthesise import ENOUGH, block_ends, draw_by_quota, in_blocks, tree_start
from privsyn.synthesis.targets import Targets
from privsyn.synthesis.totals.junction_tree import JunctionTree
from privsyn.table.codec.codec import Codec
from privsyn.table.database.computed_above import ComputedAbove
from privsyn.table.database.database import PERSONS
from privsyn.table.io.output_type import PANDAS, OutputType, without_category
from privsyn.table.io.write import stacked
from privsyn.table.kinds.categorical import OTHER, Categorical
from privsyn.table.schema.columns import Generated
from privsyn.table.schema.condition import Condition

if TYPE_CHECKING:
    import pandas as pd

    from privsyn.table.schema.columns import Coded

SOME_ROWS = 20_000  # synthetic rows from which shares are estimated that no table of counts shows

POPULATION = 2**31  # of the seeds of a sample: those of its blocks are below

POOL = 50_000
"""Most records in which `sample` searches for the given values."""


@dataclass(frozen=True, eq=False, repr=False)
class FittedTable:
    """The model of one table of a release: consistent tables of noisy counts, from which its rows are made.

    Parameters
    ----------
    codec : Codec
        Public: names, types and dtypes of the columns.
    fitted : Fitted
        The tables of counts from which records are made.
    ledger : RunLedger
        The ledger of the release, which all its tables share.
    method : Method
        The algorithm that makes the records.
    form : OutputType
        Public: the type of the private table. Synthetic tables have the same type.
    noted : tuple of Loss
        Losses that only `fit` could know, from released answers and public facts.
    title : str
        The name of the table in the questions of the ledger. "" for the only table of a run.
    name : str
        The name that users read, before columns in losses and in what was not found. "" if the table was
        given without a database.
    links : Links, optional
        How the rows depend on rows of other tables. None for the table whose rows are the persons.
    columns : mapping of a name to a dtype
        The columns of the synthetic table in order, keys included. Of columns that are in the codec the dtype
        does not count. Empty if the table was given without a database: then all columns are in the codec.
    computed_above : mapping of a name to a column
        The columns that are computed from rows above, which the codec lacks.
    lasting : tuple of str
        The columns that seldom change along the rows of a parent.
    constant : tuple of str
        The columns that are the same in all rows of one parent. They were counted with the parents.
    formulas : mapping of a name to a ComputedAbove
        The rule of each column in `computed_above`.
    """

    codec: Codec
    fitted: Fitted
    ledger: RunLedger
    method: Method
    form: OutputType = PANDAS
    noted: tuple[Loss, ...] = ()
    title: str = ""
    name: str = ""
    links: Links | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    computed_above: Mapping[str, Coded] = field(default_factory=dict)
    lasting: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()
    formulas: Mapping[str, ComputedAbove] = field(default_factory=dict)

    def frame(
        self,
        n: int | None = None,
        *,
        given: Any = None,
        balance: str | None = None,
        seed: int | None = None,
        progress: Progress | None = None,
    ) -> pd.DataFrame:
        """Return synthetic rows, each independent of other rows, as a data frame of pandas.

        See `Release.sample` for the parameters, errors and warnings.
        """
        if balance is not None:
            self.codec.schema.check_coded("balance", balance)
        self.check_memory(n, only_whole=given is not None or balance is not None)
        if given is None and balance is None:
            return stacked(self.with_warning(self.blocks(n, seed, progress)))
        rows = self.number_of_rows(n)
        rng = np.random.default_rng(None if seed is None else check_whole("seed", seed))
        conditions = Conditions() if given is None else read_given(self.codec, given, n, rows)
        numbers, spans = dict(conditions.numbers), conditions.spans
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
        return self.with_used_categories(completed(pool, numbers, spans, rows, conditions.missing))

    def population(self, n: int | None, seed: int | None, progress: Progress | None) -> pd.DataFrame:
        """Return rows of the population: synthetic rows drawn in proportion to their weights, without these.

        They are drawn from at least `ENOUGH` rows, at equal distances along the cumulative weights. So a row
        is drawn as often as its weight says, up to 1, and a large weight more than once.
        """
        if (name := self.codec.schema.weight) is None:
            raise InputError(
                f"{spelled('population')} needs the weights of the rows: the schema of the model declares no"
                " column of kind weight"
            )
        self.check_memory(n, only_whole=True)
        rows = self.number_of_rows(n)
        pool, read = max(rows, min(round(self.fitted.total), ENOUGH), 1), 0
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(POPULATION,)))
        drawn = []
        for block in self.with_warning(self.blocks(pool, seed, progress)):
            before, read = round(rows * read / pool), read + len(block)
            number = round(rows * read / pool) - before
            ends = np.cumsum(self.codec.numbers_of(name, block))
            points = (np.arange(number) + rng.random()) * (ends[-1] / max(number, 1))
            chosen = rng.permutation(np.minimum(np.searchsorted(ends, points, "right"), len(ends) - 1))
            made = block.iloc[chosen].reset_index(drop=True)
            for column, kind in self.codec.schema.columns.items():
                if isinstance(kind, Generated) and column in made:  # no two rows have one identifier
                    made[column] = block[column].iloc[:number].reset_index(drop=True)
            drawn.append(made.drop(columns=name))
        return stacked(iter(drawn))

    def blocks(self, n: int | None, seed: int | None, progress: Progress | None) -> Iterator[pd.DataFrame]:
        """Yield the table of `sample` in blocks of rows, as pandas data frames."""
        rows = self.number_of_rows(n)
        seeds = np.random.SeedSequence(None if seed is None else check_whole("seed", seed))
        tables = self.fitted.one_ways + self._tables
        ends = block_ends(rows, len(self.codec.domain))
        rng = np.random.default_rng(seeds)
        totals = self.junction_tree.tables_of_blocks(ends, rng)
        if len(ends) == 1:
            enough = max(rows, min(round(self.fitted.total), ENOUGH))
            records = self._records(tables, enough, rng, progress)
            yield self._decoded(records, rng, 0, rows, next(totals))
            return
        records_of_blocks = in_blocks(tables, ends, self._records, seeds)
        blocks = with_progress(records_of_blocks, "synthesising", len(ends), progress or no_progress)
        for start, block, totals_of_block in zip((0, *ends), blocks, totals, strict=False):
            yield self._decoded(block, rng, start, len(block), totals_of_block)

    def with_warning(self, blocks: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Yield the blocks of a table, and warn after the last if the rows differ from the release."""
        agreement = self._new_agreement()
        for block in blocks:
            agreement.add(block)
            yield block
        warn_disagreements(agreement.disagreements())

    def _new_agreement(self) -> Agreement:
        return Agreement(self.codec, self.fitted, self.not_found)

    def absent(self, column: str) -> tuple[Any, ...]:
        """Return the listed values of a column with no row in the release: no sample has them."""
        self.codec.schema.check_coded("absent", column)
        return absent(self.codec, self.fitted, column)

    @cached_property
    def not_found(self) -> tuple[str, ...]:
        """Columns of which no value and no bound exceeded the noise: their cells are invented."""
        return not_found_in(self.ledger.public_inputs, self.codec.names, self.name)

    @property
    def unpublished(self) -> tuple[str, ...]:
        """Counted columns that no synthetic table has, such as numbers of child rows."""
        return tuple(name for name in self.codec.names if self.columns and name not in self.columns)

    @property
    def has_laplace_noise(self) -> bool:
        """Whether the noise is discrete Laplace, not Gaussian: intervals of single counts are wider."""
        return self.ledger.accounting == "pure" and not self.ledger.all_local

    @property
    def bounds_noise(self) -> dict[str, float]:
        """The noise, in rows, by which the bounds of columns were found whose bounds were found alone."""
        return bounds_noise(self.ledger, self.codec.names, self.title)

    @property
    def counted_share(self) -> float:
        """The share of the rows that are counted: those beyond the bound of a person are not."""
        lost = max((loss.share or 0.0 for loss in self.noted if loss.kind == BEYOND_BOUND), default=0.0)
        return max(1 - lost, TINY_SHARE)

    def pooled_values(self, attribute: str) -> PooledValues:
        """Return with which other values each value of an attribute was pooled.

        Neighbours on an order are joined by other rules than rare values, so none is judged alone.
        """
        merging = self.fitted.merging
        index = merging.original.names.index(attribute)
        group = merging.groups[index]
        noise = count_variance(self.ledger, attribute, self.title) / self.counted_share**2
        variance = np.full(len(group), noise)
        variance[: merging.original.ordered[index]] = 0.0
        return PooledValues(group, merging.shares[index], variance)

    def condition(self, text: str) -> Condition:
        """Return the condition that a text means, about columns that are counted, or follow from these."""
        condition = Condition.read(text, {**self.codec.schema.coded, **self.computed_above})
        self.check_not_computed_above(condition.columns)
        return condition

    def check_not_computed_above(self, columns: Collection[str]) -> None:
        """Refuse columns that are computed with rows above: no answer is about them."""
        if named := [name for name in self.computed_above if name in columns]:
            rule = self.formulas[named[0]]
            table = f"{self.name}: " if self.name else ""
            examples = [f'"{table}mean of {total}"' for total in rule.constant]
            example = f", as in {examples[0]}," if examples else ""
            raise InputError(
                f"{named[0]!r} is not decided: it is computed with columns of rows above, as {rule}, and is"
                f" not counted; ask for its parts{example} or compute it from a sample"
            )

    def some_rows(self, progress: Progress | None = None) -> pd.DataFrame:
        """Return synthetic rows from which shares are estimated that no table of counts shows."""
        return stacked(self.blocks(min(round(self.fitted.total), SOME_ROWS), 0, progress))

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
        columns = len(self.codec.domain)
        targets = Targets(tables[:columns], tables[columns:], self.zeros, self.fitted.target)
        if (public := self.fitted.public_rows) is None:
            return self.method.synthesise(targets, n, rng, progress=progress)
        rows = draw_by_quota(public.weights, round(public.share * n), rng)
        present = Records(public.records.domain, public.records.codes[rows])
        drawn = tree_start(targets, len(rows), rng, present)
        if len(present.domain) < columns:
            drawn = finish(drawn, targets, rng, still=present.domain.names)
        rest = self.method.synthesise(targets.beside(drawn, n), n - len(rows), rng, progress=progress)
        return Records(drawn.domain, np.concatenate([rest.codes, drawn.codes]))

    @cached_property
    def junction_tree(self) -> JunctionTree:
        """The cliques of the known totals, by which records in merged codes get their counts.

        `fit` found records that have them. If none are found in merged codes, rows are made without them, for
        their release is paid, and a `TotalsWarning` says so.
        """
        totals, merging = self.fitted.totals, self.fitted.merging
        try:
            tree = JunctionTree.of(totals.merge(merging), merging.merged, self.zeros)
            tree.check()
        except ValueError:
            warn_missed_totals(self.fitted.total)
            return JunctionTree.of(NO_TOTALS, merging.merged)
        return tree

    def _decoded(
        self, records: Records, rng: np.random.Generator, start: int, rows: int, totals: Sequence[Ints]
    ) -> pd.DataFrame:
        """Return `rows` of the records, with known totals, as a table in random order.

        `start` records precede them.
        """
        chosen = Records(records.domain, records.codes[rng.permutation(len(records))[:rows]])
        exact = self.junction_tree.enforce(chosen, totals, self._targets, rng)
        return self.with_used_categories(self.codec.table(self._numbers(exact, rng), rng, start))

    def _numbers(self, records: Records, rng: np.random.Generator) -> dict[str, Floats]:
        """Return the numbers of all columns of rows with these merged codes, which keep all constraints.

        A row that breaks a constraint is repaired. The listed values of columns with known totals stay, and
        their numbers stay in their groups; if the repair leaves one, all of these numbers stay as they are
        drawn. A `TotalsWarning` says if no row with the same codes keeps the constraints.
        """
        merging, names = self.fitted.merging, self.fitted.totals.attributes
        restored, cells = merging.restore(records, rng), self.codec.cells(merging)
        listed = [name for name in names if self.codec.listed(name)]
        numbers = self.codec.numbers(restored, rng, merging, still=listed)
        changed = np.full(len(records), False)
        for name, axis in zip(names, records.domain.axes(names), strict=True):
            changed |= cells[name].merged_codes(numbers[name]) != records.codes[:, axis]
        if not changed.any():
            return numbers
        try:
            return self.codec.numbers(restored, rng, merging, still=names)
        except InputError:
            warn_missed_totals(int(changed.sum()))
            return numbers

    @property
    def _targets(self) -> Targets:
        return Targets(self.fitted.one_ways, self._tables, self.zeros)

    def with_used_categories(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows whose categories lack "(other)" if no released row has this value."""
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
        tree, records = self.junction_tree, self.records(n, rng)
        records = tree.enforce(records, tree.tables_for(n, rng), self._targets, rng)
        numbers = self._numbers(records, rng)
        codes = [cells.merged_codes(numbers[name]) for name, cells in self.codec.cells(merging).items()]
        agreement.add_records(Records(merging.merged, np.stack(codes, axis=1)))
        return agreement

    @property
    def is_mostly_noise(self) -> bool:
        """Whether the number of rows is; not if it is known, or somebody else vouches for the counts."""
        ledger = self.ledger
        return not ledger.all_local and ledger.elsewhere is None and self.fitted.is_mostly_noise

    @property
    def unit(self) -> str:
        """What a row of the table is called: a person, in the table of persons that `identifiers` makes."""
        return "row" if self.name or self.title != PERSONS else "person"

    @property
    def too_little_signal(self) -> str | None:
        """Say why no rows are made by default: their number is mostly noise. None if it is not.

        It follows from released counts. A table that respondents randomised has a known number of rows.
        The caller vouches for counts that were measured elsewhere.
        """
        if not self.is_mostly_noise:
            return None
        number = plural(self.fitted.total, self.unit)
        error = self.fitted.reach_of_noise(laplace=self.has_laplace_noise)
        return (
            f"too little signal: about {number}, give or take {error:,.0f}: mostly noise. Raise epsilon, or"
            f" take a table of more {self.unit}s"
        )

    def number_of_rows(self, n: int | None) -> int:
        """Return `n`, or else the private estimate; an `InputError` if that is mostly noise."""
        if n is not None:
            return check_rows(n)
        if (why := self.too_little_signal) is not None:
            how = f"say how many {self.unit}s: n (--rows)"
            raise InputError(f"{why}. To look at the noise all the same, {how}")
        return self.estimated_rows

    def check_memory(self, n: int | None, *, only_whole: bool) -> None:
        """Refuse `n` rows that memory cannot hold, before the first is drawn.

        The message says how to write them in blocks. If they are made `only_whole`, it asks for fewer.
        """
        blocks = "write them in blocks with sample_to(path, n) (`privsyn sample`), or take sample_blocks(n)"
        if n is not None:
            rows = check_rows(n)
            alternative = "ask for fewer, and repeat with another seed" if only_whole else blocks
            check_memory(rows, rows * len(self.codec.names), alternative)

    @property
    def estimated_rows(self) -> int:
        """The private estimate of the table's number of rows."""
        return round(self.fitted.total)
