"""`attack`: attacks that use a synthetic table, on private rows and on held-out rows.

After Giomi et al., "A Unified Framework for Quantifying Privacy Risk in Synthetic Data" (PETS 2023). Each
attack is tried on equal numbers of private and held-out rows. The synthetic table does not depend on held-out
rows, so success there is no leak. Higher success on private rows is one.

A predicate singles out if its conditions on a few columns hold for exactly one row of a table. A condition
asks for a value, a lower bound or an upper bound. A predicate that singles out in the synthetic table may
do so in the private one by chance, because any rare kind of row may occur once. It is a leak if this
happens more often than among held-out rows (Cohen and Nissim 2020).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privsyn.abilities import LINKED, NOBODY, check_abilities
from privsyn.arguments import check_between, check_whole
from privsyn.errors import InputError, did_you_mean, replace_errors, safe_repr
from privsyn.evaluation.attacks.membership import play
from privsyn.evaluation.attacks.odd_table import remark_on_tables
from privsyn.evaluation.attacks.persons import Attacked
from privsyn.evaluation.attacks.points import (
    MISSING_COORDINATE,
    ROWS_AT_ONCE,
    Points,
    batches,
    distance_of_rows,
    distances,
    scale_together,
)
from privsyn.evaluation.attacks.rate import Rate
from privsyn.evaluation.attacks.risks import Risk, Risks
from privsyn.evaluation.attacks.trade_off import NO_LEDGER, TradeOff
from privsyn.evaluation.comparison import read_together, refuse_copy
from privsyn.evaluation.encoding import code_by_name
from privsyn.marginals.domain import Floats, Integers
from privsyn.table.database.database import Database
from privsyn.table.database.declared import Table
from privsyn.table.database.yaml_form import as_database
from privsyn.table.schema.schema import Schema

ATTACKS = 5000
"""Largest number of attacks of each kind, on private and on held-out rows."""

PREDICATE_COLUMNS = 4

TRIES = 50_000
"""Candidate predicates of several columns: most do not single out in the synthetic table."""

COUNTED = re.compile(r"one-way counts of (?!every attribute)(.+)")
"""A question about one column, in a ledger."""

TOLERANCE = 0.1
"""Largest error of an inferred number that counts as success, in standard deviations of the real column."""


def attack(
    real: Any,
    synthetic: Any,
    control: Any,
    schema: Schema | Table | Database | str | PathLike[str] | None = None,
    *,
    unit: str | None = None,
    order: str | None = None,
    secrets: Sequence[str] | None = None,
    membership: bool = False,
    ledger: Any = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    seed: int = 0,
) -> Risks:
    """Measure how much better attacks do on private rows than on held-out rows. NOT PRIVATE.

    A diagnostic: it can show a leak and cannot show safety.

    Parameters
    ----------
    real, synthetic, control : pandas, polars or pyarrow table, or a path as for `fit`
        The private table; the synthetic table made from it; and held-out rows of the same population. Only
        held-out rows can separate a leak from knowledge about the population. With a database, mappings of
        names to tables, or paths of folders or databases, as of `evaluate`.
    schema : Schema, Table, Database or path of a YAML file, optional
        As of `evaluate`. With a database, persons are attacked: the rows of the table without a parent, with
        all rows that belong to them. If several tables are without a parent, each kind of persons is.
    unit, order : str, optional
        As of `evaluate`. Then persons are attacked: each is one row of what its rows say together. Also, one
        row of a person is guessed from all others.
    secrets : sequence of str, optional
        The columns that are inferred from all others. Default: all. With `unit`, such as "sum of pay"; a
        column of a missing row is "pay", and in a database "visits.pay".
    membership : bool
        Also tell rows of the real table from held-out rows, by how close they are to the synthetic table.
    ledger : ledger of a run, its plain data, or the path of its file, optional
        With `membership`, what it allows stands beside the results.
    epsilon, delta : float, optional
        The same for a table without a ledger: what any method with this promise may allow. That of a run is
        less, because Gaussian noise with a delta above 0 allows less.
    seed : int
        Seed for the rows attacked, the predicates and the halves.

    Raises
    ------
    InputError
        If a table is empty or lacks a column, or a secret is not a column; with `unit`, if a person of the
        control table is in the real one; with `membership`, if there are too few rows to play.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": range(20, 80), "pay": [3 * n % 61 for n in range(60)]})
    >>> kept, held_out = people[::2], people[1::2]
    >>> attack(kept, kept, held_out).leaks[0]
    'single out by one column'
    """
    check_whole("seed", seed)
    database = as_database(schema)
    of_persons = unit is not None or (database.single is None and bool(database.tables[database.root].keys))
    allowed = _allowed(ledger, epsilon, delta, membership=membership, of_persons=of_persons)
    if database.single is None and len(database.roots) > 1:
        check_abilities([LINKED], {"unit": unit, "order": order})
        one_kind = partial(attack, real, synthetic, control, seed=seed)
        first_kind = partial(one_kind, membership=membership, ledger=ledger, epsilon=epsilon, delta=delta)
        return _risks_of_kinds(database, secrets, first_kind, one_kind)
    sources, whom, persons = {"real": real, "synthetic": synthetic, "control": control}, "row", None
    if unit is not None or database.single is None:
        persons, whom = Attacked.of(sources, database, unit, order), "person"
        tables, left_out = {which: persons.one_row_each(which) for which in sources}, persons.left_out
    elif order is not None:
        raise InputError("order needs unit: it is about the rows of one person")
    else:
        check_abilities([NOBODY], {"rules": database.about_persons})
        frames = read_together(sources, database.schema)
        if ledger is not None:
            _check_counted(_plain(ledger), frames["real"])
        view, tables = code_by_name(frames, database.schema, most_values=None)
        left_out = view.left_out
    refuse_copy(tables, "control", "real")
    names = tables["real"].records.domain.names
    of_rows = [] if persons is None else persons.columns_below
    if isinstance(secrets, str):
        raise InputError(f"secrets must be a list of columns: write [{secrets!r}]")
    chosen = tuple(dict.fromkeys((*names, *of_rows) if secrets is None else secrets))
    for name in chosen:
        if name not in (*names, *of_rows):
            meant = did_you_mean(name, (*names, *of_rows))
            raise InputError(f"secret {safe_repr(name)} is not a compared column{meant}")
    axes = [names.index(name) for name in chosen if name in names]
    rng = np.random.default_rng(seed)
    # In random order, because of equally near rows the first one is used.
    points = scale_together([*tables.values()])
    train, released, rest = (table.take(rng.permutation(len(table))) for table in points)
    risks = _singling_out(train, released, rest, rng)
    if len(names) > 1:
        rows = np.arange(min(ATTACKS, len(train), len(rest)))
        sides = train.take(rows), rest.take(rows)
        risks |= {f"link two halves of a {whom}": _linking(*sides, released, rng)}
        risks |= {f"infer {names[axis]}": risk for axis, risk in _inferring(*sides, released, axes).items()}
    if persons is not None:
        risks |= _risks_of_missing_rows(persons, chosen, rng)
    game = None
    if membership:
        game = play(*points, limit=ATTACKS, seed=seed)
        game = replace(game, allowed=allowed, by_ledger=ledger is not None)
        risks |= {
            f"tell members{words}": Risk(test.recognised, test.false_alarms, Rate(0, 0))
            for words, test in game.tests.items()
        }
    tried = {name: risk for name, risk in risks.items() if risk.train.attacks}
    if not tried:
        raise InputError(
            "no attack is possible: there is one column, and its synthetic values include no rare one"
        )
    sizes = len(train), len(released), len(rest)
    return Risks(*sizes, names, left_out, tried, whom, game, remark=remark_on_tables(tables))


def _allowed(
    ledger: Any, epsilon: float | None, delta: float, *, membership: bool, of_persons: bool
) -> TradeOff | None:
    """Return what a promise allows, or None without one. Refuse one that is none, or that has no use."""
    if ledger is not None:
        if epsilon is not None or delta:
            raise InputError("the ledger has epsilon and delta: give it alone")
        if not membership:
            raise InputError("a ledger needs membership: it bounds how well members can be recognised")
        return _allowed_by(_plain(ledger), of_persons=of_persons)
    if epsilon is None and delta:
        raise InputError("delta needs epsilon: give both numbers of the ledger")
    if epsilon is None:
        return None
    if not membership:
        raise InputError("epsilon needs membership: it bounds how well members can be recognised")
    check_between("epsilon", epsilon)
    if delta:
        check_between("delta", delta, 1)
    return TradeOff(epsilon, delta)


def _allowed_by(plain: Any, *, of_persons: bool) -> TradeOff:
    """Return what a ledger allows somebody who guesses whether a row, or a person, is in the table."""
    allowed = TradeOff.of_ledger(plain)
    if of_persons and plain.get("unit") is None:
        raise InputError("the ledger protects single rows: it bounds no guess about a person with all rows")
    if plain.get("local") and not plain.get("spends"):
        raise InputError("the ledger is of randomised answers: it bounds no guess about who gave one")
    return allowed


def _check_counted(plain: Mapping[str, Any], real: pd.DataFrame) -> None:
    """Refuse the ledger of a run on another table: it counted a column that the real table has not.

    The attribute of a gap or of a part of a time has the name of its column in its own name.
    """
    with replace_errors(NO_LEDGER, (KeyError, TypeError, AttributeError)):
        questions = [COUNTED.match(spend["what"]) for spend in plain.get("spends", ())]
    for name in (question[1] for question in questions if question is not None):
        if not any(str(column) in name for column in real.columns):
            raise InputError(
                f"the ledger is of another table: its run counted {safe_repr(name)}, which the real table has"
                " not; give the ledger of the run that made the synthetic table"
            )


def _plain(ledger: Any) -> Any:
    """Return a ledger as plain data: that of a run, or of a file."""
    if not isinstance(ledger, str | PathLike):
        return ledger.to_dict() if hasattr(ledger, "to_dict") else ledger
    with replace_errors(NO_LEDGER, (ValueError, RecursionError)):  # also of bytes that are no text
        return json.loads(Path(ledger).read_text(encoding="utf-8"))


def _secrets_of(
    secrets: Sequence[str] | None, trees: Mapping[str, Database]
) -> dict[str, Sequence[str] | None]:
    """Return the secrets of each kind of persons, which name one of its tables. The first has the rest."""
    if secrets is None or isinstance(secrets, str):
        return dict.fromkeys(trees, secrets)
    first, *further = trees
    named = {
        root: [secret for secret in secrets if {*re.split(r"[ .]", str(secret))} & {*trees[root].names}]
        for root in further
    }
    taken = {secret for of_kind in named.values() for secret in of_kind}
    return {first: [secret for secret in secrets if secret not in taken], **named}


def _risks_of_kinds(
    database: Database,
    secrets: Sequence[str] | None,
    attack_first: Callable[..., Risks],
    attack_further: Callable[..., Risks],
) -> Risks:
    """Attack each kind of persons; say which further ones were not attacked, and why.

    Whether persons are members is tested of the first kind alone, as there is one report on that game.
    """
    first, *further = trees = {root: database.tree(root) for root in database.roots}
    inferred = _secrets_of(secrets, trees)
    risks = attack_first(trees[first], secrets=inferred[first])
    if risks.membership is not None:
        words = f"whether they are members was tested of persons of {first!r} alone"
        risks = replace(risks, not_attacked=(words,))
    for root in further:
        try:
            more = attack_further(trees[root], secrets=inferred[root])
        except InputError as error:  # the held-out tables often have the same staff
            reasons = (*risks.not_attacked, f"persons of {root!r} were not attacked: {error}")
            risks = replace(risks, not_attacked=reasons)
        else:
            tried = {f"{root}: {name}": risk for name, risk in more.attacks.items()}
            columns, left_out = (*risks.columns, *more.columns), (*risks.left_out, *more.left_out)
            risks = replace(risks, columns=columns, left_out=left_out, attacks={**risks.attacks, **tried})
    return risks


def _singling_out(
    train: Points, synthetic: Points, control: Points, rng: np.random.Generator
) -> dict[str, Risk]:
    """Try predicates that single out in the synthetic table, on private and on held-out rows.

    Whether a row is unique depends on the number of rows, so both sides have the same number. The attacker
    knows the remaining rows of the private table, and skips predicates that hold for one of them.
    """
    size = min(len(train), len(control))
    training_cells = train.cells[size:]
    sides = train.cells[:size], control.cells[:size]
    columns = min(PREDICATE_COLUMNS, synthetic.cells.shape[1])

    def risk(candidates: Iterable[Predicate], baseline: Iterable[Predicate] = ()) -> Risk:
        alone = (predicate for predicate in candidates if predicate.count(synthetic.cells) == 1)
        selected = [*islice((guess for guess in alone if not guess.count(training_cells)), ATTACKS)]
        naive = [*islice((guess for guess in baseline if not guess.count(training_cells)), len(selected))]
        of_train, of_others = (_rate(guess.count(side) == 1 for guess in selected) for side in sides)
        return Risk(of_train, of_others, _rate(guess.count(sides[0]) == 1 for guess in naive))

    risks = {"single out by one column": risk(of_rare_values(synthetic, rng))}
    if columns > 1:
        guesses = of_rows(synthetic, columns, TRIES, rng, mixed=True)
        risks[f"single out by {columns} columns"] = risk(of_rows(synthetic, columns, TRIES, rng), guesses)
    return risks


def _rate(successes: Iterable[bool]) -> Rate:
    results = [*successes]
    return Rate(sum(results), len(results))


def _linking(train: Points, control: Points, synthetic: Points, rng: np.random.Generator) -> Risk:
    """Try to link two halves of a row's cells through the synthetic table.

    This succeeds if exactly one synthetic row is nearest to both halves. Each batch of rows is split at
    random.
    """
    d = len(synthetic.numbers)
    cuts = [rng.permutation(d) for _ in range(0, len(train), ROWS_AT_ONCE)]

    def linked(side: Points) -> Rate:
        linked_rows: list[bool] = []
        for cut, rows in zip(cuts, batches(side.cells), strict=True):
            halves = (
                distance_of_rows(rows, synthetic.cells, axes) for axes in (cut[: d // 2], cut[d // 2 :])
            )
            first, second = (half == half.min(axis=1, keepdims=True) for half in halves)
            linked_rows += ((first & second).sum(axis=1) == 1).tolist()
        return _rate(linked_rows)

    guesses = rng.integers(len(synthetic), size=(len(train), 2))
    return Risk(linked(train), linked(control), _rate((guesses[:, 0] == guesses[:, 1]).tolist()))


def _risks_of_missing_rows(
    persons: Attacked, secrets: Collection[str], rng: np.random.Generator
) -> dict[str, Risk]:
    """Guess a row of a person from all its other rows, and the synthetic row whose others are nearest."""
    risks: dict[str, Risk] = {}
    for table in persons.tables_below:
        missing = persons.missing_rows(table, ATTACKS, rng)
        wanted = [name for name in missing.secret if name in secrets]
        if not wanted or not all(map(len, missing.tables.values())):
            continue
        train, synthetic, control = scale_together([*missing.tables.values()])
        axes = {len(missing.known_columns) + missing.secret.index(name): name for name in wanted}
        risks_by_column = _inferring(
            train, control, synthetic, [*axes], known_columns=range(len(missing.known_columns))
        )
        risks |= {f"infer {axes[axis]} of a missing row": risk for axis, risk in risks_by_column.items()}
    return risks


def _inferring(
    train: Points,
    control: Points,
    synthetic: Points,
    secrets: Sequence[int],
    known_columns: Sequence[int] | None = None,
) -> dict[int, Risk]:
    """Infer secret cells from the synthetic row that is nearest in the known columns; else in all others."""
    tolerances, typical = [], []
    for axis in secrets:
        cells, column = train.cells[:, axis], synthetic.cells[:, axis]
        if train.numbers[axis]:
            present = cells[cells >= 0]
            tolerances.append(TOLERANCE * float(present.std()) if len(present) else 0.0)
            typical.append(float(np.sort(column)[len(column) // 2]))  # the median; missing numbers are lowest
        else:
            values, counts = np.unique(column, return_counts=True)
            tolerances.append(0.0)
            typical.append(float(values[counts.argmax()]))

    def inferred(side: Points, guess: Callable[[Floats], Iterable[Floats]]) -> list[Rate]:
        hits: list[list[bool]] = [[] for _ in secrets]
        for rows in batches(side.cells):
            for index, guessed in enumerate(guess(rows)):
                hits[index] += (np.abs(guessed - rows[:, secrets[index]]) <= tolerances[index]).tolist()
        return [_rate(hit) for hit in hits]

    def by_neighbour(rows: Floats) -> Iterator[Floats]:
        distance = distance_of_rows(rows, synthetic.cells, known_columns or range(len(synthetic.numbers)))
        for axis in secrets:
            column = synthetic.cells[:, axis]
            apart = distance if known_columns else distance - distances(rows[:, axis], column)
            yield column[apart.argmin(axis=1)]

    def by_column(rows: Floats) -> Iterator[Floats]:
        return (np.full(len(rows), value) for value in typical)

    rates = inferred(train, by_neighbour), inferred(control, by_neighbour), inferred(train, by_column)
    return {axis: Risk(*rate) for axis, *rate in zip(secrets, *rates, strict=True)}


@dataclass(frozen=True)
class Predicate:
    """Rows whose coordinate in each of these columns lies in an interval, both ends included."""

    axes: tuple[int, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    def count(self, cells: Floats) -> int:
        """Return the number of rows for which it holds."""
        rows: Integers | slice = slice(None)
        for axis, low, high in zip(self.axes, self.lows, self.highs, strict=True):
            column = cells[rows, axis]
            fits = np.flatnonzero((column >= low) & (column <= high))
            rows = fits if isinstance(rows, slice) else rows[fits]
        return len(fits)


def of_rare_values(synthetic: Points, rng: np.random.Generator) -> Iterator[Predicate]:
    """Yield predicates of one column in random order: values that occur once, and extremes."""
    predicates = []
    for axis, is_number in enumerate(synthetic.numbers):
        values, counts = np.unique(synthetic.cells[:, axis], return_counts=True)
        predicates += [Predicate((axis,), (value,), (value,)) for value in values[counts == 1].tolist()]
        present = values[values > MISSING_COORDINATE]
        if is_number and len(present):
            low, high = float(present[0]), float(present[-1])
            predicates += [Predicate((axis,), (0.0,), (low,)), Predicate((axis,), (high,), (1.0,))]
    for index in rng.permutation(len(predicates)):
        yield predicates[index]


def of_rows(
    synthetic: Points, columns: int, tries: int, rng: np.random.Generator, *, mixed: bool = False
) -> Iterator[Predicate]:
    """Yield distinct predicates that hold for a random row: its categories, and numbers at least as extreme.

    Parameters
    ----------
    synthetic : Points
    columns : int
        Number of columns in each predicate.
    tries : int
        Number of random rows.
    rng : numpy.random.Generator
    mixed : bool
        Take each cell from another row: such predicates know columns, but no row.
    """
    n, d = synthetic.cells.shape
    middles = np.median(synthetic.cells, axis=0).tolist()

    def interval(row: int, axis: int) -> tuple[float, float]:
        cell = synthetic.cells.item(row, axis)
        if not synthetic.numbers[axis] or cell == MISSING_COORDINATE:
            return cell, cell
        return (cell, 1.0) if cell > middles[axis] else (0.0, cell)

    seen = set()
    for _ in range(tries):
        axes = sorted(rng.choice(d, columns, replace=False).tolist())
        rows = rng.integers(n, size=columns).tolist() if mixed else [int(rng.integers(n))] * columns
        lows, highs = zip(*map(interval, rows, axes), strict=True)
        predicate = Predicate(tuple(axes), lows, highs)
        if predicate not in seen:
            seen.add(predicate)
            yield predicate
