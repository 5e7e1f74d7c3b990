"""PrivSyn: settings that can be fitted, and the order of the steps from table to release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import numpy as np

from privsyn.abilities import check_abilities
from privsyn.arguments import check_rows
from privsyn.collectors.collectors import Collectors
from privsyn.errors import (
    InputError,
    LossWarning,
    NoSignalWarning,
    NotFoundWarning,
    about_losses,
    about_not_found,
    replace_errors,
    safe_repr,
)
from privsyn.estimator import Estimator
from privsyn.files import closing_files
from privsyn.methods.learning import Inquiry, table_for_tests
from privsyn.methods.ledger_of_run import columns_not_found
from privsyn.methods.methods import PUBLISHED
from privsyn.methods.paper.parameters import PAPER, Parameters, Selection
from privsyn.methods.reading import Opened
from privsyn.methods.repeated_fits import FITTED
from privsyn.methods.run_of_tables import Run
from privsyn.methods.table_of_run import LearnedTable
from privsyn.owners.owners import Owners
from privsyn.owners.party import Alone, Party
from privsyn.private.run_ledger import protects
from privsyn.private.spend import QueryLog
from privsyn.progress import READING, Progress, no_progress, one_step
from privsyn.release.acceptance.criteria import Criteria, check_accept
from privsyn.release.acceptance.judge import judge
from privsyn.release.acceptance.layout import check_testable
from privsyn.release.earlier_releases import EarlierReleases
from privsyn.release.losses.lines import lines_of_warning
from privsyn.release.public_tables import PublicTables, refuse_private
from privsyn.release.release import Release, TableT
from privsyn.release.release_of_run import release_of
from privsyn.release.released_model import ReleasedModel
from privsyn.settings import Settings
from privsyn.table.database.database import ROWS, Database
from privsyn.table.io.read_in_memory import as_frame, with_target, without_target
from privsyn.table.kinds.keys import key_in_words
from privsyn.table.schema.yaml_file import SchemaOrPath, about_file

if TYPE_CHECKING:
    import pandas as pd
    import polars

OneTable = TypeVar("OneTable")
"""The type of each of several linked tables."""


class PrivSyn(ReleasedModel[TableT], Estimator, Settings):
    """Learn a table under differential privacy and make synthetic tables like it.

    Parameters
    ----------
    epsilon : float
        Privacy budget, above 0. A smaller epsilon gives more privacy and less accuracy. It is left out only
        if the respondents randomised all columns, as ``keep`` in the schema says.
    delta : float
        From 0 to below 1, and far below one divided by the number of people. With 0 (pure epsilon) all noise
        is discrete Laplace, and the schema must list all values.
    schema : Schema, Table, Database or path of a YAML file, optional
        What is public about the columns, or about several linked tables: docs/linked.md. A Table is one table
        with rules on the rows of each person, for `identifiers`: docs/lives.md.
        Missing lists of values and bounds are found under privacy, for a part of epsilon and delta. Without a
        schema only names and dtypes are public, and a column whose name looks like an identifier
        (``customer_id``) gets generated values.
    unit : str, optional
        The column that identifies the person. All rows of a person are then protected together. Neither the
        schema nor the synthetic table contains this column. Default: each row is one person.
    rows_per_unit : int, optional
        With `unit`, the largest bound on a person's rows. The bound is chosen from noisy numbers of rows
        per person, which cost 2 % of the budget: docs/persons.md. This number is public: take it from what
        is known about such tables, not from this table. With 1 they are not asked. Default: 16.
    identifiers : bool
        With `unit`, whether the synthetic table has this column, with new identifiers. Then the rows of a
        synthetic person belong together: how many there are, and how each follows from the one before it, is
        learnt too, for a part of the budget: docs/persons.md.
    order : str, optional
        With `identifiers`, the column by which the rows of a person are in order: a time, or a number such as
        1, 2, 3. Default: they have no order.
    derive : mapping of a name to an expression, optional
        With `identifiers`, summaries of the rows of a person such as ``{"spent": "sum(price)"}``: count, sum,
        mean, min, max, first, last, or ``"ever(ward == surgery)"``. They are measured like columns of
        persons, and the rows of synthetic persons agree with them.
    target : str, optional
        A column to be predicted from the others. Tables of counts with it get more of the budget.
    important : list of pairs and triples of names, optional
        The columns whose relations matter most, as in ``[["sex", "outcome"], ["band", "price"]]``; the schema
        may name others. More of the budget goes to their counts, so all others err slightly more.
    nullable : bool
        With False no synthetic cell is missing, as if the schema said so of every column. A missing cell of
        the private table then counts as the first value listed, or as the lower bound.
    seed : int, optional
        Makes the run repeatable, including its noise, and therefore NOT PRIVATE. It is also the default seed
        of `sample`.
    method : "default" or "published"
        `PrivSyn.paper` uses the second.
    parameters : mapping of a name to a value, optional
        Parameters of the published method: see `PrivSyn.paper`.
    memory : int or str
        Bytes, or text such as "4GB": the most that the encoded rows and their counts may take together. A
        larger table is read several times. The answers do not depend on it.
    public : pandas, polars or pyarrow table, or path, optional
        A table that is public, such as last year's; one that is not public breaks the promise. As far as the
        released answers show that it is near, it improves the synthetic rows: see `Release.with_public`.
        Linked tables are given by their names, or in a folder.
    public_rows : bool
        With False no synthetic row is drawn from the public rows, which improve the counts alone; nor from
        those of earlier releases.
    totals : table, list of tables, mapping of names to tables, or path, optional
        Exact counts that are public, such as those of a census: the synthetic rows have them exactly, and
        they cost no privacy. Each is a pandas, polars or pyarrow table or the path of one, with some columns
        of the private table and one column of counts. A path may lead to a folder of such tables. See
        docs/public.md.
    since : Release, path of a saved one, or list of them, optional
        Earlier releases of a table that grows, such as those of the months before. Rows drawn from them
        improve this one, whose table has the new rows alone. Promises add up, and ``ledger_.over_time`` says
        to what: docs/composition.md.
    disjoint : bool
        With `since`, your statement that nobody in this table is in an earlier one, be it that of a release
        given or of one on which it rests; and that nobody is in the tables of two releases given. Then the
        largest promise holds for everybody. It cannot be checked.
    accept : path of a YAML file, or mapping, optional
        Criteria that the release must meet, tested under privacy for a part of the budget: docs/publisher.md.
        The verdict is in ``ledger_.acceptance``. `fit` does not fail if they are not met.
    allow_weak_privacy : bool
        Accept an epsilon above 100 or a delta above 0.001, which promise next to nothing: for experiments.
    progress : callable, optional
        Called as ``progress(stage, done, total)``. The stages of `fit` are "reading", "measuring" (with
        "finding values and bounds", if the schema leaves some open) and "estimating"; `sample` is
        "synthesising". The first call with "measuring" comes before the first question to any row. An
        exception that it raises stops the run: nothing has been asked, and no epsilon is spent. What is
        reported follows from settings, schema and released answers.

    Attributes
    ----------
    release_ : Release
        What `fit` learnt. All of it may be published.
    ledger_ : RunLedger
        The questions, their sensitivities, noise and cost.
    accuracy_ : Accuracy
        Expected errors of what was learnt, and intervals for counts.
    feature_names_in_, n_features_in_ : array of str, int
        The columns of the table, and their number.
    not_found_ : tuple of str
        Open columns whose values or bounds are not above the noise. Their cells are invented.
    counted_ : float or None
        The estimated share of the rows that were counted in columns, if a person may have several.
    losses_ : tuple of Loss
        What the run did to each column, the largest share of lost cells first: docs/schema.md.

    Raises
    ------
    InputError
        If a setting cannot work.

    References
    ----------
    Zhang et al., "PrivSyn: Differentially Private Data Synthesis", USENIX Security 2021.

    Examples
    --------
    >>> import pandas as pd
    >>> from privsyn import Categorical, Numerical, PrivSyn, Schema
    >>> people = pd.DataFrame({"age": range(20, 60), "sex": ["Female", "Male"] * 20})
    >>> schema = Schema({"age": Numerical(16, 100, integer=True), "sex": Categorical(["Female", "Male"])})
    >>> model = PrivSyn(epsilon=1.0, delta=1e-6, schema=schema).fit(people)
    >>> model.sample(3).columns.tolist()
    ['age', 'sex']
    """

    @classmethod
    def paper(
        cls,
        epsilon: float,
        delta: float = 1e-9,
        schema: SchemaOrPath | None = None,
        *,
        rounds: int = PAPER.rounds,
        step: float | Sequence[float] = PAPER.step,
        gamma: int = PAPER.gamma,
        overlap: int = PAPER.overlap,
        split: Sequence[float] = PAPER.split,
        duplication: float | Sequence[float] = PAPER.duplication,
        select: Selection = PAPER.select,
        draws: int | None = PAPER.draws,
        **settings: Any,
    ) -> Self:
        """Return a model that runs the published algorithm step by step, for experiments and comparison.

        Parameters
        ----------
        epsilon, delta, schema
            As for `PrivSyn`.
        rounds : int
            Number of gradual updates to each table, from 0 to 10,000.
        step : float or (start, decay, every)
            Size of an update: the share by which a cell with too few rows grows at most. Three numbers say
            start * decay^floor(round / every). One number is a constant size.
        gamma : int
            The most cells of a table that replaces a clique of selected pairs.
        overlap : int
            The most attributes that such a table shares with those chosen before: 0, 1 or 2.
        split : three floats
            Shares of the budget: one-way counts, dependences of all pairs (InDif), and the selected tables.
        duplication : float or sequence of floats
            Share of the moved rows that become copies of whole rows. Several are used in turn, one a round.
        select : "greedy" or "exponential"
            How pairs are selected: greedily by noisy InDif of all pairs, as in the paper, or one after
            another by the exponential mechanism on exact InDif. For experiments.
        draws : int, optional
            How many pairs the exponential mechanism draws. Default: until it draws that none is worth
            its noise.
        **settings
            The other settings of `PrivSyn`, except `method`, `target` and `important`.

        References
        ----------
        Zhang et al., "PrivSyn", USENIX Security 2021. The defaults are its values.

        Examples
        --------
        >>> model = PrivSyn.paper(1.0, rounds=50)
        >>> model.method, model.parameters
        ('published', {'rounds': 50})
        """
        changed = Parameters(rounds, step, gamma, overlap, split, duplication, select, draws).changed
        return cls(epsilon, delta, schema, method=PUBLISHED.name, parameters=changed or None, **settings)

    @overload
    def fit(self, table: pd.DataFrame, y: Any = None) -> PrivSyn[pd.DataFrame]: ...
    @overload
    def fit(self, table: polars.DataFrame, y: Any = None) -> PrivSyn[polars.DataFrame]: ...
    @overload
    def fit(self, table: Mapping[str, OneTable], y: None = None) -> PrivSyn[dict[str, OneTable]]: ...
    @overload
    def fit(self, table: Any, y: Any = None) -> Self: ...
    def fit(self, table: Any, y: Any = None) -> Any:
        """Learn from a private table, or from those of several owners.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, path, data set, Dask or Spark data frame, or iterator
            A path leads to a .csv, .csv.gz or .parquet file, or to a folder of Parquet files. A data set is
            one of pyarrow. An iterator yields batches and is read once. Any table that exports an Arrow
            stream is taken too, and a NumPy matrix, whose columns are called x0, x1, ... With an `Owners`,
            the rows of several owners are counted together, and each gets the same model. With a
            `Collectors`, rows in secret shares are.
        y : sequence, optional
            The column to be predicted, as scikit-learn passes it. The synthetic table has it, as "target" if
            it has no name. A `target` of the settings is the same column.

        Returns
        -------
        PrivSyn
            The model itself. Type checkers then know that `sample` returns a table of the same type; of a
            path, a data frame of pandas. For linked tables in a file write
            ``PrivSyn[dict[str, pd.DataFrame]](...)``.

        Raises
        ------
        InputError
            If the table does not have the columns of the schema, or its file is damaged or not well-formed
            (CSV: an open quote, or a row not as long as the header). No error depends on the value of a cell.
        """
        private, database, target = table, self.database, self.target
        check_abilities(self.kinds, {"y": y})
        together = isinstance(table, Owners | Collectors)
        if together:
            check_abilities([table.kind], self.requests)
        if y is not None:
            table, target = with_target(table, y)
            self._check_target(target)
        criteria = self.criteria
        with closing_files(), self._party_of(table) as party:
            run = self._open_run(database, party, target, criteria)
            if self.public is not None:
                refuse_private(self.public, private, database)
            earlier = self._earlier_releases(database)
            public = self._public_for(run, earlier)
            party.agree_on(run.tables[0].opened)
            # A run of several owners that is resumed spends nothing more, and seeded runs have no promise.
            if not together and self.epsilon is not None and self.seed is None:
                columns = [run_table.opened.source.head.columns for run_table in run.tables]
                FITTED.note(private, columns)
            inquiry = Inquiry(party.noise(), QueryLog(), party.generator(), self._report)
            run = run.with_first_answers(inquiry)
            learned, ledger = run.learn(inquiry, lambda: party.public_inputs(self.unit))
            if not together and self.seed is None and self.epsilon is not None:
                ledger = replace(ledger, run=token_hex(8))
            if earlier is not None:
                ledger = earlier.before(ledger, disjoint=self.disjoint)
            release = release_of(run, learned, ledger)
            if public is not None:
                release = self._improved(release, public, target)
            if criteria is not None:  # asks the private rows again, with the share of the budget for tests
                release = self._test_criteria(release, criteria, run, learned, inquiry)
            self.release_ = release
            party.compare(self.release_.packed)
        self.not_found_ = columns_not_found(run.database, learned)
        self.counted_ = None if self.unit is None else learned[ROWS].learned.contribution.of_columns
        if not database.is_linked:
            names = run.tables[0].opened.source.head.columns.drop([] if y is None else [target])
            self.feature_names_in_ = np.array(names, object)
            self.n_features_in_ = len(self.feature_names_in_)
        NotFoundWarning.warn(about_not_found(self.not_found_) if self.not_found_ else None)
        NoSignalWarning.warn(self.release_.too_little_signal)
        LossWarning.warn(about_losses(lines_of_warning(self.losses_)))
        return self

    def fit_resample(
        self, table: Any, y: Any, n: int | None = None, *, seed: int | None = None
    ) -> tuple[Any, Any]:
        """Fit, and return synthetic features and their target, as imbalanced-learn's samplers do.

        A `Pipeline` of imbalanced-learn calls this where it fits, and predicts without it. In a pipeline of
        scikit-learn, `TrainOnSynthetic` does the same.

        Parameters
        ----------
        table, y
            See `fit`. A target is needed.
        n, seed : optional
            See `Release.sample`.

        Returns
        -------
        features, target : of the same types as `table` and `y`
            Rows whose target is missing are left out: no model learns from them.
        """
        if y is None:
            raise InputError("fit_resample requires y to be passed, but the target y is None")
        _, target = with_target(table, y)
        number = None if n is None else check_rows(n)  # before anything is spent
        synthetic = self.fit(table, y).sample(number, seed=seed)
        return without_target(synthetic, target, table, y)

    def _check_target(self, name: str) -> None:
        """Refuse a target of the settings that has another name than `y`: one of them is a mistake."""
        if self.target not in (None, name):
            raise InputError(
                f"target {safe_repr(self.target)} is another column than y, which is {safe_repr(name)}: leave"
                " out target, for y is the target"
            )

    def outlook(self, target: str | None = None) -> str:
        """Return one sentence on how good the synthetic rows are likely to be; see `Release.outlook`.

        The target of the model is the default.
        """
        return self._fitted.outlook(self.target if target is None else target)

    @property
    def _report(self) -> Progress:
        """What is called with each step, if anything is."""
        return self.progress or no_progress

    def _party_of(self, table: Any) -> Party:
        """Return this side of a run of several parties, or the one owner of a table."""
        if isinstance(table, Collectors):
            return table.run(self)
        return table.run() if isinstance(table, Owners) else Alone(table, self)

    def _open_run(
        self, database: Database, party: Party, target: str | None, criteria: Criteria | None
    ) -> Run:
        """Open the table, or all tables of a database. No row is counted."""
        tables = database.by_name(as_frame(party.table))
        if database.is_linked:
            renamed = nullcontext() if self.unit is None else replace_errors(_for_one_table, InputError)
            with renamed, one_step(self._report, READING):
                return Run.of(database, tables, self, party.bits())
        with one_step(self._report, READING), about_file(self.schema):
            columns = () if criteria is None else criteria.columns
            opened = Opened.of(tables[database.root], target, self, party.bits(), columns)
        if criteria is None:
            return Run.of_one(opened)
        check_accept(criteria, opened.schema.schema, self.epsilon)
        check_testable(opened.codec(opened.schema.fill({}, {})), criteria)
        return Run.of_one(opened, criteria.share)

    def _earlier_releases(self, database: Database) -> EarlierReleases | None:
        """Read the earlier releases, and refuse before any question those whose promises do not add up."""
        if self.since is None:
            return None
        earlier, root = EarlierReleases.read(self.since), database.root
        unit = key_in_words(database.tables[root].key) or None if self.unit is None else self.unit
        shown = database.shown_name(root) or None
        protected = protects(unit, shown, database.other_persons)
        earlier.check(protected, self.promise[1], private=self.seed is None)
        return earlier

    def _public_for(self, run: Run, earlier: EarlierReleases | None) -> PublicTables | None:
        """Return public tables, or rows of earlier releases; refuse before any question what has no code."""
        opened = {table.name: table.opened for table in run.tables}
        if earlier is not None:
            public = earlier.drawn(run.database)
        elif self.public is not None:
            schemas = {name: table.schema.schema for name, table in opened.items()}
            public = PublicTables.read(self.public, run.database, schemas)
        else:
            return None
        public.check({name: table.codec(table.schema.fill({}, {})) for name, table in opened.items()})
        return public

    def _improved(self, release: Release[Any], public: PublicTables, target: str | None) -> Release[Any]:
        """Return the release, improved by the public tables.

        The run is paid. A defect here must not end it, and must not be silent.
        """
        try:
            public = replace(public, database=release.database)  # which knows the columns that last
            return release.with_public(public, rows=self.public_rows, target=target)
        except Exception as error:
            return replace(release, tables=public.unused(release.tables, error))

    def _test_criteria(
        self,
        release: Release[Any],
        criteria: Criteria,
        run: Run,
        learned: Mapping[str, LearnedTable],
        inquiry: Inquiry,
    ) -> Release[Any]:
        """Ask the private rows whether the release meets the criteria; return it with the verdict."""
        private = table_for_tests(run.tables[0].opened, learned[ROWS].learned, inquiry)
        law = inquiry.noise.law
        rho = law.of_row(run.budget(law).rho_of_tests, private.contribution.limit)
        return judge(release, criteria, private, rho)


def _for_one_table(error: Exception) -> str:
    """Return a message about the tables of `persons_and_rows` for somebody who gave one table."""
    return str(error).removeprefix(f"table {ROWS!r}: ").replace("which link names", "which unit names")


Settings.__init__.__qualname__ = PrivSyn.__name__  # which an error about an argument names
