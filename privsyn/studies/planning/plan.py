"""A plan: what to expect of a run, in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import comb, nan
from typing import TYPE_CHECKING

import numpy as np

from privsyn.errors import plural, printable, spelled
from privsyn.methods.budget import ALL_FOR_BOUNDS
from privsyn.studies.planning.columns import ASSUMED_VALUES
from privsyn.studies.planning.counted_table import USUAL_DEPENDENCE, USUAL_LINK
from privsyn.studies.planning.criteria import PlannedCriterion
from privsyn.studies.planning.expectation import (
    COLUMN,
    LOST_IF_KEPT,
    LOST_IN_PART,
    NEXT,
    NUMBER,
    PAIR,
    PARENT,
    Expectation,
)

if TYPE_CHECKING:
    from privsyn.studies.planning.public_gain import PublicGain

HEADS = {
    COLUMN: "one column",
    PAIR: "two columns",
    PARENT: "parent and row",
    NEXT: "a row and the next",
    NUMBER: "number of rows",
}
"""The columns of a printed plan."""

INDEPENDENT = "if they were independent"

COMPARED = "  what `evaluate` may find"
"""The head of the line on errors in the groups and rows that `evaluate` compares."""


@dataclass(frozen=True)
class Plan:
    """The expected results of a run, for one or more numbers of rows.

    Parameters
    ----------
    epsilon, delta : float
        The privacy guarantee.
    rho : float
        The budget for one row: in zCDP, or an epsilon if delta is 0.
    sizes : mapping of a column to its number of values or bins
    to_find : tuple of str
        Columns whose values or bounds are not in the schema.
    untyped : bool
        Whether the table is a file without types, and there is no schema.
    expectations : tuple of Expectation
    rows_given : bool
        Whether the caller gave the number of rows.
    notes : tuple of str
        Sentences on the rows of a person, the bounds and the target.
    advice : str
        How the other law of noise compares at this epsilon: delta 0 if delta is above 0, and `USUAL_DELTA` if
        it is 0. Empty if there is nothing to gain.
    criteria : tuple of PlannedCriterion
        Whether each criterion is likely to be met.
    per_parent : mapping of a child table to the number of its rows for each row of its parent
        Of a second table of persons, for each row of the first. Empty without linked tables.
    assumed : tuple of str
        The tables for which this number was not given.
    in_parts : tuple of str
        The columns of times that are counted as several: date, time of day and day of the week.
    public_gain : PublicGain, optional
        What a public table would gain if the private table is like it.
    """

    epsilon: float
    delta: float
    rho: float
    sizes: dict[str, int]
    to_find: tuple[str, ...]
    untyped: bool
    expectations: tuple[Expectation, ...]
    rows_given: bool = False
    notes: tuple[str, ...] = ()
    advice: str = ""
    criteria: tuple[PlannedCriterion, ...] = ()
    per_parent: Mapping[str, float] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    in_parts: tuple[str, ...] = ()
    public_gain: PublicGain | None = None

    def __str__(self) -> str:
        lines = [f"epsilon {self.epsilon:g} at delta {self.delta:g}"]
        if self.sizes:
            return "\n".join(map(printable, lines + self._lines()))
        if self.per_parent:
            rows = ", ".join(f"{name} {number:g}" for name, number in self.per_parent.items())
            first, *tables = self.expectations[0].tables
            is_without = any(table.parent is None for table in tables)
            without = f" (of {first.name} for tables without a parent)" if is_without else ""
            lines.append(f"rows for each row of the parent{without}: {rows}")
        if self.assumed:
            names = ", ".join(self.assumed)
            lines.append(
                f"assumed of {names}: if you may publish a rough number, give {spelled('rows_per_parent')}"
            )
        for expected in self.expectations:
            root = expected.tables[0].name
            width = max(len(table.name) for table in expected.tables)
            belonging = ", each with all that belongs to it" if self.per_parent else ""
            lines += ["", f"{expected.rows:,} rows of {root}{belonging}:"]
            lines.append("  ".join([" " * width, f"{'rows':>11}  budget  bound", *HEADS.values()]))
            for table in expected.tables:
                facts = f"{table.rows:>11,.0f}  {table.share:>6.0%}  {table.bound:>5}"
                cells = [
                    f"{f'{table.errors[kind]:.1%}' if kind in table.errors else '':>{len(head)}}"
                    for kind, head in HEADS.items()
                ]
                lines.append("  ".join([f"{table.name:<{width}}", facts, *cells]))
            kinds = {kind for table in expected.tables for kind in table.errors}
            usual = {PAIR: USUAL_DEPENDENCE, PARENT: USUAL_LINK, NEXT: USUAL_LINK, NUMBER: USUAL_LINK}
            cells = [
                f"{f'{usual[kind]:.1%}' if kind in kinds & set(usual) else '':>{len(head)}}"
                for kind, head in HEADS.items()
            ]
            indent = " " * max(width + 28 - len(INDEPENDENT), 0)
            lines.append("  ".join([f"{INDEPENDENT}{indent}", *cells]).rstrip())
            lines += [*expected.ranges, *expected.sentences]
        notes = NOTES_ON_LINKS if self.per_parent else NOTES_ON_TABLES
        return "\n".join(map(printable, [*lines, "", *notes]))

    def _lines(self) -> list[str]:
        """Return what to expect of one table."""
        all_rows = self.expectations
        title = "rows of the table, as given" if self.rows_given else "if the table has this many rows"
        lines = [(title, [f"{e.rows:,}" for e in all_rows])]
        for part in all_rows[0].root.parts:
            lines.append(
                (f"budget for {PARTS.get(part, part)}", [f"{e.root.parts[part]:.1%}" for e in all_rows])
            )
        lines.append(("noise in a count of one column", [f"{e.root.count_noise:,.1f}" for e in all_rows]))
        lines.append(("error of one column, expected", [_error(e.one_way_error) for e in all_rows]))
        if len(self.sizes) > 1:
            lines.append(("  of the worst column", [_error(e.root.largest) for e in all_rows]))
        finer = {kind: [_error(e.root.compared.get(kind, nan)) for e in all_rows] for kind in (COLUMN, PAIR)}
        lines.append((COMPARED, finer[COLUMN]))
        if len(self.sizes) > 1:
            lines.append(("error of two columns, expected", [_error(e.pair_error) for e in all_rows]))
            ranges = [e.root.pair_range for e in all_rows]
            for words, end in (("weakly", 0), ("strongly", 1)):
                lines.append((f"  if they depend {words}", [_error(ends[end]) for ends in ranges]))
            lines.append((COMPARED, finer[PAIR]))
            usual = [_error(USUAL_DEPENDENCE)] * len(all_rows)
            lines.append(("the same, if columns were independent", usual))
        for columns_in_words in all_rows[0].root.important:
            lines.append(
                (
                    f"error of {columns_in_words}, expected",
                    [_error(e.root.important[columns_in_words]) for e in all_rows],
                )
            )
        times = [f"{e.seconds:.0f} s" if e.seconds < 100 else f"{e.seconds / 60:.0f} min" for e in all_rows]
        lines.append(("time of fit and sample, about", times))
        lines.append(("memory, about", [f"{e.memory / 1e9:.1f} GB" for e in all_rows]))
        width = max(len(title) for title, _ in lines)
        columns = len(self.sizes)
        public_sizes = [(name, size) for name, size in self.sizes.items() if name not in self.to_find]
        largest = sorted(public_sizes, key=lambda item: -item[1])[:3]
        largest_in_words = ", ".join(f"{name} ({size:,})" for name, size in largest)
        parts = f" with the parts of times ({', '.join(self.in_parts)})" if self.in_parts else ""
        head = [
            f"{plural(columns, 'column')}{parts}, {plural(comb(columns, 2), 'pair')}"
            + (f"; most values or cells: {largest_in_words}" if largest_in_words else "")
        ]
        head += [self.advice] if self.advice else []
        if self.to_find:
            head.append(
                f"values or bounds to be found: {', '.join(self.to_find)}"
                f" (planned with {ASSUMED_VALUES} values each)"
            )
        if self.untyped:
            head.append(
                "which columns hold numbers is not known before the file is read:"
                f" to find their bounds takes {ALL_FOR_BOUNDS[0]:.0%} more, or"
                f" up to {ALL_FOR_BOUNDS[1]:.0%} if there are few rows"
            )
        head += self.notes
        table = [f"{title:<{width}}" + "".join(f"{cell:>12}" for cell in cells) for title, cells in lines]
        tests = ["criteria:", *map(str, self.criteria), ""] if self.criteria else []
        gain = [] if self.public_gain is None else [*str(self.public_gain).splitlines(), ""]
        return [*head, "", *table, "", *gain, *tests, *NOTES]


PARTS = {
    "values, bounds and grids": "finding values, bounds, grids",
    "one-ways": "single columns",
    "scores": "choosing pairs",
}
"""Parts of the budget in plain words."""

DEPENDS = (
    "No plan knows how strongly columns depend: the error of two columns is in the range, not at the number."
)

NOTES = (
    "An error is the share of rows that would have to change: a mean over all columns or all pairs.",
    DEPENDS,
    "Errors are of the groups in which a run counts: `evaluate` compares rows in finer ones, with chance.",
    "To load the libraries takes a few seconds more, and 5 to 20 s once on each machine, to compile loops.",
    "Nothing was spent, and no row was read.",
)


NOTES_ON_TABLES = (
    "An error is the share of rows that would have to change: a mean over columns, or over pairs of columns.",
    DEPENDS,
    "Nothing was spent, and no row was read.",
)

NOTES_ON_LINKS = (
    *NOTES_ON_TABLES[:-1],
    f"A link is kept if at most {LOST_IF_KEPT:.0%} of a usual dependence is lost,"
    f" and lost from {LOST_IN_PART:.0%} on.",
    NOTES_ON_TABLES[-1],
)


def _error(share: float) -> str:
    return "" if np.isnan(share) else f"{share:.2%}"


def errors_in_words(expected: tuple[Expectation, ...]) -> str:
    """Return the error that is expected for each number of rows."""
    return ", ".join(f"{_error(e.error)} ({e.rows:,} rows)" for e in expected)
