"""`attack`: three attacks with a synthetic table, on rows it was made from and on rows held out.

After Giomi et al., "A Unified Framework for Quantifying Privacy Risk in Synthetic Data" (PETS 2023). Each
is tried on as many rows of either kind. What it gets right about rows held out was not leaked, for the
synthetic table never saw them; what it gets right beyond that, it has from the rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from privsyn.arguments import check_whole
from privsyn.errors import InputError, safe_repr
from privsyn.evaluation.attacks.gower import Places, Singles, distances, place_together
from privsyn.evaluation.attacks.predicates import Predicate, of_rare_values, of_rows
from privsyn.evaluation.attacks.risks import Rate, Risk, Risks
from privsyn.evaluation.comparison import read_together
from privsyn.evaluation.encoding import code_together
from privsyn.marginals.types import Floats, Integers
from privsyn.table.schema.schema import Schema

ATTACKS = 5000
"""Of each kind on either side, or fewer where there are not so many rows."""

PREDICATE_COLUMNS = 4

TRIES = 50_000
"""Predicates of several columns that are looked at: most fit no row of the synthetic table alone."""

TOGETHER = 16
"""Rows attacked at a time: their distances to the synthetic rows stay in the processor's cache."""

TOLERANCE = 0.1
"""A number is inferred if the guess is off by no more, in standard deviations of the real column."""


def attack(
    real: Any,
    synthetic: Any,
    control: Any,
    schema: Schema | None = None,
    *,
    secrets: Sequence[str] | None = None,
    seed: int = 0,
) -> Risks:
    """How much better attacks do on rows the synthetic table was made from than on others. NOT PRIVATE.

    A diagnostic: it can show a leak and cannot show safety.

    Parameters
    ----------
    real, synthetic, control : pandas, polars or pyarrow table, or a path as for `fit`
        The rows that the synthetic table was made from; the synthetic table; and rows of the same kind that
        were held out when it was made: nothing else tells a leak from knowledge about people at large.
    schema : Schema, optional
        As of `evaluate`.
    secrets : sequence of str, optional
        The columns whose cells are to be inferred from all others; all if left out.
    seed : int
        Of what is drawn by lot: the rows attacked, the predicates, the halves.

    Raises
    ------
    InputError
        If a table is empty or lacks a column, or a secret is none.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": range(20, 80), "pay": [3 * n % 61 for n in range(60)]})
    >>> kept, held_out = people[::2], people[1::2]
    >>> attack(kept, kept, held_out).leaks[0]
    'single out by one column'
    """
    check_whole("seed", seed)
    frames = read_together({"real": real, "synthetic": synthetic, "control": control}, schema)
    view, coded = code_together(frames, schema, most_values=None)
    names = view.domain.names
    axes = [names.index(name) for name in _checked(secrets, names)]
    rng = np.random.default_rng(seed)
    # In an order by lot: of rows equally near, the first is then any of them.
    train, made, others = (table.take(rng.permutation(len(table))) for table in place_together(coded))
    found = _singling_out(train, made, others, rng)
    if len(names) > 1:
        n = min(ATTACKS, len(train), len(others))
        sides = train.take(np.arange(n)), others.take(np.arange(n))
        found |= {"link two halves of a row": _linking(*sides, made, rng)}
        found |= {f"infer {names[axis]}": risk for axis, risk in _inferring(*sides, made, axes).items()}
    tried = {name: risk for name, risk in found.items() if risk.train.attacks}
    if not tried:
        raise InputError(
            "there is nothing to attack: one column, of which the synthetic table has no rare value"
        )
    return Risks(len(train), len(made), len(others), names, view.left_out, tried)


def _checked(secrets: Sequence[str] | None, names: tuple[str, ...]) -> Sequence[str]:
    if secrets is None:
        return names
    if isinstance(secrets, str):
        raise InputError(f"secrets is a list of columns: write [{secrets!r}]")
    for name in secrets:
        if name not in names:
            raise InputError(f"secret {safe_repr(name)}: is none of the columns that are compared")
    return tuple(dict.fromkeys(secrets))


def _singling_out(train: Places, made: Places, others: Places, rng: np.random.Generator) -> dict[str, Risk]:
    """Predicates that single out in the synthetic table, tried on both sides.

    Whether a row is the only one of its kind depends on how many rows there are, so both sides have the same
    number, and the same company: the attacker knows the other rows of the private table, and leaves out
    predicates that fit one of them.
    """
    size = min(len(train), len(others))
    known = train.cells[size:]
    sides = train.cells[:size], others.cells[:size]
    columns = min(PREDICATE_COLUMNS, made.cells.shape[1])

    def risk(tried: Iterable[Predicate], guessed: Iterable[Predicate] = ()) -> Risk:
        alone = (predicate for predicate in tried if predicate.count(made.cells) == 1)
        wanted = [*islice((one for one in alone if not one.count(known)), ATTACKS)]
        naive = [*islice((one for one in guessed if not one.count(known)), len(wanted))]
        of_train, of_others = (_rate(one.count(side) == 1 for one in wanted) for side in sides)
        return Risk(of_train, of_others, _rate(one.count(sides[0]) == 1 for one in naive))

    found = {"single out by one column": risk(of_rare_values(made, rng))}
    if columns > 1:
        guesses = of_rows(made, columns, TRIES, rng, mixed=True)
        found[f"single out by {columns} columns"] = risk(of_rows(made, columns, TRIES, rng), guesses)
    return found


def _rate(successes: Iterable[bool]) -> Rate:
    tried = [*successes]
    return Rate(sum(tried), len(tried))


def _linking(train: Places, others: Places, made: Places, rng: np.random.Generator) -> Risk:
    """Whether the two halves of a row's cells, known from two places, find each other in the synthetic table.

    They do if exactly one synthetic row is nearest to both. Every few rows are cut into halves of their own.
    """
    d = len(made.numbers)
    cuts = [rng.permutation(d) for _ in range(0, len(train), TOGETHER)]

    def linked(side: Places) -> Rate:
        found = []
        for cut, rows in zip(cuts, _few(side.cells), strict=True):
            one, two = (_nearest(rows, made.cells, axes) for axes in (cut[: d // 2], cut[d // 2 :]))
            found += ((one & two).sum(axis=1) == 1).tolist()
        return _rate(found)

    guesses = rng.integers(len(made), size=(len(train), 2))
    return Risk(linked(train), linked(others), _rate((guesses[:, 0] == guesses[:, 1]).tolist()))


def _few(cells: Floats) -> Iterator[Floats]:
    """A few rows at a time."""
    return (cells[start : start + TOGETHER] for start in range(0, len(cells), TOGETHER))


def _nearest(rows: Floats, made: Floats, axes: Integers) -> npt.NDArray[np.bool_]:
    """Which synthetic rows are nearest to each row in these columns."""
    apart = _apart(rows, made, axes)
    return apart == apart.min(axis=1, keepdims=True)


def _apart(rows: Floats, made: Floats, axes: Iterable[int]) -> Singles:
    total = np.zeros((len(rows), len(made)), np.float32)
    for axis in axes:
        total += distances(rows[:, axis], made[:, axis])
    return total


def _inferring(train: Places, others: Places, made: Places, secrets: Sequence[int]) -> dict[int, Risk]:
    """Whether the synthetic row most like a row in all other columns has its cell of the secret one."""
    within = [TOLERANCE * _spread(train.cells[:, axis]) if train.numbers[axis] else 0.0 for axis in secrets]

    def inferred(side: Places, guess: Callable[[Floats], Iterable[Floats]]) -> list[Rate]:
        hits: list[list[bool]] = [[] for _ in secrets]
        for rows in _few(side.cells):
            for place, guessed in enumerate(guess(rows)):
                hits[place] += (np.abs(guessed - rows[:, secrets[place]]) <= within[place]).tolist()
        return [_rate(hit) for hit in hits]

    def by_neighbour(rows: Floats) -> Iterator[Floats]:
        apart = _apart(rows, made.cells, range(len(made.numbers)))
        for axis in secrets:
            column = made.cells[:, axis]
            yield column[(apart - distances(rows[:, axis], column)).argmin(axis=1)]

    usual = [_usual(made.cells[:, axis], is_number=made.numbers[axis]) for axis in secrets]

    def by_column(rows: Floats) -> Iterator[Floats]:
        return (np.full(len(rows), value) for value in usual)

    rates = inferred(train, by_neighbour), inferred(others, by_neighbour), inferred(train, by_column)
    return {axis: Risk(*found) for axis, *found in zip(secrets, *rates, strict=True)}


def _spread(column: Floats) -> float:
    present = column[column >= 0]
    return float(present.std()) if len(present) else 0.0


def _usual(column: Floats, *, is_number: bool) -> float:
    """The median of numbers, missing ones counting as lowest; else the commonest value."""
    if is_number:
        return float(np.sort(column)[len(column) // 2])
    values, counts = np.unique(column, return_counts=True)
    return float(values[counts.argmax()])
