"""Find where a function of a column's values changes, by bisection: the function itself is only called.

The code of a number is a function of it that goes up in steps (bins, rounding, clipping). SQL must have the
same steps to the last bit, so none of that arithmetic is written a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from privsyn.marginals.domain import Ints

CodeOf = Callable[[Ints], Ints]
"""The code of each numbered value of a column; see `privsyn.table.engine.scales`."""


@dataclass(frozen=True, eq=False)
class Steps:
    """A function of the numbered values of a column that is constant between its thresholds.

    Parameters
    ----------
    thresholds : integer array of shape (n,)
        Ascending.
    codes : integer array of shape (n + 1,)
        The code below the first threshold, and from each threshold on.
    """

    thresholds: Ints
    codes: Ints

    def code(self, numbers: Ints) -> Ints:
        """Return the code of each value."""
        return self.codes[np.searchsorted(self.thresholds, numbers, side="right")]


def steps_of(code_of: CodeOf, ends: tuple[int, int], breaks: Iterable[int] = ()) -> Steps:
    """Return where a function changes.

    Parameters
    ----------
    code_of : callable
        Between two breaks it never goes down.
    ends : pair of int
        The numbers of the first and the last value.
    breaks : iterable of int
        Values at which it may go down.

    Examples
    --------
    >>> steps = steps_of(lambda numbers: numbers // 100, (-1000, 250), [])
    >>> steps.thresholds[-2:].tolist(), steps.codes[-2:].tolist()
    ([100, 200], [1, 2])
    """
    first, last = ends
    starts = [first, *sorted({at for at in breaks if first < at <= last}), last + 1]
    thresholds, codes = list[int](), list[int]()
    for start, end in pairwise(starts):
        inside, codes_there = _part(code_of, start, end - 1)
        thresholds += [start, *inside]
        codes += codes_there
    changes = np.flatnonzero(np.diff(codes)) + 1
    return Steps(np.array(thresholds, np.int64)[changes], np.array(codes, np.int64)[[0, *changes]])


def _part(code_of: CodeOf, first: int, last: int) -> tuple[list[int], list[int]]:
    """Return the thresholds after `first` of a function that never goes down, and its codes."""
    low, high = code_of(np.array([first, last], np.int64)).tolist()
    if high < low:
        raise ValueError("a code that goes down between two breaks")
    wanted = np.arange(low + 1, high + 1)
    below, reached = np.full(len(wanted), first, np.int64), np.full(len(wanted), last, np.int64)
    while (apart := np.flatnonzero(reached - 1 > below)).size:
        # Without overflow, also from one end of 64 bits to the other.
        middle = (below[apart] >> 1) + (reached[apart] >> 1) + (below[apart] & reached[apart] & 1)
        is_reached = code_of(middle) >= wanted[apart]
        reached[apart[is_reached]] = middle[is_reached]
        below[apart[~is_reached]] = middle[~is_reached]
    thresholds = np.unique(reached)
    codes = code_of(thresholds).tolist() if thresholds.size else []
    return thresholds.tolist(), [low, *codes]
