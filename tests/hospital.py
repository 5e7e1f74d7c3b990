"""A made hospital: patients, their visits, their prescriptions, and the public list of all drugs.

``python tests/hospital.py hospital --patients 50000`` writes it into a folder of CSV files; a path that ends
in .duckdb or .sqlite gets a database, whose keys are declared with ``--declared``. The same seed makes the
same tables. About 3 visits a patient and 2 prescriptions a visit.

What holds in every row: ``visits.arrived >= patients.born``, ``left >= arrived``, one visit at a time,
``position`` 1, 2, 3, ... within a visit. What depends on what: wards on age, further visits on the ward
before, drugs on the ward.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

WARDS = ("dialysis", "eyes", "maternity", "surgery")
ROUTES = ("eye", "injection", "mouth", "skin")
DAYS = 5 * 365
"""Days from 2020-01-01 in which visits begin."""

Keys = Mapping[str, tuple[str | None, Mapping[str, str]]]
"""Of each table its key, and the table to which each of its other keys leads."""

KEYS: Keys = {
    "patients": ("patient_id", {}),
    "visits": ("visit_id", {"patient_id": "patients"}),
    "drugs": ("drug", {}),
    "prescriptions": (None, {"visit_id": "visits", "drug": "drugs"}),
}

COMMENTS = {("visits", "ward"): "where the patient lay", ("patients", "born"): "date of birth"}

SCHEMA = """\
tables:
  patients:
    key: patient_id
    columns:
      sex: {kind: categorical, values: [f, m]}
      born: {kind: datetime, low: 1925-01-01, high: 2019-12-31}
      region: {kind: categorical, values: [east, north, south, west]}
  visits:
    key: visit_id
    parent: patients
    link: patient_id
    order: arrived
    columns:
      arrived: {kind: datetime, low: 2020-01-01, high: 2024-12-31, unit: h}
      left: {kind: datetime, low: 2020-01-01, high: 2025-03-31, unit: h}
      ward: {kind: categorical, values: [dialysis, eyes, maternity, surgery]}
      urgent: {kind: categorical, values: [false, true]}
      cost: {kind: numerical, low: 0, high: 20000, decimals: 2}
    constraints: [arrived <= left]
  prescriptions:
    parent: visits
    link: visit_id
    order: position
    columns:
      drug: {kind: categorical}
      days: {kind: numerical, low: 1, high: 90, integer: true}
  drugs: {public: drugs.csv, key: drug}
"""
"""What a person who knows the hospital writes."""


def hospital(patients: int = 50_000, seed: int = 0) -> dict[str, pd.DataFrame]:
    """Return the tables of a hospital with this many patients."""
    rng = np.random.default_rng(seed)
    drugs = _drugs(rng)
    born = pd.Timestamp("1925-01-01") + pd.to_timedelta(rng.integers(0, 95 * 365, patients), "D")
    people = pd.DataFrame(
        {
            "patient_id": [f"P{number:07d}" for number in rng.permutation(10 * patients)[:patients]],
            "sex": rng.choice(["f", "m"], patients),
            "born": born,
            "region": rng.choice(["east", "north", "south", "west"], patients, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )
    visits = _visits(people, rng)
    return {
        "patients": people,
        "visits": visits,
        "prescriptions": _prescriptions(visits, drugs, rng),
        "drugs": drugs,
    }


def _drugs(rng: np.random.Generator, number: int = 200) -> pd.DataFrame:
    codes = [f"{letter}{place:02d}" for letter in "ABCDEFGHJK" for place in range(20)][:number]
    routes = rng.choice(ROUTES, number, p=[0.1, 0.25, 0.5, 0.15])
    return pd.DataFrame(
        {
            "drug": codes,
            "name": [f"{code.lower()}amine" for code in codes],
            "route": routes,
            "price": np.round(rng.lognormal(2, 1, number), 2),
        }
    )


def _visits(people: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    age = 2020 - people["born"].dt.year.to_numpy()
    number = np.minimum(rng.poisson(rng.gamma(2, np.where(age > 60, 2.5, 1))), 40)
    of = np.repeat(np.arange(len(people)), number)
    of_age, female = age[of], (people["sex"] == "f").to_numpy()[of]
    may_bear = female & (of_age > 16) & (of_age < 46)
    by_age = np.where(of_age > 60, 1, 2)  # the ward of most visits, which stays with the patient
    usual = np.where(rng.random(len(people)) < 0.2, 0, 3)[of]
    ward = np.where(rng.random(len(of)) < 0.7, usual, np.where(may_bear | (by_age == 1), by_age, 3))
    start = rng.integers(0, DAYS * 24, len(of))
    order = np.lexsort((start, of))
    start, of, ward = start[order], of[order], ward[order]
    stay = np.where(ward == 0, 5, rng.gamma(1.5, 40, len(of)).astype(np.int64) + 1)
    until_next = np.append(np.diff(start), 10**6)
    stay = np.where(np.append(np.diff(of), 1) == 0, np.minimum(stay, until_next), stay)
    arrived = pd.Timestamp("2020-01-01") + pd.to_timedelta(start, "h")
    return pd.DataFrame(
        {
            "visit_id": np.arange(len(of)) + 100_001,
            "patient_id": people["patient_id"].to_numpy()[of],
            "arrived": arrived,
            "left": arrived + pd.to_timedelta(stay, "h"),
            "ward": np.array(WARDS)[ward],
            "urgent": rng.random(len(of)) < np.where(ward == 3, 0.4, 0.1),
            "cost": np.round(np.minimum(120 + 25.0 * stay * rng.lognormal(0, 0.4, len(of)), 20_000), 2),
        }
    )


def _prescriptions(visits: pd.DataFrame, drugs: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    number = rng.poisson(np.where(visits["ward"] == "dialysis", 3, 1.6))
    of = np.repeat(np.arange(len(visits)), number)
    ward = visits["ward"].map({ward: place for place, ward in enumerate(WARDS)}).to_numpy()[of]
    place = np.minimum(rng.geometric(0.06, len(of)) - 1, 49) + 50 * ward  # each ward has drugs of its own
    position = np.arange(len(of)) - np.repeat(np.cumsum(number) - number, number) + 1
    return pd.DataFrame(
        {
            "visit_id": visits["visit_id"].to_numpy()[of],
            "position": position,
            "drug": drugs["drug"].to_numpy()[place],
            "days": rng.choice([3, 5, 7, 10, 14, 30, 90], len(of)),
        }
    )


def store(tables: Mapping[str, pd.DataFrame], path: Path, keys: Keys | None = None) -> None:
    """Write tables into a new DuckDB or SQLite file. `keys` are declared, and written in their order.

    Of DuckDB the `COMMENTS` of columns are declared too.
    """
    names = tables if keys is None else keys
    if path.suffix == ".duckdb":
        import duckdb

        with duckdb.connect(str(path)) as base:
            for name in names:
                base.register("rows", pa.Table.from_pandas(tables[name], preserve_index=False))
                types = base.sql("from rows limit 0")
                base.execute(_create(name, dict(zip(types.columns, types.types, strict=True)), keys))
                base.execute(f'insert into "{name}" from rows')
                base.unregister("rows")
                for (table, column), text in COMMENTS.items() if keys else ():
                    if table == name and column in tables[name]:
                        base.execute(f'comment on column "{table}"."{column}" is \'{text}\'')
        return
    with closing(sqlite3.connect(path)) as base, base:
        for name in names:
            frame = tables[name]
            base.execute(_create(name, {column: _type(cells) for column, cells in frame.items()}, keys))
            texts = {
                column: cells.astype(str) if cells.dtype.kind == "M" else cells.astype(object)
                for column, cells in frame.items()
            }
            rows = pd.DataFrame(texts).astype(object)
            marks = ", ".join("?" * len(frame.columns))
            given = rows.where(rows.notna(), None).itertuples(index=False, name=None)
            base.executemany(f'insert into "{name}" values ({marks})', given)  # noqa: S608


def _type(cells: pd.Series) -> str:
    kinds = {"i": "INTEGER", "f": "REAL", "b": "BOOLEAN", "M": "TIMESTAMP"}
    return kinds.get(cells.dtype.kind, "TEXT")


def _create(name: str, types: Mapping[str, object], keys: Keys | None) -> str:
    key, links = (None, {}) if keys is None else keys[name]
    lines = [f'"{column}" {kind}' for column, kind in types.items()]
    lines += [] if key is None else [f'primary key ("{key}")']
    lines += [
        f'foreign key ("{column}") references "{table}" ("{(keys or {})[table][0]}")'
        for column, table in links.items()
    ]
    return f'create table "{name}" ({", ".join(lines)})'


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--patients", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--declared", action="store_true")
    typed = parser.parse_args()
    made = hospital(typed.patients, typed.seed)
    if typed.path.suffix in (".duckdb", ".sqlite"):
        store(made, typed.path, KEYS if typed.declared else None)
    else:
        typed.path.mkdir()
        for table, rows in made.items():
            rows.to_csv(typed.path / f"{table}.csv", index=False)
