"""PrivSyn: the settings, and the order of the steps from table to release; no arithmetic."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from privsyn.arguments import check_bytes, check_column, check_finite, check_unit, check_whole
from privsyn.errors import InputError, warn_not_found
from privsyn.estimator import Estimator
from privsyn.inference.fitted import Fitted
from privsyn.methods.budget import check_enough
from privsyn.methods.discovery import discover, reserved_delta
from privsyn.methods.facts import PublicFacts
from privsyn.methods.fit_randomised import check_budget, learn_randomised, local_promises
from privsyn.methods.methods import DEFAULT, METHODS, PUBLISHED, Method, check_method
from privsyn.methods.reading import bounded, coded, given_schema, open_schema_of
from privsyn.methods.run_ledger import facts_of, ledger_of_randomised, ledger_of_run
from privsyn.owners.owners import Owners, Run
from privsyn.private.accounting import rho_for
from privsyn.private.ledger import Ledger
from privsyn.private.local.counts import RandomisedTable
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import noise_source
from privsyn.private.sampler import Bits, os_entropy, seeded_bits
from privsyn.progress import Progress, no_progress
from privsyn.release.acceptance.criteria import Criteria, check_accept, read_criteria
from privsyn.release.acceptance.judge import judge
from privsyn.release.acceptance.layout import check_affordable, check_testable
from privsyn.release.model import ReleasedModel
from privsyn.release.release import Release
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.source import RawTable
from privsyn.table.io.target_column import as_frame, with_target
from privsyn.table.schema.yaml_file import SchemaOrPath, as_schema


class PrivSyn(ReleasedModel, Estimator):
    """Learn a table under differential privacy and make synthetic tables like it.

    Parameters
    ----------
    epsilon : float
        Privacy budget, above 0. A smaller epsilon gives more privacy and less accuracy. It is left out only
        if the respondents randomised all columns, as ``keep`` in the schema says.
    delta : float
        From 0 to below 1, and far below one divided by the number of people. With 0 (pure epsilon) all noise
        is discrete Laplace, and the schema must list all values.
    schema : Schema or path of a YAML file, optional
        What is public about the columns. Missing lists of values and bounds are found under privacy, for a
        part of epsilon and delta. Without a schema only names and dtypes are public, and a column whose name
        looks like an identifier (``customer_id``) gets generated values.
    unit : str, optional
        The column that identifies the person. All rows of a person are then protected together. Neither the
        schema nor the synthetic table contains this column. Default: each row is one person.
    rows_per_unit : int, optional
        With `unit`, the most rows kept per person, chosen at random. This number is public: take it from what
        is known about such tables, not from this table. The noise grows with it, and further rows are lost.
    target : str, optional
        A column to be predicted from the others. Tables of counts with it get more of the budget.
    nullable : bool
        With False no synthetic cell is missing, as if the schema said so of every column. A missing cell of
        the private table then counts as the first value listed, or as the lower bound.
    seed : int, optional
        Makes the run repeatable, including its noise, and therefore NOT PRIVATE. It is also the default seed
        of `sample`.
    method : "default" or "published"
        `PrivSyn.paper` uses the second.
    memory : int or str
        Bytes, or text such as "4GB": the most that the encoded rows and their counts may take together. A
        larger table is read several times. The answers do not depend on it.
    accept : path of a YAML file, or mapping, optional
        Criteria that the release must meet, tested under privacy for a part of the budget: docs/publisher.md.
        The verdict is in ``ledger_.acceptance``. `fit` does not fail if they are not met.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Attributes
    ----------
    release_ : Release
        What `fit` learnt. All of it may be published.
    ledger_ : Ledger
        The questions, their sensitivities, noise and cost.
    accuracy_ : Accuracy
        Expected errors of what was learnt, and intervals for counts.
    feature_names_in_, n_features_in_ : array of str, int
        The columns of the table, and their number.
    not_found_ : tuple of str
        Open columns whose values or bounds are not above the noise. Their cells are invented.

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

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 1e-9,
        schema: SchemaOrPath | None = None,
        *,
        unit: str | None = None,
        rows_per_unit: int | None = None,
        target: str | None = None,
        nullable: bool = True,
        seed: int | None = None,
        method: str = DEFAULT.name,
        memory: int | str = "2GB",
        accept: object = None,
        progress: Progress | None = None,
    ) -> None:
        check_method(method, check_finite("delta", delta), target)
        public = given_schema(schema, nullable=nullable)
        if seed is not None:
            check_whole("seed", seed)
        check_bytes("memory", memory)
        check_unit(unit, rows_per_unit, () if public is None else public.columns)
        if target is not None and public is not None:
            check_column("target", target, public.coded, public=True)
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.unit = unit
        self.rows_per_unit = rows_per_unit
        self.target = target
        self.nullable = nullable
        self.seed = seed
        self.method = method
        self.memory = memory
        self.accept = accept
        self.progress = progress
        check_budget(epsilon, public, METHODS[method], unit)
        if (criteria := read_criteria(accept)) is not None:
            check_accept(criteria, public, epsilon)
        if epsilon is not None:
            law = noise_source(seed, self._promise[1]).law
            cost, share = rho_for(*self._promise, self._method.accounting_of(law)), 0.0
            if criteria is not None:
                check_affordable(criteria, law, cost, rows_per_unit)
                share = criteria.share
            check_enough((1 - share) * cost, law, epsilon, rows_per_unit)

    @classmethod
    def paper(
        cls, epsilon: float, delta: float = 1e-9, schema: SchemaOrPath | None = None, **settings: Any
    ) -> PrivSyn:
        """Return a model that runs the published algorithm step by step, for experiments and comparison.

        It takes the other `settings` of `PrivSyn`, except `method` and `target`.
        """
        return cls(epsilon, delta, schema, method=PUBLISHED.name, **settings)

    def fit(self, table: Any, y: Any = None) -> PrivSyn:
        """Learn from a private table, or from those of several owners.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, path, data set, Dask or Spark data frame, or iterator
            A path leads to a .csv, .csv.gz or .parquet file, or to a folder of Parquet files. A data set is
            one of pyarrow. An iterator yields batches and is read once. Any table that exports an Arrow
            stream is taken too, and a NumPy matrix, whose columns are called x0, x1, ... With an `Owners`,
            the rows of several owners are counted together, and each gets the same model.
        y : sequence, optional
            The column to be predicted, as scikit-learn passes it. The synthetic table has it, as "target" if
            it has no name.

        Returns
        -------
        The model itself.

        Raises
        ------
        InputError
            If the table does not have the columns of the schema, or its file is damaged or not well-formed
            (CSV: an open quote, or a row not as long as the header). No error depends on the value of a cell.
        """
        table, target = (as_frame(table), self.target) if y is None else with_target(table, y)
        schema = as_schema(self.schema)
        with table.run() if isinstance(table, Owners) else nullcontext() as run:
            own = as_frame(table.table) if isinstance(table, Owners) else table
            source = read_in_batches(own, schema, unit=self.unit)
            bits: Bits = os_entropy if run is None else run.bits
            if self.seed is not None:
                bits = seeded_bits(self._generator(2))
            rows = bounded(source, self.unit, self._most_rows, bits)
            open_schema = open_schema_of(rows, schema, source.schema, target, nullable=self.nullable)
            rows = rows.unordered(open_schema.unordered)
            self.not_found_: tuple[str, ...] = ()
            criteria = read_criteria(self.accept)
            if criteria is not None:
                check_accept(criteria, open_schema.schema, self.epsilon, owners=run is not None)
                filled, fine = open_schema.fill({}, {}), self._method.fine_cells
                check_testable(Codec.for_table(filled, rows.head, fine=fine, target=target), criteria)
            if self.epsilon is None:
                if run is not None:
                    raise InputError("several owners add noise: give epsilon")
                self.release_ = self._learn_randomised(open_schema, rows, source, target)
            else:
                self.release_ = self._learn(open_schema, rows, source, target, run, criteria)
            if run is not None:
                run.part(self.release_.packed())
        self.feature_names_in_ = np.array(source.head.columns.drop([] if y is None else [target]), object)
        self.n_features_in_ = len(self.feature_names_in_)
        warn_not_found(self.not_found_)
        return self

    def _learn(
        self,
        open_schema: OpenSchema,
        rows: RawTable,
        source: RawTable,
        target: str | None,
        run: Run | None,
        criteria: Criteria | None,
    ) -> Release:
        """Put questions to the private table, with all other owners if there is a `run`."""
        report = self.progress or no_progress
        epsilon, delta = self._promise
        if run is not None:
            settings = self.get_params() | {"epsilon": epsilon, "delta": delta, "target": target}
            run.meet(source, open_schema, settings, report)
        noise = noise_source(self.seed, delta) if run is None else run.noise
        reserved = reserved_delta(delta, open_schema)
        person_rho = rho_for(epsilon, delta - reserved, self._method.accounting_of(noise.law))
        tests_rho = 0.0 if criteria is None else criteria.share * person_rho
        person_rho -= tests_rho
        fine = self._method.fine_cells
        discovered = discover(
            open_schema,
            rows,
            rho=person_rho,
            delta=reserved,
            noise=noise,
            rows_per_unit=self._most_rows,
            report=report,
            fine=fine,
        )
        self.not_found_ = discovered.not_found
        person_rho *= 1 - discovered.share
        row_rho = noise.law.of_row(person_rho, self._most_rows)  # k rows cost k^2 times as much, or k times
        codec = Codec.for_table(
            discovered.schema, rows.head, fine=fine, heaps=discovered.heaps, target=target
        )
        private = PrivateTable(coded(rows, codec, self.memory), noise, self._most_rows)
        doubtful = tuple(attribute for name in open_schema.open for attribute in codec.attributes_of(name))
        target = None if target is None else codec.target_attribute(target)
        rng, kept = self._generator(1) if run is None else run.generator(), codec.schema.randomised
        facts = PublicFacts(target, codec.axes, codec.possible, doubtful, kept, codec.nullable)
        fitted = self._method.learn(private, row_rho, rng, report, facts)
        spends, most = (*discovered.spends, *private.spends), self.rows_per_unit and self._most_rows
        inputs = (*discovered.remarks, *source.public_inputs, *(run.public_inputs(self.unit) if run else ()))
        local = local_promises(codec)
        ledger = ledger_of_run(spends, (epsilon, delta), noise, self._method, inputs, self.unit, most, local)
        release = self._release(codec, fitted, ledger, rows)
        tests_rho = noise.law.of_row(tests_rho, self._most_rows)
        return release if criteria is None else judge(release, criteria, private, tests_rho)

    def _learn_randomised(
        self, open_schema: OpenSchema, rows: RawTable, source: RawTable, target: str | None
    ) -> Release:
        """Learn from a table that the respondents randomised."""
        codec = Codec.for_table(open_schema.schema, rows.head, fine=True, target=target)
        table = RandomisedTable(coded(rows, codec, self.memory), codec.schema.randomised)
        facts = PublicFacts(target, kept=codec.schema.randomised)
        fitted = learn_randomised(table, self._generator(1), self.progress or no_progress, facts)
        local = local_promises(codec)
        ledger = ledger_of_randomised(local, (*facts_of(local), *source.public_inputs))
        return self._release(codec, fitted, ledger, rows)

    def _release(self, codec: Codec, fitted: Fitted, ledger: Ledger, rows: RawTable) -> Release:
        form = rows.form.only(set(codec.names).difference(codec.dropped))
        return Release(codec, fitted, ledger, self._method, form)

    @property
    def _method(self) -> Method:
        return METHODS[self.method]

    @property
    def _promise(self) -> tuple[float, float]:
        """Epsilon and delta as doubles. Accounting would round other types of number differently."""
        return check_finite("epsilon", self.epsilon), check_finite("delta", self.delta)

    @property
    def _most_rows(self) -> int:
        """The most rows of one person, which is 1 if each row is a person."""
        return 1 if self.rows_per_unit is None else int(self.rows_per_unit)

    def _generator(self, stream: int) -> np.random.Generator:
        """Return a generator of its own for each use; stream 0 is the noise."""
        seeds = None if self.seed is None else np.random.SeedSequence(self.seed, spawn_key=(stream,))
        return np.random.default_rng(seeds)
