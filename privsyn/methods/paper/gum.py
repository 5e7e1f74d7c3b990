"""Stage 4: the gradual update method (GUM), which turns tables of counts into records.

It starts from any records and visits the tables, worst first. Rows of over-full cells are moved to
under-full ones, only a part of the way at a time, so that the visits to different tables do not undo
each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Codes, Floats, Ints
from privsyn.methods.paper import _kernels
from privsyn.progress import Progress


def step_decay(round_: int) -> float:
    """Step size of a round: 0.84^floor(round / 20), the paper's; Zhang et al. 2021, Section 5.3.

    Examples
    --------
    >>> step_decay(0), step_decay(39)
    (1.0, 0.84)
    """
    return 0.84 ** (round_ // 20)


def alternate_duplication(round_: int) -> float:
    """Share of rows gained by copying whole rows: half in even rounds, all in odd ones.

    Copying keeps a row's links to all other attributes but makes nothing new; overwriting makes new
    rows but breaks links. Zhang et al. 2021, Section 5.2.
    """
    return 0.5 if round_ % 2 == 0 else 1.0


@dataclass(frozen=True)
class _Target:
    """One table, as the kernels want it."""

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
    progress: Progress | None = None,
) -> Records:
    """Move the records towards the tables and return the best state met.

    Parameters
    ----------
    start : Records
        Where to begin; its number of rows is kept.
    tables : tuple of Marginal
        Non-negative, agreeing counts with a positive total; scaled to the number of rows.
    rounds : int
        How often every table is visited.
    step, duplication : functions of the round

    Returns
    -------
    Records
        Those with the smallest sum over tables of absolute differences in counts, seen at the start
        of a round or at the end.

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
        if progress is not None:
            progress("synthesising", round_ + 1, rounds)
    return Records(start.domain, best)
