"""Sums of two columns that are the same in all rows of nearly all parents, as year - age of a person.

Not private: it is read from the rows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privsyn.marginals.domain import Floats, Ints, Mask
from privsyn.table.database.constant_sums import ConstantSum
from privsyn.table.drafting.candidates import HEAD_ROWS, Proposal
from privsyn.table.drafting.drafted_table import FEWEST_PAIRS, NEARLY_ALL, DraftedTable
from privsyn.table.schema.columns import Numerical
from privsyn.table.schema.rules import ROUNDING

LEAST_TOGETHER = 0.5
"""Of the steps in which one of two columns changes, the least share in which the other one changes as much.
It is small for columns that change at different times. Ages at an interview step by 0 or 2 at times."""

OFF_BY_ONE = 1.0
"""By how much the sums of one parent may differ if the columns are rounded, as such ages are."""

FEWEST_SUMS = 10
"""Different sums of parents: of fewer, the sum is rather the same in all rows, or a class."""


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps from a row to the next one of the same parent.

    Parameters
    ----------
    before, after : integer arrays of shape (steps,)
        The two rows.
    parents : integer array of shape (steps,)
    """

    before: Ints
    after: Ints
    parents: Ints

    def between(self, numbers: Floats) -> Floats:
        """Return by how much a column changes in each step; NaN where it is missing."""
        return numbers[self.after] - numbers[self.before]


def constant_sums(table: DraftedTable, without: Collection[str]) -> dict[str, Proposal]:
    """Return the columns that are computed from sums which nearly all parents have in all rows, and the sums.

    Parameters
    ----------
    table : DraftedTable
    without : collection of str
        The columns that follow from another table. They are in no sum.
    """
    if table.parent is None or len(table.pairs[0]) < FEWEST_PAIRS:
        return {}
    steady = {*table.belonging_to_parent()}
    numbers = {
        name: column.numbers(table.frame[name])
        for name, column in table.schema.coded.items()
        if isinstance(column, Numerical) and name not in {*without, *steady, *table.row_numbers}
    }
    before, after = table.pairs
    steps = Steps(before, after, table.parents[after])
    numbers_of_parents = [
        column.numbers(table.frame[name])
        for name, column in table.schema.coded.items()
        if isinstance(column, Numerical) and name in steady
    ]
    proposals, parts = dict[str, Proposal](), set[str]()
    # The order is computed from no other column. Of two others, the one that comes last is computed.
    names = sorted(numbers, key=lambda name: name != table.order)
    for first, last in combinations(names, 2):
        if last in parts or {first, last} & proposals.keys():
            continue
        for sign in (-1, 1):
            sums = numbers[first] + sign * numbers[last]
            if not _change_together(steps, numbers[first], sign * numbers[last]):
                continue
            if any(_is_shifted(sums, column) or _is_shifted(sums, -column) for column in numbers_of_parents):
                continue  # a column has the sum already, and another rule says so
            rule = ConstantSum(((first, 1), (last, sign)))
            if (proposal := _proposal(rule, sums, steps, table.parent)) is not None and ConstantSum.read(
                str(rule)
            ) == rule:
                proposals[last] = proposal
                parts.add(first)
    return proposals


def _change_together(steps: Steps, first: Floats, last: Floats) -> bool:
    """Return whether both columns change together in most steps; some are looked at before all are."""
    some = slice(None, None, max(1, len(steps.after) // HEAD_ROWS))
    few = Steps(steps.before[some], steps.after[some], steps.parents[some])
    return (
        _share_together(few, first, last) >= LEAST_TOGETHER / 2
        and _share_together(steps, first, last) >= LEAST_TOGETHER
    )


def _share_together(steps: Steps, first: Floats, last: Floats) -> float:
    """Return in which share of the steps that change one of two columns their sum stays the same."""
    in_first, in_last = steps.between(first), steps.between(last)
    in_sum = in_first + in_last
    changing = ((in_first != 0) | (in_last != 0)) & np.isfinite(in_sum)
    return float((_are_zero(in_sum, first[steps.after]) & changing).sum() / max(changing.sum(), 1))


def _are_zero(differences: Floats, numbers: Floats) -> Mask:
    return np.abs(differences) <= ROUNDING * np.maximum(np.abs(numbers), 1.0)


def _is_shifted(sums: Floats, column: Floats) -> bool:
    """Return whether nearly all sums differ from a column by one number."""
    apart = sums - column
    apart = apart[np.isfinite(apart)]
    return len(apart) > 0 and float(_are_zero(apart - np.median(apart), apart).mean()) >= NEARLY_ALL


def _proposal(rule: ConstantSum, sums: Floats, steps: Steps, parent: str) -> Proposal | None:
    """Return the proposal of a rule that nearly all parents keep, or in which sums differ by at most one."""
    complete = np.isfinite(sums[steps.before]) & np.isfinite(sums[steps.after])
    parents, off = steps.parents[complete], np.abs(steps.between(sums)[complete])
    if len(off) < FEWEST_PAIRS:
        return None
    moved = ~_are_zero(off, sums[steps.after][complete])
    several = len(np.unique(parents))
    broken, far = (len(np.unique(parents[which])) for which in (moved, off > OFF_BY_ONE + ROUNDING))
    if far > (1 - NEARLY_ALL) * several:
        return None
    first_of_parents = sums[steps.before][np.unique(steps.parents, return_index=True)[1]]
    if len(np.unique(first_of_parents[np.isfinite(first_of_parents)])) < FEWEST_SUMS:
        return None
    note = ""
    if broken:
        by = f", {f'{far:,}' if far else 'none'} of them by more than one" if far < broken else ""
        note = f"{broken:,} of {several:,} {parent} with several rows break it{by}: the first row decides"
    return Proposal(str(rule), len(off), note=note)
