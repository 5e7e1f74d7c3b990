"""Comparison: the synthetic and the real table in the same codes, with reference tables from the real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.evaluation.encoding import Coded, View, code_together
from privsyn.evaluation.predictions import chosen_learners
from privsyn.marginals.domain import Records
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.schema.schema import Schema

SEED = 20240607
"""Seed of every sample of rows, marginals and queries: fixed, so that runs can be compared."""

TEST_SHARE = 0.2
"""Share of the real rows that is held out, in sweeps and where the caller has no test table."""

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Comparison:
    """The tables in the same codes, and reference tables from the real one.

    Parameters
    ----------
    view : View
    real, synthetic : Coded
    train, test : Coded
        Real rows for training, and other real rows for tests.
    resampled, independent : Coded
        As many rows as the synthetic table: real rows sampled with replacement; columns sampled
        independently.
    target : str or None
        The column that models predict.
    models : tuple of str
        The models that are trained.
    """

    view: View
    real: Coded
    synthetic: Coded
    train: Coded
    test: Coded
    resampled: Coded
    independent: Coded
    target: str | None = None
    models: tuple[str, ...] = ()
    _results: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        real: Any,
        synthetic: Any,
        schema: Schema | None,
        *,
        test: Any = None,
        target: str | None = None,
        models: bool | Sequence[str] = False,
    ) -> Comparison:
        """Read and encode the tables; see `evaluate`."""
        given = {"real": real, "synthetic": synthetic} | ({} if test is None else {"test": test})
        view, coded = code_together(read_together(given, schema), schema)
        if target is not None and target not in view.domain.names:
            meant = did_you_mean(target, view.domain.names)
            raise InputError(f"target {safe_repr(target)} is not a compared column{meant}")
        tables = dict(zip(given, coded, strict=True))
        rng = np.random.default_rng(SEED)
        whole, rows = tables["real"], len(tables["synthetic"])
        train, held_out = (whole, tables["test"]) if "test" in tables else _split(whole, rng)
        return cls(
            view,
            whole,
            tables["synthetic"],
            train,
            held_out,
            whole.resample(rows, rng),
            whole.unlink(rows, rng),
            target,
            chosen_learners(models),
        )

    def compare(self, measure: Callable[[Coded, Mapping[str, Coded]], dict[str, Found]]) -> dict[str, Found]:
        """Return the results of `measure` for the synthetic table and each reference table.

        Held-out rows are compared with the other real rows, not with a table that may contain them.
        """
        others = {"synthetic": self.synthetic, "real": self.resampled, "independent": self.independent}
        return measure(self.real, others) | measure(self.train, {"held_out": self.test})

    def compare_each(self, measure: Callable[[Coded, Coded], Found]) -> dict[str, Found]:
        """Return the same for a measure of the real table and one other."""
        return self.compare(lambda real, others: {name: measure(real, t) for name, t in others.items()})

    def compare_records(
        self, measure: Callable[[Records, Mapping[str, Records]], dict[str, Found]]
    ) -> dict[str, Found]:
        """Return the same for a measure of codes."""
        return self.compare(
            lambda real, others: measure(real.records, {name: t.records for name, t in others.items()})
        )

    def once(self, compute: Callable[[Comparison], Found]) -> Found:
        """Return `compute(self)`, computed once: several metrics share it."""
        if compute not in self._results:
            self._results[compute] = compute(self)
        return cast(Found, self._results[compute])


def read_together(tables: Mapping[str, Any], schema: Schema | None) -> list[pd.DataFrame]:
    """Read the tables. Refuse empty ones, and without a schema tables with different columns."""
    frames = {name: read_in_memory(table, schema).frame for name, table in tables.items()}
    for name, frame in frames.items():
        if not len(frame):
            raise InputError(f"the {name} table has no rows: give a table with rows")
        if schema is None and set(frame.columns) != set(frames["real"].columns):
            raise InputError(
                f"the {name} table has other columns than the real one: give a schema of the columns to use"
            )
    return [*frames.values()]


def _split(table: Coded, rng: np.random.Generator) -> tuple[Coded, Coded]:
    """Split rows for training and tests, at least one of each; a single row is used for both."""
    order = rng.permutation(len(table))
    cut = max(1, round((1 - TEST_SHARE) * len(table)))
    return table.take(order[:cut]), table.take(order[cut:] if cut < len(table) else order)
