"""Repair: all constraints of a schema together. What they compute, what they leave, and that they are kept.

Every row keeps every rule in the end: numbers are drawn anew within their groups, and a row for which that is
not enough takes the columns in question from a row that keeps the rules and is most like it. Nothing is drawn
until it fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod

import networkx as nx
import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.nearest_rows import nearest_rows
from privsyn.marginals.types import Floats, Integers, Mask
from privsyn.table.enforcement.draws import Cells, DrawnRows
from privsyn.table.enforcement.ranges import bounds_of, step_of
from privsyn.table.enforcement.rules import Computation, Numbers, Rule
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.constraint import Columns, Constraint
from privsyn.table.schema.derived import computed_by, in_order

MOST_CELLS = 2**20  # of a table that says which of its cells are possible; bigger ones are only mended
MOST_DONORS = 100_000  # rows among which one is looked for that keeps all rules
MOST_TRIES = 20_000  # values tried in the search for a row that keeps all rules
FEW_VALUES = 30  # listed values that are all tried


class TooManyError(Exception):
    """A row that keeps all rules was looked for too long."""


@dataclass(frozen=True, eq=False)
class Repair:
    """The rules of a schema, and what computes columns, in the order in which it can.

    Parameters
    ----------
    columns : mapping of a name to its column
    rules : tuple of Rule
    computations : tuple of Computation, each after those that it needs
    """

    columns: Mapping[str, Coded]
    rules: tuple[Rule, ...] = ()
    computations: tuple[Computation, ...] = ()

    @classmethod
    def of(cls, columns: Columns, constraints: Sequence[Constraint]) -> Repair:
        """Return the rules and computations of constraints; all values and bounds are known."""
        computing = computed_by(constraints)
        return cls(
            columns,
            tuple(rule for constraint in constraints for rule in constraint.rules(columns)),
            tuple(computing[name].computation(columns) for name in in_order(computing)),
        )

    @property
    def computed(self) -> tuple[str, ...]:
        """The columns that are computed from others."""
        return tuple(computation.column for computation in self.computations)

    def possible(self, cells: Mapping[str, Cells]) -> Iterator[tuple[tuple[str, ...], Mask]]:
        """For each rule that codes can decide: its columns, and which cells of their table are possible."""
        for rule in self.rules:
            known = [cells[name] for name in rule.columns if name in cells]
            if len(known) == len(rule.columns) and prod(c.merged for c in known) <= MOST_CELLS:
                mask = rule.possible(known)
                if not mask.all():
                    yield rule.columns, mask

    def holds(self, numbers: Numbers) -> Mask:
        """Which rows keep the rules on these columns; what is computed is taken as it is."""
        kept = np.ones(len(next(iter(numbers.values()))), np.bool_)
        for rule in self.rules:
            if set(rule.columns) <= set(numbers):
                kept &= rule.holds(numbers)
        return kept

    def compute(self, numbers: dict[str, Floats]) -> None:
        """Fill in the computed columns."""
        for computation in self.computations:
            numbers[computation.column] = computation.make(numbers)

    def settle(self, rows: DrawnRows, rng: np.random.Generator) -> None:
        """Change rows so that all keep all rules, and fill in what is computed."""
        self.compute(rows.numbers)
        for rule in self.rules:
            broken = np.flatnonzero(~rule.holds(rows.numbers))
            if len(broken):
                rule.repair(rows, broken, rng)
                self.compute(rows.numbers)  # of all rows: some have traded with those that broke the rule
        for names, rules in self.parts:
            kept = np.ones(len(rows.numbers[names[0]]), np.bool_)
            for rule in rules:
                kept &= rule.holds(rows.numbers)
            if not kept.all():
                self._copy(rows, names, kept, rng)

    @property
    def parts(self) -> list[tuple[tuple[str, ...], list[Rule]]]:
        """Columns that rules join, directly or not, each with its rules; computed ones come last."""
        graph: nx.Graph[str] = nx.Graph()
        for rule in self.rules:
            nx.add_path(graph, rule.columns)
            graph.add_nodes_from(rule.columns)
        for computation in self.computations:
            nx.add_path(graph, (*computation.by, computation.column))
        order = [*(name for name in self.columns if name not in self.computed), *self.computed]
        return [
            (tuple(name for name in order if name in part), rules)
            for part in nx.connected_components(graph)
            if (rules := [rule for rule in self.rules if set(rule.columns) <= part])
        ]

    def example(
        self, names: tuple[str, ...], fixed: Mapping[str, float], cells: Mapping[str, Cells]
    ) -> dict[str, float] | None:
        """Numbers for joined columns that keep all rules; None if there are none.

        Raises
        ------
        TooManyError
            If none was found in `MOST_TRIES`.
        """
        rules = [rule for rule in self.rules if set(rule.columns) <= set(names)]
        computations = [computation for computation in self.computations if computation.column in names]
        free = [name for name in names if name not in self.computed]
        choices = [
            [fixed[name]] if name in fixed else self._choices(name, rules, cells.get(name)) for name in free
        ]
        tries = [MOST_TRIES]

        def search(place: int, row: dict[str, Floats]) -> dict[str, Floats] | None:
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
            if place == len(free):
                return row
            for number in choices[place]:
                tries[0] -= 1
                if tries[0] < 0:
                    raise TooManyError
                found = search(place + 1, row | {free[place]: np.array([number])})
                if found is not None:
                    return found
            return None

        found = search(0, {})
        return None if found is None else {name: float(number[0]) for name, number in found.items()}

    def _choices(self, name: str, rules: list[Rule], cells: Cells | None) -> list[float]:
        """Numbers worth trying: those that rules speak of, their neighbours, and all bounds."""
        column = self.columns[name]
        low, high = bounds_of(column)
        named = [
            number for rule in rules for of, numbers in rule.named_numbers if of == name for number in numbers
        ]
        joined = {of for rule in rules if name in rule.columns for of in rule.columns}
        named += [end for of in joined - set(self.computed) for end in bounds_of(self.columns[of])]
        step = step_of(column)
        tried = {low, high, *np.arange(low, min(high, low + FEW_VALUES * step), step).tolist()}
        tried |= {number + k * step for number in named for k in (-1, 0, 1)}
        found = np.array(sorted(number for number in tried if low <= number <= high))
        if cells is not None:  # only points of its grid, and none twice
            found = np.unique(cells.snap(found))
            found = found[~np.isnan(found)]
        nullable = column.nullable if cells is None else cells.nullable
        return [*found.tolist(), *([np.nan] if nullable else [])]

    def _copy(self, rows: DrawnRows, names: tuple[str, ...], kept: Mask, rng: np.random.Generator) -> None:
        """Give each row that breaks a rule the columns of one that keeps all and is most like it."""
        broken, donors = np.flatnonzero(~kept), np.flatnonzero(kept)
        if len(donors) > MOST_DONORS:
            donors = rng.choice(donors, MOST_DONORS, replace=False)
        held = [name for name in names if name in rows.fixed]
        order = [*held, *(name for name in names if name not in rows.fixed and name not in self.computed)]
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
            for name in held:
                one, two = rows.numbers[name][broken], rows.numbers[name][taken]
                same &= (one == two) | (np.isnan(one) & np.isnan(two))
            for name in names:
                rows.numbers[name][broken[same]] = rows.numbers[name][taken[same]]
            broken = broken[~same]
        if len(broken):
            self._invent(rows, names, held, broken)

    def _invent(self, rows: DrawnRows, names: tuple[str, ...], held: list[str], at: Integers) -> None:
        """Give rows of which none keeps the rules an example that does, found by trying."""
        given = (
            np.stack([rows.numbers[name][at] for name in held], axis=1) if held else np.empty((len(at), 0))
        )
        distinct, which = np.unique(given, axis=0, return_inverse=True)
        for place, numbers in enumerate(distinct):
            example = None
            with suppress(TooManyError):
                example = self.example(names, dict(zip(held, numbers.tolist(), strict=True)), rows.cells)
            if example is None:
                raise InputError(
                    f"no row was found that keeps the constraints on {', '.join(names)}: "
                    "mend the constraints, or what is given"
                )
            for name in names:
                rows.numbers[name][at[which.ravel() == place]] = example[name]
