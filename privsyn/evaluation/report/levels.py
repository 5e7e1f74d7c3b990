"""Coarser codes for display: at most a dozen levels for each column, so that a pair fits on a screen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privsyn.evaluation.encoding import OTHER, View
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.types import Ints, keep
from privsyn.table.encoding.words import MISSING

MOST_LEVELS = 10
"""Largest number of levels, apart from missing cells."""


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of one column.

    Parameters
    ----------
    labels : tuple of str
    of_code : integer array
        The level of each code.
    """

    labels: tuple[str, ...]
    of_code: Ints

    def __post_init__(self) -> None:
        keep(self, "of_code")
        if self.of_code.max(initial=0) >= len(self.labels):
            raise ValueError(f"level {self.of_code.max()} has no label: there are {len(self.labels)} labels")


def coarsen(view: View, real: Records) -> tuple[Levels, ...]:
    """Return levels of each column: adjacent bins are merged to similar shares, rare values to one level."""
    result = []
    for axis, size in enumerate(view.domain.sizes):
        counts = np.bincount(real.codes[:, axis], minlength=size)
        bins = view.domain.ordered[axis]
        result.append((_merged if bins else _most_frequent)(view.labels[axis], counts))
    return tuple(result)


def recode(records: Records, levels: tuple[Levels, ...]) -> Records:
    """Return the same rows in levels."""
    domain = Domain(records.domain.names, tuple(len(level.labels) for level in levels))
    columns = [level.of_code[records.codes[:, axis]] for axis, level in enumerate(levels)]
    return Records(domain, np.column_stack(columns))


def _merged(labels: tuple[str, ...], counts: Ints) -> Levels:
    """Merge adjacent bins until a level has its share of the rows."""
    missing = labels[-1] == MISSING
    bins = len(labels) - missing
    weights = counts[:bins].astype(np.float64)
    middle = (np.cumsum(weights) - weights / 2) / max(weights.sum(), 1)
    rough = np.arange(bins) if bins <= MOST_LEVELS else np.minimum(middle * MOST_LEVELS, MOST_LEVELS - 1)
    used, level = np.unique(rough.astype(np.int64), return_inverse=True)
    words = []
    for place in range(len(used)):
        first, *_, last = [part for label in np.array(labels[:bins])[level == place] for part in _ends(label)]
        words.append(first if first == last else f"{first} to {last}")
    if missing:
        words.append(MISSING)
        level = np.append(level, len(used))
    return Levels(tuple(words), level)


def _ends(label: str) -> tuple[str, str]:
    first, _, last = label.partition(" to ")
    return first, last or first


def _most_frequent(labels: tuple[str, ...], counts: Ints) -> Levels:
    """Return the most frequent values, and one level for the others."""
    missing = labels[-1] == MISSING
    values = len(labels) - missing
    order = np.argsort(-counts[:values], kind="stable")
    kept = order if values <= MOST_LEVELS else order[: MOST_LEVELS - 1]
    words = [labels[code] for code in kept]
    level = np.full(values, len(kept))
    level[kept] = np.arange(len(kept))
    if len(kept) < values:
        words.append(OTHER)
    if missing:
        level = np.append(level, len(words))
        words.append(MISSING)
    return Levels(tuple(words), level)
