"""Rules of lives hold in every synthetic row, whatever the private rows and the noise are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Database, Datetime, Numerical, PrivSyn, Schema, Table, evaluate

PERSONS = Table(Schema({"born": Numerical(0, 9, integer=True)}), key="id")


def tables_of(rng, persons, most, columns):
    """Persons, and rows with random cells, which break every rule."""
    numbers = rng.integers(0, most + 1, persons)
    links = np.repeat(np.arange(persons), numbers)
    rows = {name: draw(rng, len(links)) for name, draw in columns.items()}
    roots = pd.DataFrame({"id": np.arange(persons), "born": rng.integers(0, 10, persons)})
    return {"persons": roots, "rows": pd.DataFrame({"id": links, **rows})}


def whole(high):
    return lambda rng, n: rng.choice(np.linspace(0, high, 21).astype(int), n)


def listed(*values):
    return lambda rng, n: rng.choice(np.array(values, dtype=object), n)


def days(number):
    return lambda rng, n: (
        pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 30, n) * (number // 30), "D")
    )


YEAR = {"year": (Numerical(0, 20, integer=True, nullable=False), whole(20))}
FINE = {"year": (Numerical(0, 99_999, integer=True, nullable=False), whole(99_999))}
DAY = {"day": (Datetime("2020-01-01", "2029-12-31", nullable=False), days(3650))}
STATE = {"state": (Categorical(["a", "b", "c"], nullable=False), listed("a", "b", "c"))}
GRADE = {"grade": STATE["state"]}
MISSING = {"state": (Categorical(["a", "b", "c"]), listed("a", "b", "c", None))}
COURSE = {
    "course": (
        Categorical([f"c{k}" for k in range(12)], nullable=False),
        listed(*(f"c{k}" for k in range(12))),
    )
}
TERM = {"term": (Numerical(1, 4, integer=True), lambda rng, n: rng.integers(1, 5, n))}
NUMBER = {
    "n": (
        Numerical(0, 50, integer=True),
        lambda rng, n: np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 51, n)),
    )
}
LEVEL = {"level": (Numerical(0, 5, integer=True), whole(5))}
PAID = {"paid": (Numerical(0, 1000, step=0.01), lambda rng, n: rng.random(n).round(2) * 1000)}

CASES = {
    "a year of each person once": (YEAR | STATE, "year", ["year rises"]),
    "days of many values": (DAY | STATE, "day", ["day rises"]),
    "cells of several values": (FINE | STATE, "year", ["year rises"]),
    "another column than the order": (YEAR | LEVEL, "year", ["level never falls", "year rises"]),
    "falling": (YEAR | LEVEL, "year", ["level never rises"]),
    "strictly falling with missing cells": (YEAR | NUMBER, "year", ["n falls"]),
    "amounts": (YEAR | PAID, "year", ["paid rises"]),
    "absorbing": (YEAR | STATE, "year", ["state stays b"]),
    "absorbing with missing cells": (YEAR | MISSING, "year", ["state stays b", "year never falls"]),
    "unique without an order": (COURSE | LEVEL, None, ["course is unique"]),
    "a pair without an order": (COURSE | TERM, None, ["(course, term) is unique"]),
    "a pair in an order": (YEAR | COURSE | TERM, "year", ["(course, term) is unique"]),
    "unique numbers": (PAID | STATE, None, ["paid is unique"]),
    "at most": (STATE | LEVEL, None, ["at most 1 state == a", "at most 2 state == b"]),
    "an order that is no data": (STATE | LEVEL, "number", ["state stays c", "level never falls"]),
    "all at once": (
        YEAR | STATE | COURSE | TERM | PAID | GRADE, "year",
        ["year rises", "state stays c",
         "(course, term) is unique", "paid never falls", "at most 2 grade == b"],
    ),
}  # fmt: skip


def database_of(columns, order, rules):
    schema = Schema({name: kind for name, (kind, _) in columns.items()})
    rows = Table(schema, parent="persons", link="id", order=order, constraints=rules)
    return Database({"persons": PERSONS, "rows": rows})


def broken(tables, database):
    names = [f"rows: {rule}" for rule in database.tables["rows"].lives]
    counts = evaluate(tables, tables, database, models=False).linked.broken
    return {name: counts[name][0] for name in names}


@pytest.mark.parametrize(
    ("case", "epsilon"),
    [
        pytest.param(case, epsilon, marks=[] if case == "all at once" and epsilon > 1 else pytest.mark.slow)
        for case in CASES
        for epsilon in (0.3, 50.0)
    ],
)
def test_no_synthetic_row_breaks_a_rule(case, epsilon):
    columns, order, rules = CASES[case]
    rng = np.random.default_rng(len(case))
    draws = {name: draw for name, (_, draw) in columns.items()}
    if order == "number":
        draws["number"] = lambda rng, n: np.arange(n)
    database = database_of(columns, order, rules)
    tables = tables_of(rng, 300, 9, draws)
    assert any(broken(tables, database).values())
    made = PrivSyn(epsilon, 1e-6, database, seed=1).fit(tables).sample(seed=2)
    assert len(made["rows"]) > 100
    assert not any(broken(made, database).values())
