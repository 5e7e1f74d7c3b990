"""What a public table would gain: a run on half of its rows, with the other half as the public table.

No private row is read. The rows of the first half, drawn with replacement until there are as many as planned,
stand in for the private table. So the numbers hold if the private table is like the public one. That it is
not shows in the run, which then makes nothing from the public table.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.errors import InputError, plural, safe_repr, short, spelled
from privsyn.evaluation.evaluate import evaluate
from privsyn.release.public_table import PublicTable
from privsyn.synthesizer import PrivSyn

if TYPE_CHECKING:
    import pandas as pd

    from privsyn.settings import Settings
    from privsyn.table.schema.schema import Schema

MOST_ROWS = 50_000  # rows of a simulated run: with more a public table gains little
LEAST_ROWS = 20  # of a public table, half of which is a table of its own
SEED = 0  # of the halves, the noise and the sample: a plan says the same each time


@dataclass(frozen=True)
class PublicGain:
    """The error of pairs of columns with a public table and without, of one simulated run each.

    Parameters
    ----------
    rows : int
        Of the simulated private table.
    alone, improved : float
        Mean total variation of all pairs of columns, of drawn rows.
    fact : str
        What the ledger of the second run says of the public table.
    """

    rows: int
    alone: float
    improved: float
    fact: str

    def __str__(self) -> str:
        return (
            f"If the private table is like the public one: error of two columns {self.alone:.2%} without it"
            f" and {self.improved:.2%} with it,\nchance of drawing rows included. Simulated with"
            f" {plural(self.rows, 'row')} drawn from one half of it, and the other half as public:"
            f"\n{self.fact}."
        )


def simulate_public_gain(
    public: Any, settings: Settings, schema: Schema | None, columns: Collection[str], rows: int
) -> PublicGain:
    """Return the errors of a run with a public table and without.

    Parameters
    ----------
    public : table, or the path of one
    settings : Settings
        Of the run; epsilon, delta, the target and what is important count.
    schema : Schema, optional
        Of the private table.
    columns : collection of str
        Its columns.
    rows : int
        The number of rows that is planned for.

    Raises
    ------
    InputError
        If the public table has few rows, or lacks a column of the private one.
    """
    frame = PublicTable.read(public, schema).rows
    if lacking := [name for name in columns if name not in frame]:
        raise InputError(f"{spelled('public')}: a plan needs all columns; it lacks {safe_repr(lacking[0])}")
    if len(frame) < LEAST_ROWS:
        raise InputError(f"{spelled('public')}: a plan needs at least {LEAST_ROWS} rows; it has {len(frame)}")
    frame = frame[list(columns)]
    order = np.random.default_rng(SEED).permutation(len(frame))
    first, second = (frame.iloc[half].reset_index(drop=True) for half in np.array_split(order, 2))
    number = min(rows, MOST_ROWS)
    private: pd.DataFrame = first.sample(number, replace=True, random_state=SEED, ignore_index=True)
    run = PrivSyn(
        settings.epsilon,
        settings.delta,
        schema,
        target=settings.target,
        important=settings.important,
        allow_weak_privacy=settings.allow_weak_privacy,
        seed=SEED,
    )
    release = run.fit(private).release_
    better = release.with_public(second, target=settings.target)
    samples = [candidate.sample(number, seed=SEED) for candidate in (release, better)]
    alone, improved = (
        evaluate(private, sample, schema, models=False).pair_mean.synthetic for sample in samples
    )
    return PublicGain(number, alone, improved, short(better.ledger.public_inputs[-1]))
