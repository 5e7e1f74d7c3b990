"""Repair: enforce all constraints of a schema on drawn rows, so that every row keeps every rule.

First, numbers are drawn again within their groups. A row that still breaks a rule takes the columns of that
rule from the most similar row that keeps all rules. There is no rejection sampling.

Constraints that contradict the columns or each other are refused before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Integers, Mask, Numbers
from privsyn.marginals.nearest_rows import nearest_rows
from privsyn.marginals.statistics import components
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.constraint import Columns, Constraint, about_constraint, computed_by, in_order
from privsyn.table.schema.draws import Cells, DrawnRows
from privsyn.table.schema.rules import Computation, Rule

MOST_CELLS = 2**20  # largest table of possible cells; rules on larger tables are enforced by repair alone
MOST_DONORS = 100_000  # most rows in which the most similar one is searched
MOST_TRIES = 20_000  # most values tried in the search for a row that keeps all rules
FEW_VALUES = 30  # all values of columns with at most this number are tried


class TooManyError(Exception):
    """Raised if the search for a row that keeps all rules takes too long."""


@dataclass(frozen=True, eq=False)
class Repair:
    """The rules and computations of a schema.

    Parameters
    ----------
    columns : mapping of a name to its column
    rules : tuple of Rule
    computations : tuple of Computation
        Each after those that it needs.
    """

    columns: Mapping[str, Coded]
    rules: tuple[Rule, ...] = ()
    computations: tuple[Computation, ...] = ()

    @classmethod
    def of(cls, columns: Columns, constraints: Sequence[Constraint]) -> Repair:
        """Return the rules and computations of constraints. All values and bounds must be known."""
        computing = computed_by(constraints)
        return cls(
            columns,
            tuple(rule for constraint in constraints for rule in constraint.rules(columns)),
            tuple(computing[name].computation(columns) for name in in_order(computing)),
        )

    def joined(self, rules: Sequence[Rule], columns: Mapping[str, Coded]) -> Repair:
        """Return the same with rules that come first, some of whose columns are known of other rows."""
        return replace(self, rules=(*rules, *self.rules), columns={**self.columns, **columns})

    @property
    def computed(self) -> tuple[str, ...]:
        """The columns that are computed from others."""
        return tuple(computation.column for computation in self.computations)

    def possible(self, cells: Mapping[str, Cells]) -> Iterator[tuple[tuple[str, ...], Mask]]:
        """Yield the columns and the possible cells of each rule with structural zeros in merged codes."""
        for rule in self.rules:
            rule_cells = [cells[name] for name in rule.columns if name in cells]
            if len(rule_cells) == len(rule.columns) and prod(c.merged for c in rule_cells) <= MOST_CELLS:
                mask = rule.possible(rule_cells)
                if not mask.all():
                    yield rule.columns, mask

    def holds(self, numbers: Numbers) -> Mask:
        """Return which rows keep the rules on these columns. Computed columns are used as given."""
        holding = np.ones(len(next(iter(numbers.values()))), np.bool_)
        for rule in self.rules:
            if set(rule.columns) <= set(numbers):
                holding &= rule.holds(numbers)
        return holding

    def compute(self, numbers: dict[str, Floats]) -> None:
        """Fill in the computed columns."""
        for computation in self.computations:
            numbers[computation.column] = computation.make(numbers)

    def enforce(self, rows: DrawnRows, rng: np.random.Generator) -> None:
        """Change rows so that all keep all rules, and fill in the computed columns."""
        self.compute(rows.numbers)
        for rule in self.rules:
            broken = np.flatnonzero(~rule.holds(rows.numbers))
            if len(broken):
                rule.repair(rows, broken, rng)
                self.compute(rows.numbers)  # for all rows: swaps may have changed rows that kept the rule
        for names, rules in self.parts:
            holding = np.ones(len(rows.numbers[names[0]]), np.bool_)
            for rule in rules:
                holding &= rule.holds(rows.numbers)
            if not holding.all():
                self._copy(rows, names, holding, rng)

    @property
    def parts(self) -> list[tuple[tuple[str, ...], list[Rule]]]:
        """The groups of columns that rules connect, each with its rules; computed columns come last."""
        ruled = [rule.columns for rule in self.rules]
        computed = [(*computation.by, computation.column) for computation in self.computations]
        order = [*(name for name in self.columns if name not in self.computed), *self.computed]
        return [
            (tuple(name for name in order if name in part), rules)
            for part in components([*ruled, *computed])
            if (rules := [rule for rule in self.rules if set(rule.columns) <= part])
        ]

    def example(
        self, names: tuple[str, ...], fixed: Mapping[str, float], cells: Mapping[str, Cells]
    ) -> dict[str, float] | None:
        """Return numbers for connected columns that keep all rules; None if there are none.

        Raises
        ------
        TooManyError
            If none was found in `MOST_TRIES` tries.
        """
        rules = [rule for rule in self.rules if set(rule.columns) <= set(names)]
        computations = [computation for computation in self.computations if computation.column in names]
        free = [name for name in names if name not in self.computed]
        free.sort(key=lambda name: name not in fixed)  # what is fixed decides most: it comes first
        choices = [
            [fixed[name]] if name in fixed else self._choices(name, rules, cells.get(name)) for name in free
        ]
        tries = [MOST_TRIES]

        def search(depth: int, row: dict[str, Floats]) -> dict[str, Floats] | None:
            row = dict(row)
            for computation in computations:
                if set(computation.by) <= set(row):
                    row[computation.column] = computation.make(row)
                    if (
                        computation.column in fixed
                        and row[computation.column][0] != fixed[computation.column]
                    ):
                        return None
            if not all(rule.holds(row)[0] for rule in rules if set(rule.columns) <= set(row)):
                return None
            if depth == len(free):
                return row
            for number in choices[depth]:
                tries[0] -= 1
                if tries[0] < 0:
                    raise TooManyError
                solution = search(depth + 1, row | {free[depth]: np.array([number])})
                if solution is not None:
                    return solution
            return None

        solution = search(0, {})
        return None if solution is None else {name: float(number[0]) for name, number in solution.items()}

    def _choices(self, name: str, rules: list[Rule], cells: Cells | None) -> list[float]:
        """Return the numbers to try: those that rules name, their neighbours, and all bounds."""
        column = self.columns[name]
        low, high = column.bounds
        named = [number for rule in rules for number in rule.numbers_of(name)]
        joined = {column for rule in rules if name in rule.columns for column in rule.columns}
        named += [
            end for column_beside in joined - set(self.computed) for end in self.columns[column_beside].bounds
        ]
        step = column.resolution
        tried = {low, high, *np.arange(low, min(high, low + FEW_VALUES * step), step).tolist()}
        tried |= {number + k * step for number in named for k in (-1, 0, 1)}
        choices = np.array(sorted(number for number in tried if low <= number <= high))
        if cells is not None:  # only points of the grid, without duplicates
            choices = np.unique(cells.snap(choices))
            choices = choices[~np.isnan(choices)]
        nullable = column.nullable if cells is None else cells.nullable
        return [*choices.tolist(), *([np.nan] if nullable else [])]

    def _copy(self, rows: DrawnRows, names: tuple[str, ...], holding: Mask, rng: np.random.Generator) -> None:
        """Replace columns of rows that break a rule by those of the most similar row that keeps all."""
        broken, donors = np.flatnonzero(~holding), np.flatnonzero(holding)
        if len(donors) > MOST_DONORS:
            donors = rng.choice(donors, MOST_DONORS, replace=False)
        fixed = [name for name in names if name in rows.fixed]
        order = [*fixed, *(name for name in names if name not in rows.fixed and name not in self.computed)]
        if len(donors):
            taken = donors[
                nearest_rows(
                    [rows.numbers[name][donors] for name in order],
                    np.ones(len(donors)),
                    [rows.numbers[name][broken] for name in order],
                    rng,
                )
            ]
            same = np.ones(len(broken), np.bool_)
            for name in fixed:
                numbers_broken, numbers_copied = rows.numbers[name][broken], rows.numbers[name][taken]
                same &= (numbers_broken == numbers_copied) | (
                    np.isnan(numbers_broken) & np.isnan(numbers_copied)
                )
            for name in names:
                rows.numbers[name][broken[same]] = rows.numbers[name][taken[same]]
            broken = broken[~same]
        if len(broken):
            self._invent(rows, names, fixed, broken)

    def _invent(self, rows: DrawnRows, names: tuple[str, ...], fixed: list[str], at: Integers) -> None:
        """Replace columns of rows by an example from a search, because no drawn row keeps the rules."""
        fixed_numbers = (
            np.stack([rows.numbers[name][at] for name in fixed], axis=1) if fixed else np.empty((len(at), 0))
        )
        distinct, which = np.unique(fixed_numbers, axis=0, return_inverse=True)
        for index, numbers in enumerate(distinct):
            example = None
            with suppress(TooManyError):
                example = self.example(names, dict(zip(fixed, numbers.tolist(), strict=True)), rows.cells)
            if example is None:
                if any(rule.may_be_broken for rule in self.rules if {*rule.columns} <= {*names}):
                    continue
                raise InputError(
                    f"no row was found that keeps the constraints on {', '.join(names)}: "
                    "change the constraints, or the given values"
                )
            for name in names:
                rows.numbers[name][at[which.ravel() == index]] = example[name]


def check_constraints(
    columns: Columns, constraints: Sequence[Constraint], *, row_known: bool = False
) -> None:
    """Refuse constraints that name a value outside its column, or that no row can keep.

    If a row is known that keeps them all, none is searched for: among 50 columns that may take minutes.
    """
    public = {name: column for name, column in columns.items() if column.is_public}
    decided = [constraint for constraint in constraints if set(constraint.columns) <= set(public)]
    for constraint in decided:
        with about_constraint(constraints.index(constraint) + 1):
            constraint.rules(public)
            constraint.check(public)
    repair = Repair.of(public, decided)
    for names, _ in () if row_known else repair.parts:
        with suppress(TooManyError):
            if repair.example(names, {}, {}) is None:
                about = [
                    str(number)
                    for number, constraint in enumerate(constraints, 1)
                    if constraint in decided and not {*names}.isdisjoint(constraint.columns)
                ]
                which, advice = ("s", "one of them") if len(about) > 1 else ("", "it")
                raise InputError(
                    f"no row can keep constraint{which} {', '.join(about)} on {', '.join(names)}:"
                    f" correct or delete {advice}"
                )


def rows_that_keep(columns: Columns, constraint: Constraint, numbers: Numbers) -> Mask:
    """Return which rows keep a constraint.

    A row keeps a computed column if the given or the computed number is missing, or if they differ by at most
    the tolerance. Private.
    """
    holding = np.ones(len(numbers[constraint.columns[0]]), np.bool_)
    for rule in constraint.rules(columns):
        holding &= rule.holds(numbers)
    if (name := constraint.computes) is not None:
        computation = constraint.computation(columns)
        error = np.abs(computation.make(numbers) - numbers[name])
        holding &= ~(error > computation.tolerance(columns[name], numbers))  # NaN breaks no constraint
    return holding
