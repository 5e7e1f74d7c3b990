"""Metrics of rows that belong together: the rows of one person, and tables that keys link.

Rows are compared in codes: the values of a category, and classes of numbers and dates between the octiles of
the real rows. Missing cells are a class of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise, product
from math import nan
from typing import Any, NamedTuple

import numpy as np

from privsyn.evaluation.comparison import SEED
from privsyn.evaluation.linked_comparison import LinkedComparison, Side
from privsyn.evaluation.marginals import MOST_PAIRS, wasserstein
from privsyn.evaluation.metric import SHARE, Errors, Metric, Score
from privsyn.marginals.domain import Floats, Integers, Ints
from privsyn.marginals.statistics import total_variation

MOST_ROWS = 25
"""Numbers of rows from this one on are counted together, in the distribution of the rows of a person."""

CLASSES = (1, 2, 3, 4, 5, 7, 10, 16)
"""Where classes of the number of rows begin, after 0, in tables with columns of the parent."""

MOST_ALIKE = 6
"""Numbers of a person's rows with one value, from this one on, are counted together."""

WORST = 10
"""Number of marginals, or of other parts of a score, that are listed as the worst."""


Part = tuple[str, Any]
"""What is compared, in words, and its counts or numbers in one of the tables."""


def _joint(first: Ints, second: Ints, sizes: tuple[int, int]) -> Ints:
    return np.bincount(first * sizes[1] + second, minlength=sizes[0] * sizes[1])


def _some(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return all pairs of columns, or a fixed sample of too many."""
    if len(pairs) <= MOST_PAIRS:
        return pairs
    chosen = np.random.default_rng(SEED).choice(len(pairs), MOST_PAIRS, replace=False)
    return [pairs[index] for index in np.sort(chosen)]


def rows_of_parents(linked: LinkedComparison, side: Side, table: str) -> Ints:
    """Return the number of rows of each row of the parent's table."""
    parents = side.size(linked.database.above(table)[0])
    return np.bincount(side.linked.parent[table], minlength=parents)


def _children(linked: LinkedComparison, side: Side, table: str) -> Iterator[Part]:
    """Yield the number of rows, and each column of the parent with its class."""
    up, number = linked.database.above(table)[0], rows_of_parents(linked, side, table)
    yield "number of rows", np.bincount(np.minimum(number, MOST_ROWS), minlength=MOST_ROWS + 1)
    classes = np.digitize(number, CLASSES)
    for name, size in linked.sizes(up).items():
        yield (
            f"{up}.{name} x number of rows",
            _joint(side.codes[up][name], classes, (size, len(CLASSES) + 1)),
        )


def _ancestors(
    linked: LinkedComparison, side: Side, table: str, *, first: int, last: int | None
) -> Iterator[Part]:
    """Yield each column of an ancestor with each own column; the ancestors from `first` to `last`."""
    rows_above = np.arange(side.size(table))
    for hops, (below, up) in enumerate(pairwise((table, *linked.database.above(table)))):
        rows_above = side.linked.parent[below][rows_above]
        if hops < first or (last is not None and hops > last):
            continue
        sizes = linked.sizes(up), linked.sizes(table)
        for ancestor_column, name in _some([*product(*sizes)]):
            codes = side.codes[up][ancestor_column][rows_above], side.codes[table][name]
            yield (
                f"{up}.{ancestor_column} x {name}",
                _joint(*codes, (sizes[0][ancestor_column], sizes[1][name])),
            )


def _named(linked: LinkedComparison, side: Side, table: str) -> Iterator[Part]:
    """Yield how many rows name each row of a dealt table, and each column of that row with the class."""
    for column, target in linked.database.tables[table].dealt.items():
        rows, named = side.linked.targets[target], side.linked.dealt[table, column]
        number = np.bincount(named[named >= 0], minlength=int(rows.max(initial=0)) + 1)[rows]
        yield f"{column}: number of rows", np.bincount(np.minimum(number, MOST_ROWS), minlength=MOST_ROWS + 1)
        classes = np.digitize(number, CLASSES)
        for name, size in linked.sizes(target).items():
            counts = _joint(side.targets[target][name][rows], classes, (size, len(CLASSES) + 1))
            yield f"{column}: {target}.{name} x number of rows", counts


def _named_cells(linked: LinkedComparison, side: Side, table: str) -> Iterator[Part]:
    """Yield each column of the row that a dealt column names with each own column."""
    for column, target in linked.database.tables[table].dealt.items():
        named, sizes = side.linked.dealt[table, column], (linked.sizes(target), linked.sizes(table))
        has = named >= 0
        for theirs, name in _some([*product(*sizes)]):
            codes = side.targets[target][theirs][named[has]], side.codes[table][name][has]
            yield f"{column}: {target}.{theirs} x {name}", _joint(*codes, (sizes[0][theirs], sizes[1][name]))


def _apart(linked: LinkedComparison, side: Side, table: str, *, steps: int) -> Iterator[Part]:
    """Yield columns of a row and of the row `steps` later: all pairs of columns if it is the next one."""
    parent, sizes = side.linked.parent[table], linked.sizes(table)
    here = np.flatnonzero(parent[steps:] == parent[:-steps])
    pairs = [*product(sizes, sizes)] if steps == 1 else [(name, name) for name in sizes]
    for earlier, later in _some(pairs):
        codes = side.codes[table][earlier][here], side.codes[table][later][here + steps]
        yield f"{earlier}, then {later}", _joint(*codes, (sizes[earlier], sizes[later]))


def _profile(linked: LinkedComparison, side: Side, table: str) -> Iterator[Part]:
    """Yield, for each value that a real row has, the number of rows of a parent that have it."""
    parent, parents = side.linked.parent[table], side.size(linked.database.above(table)[0])
    for name, classes in linked.classes.get(table, {}).items():
        size = len(classes.words)
        cells, rows = np.unique(parent * size + side.codes[table][name], return_counts=True)
        number = np.minimum(rows, MOST_ALIKE)
        counts = _joint(cells % size, number, (size, MOST_ALIKE + 1)).reshape(size, MOST_ALIKE + 1)
        counts[:, 0] = parents - counts.sum(axis=1)
        real = np.bincount(linked.truth.codes[table][name], minlength=size)
        for value in np.flatnonzero(real):
            yield f"{name} = {classes.words[value]}", counts[value]


SUMS = ("sum", "mean", "least", "largest", "first", "last")


def summaries(numbers: Floats, owner: Ints, owners: int) -> dict[str, Floats]:
    """Return what each owner's numbers are together: `SUMS`; NaN for owners without a number.

    Parameters
    ----------
    numbers : float array
        In order, NaN for a missing cell.
    owner : integer array
        The owner of each, ascending.
    owners : int

    Examples
    --------
    >>> found = summaries(np.array([3.0, np.nan, 1.0, 5.0]), np.array([0, 0, 0, 2]), 3)
    >>> {how: of.tolist() for how, of in found.items() if how in ("sum", "first", "last")}
    {'sum': [4.0, nan, 5.0], 'first': [3.0, nan, 5.0], 'last': [1.0, nan, 5.0]}
    """
    results_by_name = {how: np.full(owners, nan) for how in SUMS}
    present = ~np.isnan(numbers)
    numbers, owner = numbers[present], owner[present]
    if not len(numbers):
        return results_by_name
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    ends = np.append(starts[1:], len(owner))
    sums = np.add.reduceat(numbers, starts)
    results = {
        "sum": sums,
        "mean": sums / (ends - starts),
        "least": np.minimum.reduceat(numbers, starts),
        "largest": np.maximum.reduceat(numbers, starts),
        "first": numbers[starts],
        "last": numbers[ends - 1],
    }
    for how, result in results.items():
        results_by_name[how][owner[starts]] = result
    return results_by_name


def _sums(linked: LinkedComparison, side: Side, table: str) -> Iterator[Part]:
    parents = side.size(linked.database.above(table)[0])
    for name in linked.truth.numbers[table]:
        numbers = side.numbers[table][name]
        for how, summary in summaries(numbers, side.linked.parent[table], parents).items():
            yield f"{how} of {name}", summary


def _variation_of_counts(truth: Ints, compared: Ints) -> float:
    """Return the total variation of two tables of counts; NaN if the real one is empty, 1 if the other is."""
    if not truth.any():
        return nan
    return total_variation(truth / truth.sum(), compared / compared.sum()) if compared.any() else 1.0


class Kind(NamedTuple):
    """What is compared: its parts for each side and table, and the distance of two parts.

    The tables are those with a parent, or those with columns that are dealt.
    """

    parts: Callable[[LinkedComparison, Side, str], Iterator[Part]]
    distance: Callable[[Any, Any], float] = _variation_of_counts
    of_dealt: bool = False


KINDS = {
    "children": Kind(_children),
    "parent_child": Kind(partial(_ancestors, first=0, last=0)),
    "ancestors": Kind(partial(_ancestors, first=1, last=None)),
    "next": Kind(partial(_apart, steps=1)),
    "later": Kind(partial(_apart, steps=2)),
    "profile": Kind(_profile),
    "sums": Kind(_sums, wasserstein),
    "named": Kind(_named, of_dealt=True),
    "named_cells": Kind(_named_cells, of_dealt=True),
}
"""The scores of rows that belong together, as many errors each as there are parts."""


class PartErrors(NamedTuple):
    """The errors of the parts of a score: what each part is, its errors, and its table."""

    labels: tuple[str, ...]
    errors: dict[str, Floats]
    tables: tuple[str, ...] = ()

    @property
    def worst(self) -> tuple[tuple[str, float], ...]:
        """The parts with the largest errors in the synthetic tables."""
        errors = self.errors["synthetic"]
        order = np.argsort(-errors, kind="stable")[:WORST]
        return tuple((self.labels[index], float(errors[index])) for index in order)


def _compare(linked: LinkedComparison, kind: Kind) -> PartErrors:
    """Return the errors of all parts."""
    sides, labels, errors, tables = (linked.truth, *linked.sides.values()), [], [], []
    for table in linked.dealing if kind.of_dealt else linked.children:
        for (label, truth), *rest in zip(*(kind.parts(linked, side, table) for side in sides), strict=True):
            distances = [kind.distance(truth, compared) for _, compared in rest]
            if not np.isnan(distances).any():
                labels.append(linked.label(table, label))
                errors.append(distances)
                tables.append(table)
    columns = np.array(errors).reshape(-1, len(linked.sides)).T
    return PartErrors(tuple(labels), dict(zip(linked.sides, columns, strict=True)), tuple(tables))


COMPARE = {name: partial(_compare, kind=kind) for name, kind in KINDS.items()}
"""Each score, as `LinkedComparison.once` computes it."""


def by_table(linked: LinkedComparison) -> dict[str, dict[str, Score]]:
    """Return for each child table the mean error of each score that it has."""
    scores: dict[str, dict[str, Score]] = {}
    for kind, compare in COMPARE.items():
        parts = linked.once(compare)
        for table in dict.fromkeys(parts.tables):
            here = np.array(parts.tables) == table
            means = {which: float(errors[here].mean()) for which, errors in parts.errors.items()}
            scores.setdefault(table, {})[kind] = Score(**means)
    return scores


def worst_of(linked: LinkedComparison) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return for each score what is worst, in words, and its error."""
    worst_parts = {name: linked.once(compare).worst for name, compare in COMPARE.items()}
    return {name: worst for name, worst in worst_parts.items() if worst}


def numbers_of_rows(linked: LinkedComparison) -> dict[str, tuple[tuple[float, ...], tuple[float, ...]]]:
    """Return for each child table the shares of parents with 0, 1, 2, ... rows, real and synthetic."""

    def shares(side: Side, table: str) -> tuple[float, ...]:
        _, counts = next(_children(linked, side, table))
        return tuple((counts / max(counts.sum(), 1)).tolist())

    sides = linked.truth, linked.sides["synthetic"]
    return {table: (shares(sides[0], table), shares(sides[1], table)) for table in linked.children}


def different(codes: Integers, owner: Ints, size: int, owners: int) -> Ints:
    """Return the number of different codes of each owner."""
    return np.bincount(np.unique(owner * size + codes) // size, minlength=owners)


def features(linked: LinkedComparison, side: Side) -> Floats:
    """Return one row for each root: its cells, and the number and summaries of its rows in other tables."""
    root = linked.database.root
    roots, columns = side.size(root), []
    cells = {name: side.numbers[root].get(name, codes) for name, codes in side.codes[root].items()}
    columns += [*cells.values()]
    for table in (table for table in linked.children if root in linked.database.above(table)):
        owner = side.linked.roots(linked.database, table)
        columns.append(np.bincount(owner, minlength=roots))
        for name, size in linked.sizes(table).items():
            codes = side.codes[table][name]
            numbers = side.numbers[table].get(name, codes.astype(np.float64))
            summaries_of_column = summaries(numbers, owner, roots)
            columns += [*(summaries_of_column[how] for how in SUMS[1:]), different(codes, owner, size, roots)]
    return np.column_stack(columns).astype(np.float64)


def detection(linked: LinkedComparison) -> Score:
    """Return the AUC of a model that tells real from synthetic roots; NaN without models."""
    if not linked.models:
        return Score(nan)
    from privsyn.evaluation.models import tell_apart

    real = features(linked, linked.truth)
    auc = {
        which: tell_apart(real, features(linked, linked.sides[which]))
        for which in ("synthetic", "independent")
    }
    return Score(**auc)


def broken(linked: LinkedComparison, name: str) -> Score:
    """Return a number of `BrokenKeys` in the synthetic and in the real tables."""
    return Score(**{which: float(getattr(keys, name)) for which, keys in linked.broken.items()})


def _errors(linked: LinkedComparison, kind: str) -> Mapping[str, Floats]:
    return linked.once(COMPARE[kind]).errors


GROUP, OF_PERSONS, OF_PAIRS = "Rows that belong together", "share of persons", "share of pairs of rows"

SCORES = {
    "children": ("rows of a person", OF_PERSONS),
    "parent_child": ("parent and row", SHARE),
    "ancestors": ("grandparent and row", SHARE),
    "next": ("a row and the next one", OF_PAIRS),
    "later": ("a row and the next but one", OF_PAIRS),
    "profile": ("rows of a person with a value", OF_PERSONS),
    "sums": ("sum, mean, first, ... of a person", "standard deviations"),
    "named": ("rows that name a row of a dealt table", SHARE),
    "named_cells": ("row and the row that it names", SHARE),
}
"""The scores of `KINDS`: their labels and units."""

HEADLINES = ("next", "profile", "sums")

BROKEN = {
    "duplicate_keys": "keys that occur twice",
    "orphans": "rows that belong to nobody",
    "out_of_order": "persons with rows out of order",
}
"""The numbers of `BrokenKeys`, and their labels."""

METRICS_OF_PERSONS: dict[str, Metric[LinkedComparison]] = {
    name: metric
    for kind, (label, unit) in SCORES.items()
    for name, metric in Errors(label, partial(_errors, kind=kind), GROUP, unit, headline=kind in HEADLINES)
    .metrics(kind)
    .items()
}
METRICS_OF_PERSONS["detection"] = Metric(
    "real against synthetic persons, AUC", detection, GROUP, "AUC", origin=0.5
)
METRICS_OF_PERSONS |= {
    name: Metric(label, partial(broken, name=name), GROUP, "number") for name, label in BROKEN.items()
}
"""The metrics of rows that belong together."""
