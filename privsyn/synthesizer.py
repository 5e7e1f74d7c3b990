"""PrivSyn: the settings, and the order of the steps from table to release; no arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.arguments import check_bytes, check_column, check_finite, check_unit, check_whole
from privsyn.errors import InputError, plural, safe_repr, warn_dropped, warn_objects
from privsyn.inference.fitted import Method
from privsyn.methods import default
from privsyn.methods.discovery import open_schema, reserved_delta
from privsyn.methods.paper import learn as published
from privsyn.private.accounting import Accounting, rho_for
from privsyn.private.contribution import kept_rows
from privsyn.private.ledger import Ledger
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import Noise, noise_source
from privsyn.private.rows import CachedWalk, Rows
from privsyn.private.sampler import Bits, os_entropy, seeded_bits
from privsyn.progress import Progress
from privsyn.release.release import Release
from privsyn.table.discovery.open_schema import OpenSchema, by_names
from privsyn.table.encoding.codec import Codec
from privsyn.table.io.source import RawTable
from privsyn.table.io.stream import open_table
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    from privsyn.release.accuracy import Accuracy


LEAST_BUDGET = 1e-15  # in rho: with less, the noise would be tens of millions of records

# What every run takes as public, in the ledger's words.
PUBLIC = (
    "the names, the order and the dtypes of the columns, the type of each category column's values,"
    " and which columns Arrow declares not null",
    "all that the schema says",
    "the settings",
)

# What the bound per person relies on, beside that.
OF_PERSONS = (
    "that one person has one identifier in {!r}",
    "that two persons never share one in {!r}, where 7 and 007 are two identifiers",
)


class PrivSyn:
    """Learn a table under differential privacy and make synthetic ones like it.

    Parameters
    ----------
    epsilon : float
        Above 0; the smaller, the more private.
    delta : float
        Between 0 and 1; smaller than one part in the number of people by far.
    schema : Schema, optional
        What is public about the columns. Lists of values and bounds that it leaves out are found under
        privacy, for a part of epsilon and delta; without a schema only names and dtypes are public, and a
        column that is called like an identifier (``customer_id``) is made anew.
    unit : str, optional
        The column that names the person, where a person may have many rows: the promise is then for all rows
        of a person. Neither schema nor synthetic table has it. Left out: each row is a person of its own.
    rows_per_unit : int, optional
        With `unit`, the most rows kept of a person, drawn by lot. Public: from what is known of such tables,
        not counted in this one. Noise grows with it; rows beyond it are lost.
    target : str, optional
        A column to be predicted from the others: tables that hold it get more of the budget, the others less.
    seed : int, optional
        Makes the run repeatable, noise included, and therefore NOT PRIVATE.
    noise : "exact" or "opendp"
        Rounded Gaussian sampled exactly, or OpenDP's discrete Gaussian (an extra, slower).
    method : "default" or "published"
        `PrivSyn.paper` gives the second.
    memory : int or str
        In bytes, or as "4GB": what the rows in codes and their counts may take together. A table that takes
        more is read several times. It changes no answer.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Attributes
    ----------
    release_ : Release
        What was learnt, after `fit`: all of it may be published.
    ledger_ : Ledger
        What was asked, with which sensitivity and noise, and what it cost.
    accuracy_ : Accuracy
        How far what was learnt may be off: expected errors, and intervals for counts.

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
        noise: str = "exact",
        method: Method = "default",
        memory: int | str = "2GB",
        progress: Progress | None = None,
    ) -> None:
        if not isinstance(method, str) or method not in ("default", "published"):
            raise InputError(f'method is "default" or "published"; got {safe_repr(method)}')
        if schema is not None and not isinstance(schema, Schema):
            raise InputError(f"schema is a Schema; got a {type(schema).__name__}")
        if seed is not None:
            check_whole("seed", seed)
        check_bytes("memory", memory)
        check_unit(unit, rows_per_unit, () if schema is None else schema.columns)
        if target is not None:
            if method == "published":
                raise InputError("the published algorithm has no target: leave out target, or method")
            if schema is not None:
                check_column("target", target, schema.coded)
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.unit = unit
        self.rows_per_unit = rows_per_unit
        self.target = target
        self.seed = seed
        self.noise = noise
        self.method: Method = method
        self.memory = memory
        self.progress = progress
        rho = rho_for(*self._promise, self._accounting(noise_source(noise, seed)))
        if rho / self._most_rows**2 < LEAST_BUDGET:
            lower = "" if unit is None else ", or lower rows_per_unit"
            raise InputError(
                f"epsilon {safe_repr(epsilon)} wants noise that drowns any count: raise it{lower}"
            )

    def __repr__(self) -> str:
        """The settings that were given, all of them public, and whether anything is learnt."""
        said = [f"epsilon={self.epsilon!r}", f"delta={self.delta!r}"]
        if self.schema is not None:
            said.append(f"schema of {plural(len(self.schema.columns), 'column')}")
        for name, usual in (("method", "default"), ("noise", "exact"), ("memory", "2GB")):
            if (value := getattr(self, name)) != usual:
                said.append(f"{name}={value!r}")
        for name in ("unit", "rows_per_unit", "target", "seed"):
            if (value := getattr(self, name)) is not None:
                said.append(f"{name}={value!r}")
        fitted = "fitted" if hasattr(self, "release_") else "not fitted"
        return f"<PrivSyn: {', '.join(said)}; {fitted}>"

    @classmethod
    def paper(
        cls,
        epsilon: float,
        delta: float = 1e-9,
        schema: Schema | None = None,
        *,
        unit: str | None = None,
        rows_per_unit: int | None = None,
        seed: int | None = None,
        noise: str = "exact",
        memory: int | str = "2GB",
        progress: Progress | None = None,
    ) -> PrivSyn:
        """The published algorithm, step for step, for experiments and comparison."""
        return cls(
            epsilon,
            delta,
            schema,
            unit=unit,
            rows_per_unit=rows_per_unit,
            seed=seed,
            noise=noise,
            method="published",
            memory=memory,
            progress=progress,
        )

    def fit(self, table: Any) -> PrivSyn:
        """Learn from a private table.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, path, data set, Dask or Spark data frame, or iterator
            A path leads to a .csv, .csv.gz or .parquet file or to a folder of Parquet files; the data set is
            pyarrow's; an iterator gives batches, and is walked over once.

        Raises
        ------
        InputError
            If the table does not have the schema's columns, or its file is damaged or not well-formed (in a
            CSV every quote is closed and every row is as long as the header); never for what a cell holds.
        """
        source = open_table(table, self.schema, unit=self.unit)
        rows = self._bounded(source)
        unknown = OpenSchema.of(self.schema or by_names(rows.head, source.schema), rows.head)
        if self.target is not None:
            check_column("target", self.target, unknown.schema.coded)
        if dropped := unknown.schema.dropped:
            warn_dropped(dropped)
        if unknown.objects:
            warn_objects(unknown.objects)
        program = version("privsyn")
        noise = noise_source(self.noise, self.seed)
        accounting = self._accounting(noise)
        epsilon, delta = self._promise
        reserved = reserved_delta(delta, unknown)
        rho = rho_for(epsilon, delta - reserved, accounting)  # of a person, whose k rows cost k^2 of a row's
        opening = open_schema(
            unknown,
            rows,
            rho=rho,
            delta=reserved,
            noise=noise,
            rows_per_unit=self._most_rows,
            report=self._report,
        )
        rho *= 1 - opening.share
        codec = Codec.for_table(opening.schema, rows.head, fine=self.method == "default")
        private = PrivateTable(self._coded(rows, codec), noise, self._most_rows)
        learn = published.learn
        if self.method == "default":
            learn = partial(
                default.learn,
                target=self.target,
                axes=codec.axes,
                possible_after=codec.possible,
                doubtful=(*unknown.values, *unknown.bounds),
            )
        stream = None if self.seed is None else np.random.SeedSequence(self.seed, spawn_key=(1,))
        learnt = learn(private, rho / self._most_rows**2, np.random.default_rng(stream), self._report)
        source.require_unchanged()
        of_persons = () if self.unit is None else [fact.format(self.unit) for fact in OF_PERSONS]
        ledger = Ledger(
            (*opening.spends, *private.spends),
            promised_epsilon=epsilon,
            promised_delta=delta,
            accounting=accounting,
            randomness=noise.name,
            private=noise.private,
            public_inputs=(*PUBLIC, *of_persons, *source.public_inputs),
            version=program,
            unit=self.unit,
            rows_per_unit=None if self.rows_per_unit is None else self._most_rows,
        )
        form = rows.form.only(set(codec.names).difference(codec.dropped))
        self.release_ = Release(codec, learnt, ledger, self.method, form)
        return self

    def sample(
        self,
        n: int | None = None,
        *,
        given: Any = None,
        balance: str | None = None,
        seed: int | None = None,
        progress: Progress | None = None,
    ) -> Any:
        """A synthetic table of `n` rows, or as many as the private estimate; see `Release.sample`.

        Where no `seed` is given, that of the model is used, if it has one.
        """
        seed = self.seed if seed is None else seed
        return self._fitted.sample(
            n, given=given, balance=balance, seed=seed, progress=progress or self.progress
        )

    def sample_blocks(
        self, n: int | None = None, *, seed: int | None = None, progress: Progress | None = None
    ) -> Iterator[Any]:
        """The same table in blocks of rows; see `Release.sample_blocks`."""
        seed = self.seed if seed is None else seed
        return self._fitted.sample_blocks(n, seed=seed, progress=progress or self.progress)

    def sample_to(
        self,
        path: str | PathLike[str],
        n: int | None = None,
        *,
        seed: int | None = None,
        resume: bool = False,
        excel_safe: bool = False,
        progress: Progress | None = None,
    ) -> tuple[int, int]:
        """Write the same table to a file; see `Release.sample_to`."""
        return self._fitted.sample_to(
            path,
            n,
            seed=self.seed if seed is None else seed,
            resume=resume,
            excel_safe=excel_safe,
            progress=progress or self.progress,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write what was learnt to one file; see `Release.save`."""
        self._fitted.save(path)

    @property
    def ledger_(self) -> Ledger:
        """What was asked and what it cost."""
        return self._fitted.ledger

    @property
    def accuracy_(self) -> Accuracy:
        """Error bars of what was learnt; see `Accuracy`."""
        return self._fitted.accuracy

    @property
    def _fitted(self) -> Release:
        if not hasattr(self, "release_"):
            raise InputError("nothing is learnt yet: call fit(table) first")
        return self.release_

    @property
    def _promise(self) -> tuple[float, float]:
        """Epsilon and delta as doubles: in another type of number the accounting would round otherwise."""
        return check_finite("epsilon", self.epsilon), check_finite("delta", self.delta)

    @property
    def _most_rows(self) -> int:
        """The most rows of a person: one, where each row is a person."""
        return 1 if self.rows_per_unit is None else int(self.rows_per_unit)

    def _coded(self, rows: RawTable, codec: Codec) -> Rows:
        """The rows in codes. Half of the memory is for these; what passes once is kept whatever it takes."""
        room = check_bytes("memory", self.memory)
        walk = rows.walk(codec)
        if rows.near:
            walk = CachedWalk(walk, np.inf if rows.once else room / 2)
        return Rows(codec.domain, walk, room / 4)

    def _bounded(self, rows: RawTable) -> RawTable:
        """The rows to learn from: no more of a person than may be, and without the identifiers.

        Nothing has been counted before, and nothing looks at the other rows again.
        """
        if self.unit is None:
            return rows
        rows.require_again("whose rows they are")
        lots: Bits = os_entropy
        if self.seed is not None:
            lots = seeded_bits(np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(2,))))
        return rows.bounded(self.unit, partial(kept_rows, rows_per_unit=self._most_rows, bits=lots))

    def _accounting(self, noise: Noise) -> Accounting:
        """The tightest that holds for the noise; for the published algorithm, the one it came with."""
        return "classical" if self.method == "published" else noise.accounting

    def _report(self, stage: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, total)
