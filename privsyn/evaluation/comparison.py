"""Comparison: the two tables in the same codes, and the yardsticks made of the real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.evaluation.encoding import Coded, View, code_together
from privsyn.evaluation.marginals import SEED
from privsyn.table.io.read import read_table
from privsyn.table.schema.schema import Schema

TEST_SHARE = 0.2
"""Of the real rows, held out where the caller has no test table, and from the runs of a sweep."""

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Comparison:
    """The tables in the same codes, and the yardsticks made of the real one.

    Parameters
    ----------
    view : View
    real, synthetic : Coded
    train, test : Coded
        Real rows to learn from, and others to be tried on.
    afresh, independent : Coded
        As many rows as the synthetic table has: real rows drawn with replacement; columns drawn alone.
    """

    view: View
    real: Coded
    synthetic: Coded
    train: Coded
    test: Coded
    afresh: Coded
    independent: Coded

    @classmethod
    def of(cls, real: Any, synthetic: Any, schema: Schema | None, *, test: Any = None) -> Comparison:
        """Read and code the tables; see `evaluate`."""
        given = {"real": real, "synthetic": synthetic} | ({} if test is None else {"test": test})
        view, coded = code_together(read_together(given, schema), schema)
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
        )

    def beside(self, measure: Callable[[Coded, Mapping[str, Coded]], dict[str, Found]]) -> dict[str, Found]:
        """What a measure finds of the synthetic table and of each yardstick against the real rows.

        Rows held out are compared with the rest, not with a table that they may be part of.
        """
        others = {"synthetic": self.synthetic, "real": self.afresh, "independent": self.independent}
        return measure(self.real, others) | measure(self.train, {"held_out": self.test})


def read_together(tables: Mapping[str, Any], schema: Schema | None) -> list[pd.DataFrame]:
    """The tables, each of some rows and, where no schema names columns, of those of the real one."""
    frames = {name: read_table(table, schema).frame for name, table in tables.items()}
    for name, frame in frames.items():
        if not len(frame):
            raise InputError(f"the {name} table has no rows: there is nothing to compare")
    if schema is None:
        _check_same_columns(frames)
    return [*frames.values()]


def _check_same_columns(frames: Mapping[str, pd.DataFrame]) -> None:
    names = set(frames["real"].columns)
    for role, frame in frames.items():
        if set(frame.columns) != names:
            raise InputError(
                f"the {role} table has other columns than the real one: a schema says which to compare"
            )


def _split(table: Coded, rng: np.random.Generator) -> tuple[Coded, Coded]:
    """Rows to learn from and rows to be tried on, at least one of each; a table of one row is both."""
    order = rng.permutation(len(table))
    cut = max(1, round((1 - TEST_SHARE) * len(table)))
    return table.take(order[:cut]), table.take(order[cut:] if cut < len(table) else order)
