"""Stage 4: the gradual update method (GUM), which turns tables of counts into records.

GUM starts from any records and visits the tables, the one with the largest error first. It moves some rows
from cells with too many rows to cells with too few. Each visit corrects only a part of the error, so that
visits to different tables do not undo each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Codes, Floats, Ints
from privsyn.methods.paper import _kernels
from privsyn.progress import Progress, no_progress


def step_decay(round_: int) -> float:
    """Return the step size of a round, 0.84^floor(round / 20); Zhang et al. 2021, Section 5.3.

    Examples
    --------
    >>> step_decay(0), step_decay(39)
    (1.0, 0.84)
    """
    return 0.84 ** (round_ // 20)


def alternate_duplication(round_: int) -> float:
    """Return the share of rows that are copied whole: half in even rounds, all in odd ones.

    Copying keeps the relations of a row to all other attributes, but makes no new rows. Overwriting makes new
    rows, but breaks relations. Zhang et al. 2021, Section 5.2.
    """
    return 0.5 if round_ % 2 == 0 else 1.0


@dataclass(frozen=True)
class _Target:
    """One table in the form that the kernels need."""

    columns: Ints
    strides: Ints
    counts: Floats  # flat, scaled to the number of rows

    @classmethod
    def of(cls, table: Marginal, domain: Domain, n: int) -> _Target:
        counts = table.counts.ravel() * (n / table.total)
        return cls(
            np.array(domain.axes(table.attributes), np.int64),
            np.array(table.domain.strides, np.int64),
            counts,
        )

    def error(self, codes: Codes) -> float:
        cells = _kernels.cell_of_rows(codes, self.columns, self.strides)
        return float(np.abs(_kernels.count_cells(cells, len(self.counts)) - self.counts).sum())


def gradually_update(
    start: Records,
    tables: tuple[Marginal, ...],
    rng: np.random.Generator,
    *,
    rounds: int,
    step: Callable[[int], float] = step_decay,
    duplication: Callable[[int], float] = alternate_duplication,
    progress: Progress = no_progress,
) -> Records:
    """Move the records towards the tables and return the best state.

    Parameters
    ----------
    start : Records
        The first state. Its number of rows is kept.
    tables : tuple of Marginal
        Non-negative, consistent counts with a positive total. They are scaled to the number of rows.
    rounds : int
        Number of visits to each table.
    step, duplication : functions of the round

    Returns
    -------
    Records
        The state with the smallest sum over tables of absolute differences in counts, among the states at the
        start of each round and at the end.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 5.2 and 5.3.
    """
    targets = [_Target.of(table, start.domain, len(start)) for table in tables]
    codes = np.array(start.codes, order="F")
    best, least = start.codes, np.inf
    for round_ in range(rounds + 1):
        errors = np.array([target.error(codes) for target in targets])
        if errors.sum() < least:
            best, least = codes.copy(order="F"), float(errors.sum())
        if round_ == rounds or not len(targets) or not len(codes):
            break
        for place in np.argsort(-errors, kind="stable"):
            target = targets[place]
            _kernels.update_table(
                codes, target.columns, target.strides, target.counts, step(round_), duplication(round_), rng
            )
        progress("synthesising", round_ + 1, rounds)
    return Records(start.domain, best)
