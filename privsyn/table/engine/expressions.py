"""Write codes of one column in SQL: comparisons with literals, in any dialect that sqlglot knows.

A cell that is missing, infinite or no number has a code of its own: each expression says so first. In some
dialects NaN is larger than all numbers, and in others no comparison with it holds, so the test is whether a
cell lies between the ends of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from privsyn.table.engine.scales import Scale
from privsyn.table.engine.sqlglot_later import exp
from privsyn.table.engine.steps import Steps

BRANCHES = 8
"""Branches of a CASE. Columnar engines pay for each CASE in each block: 2,000,000 doubles in 512 bins take
DuckDB 0.5 s with 8 branches, and 1.0 s with 2. MS SQL allows no more than ten levels of CASE."""

WIDE = 32
"""From this number of intervals on, engines that have lists search in them."""

RUN = 4
"""From this number on, codes that go up with the integers themselves are a subtraction."""


def case(branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr) -> exp.Expr:
    """Return CASE WHEN condition THEN result ... ELSE default END."""
    return exp.Case(ifs=[exp.If(this=test, true=result) for test, result in branches], default=default)


def tree(cell: exp.Expr, thresholds: Sequence[exp.Expr], results: Sequence[exp.Expr]) -> exp.Expr:
    """Return the result of the interval in which a cell lies, from `results`, of which there is one more.

    >>> from sqlglot import exp
    >>> tree(exp.column("x"), [exp.convert(3)], [exp.convert(0), exp.convert(1)]).sql()
    'CASE WHEN x < 3 THEN 0 ELSE 1 END'
    """
    if not thresholds:
        return results[0]
    ends = np.unique(np.linspace(0, len(results), min(BRANCHES, len(results)) + 1).astype(int)).tolist()
    parts = [
        (end, tree(cell, thresholds[start : end - 1], results[start:end])) for start, end in pairwise(ends)
    ]
    branches = [(exp.LT(this=cell.copy(), expression=thresholds[end - 1]), part) for end, part in parts[:-1]]
    return case(branches, parts[-1][1])


def element(elements: Sequence[exp.Expr], index: exp.Expr) -> exp.Expr:
    """Return an element of a list of constants, which are numbered from 0.

    >>> from sqlglot import exp
    >>> element([exp.convert(5), exp.convert(7)], exp.column("x")).sql("duckdb")
    'LIST_EXTRACT([5, 7], x + 1)'
    """
    number = exp.Add(this=index.copy(), expression=exp.convert(1))
    return exp.Anonymous(this="LIST_EXTRACT", expressions=[exp.Array(expressions=[*elements]), number])


@dataclass(frozen=True)
class Cell:
    """A column in SQL, with the type of its values.

    Parameters
    ----------
    sql : sqlglot expression
    scale : Scale, optional
        Default: its values are text or truth values, which have no numbers.
    """

    sql: exp.Expr
    scale: Scale | None = None

    def steps(
        self,
        steps: Steps,
        missing: int,
        passed: Callable[[exp.Expr, Sequence[exp.Expr]], exp.Expr] | None = None,
    ) -> exp.Expr:
        """Return the code of a cell by thresholds; `missing` where there is no finite value.

        Parameters
        ----------
        steps : Steps
        missing : int
        passed : callable, optional
            Returns how many of some thresholds are not above a cell. Default: no list is searched.
        """
        scale = self.scale
        if scale is None:
            raise ValueError("text has no thresholds")
        thresholds, results = self._segments(scale, steps)
        if passed is None or len(results) < WIDE:
            coded = tree(self.sql, list(map(scale.literal, thresholds)), results)
        else:
            number = passed(self.sql, list(map(scale.literal, steps.thresholds.tolist())))
            coded = element(list(map(exp.convert, steps.codes.tolist())), number)
        return case([(self._present, coded)], exp.convert(missing))

    def _segments(self, scale: Scale, steps: Steps) -> tuple[list[int], list[exp.Expr]]:
        """Return thresholds and results; codes that go up with integers are one segment, a subtraction."""
        numbers, codes = steps.thresholds.tolist(), steps.codes.tolist()
        if not scale.counts:
            return numbers, list(map(exp.convert, codes))
        starts, results = list[int](), [exp.convert(codes[0])]
        index = 0
        while index < len(numbers):
            end = index + 1
            while end < len(numbers) and numbers[end] - numbers[end - 1] == codes[end + 1] - codes[end] == 1:
                end += 1
            starts.append(numbers[index])
            if end - index < RUN:
                end = index + 1
                results.append(exp.convert(codes[index + 1]))
            else:
                base = codes[index + 1] - numbers[index]
                results.append(
                    exp.Add(this=exp.cast(self.sql.copy(), "bigint"), expression=exp.convert(base))
                )
                results.append(exp.convert(codes[end]))
                starts.append(numbers[end - 1])
            index = end
        return starts, results

    def listed(
        self, codes: Sequence[tuple[exp.Expr, int]], missing: int, unlisted: int | None = None
    ) -> exp.Expr:
        """Return the code of a listed value; that of others, or of missing cells.

        Parameters
        ----------
        codes : sequence of pairs of a literal and a code
            Ascending in the order of the engine.
        missing : int
        unlisted : int, optional
            The code of values that are not listed. Default: `missing`.
        """
        missing_code = exp.convert(missing)
        rest = missing_code if unlisted is None else exp.convert(unlisted)
        groups = [codes[start : start + BRANCHES] for start in range(0, len(codes), BRANCHES)]
        results = [
            case([(self.sql.copy().eq(literal), exp.convert(code)) for literal, code in group], rest.copy())
            for group in groups
        ]
        coded = tree(self.sql, [group[0][0] for group in groups[1:]], results) if groups else rest.copy()
        return case([(self._present, coded)], missing_code)

    @property
    def _present(self) -> exp.Expr:
        """Whether a cell is neither missing nor NaN nor infinite."""
        if self.scale is not None and (bounds := self.scale.bounds) is not None:
            low, high = bounds
            return exp.Between(this=self.sql.copy(), low=low, high=high)
        return self.sql.copy().is_(exp.null()).not_()
