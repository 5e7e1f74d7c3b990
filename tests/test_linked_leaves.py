"""If a person leaves linked tables with all that belongs to it, no answer moves further than the ledger says.

The second run is without the person's row of the root and all rows below it. It gets the released answers of
the first, and the rows of all others keep their random words. Then the model of both runs must be the same,
byte by byte.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from replay import Answers, moved

from privsyn import Categorical, Database, Datetime, Numerical, PrivSyn, Schema, Table
from privsyn.methods import reading
from privsyn.private import rows
from privsyn.private.noise import Alone

MANY, TWICE, CHILDLESS, FEW = 900, 901, 902, 3
"""Homes: with many rows, all alike; with two rows of one key; the only one without a row below; as others."""

LISTED = {
    "homes": {"region": Categorical(["n", "s"]), "income": Numerical(0, 99, integer=True)},
    "trips": {"mode": Categorical(["bus", "car"]), "at": Datetime("2020-01-01", "2021-12-31"),
              "km": Numerical(0, 50, integer=True)},
    "stops": {"minutes": Numerical(0, 60, integer=True), "place": Categorical(["shop", "work"])},
    "cars": {"make": Categorical(["a", "b"]), "year": Numerical(1990, 2030, integer=True)},
}  # fmt: skip
OPEN = {
    **LISTED,
    "homes": {"region": Categorical(), "income": Numerical()},
    "trips": {"mode": Categorical(), "at": Datetime(), "km": Numerical()},
    "cars": {"make": Categorical(["a", "b"]), "year": Numerical()},
}
OF_HOMES = {
    "spent": "sum(trips.km)",
    "first": "first(trips.km)",
    "last": "last(trips.at)",
    "bus": "ever(trips.mode == bus)",
    "oldest": "min(cars.year)",
    "mean": "mean(cars.year)",
    "cars": "count(cars)",
}


def database_of(columns):
    schemas = {name: Schema(of) for name, of in columns.items()}
    return Database(
        {
            "homes": Table(schemas["homes"], key="home", derive=OF_HOMES),
            "trips": Table(
                schemas["trips"],
                key="trip",
                parent="homes",
                link="home",
                order="at",
                derive={"longest": "max(stops.minutes)"},
            ),
            "stops": Table(schemas["stops"], parent="trips", link="trip", order="number"),
            "cars": Table(schemas["cars"], parent="homes", link="home"),
        }
    )


def tables_of(homes=50, many=40):
    """Linked tables with orphans, missing keys and times, ties, and a root key that is there twice."""
    rng = np.random.default_rng(4)
    keys = [*range(homes), MANY, TWICE, TWICE, CHILDLESS, None]
    root = pd.DataFrame({"home": pd.array(keys, "Int64")})
    root["region"] = rng.choice(["n", "s"], len(root))
    root["income"] = rng.integers(0, 100, len(root))
    root.loc[root["home"] == MANY, "region"] = "islands"
    few = np.repeat(np.arange(homes), rng.integers(1, 5, homes))
    extra = [*[MANY] * many, TWICE, TWICE, 7_777, 7_777, 8_888]  # the last are nobody's
    trips = pd.DataFrame({"home": pd.array([*few, *extra, None, None], "Int64")})
    n, of_many = len(trips), trips["home"] == MANY
    trips["trip"] = [f"t{place}" for place in range(n)]
    trips["mode"] = rng.choice(["bus", "car"], n)
    trips["at"] = pd.Timestamp("2020-03-01") + pd.to_timedelta(rng.integers(0, 9, n), "D")
    trips["km"] = rng.integers(0, 51, n)
    trips.loc[rng.random(n) < 0.2, "at"] = None
    trips.loc[rng.random(n) < 0.05, "trip"] = None
    trips.loc[of_many, ["mode", "at", "km"]] = ["bus", pd.Timestamp("2020-03-04"), 50]
    stops = trips[["trip"]].loc[trips.index.repeat(rng.integers(0, 4, n))]
    stops = pd.concat([stops, pd.DataFrame({"trip": ["nowhere", None]})])
    stops["number"] = rng.integers(1, 3, len(stops))
    stops["minutes"] = rng.integers(0, 61, len(stops))
    stops["place"] = rng.choice(["shop", "work"], len(stops))
    of_stops = [*np.repeat(np.arange(homes), rng.integers(1, 3, homes)), *[MANY] * many, TWICE, 7_777, None]
    cars = pd.DataFrame({"home": pd.array(of_stops, "Int64")})
    cars["make"] = rng.choice(["a", "b"], len(cars))
    cars["year"] = rng.integers(2000, 2025, len(cars))
    cars.loc[cars["home"] == MANY, ["make", "year"]] = ["b", 1800]
    found = {"homes": root, "trips": trips, "stops": stops, "cars": cars}
    return {
        name: table.sample(frac=1, random_state=5).reset_index(drop=True) for name, table in found.items()
    }


def stays_in(tables, leaver):
    """Which rows of each table remain if a home leaves."""
    of = {name: (tables[name]["home"] != leaver).fillna(True) for name in ("homes", "trips", "cars")}
    gone = tables["trips"].loc[~of["trips"], "trip"].dropna()
    stay = of | {"stops": ~tables["stops"]["trip"].isin(gone)}
    return {name: mask.to_numpy(bool) for name, mask in stay.items()}


def as_csv(table, path):
    table.to_csv(path.with_suffix(".csv"), index=False)
    return path.with_suffix(".csv")


def as_parquet(table, path):
    table.to_parquet(path.with_suffix(".parquet"), index=False, row_group_size=50)
    return path.with_suffix(".parquet")


FORMS = {
    "pandas": lambda table, _: table,
    "polars": lambda table, _: pl.from_pandas(table),
    "arrow": lambda table, _: pa.Table.from_pandas(table, preserve_index=False),
    "csv": as_csv,
    "parquet": as_parquet,
}
TABLES = tables_of()
WORDS = {
    name: np.random.default_rng(8).permutation(len(table)).astype(np.uint64) for name, table in TABLES.items()
}
MODELS = {"open": (1e-6, OPEN), "listed": (1e-6, LISTED), "pure": (0, LISTED)}


@contextmanager
def replayed(words, answers, bound):
    """Bound each person by `bound`; give the rows these words, table by table, and the answers of a run."""
    left = iter(words)

    def bits(size):
        these = next(left)
        assert len(these) == size
        return these

    with answers.run(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "best_bound", lambda *_: bound)
        patch.setattr(Alone, "bits", property(lambda _: bits))
        patch.setattr(rows, "ROWS_AT_ONCE", 64)
        yield
    assert next(left, None) is None


def left_by(fit, words, answers, bound, folder):
    """Fit, and return the ledger and the bytes of the model."""
    folder.mkdir()
    with replayed(words, answers, bound):
        fitted = fit(folder)
    fitted.save(folder / "model")
    return fitted.ledger_, (folder / "model").read_bytes()


def ratios(whole, rest, bound, folder):
    """Return for each question how far it moves if a person leaves, over its sensitivity; check the rest.

    Parameters
    ----------
    whole, rest : (fit, words)
        With and without the person.
    """
    first = Answers()
    before = left_by(*whole, first, bound, folder / "whole")
    second = Answers(first.released)
    assert left_by(*rest, second, bound, folder / "rest") == before
    return {
        spend.what: moved(some, others, spend.law) / spend.sensitivity
        for spend, some, others in zip(before[0].spends, first.exact, second.exact, strict=True)
    }


def of_database(model, form, stay, memory):
    """Return how the remaining rows are fitted, and their words, by which one of equal keys is chosen."""
    delta, columns = MODELS[model]
    tables = {name: table[stay[name]].reset_index(drop=True) for name, table in TABLES.items()}
    words = [WORDS[name][stay[name]] for name in ("homes", "homes", "trips", "stops", "cars")]

    def fit(folder):
        given = {name: FORMS[form](table, folder / name) for name, table in tables.items()}
        return PrivSyn(60.0, delta, database_of(columns), seed=1, memory=memory).fit(given)

    return fit, words


LEAVERS = {"many": MANY, "twice": TWICE, "childless": CHILDLESS, "few": FEW}
EACH = [
    (form, [*MODELS][(turn + place) % 3], (1, 2, 3, 5, 8, 13)[(place + 4 * turn) % 6], leaver)
    for turn, leaver in enumerate(LEAVERS)
    for place, form in enumerate(FORMS)
]


@pytest.mark.parametrize(("form", "model", "bound", "leaver"), EACH)
def test_nothing_moves_further_than_the_ledger_says(form, model, bound, leaver, tmp_path):
    everybody = {name: np.full(len(table), True) for name, table in TABLES.items()}
    stay = stays_in(TABLES, LEAVERS[leaver])
    memory = 0 if bound % 2 else "2GB"
    whole, rest = (of_database(model, form, of, memory) for of in (everybody, stay))
    found = ratios(whole, rest, bound, tmp_path)
    assert max(found.values()) <= 1 + 1e-12
    assert found["homes: one-way counts of every attribute"] == pytest.approx(1)
    below = [name for name in ("trips", "stops", "cars") if not stay[name].all()]
    assert [name for name in TABLES if found.get(f"{name}: rows per person")] == below
    if leaver == "many":  # which moves the counts of every column in the same cells
        assert found["cars: one-way counts of every attribute"] == pytest.approx(1)
        assert max(ratio for what, ratio in found.items() if what.startswith("cars: counts over")) > 0.7
