"""PrivSyn: the settings, and the order of the steps from table to release; no arithmetic."""

from __future__ import annotations

from importlib.metadata import version
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.answers.learnt import Method
from privsyn.arguments import check_finite, check_whole
from privsyn.errors import InputError, shown
from privsyn.methods import default, published
from privsyn.private.accounting import Accounting, rho_for
from privsyn.private.ledger import Ledger
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import Noise, noise_source
from privsyn.progress import Progress
from privsyn.release import Release
from privsyn.table.codec import Codec
from privsyn.table.schema import Schema
from privsyn.table.sources import read_table

if TYPE_CHECKING:
    import pandas as pd


LEAST_BUDGET = 1e-15  # in rho: with less, the noise would be tens of millions of records

# What every run takes as public, in the ledger's words.
PUBLIC = ("the names, the order and the dtypes of the columns", "all that the schema says", "the settings")


class PrivSyn:
    """Learn a table under differential privacy and make synthetic ones like it.

    Parameters
    ----------
    epsilon : float
        Above 0; the smaller, the more private.
    delta : float
        Between 0 and 1; smaller than one part in the number of people by far.
    schema : Schema
        What is public about the columns.
    seed : int, optional
        Makes the run repeatable, noise included, and therefore NOT PRIVATE.
    noise : "exact" or "opendp"
        Rounded Gaussian sampled exactly, or OpenDP's discrete Gaussian (an extra, slower).
    method : "default" or "published"
        `PrivSyn.paper` gives the second.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Attributes
    ----------
    release_ : Release
        What was learnt, after `fit`: all of it may be published.
    ledger_ : Ledger
        What was asked, with which sensitivity and noise, and what it cost.

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
        seed: int | None = None,
        noise: str = "exact",
        method: Method = "default",
        progress: Progress | None = None,
    ) -> None:
        if not isinstance(method, str) or method not in ("default", "published"):
            raise InputError(f'method is "default" or "published"; got {shown(method)}')
        if schema is not None and not isinstance(schema, Schema):
            raise InputError(f"schema is a Schema; got a {type(schema).__name__}")
        if seed is not None:
            check_whole("seed", seed)
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.seed = seed
        self.noise = noise
        self.method: Method = method
        self.progress = progress
        if rho_for(*self._promise, self._accounting(noise_source(noise, seed))) < LEAST_BUDGET:
            raise InputError(f"epsilon {shown(epsilon)} wants noise that drowns any count: raise it")

    @classmethod
    def paper(
        cls,
        epsilon: float,
        delta: float = 1e-9,
        schema: Schema | None = None,
        *,
        seed: int | None = None,
        noise: str = "exact",
        progress: Progress | None = None,
    ) -> PrivSyn:
        """The published algorithm, step for step, for experiments and comparison."""
        return cls(epsilon, delta, schema, seed=seed, noise=noise, method="published", progress=progress)

    def fit(self, table: Any) -> PrivSyn:
        """Learn from a private table.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or a path to a .csv, .csv.gz or .parquet file

        Raises
        ------
        InputError
            If the table does not have the schema's columns, or its file is damaged or not well-formed (in a
            CSV every quote is closed and every row is as long as the header); never for what a cell holds.
        """
        if self.schema is None:
            raise InputError("a schema is needed: `privsyn schema DATA` drafts one for you to review")
        source = read_table(table, self.schema)
        codec = Codec.for_table(self.schema, source.frame)
        noise = noise_source(self.noise, self.seed)
        accounting = self._accounting(noise)
        private = PrivateTable(codec.encode(source.frame), noise)
        epsilon, delta = self._promise
        rho = rho_for(epsilon, delta, accounting)
        learn = published.learn if self.method == "published" else default.learn
        stream = None if self.seed is None else np.random.SeedSequence(self.seed, spawn_key=(1,))
        learnt = learn(private, rho, np.random.default_rng(stream), self._report)
        ledger = Ledger(
            private.spends,
            promised_epsilon=epsilon,
            promised_delta=delta,
            accounting=accounting,
            randomness=noise.name,
            private=noise.private,
            public_inputs=(*PUBLIC, *source.public_inputs),
            version=version("privsyn"),
        )
        self.release_ = Release(codec, learnt, ledger, self.method)
        return self

    def sample(
        self, n: int | None = None, *, seed: int | None = None, progress: Progress | None = None
    ) -> pd.DataFrame:
        """A synthetic table of `n` rows, or as many as the private estimate; see `Release.sample`.

        Where no `seed` is given, that of the model is used, if it has one.
        """
        seed = self.seed if seed is None else seed
        return self._fitted.sample(n, seed=seed, progress=progress or self.progress)

    def save(self, path: str | PathLike[str]) -> None:
        """Write what was learnt to one file; see `Release.save`."""
        self._fitted.save(path)

    @property
    def ledger_(self) -> Ledger:
        """What was asked and what it cost."""
        return self._fitted.ledger

    @property
    def _fitted(self) -> Release:
        if not hasattr(self, "release_"):
            raise InputError("nothing is learnt yet: call fit(table) first")
        return self.release_

    @property
    def _promise(self) -> tuple[float, float]:
        """Epsilon and delta as doubles: in another type of number the accounting would round otherwise."""
        return check_finite("epsilon", self.epsilon), check_finite("delta", self.delta)

    def _accounting(self, noise: Noise) -> Accounting:
        """The tightest that holds for the noise; for the published algorithm, the one it came with."""
        return "classical" if self.method == "published" else noise.accounting

    def _report(self, stage: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, total)
