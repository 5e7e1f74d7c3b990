"""PrivSyn: the settings, and the order of the steps from table to release; no arithmetic."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from privsyn.arguments import check_bytes, check_column, check_finite, check_unit, check_whole
from privsyn.errors import InputError, plural, safe_repr, warn_dropped, warn_objects
from privsyn.methods.discovery import open_schema, reserved_delta
from privsyn.methods.facts import PublicFacts
from privsyn.methods.methods import DEFAULT, METHODS, PUBLISHED, Method, MethodName
from privsyn.private.accounting import Accounting, rho_for
from privsyn.private.contribution import kept_rows
from privsyn.private.ledger import Ledger
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import Noise, noise_source
from privsyn.private.rows import CachedWalk, Rows
from privsyn.private.sampler import Bits, os_entropy, seeded_bits
from privsyn.private.spend import Spend
from privsyn.progress import Progress, no_progress
from privsyn.release.model import ReleasedModel
from privsyn.release.release import Release
from privsyn.table.discovery.open_schema import OpenSchema, by_names
from privsyn.table.encoding.codec import Codec
from privsyn.table.io.source import RawTable
from privsyn.table.io.stream import open_table
from privsyn.table.schema.schema import Schema

LEAST_BUDGET = 1e-15  # in rho: with less, the noise would be tens of millions of records

# What every run takes as public, in the words of the ledger.
PUBLIC = (
    "the names, the order and the dtypes of the columns, the type of each category column's values,"
    " and which columns Arrow declares not null",
    "all that the schema says",
    "the settings",
)

# The bound on each person's rows relies on these facts too.
OF_PERSONS = (
    "that one person has one identifier in {!r}",
    "that two persons never share one in {!r}, where 7 and 007 are two identifiers",
)


class PrivSyn(ReleasedModel):
    """Learn a table under differential privacy and make synthetic tables like it.

    Parameters
    ----------
    epsilon : float
        Privacy budget, above 0. A smaller epsilon gives more privacy and less accuracy.
    delta : float
        Between 0 and 1, and far below one divided by the number of people.
    schema : Schema, optional
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
    seed : int, optional
        Makes the run repeatable, including its noise, and therefore NOT PRIVATE. It is also the default seed
        of `sample`.
    method : "default" or "published"
        `PrivSyn.paper` uses the second.
    memory : int or str
        Bytes, or text such as "4GB": the most that the encoded rows and their counts may take together. A
        larger table is read several times. The answers do not depend on it.
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
        epsilon: float,
        delta: float = 1e-9,
        schema: Schema | None = None,
        *,
        unit: str | None = None,
        rows_per_unit: int | None = None,
        target: str | None = None,
        seed: int | None = None,
        method: MethodName = DEFAULT.name,
        memory: int | str = "2GB",
        progress: Progress | None = None,
    ) -> None:
        if not isinstance(method, str) or method not in METHODS:
            names = " or ".join(f'"{name}"' for name in METHODS)
            raise InputError(f"method must be {names}; got {safe_repr(method)}")
        if schema is not None and not isinstance(schema, Schema):
            raise InputError(f"schema must be a Schema; got a {type(schema).__name__}")
        if seed is not None:
            check_whole("seed", seed)
        check_bytes("memory", memory)
        check_unit(unit, rows_per_unit, () if schema is None else schema.columns)
        if target is not None:
            if not METHODS[method].takes_target:
                raise InputError(f"method {method!r} takes no target: leave out target, or method")
            if schema is not None:
                check_column("target", target, schema.coded)
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.unit = unit
        self.rows_per_unit = rows_per_unit
        self.target = target
        self.seed = seed
        self.method: MethodName = method
        self.memory = memory
        self.progress = progress
        if rho_for(*self._promise, self._accounting(noise_source(seed))) / self._most_rows**2 < LEAST_BUDGET:
            lower = "" if unit is None else ", or lower rows_per_unit"
            raise InputError(
                f"epsilon {safe_repr(epsilon)} is too small: the noise exceeds every count. Raise it{lower}"
            )

    def __repr__(self) -> str:
        """Return the settings, which are all public, and whether the model is fitted."""
        shown = [f"epsilon={self.epsilon!r}", f"delta={self.delta!r}"]
        if self.schema is not None:
            shown.append(f"schema of {plural(len(self.schema.columns), 'column')}")
        defaults = {"method": DEFAULT.name, "memory": "2GB"}
        for name in ("method", "memory", "unit", "rows_per_unit", "target", "seed"):
            if (value := getattr(self, name)) != defaults.get(name):
                shown.append(f"{name}={value!r}")
        fitted = "fitted" if hasattr(self, "release_") else "not fitted"
        return f"<PrivSyn: {', '.join(shown)}; {fitted}>"

    @classmethod
    def paper(
        cls, epsilon: float, delta: float = 1e-9, schema: Schema | None = None, **settings: Any
    ) -> PrivSyn:
        """Return a model that runs the published algorithm step by step, for experiments and comparison.

        It takes the other `settings` of `PrivSyn`, except `method` and `target`.
        """
        return cls(epsilon, delta, schema, method=PUBLISHED.name, **settings)

    def fit(self, table: Any) -> PrivSyn:
        """Learn from a private table.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, path, data set, Dask or Spark data frame, or iterator
            A path leads to a .csv, .csv.gz or .parquet file, or to a folder of Parquet files. A data set is
            one of pyarrow. An iterator yields batches and is read once.

        Returns
        -------
        The model itself.

        Raises
        ------
        InputError
            If the table does not have the columns of the schema, or its file is damaged or not well-formed.
            (A CSV is well-formed if every quote is closed and every row is as long as the header.) No error
            depends on the value of a cell.
        """
        source = open_table(table, self.schema, unit=self.unit)
        rows = self._bounded(source)
        unknown = self._unknown(rows, source.schema)
        if dropped := unknown.schema.dropped:
            warn_dropped(dropped)
        if unknown.objects:
            warn_objects(unknown.objects)
        report = self.progress or no_progress
        noise = noise_source(self.seed)
        epsilon, delta = self._promise
        reserved = reserved_delta(delta, unknown)
        person_rho = rho_for(epsilon, delta - reserved, self._accounting(noise))
        opening = open_schema(
            unknown,
            rows,
            rho=person_rho,
            delta=reserved,
            noise=noise,
            rows_per_unit=self._most_rows,
            report=report,
        )
        person_rho *= 1 - opening.share
        row_rho = person_rho / self._most_rows**2  # k rows cost k^2 times as much as one
        codec = Codec.for_table(opening.schema, rows.head, fine=self._method.fine_cells)
        private = PrivateTable(self._coded(rows, codec), noise, self._most_rows)
        doubtful = tuple(map(codec.attribute_of, (*unknown.values, *unknown.bounds)))
        target = None if self.target is None else codec.attribute_of(self.target)
        facts = PublicFacts(target, codec.axes, codec.possible, doubtful=doubtful)
        learnt = self._method.learn(private, row_rho, self._generator(1), report, facts)
        source.require_unchanged()
        ledger = self._ledger((*opening.spends, *private.spends), noise, source.public_inputs)
        form = rows.form.only(set(codec.names).difference(codec.dropped))
        self.release_ = Release(codec, learnt, ledger, self._method, form)
        return self

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

    def _accounting(self, noise: Noise) -> Accounting:
        return self._method.accounting or noise.accounting

    def _generator(self, stream: int) -> np.random.Generator:
        """Return a generator of its own for each use; stream 0 is the noise."""
        seeds = None if self.seed is None else np.random.SeedSequence(self.seed, spawn_key=(stream,))
        return np.random.default_rng(seeds)

    def _bounded(self, rows: RawTable) -> RawTable:
        """Return the rows to learn from: at most `rows_per_unit` of each person, without the identifiers.

        No row was counted before this, and the other rows are never looked at again.
        """
        if self.unit is None:
            return rows
        rows.require_again("whose rows they are")
        bits: Bits = os_entropy
        if self.seed is not None:
            bits = seeded_bits(self._generator(2))
        return rows.bounded(self.unit, partial(kept_rows, rows_per_unit=self._most_rows, bits=bits))

    def _unknown(self, rows: RawTable, inferred: Schema | None) -> OpenSchema:
        """Return the schema with what it leaves open, which public names and dtypes decide."""
        unknown = OpenSchema.of(self.schema or by_names(rows.head, inferred), rows.head)
        if self.target is not None:
            check_column("target", self.target, unknown.schema.coded)
        return unknown

    def _coded(self, rows: RawTable, codec: Codec) -> Rows:
        """Return the encoded rows. They may take half of the memory, or all that an iterator needs."""
        memory = check_bytes("memory", self.memory)
        walk = rows.walk(codec)
        if rows.near:
            walk = CachedWalk(walk, np.inf if rows.once else memory / 2)
        return Rows(codec.domain, walk, memory / 4)

    def _ledger(self, spends: tuple[Spend, ...], noise: Noise, inputs: tuple[str, ...]) -> Ledger:
        epsilon, delta = self._promise
        of_persons = () if self.unit is None else [fact.format(self.unit) for fact in OF_PERSONS]
        return Ledger(
            spends,
            promised_epsilon=epsilon,
            promised_delta=delta,
            accounting=self._accounting(noise),
            randomness=noise.name,
            private=noise.private,
            public_inputs=(*PUBLIC, *of_persons, *inputs),
            version=version("privsyn"),
            unit=self.unit,
            rows_per_unit=None if self.rows_per_unit is None else self._most_rows,
        )
