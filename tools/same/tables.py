"""The table of the runs, in several containers, and what is public about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

ROWS = 1500


def people() -> pd.DataFrame:
    """Return rows with a column of each kind, rare values, a spike, missing cells and exact rules."""
    rng, day = np.random.default_rng(0), pd.Timedelta(days=1)
    start = pd.Timestamp("2024-01-01")
    age = rng.integers(0, 91, ROWS)
    city = rng.choice(["Oslo", "Bergen", "Rome", "Bari"], ROWS, p=[0.6, 0.3, 0.095, 0.005])
    jobs = rng.choice(["none", "cook", "clerk", "judge"], ROWS, p=[0.3, 0.3, 0.39, 0.01])
    married = np.where((age >= 18) & (rng.random(ROWS) < 0.5), "yes", "no")
    spouse = (age + rng.normal(0, 4, ROWS)).round().clip(18, 99)
    height = 60 + 100 * np.sqrt(age / 91) + rng.normal(0, 8, ROWS)
    arrival = start + rng.integers(0, 300, ROWS) * day
    room = rng.gamma(3, 50, ROWS).clip(0, 900).round(2)
    extras = (rng.gamma(1, 20, ROWS).clip(0, 300) * (rng.random(ROWS) < 0.4)).round(2)
    frame = pd.DataFrame(
        {
            "city": city,
            "country": np.where(np.isin(city, ["Rome", "Bari"]), "Italy", "Norway"),
            "job": np.where(age < 18, "pupil", jobs),
            "age": age,
            "height": np.where(rng.random(ROWS) < 0.1, np.nan, height),
            "married": married,
            "spouse_age": np.where(married == "yes", spouse, np.nan),
            "arrival": arrival,
            "departure": arrival + rng.integers(1, 20, ROWS) * day,
            "called": start + rng.integers(0, 60 * 24 * 90, ROWS) * pd.Timedelta(minutes=1),
            "opens": pd.to_datetime(rng.integers(8 * 60, 18 * 60, ROWS), unit="m").time,
            "stay": pd.to_timedelta(rng.exponential(40, ROWS).clip(0, 2000).round(), unit="h"),
            "room": room,
            "extras": extras,
            "bill": (room + extras).round(2),
            "paid": (room + extras).round(2),
            "person": np.arange(ROWS) // 3,
            "notes": "x",
        }
    )
    frame["person"] = frame["person"].map("P{:04d}".format)
    return frame


COLUMNS = """
columns:
  city: {kind: categorical, values: [Oslo, Bergen, Rome, Bari], nullable: false}
  country: {kind: categorical, values: [Norway, Italy], nullable: false}
  job: {kind: categorical, values: [pupil, none, cook, clerk, judge]}
  age: {kind: numerical, low: 0, high: 90, integer: true, nullable: false}
  height: {kind: numerical, low: 30, high: 220, decimals: 1}
  married: {kind: categorical, values: ["no", "yes"], nullable: false}
  spouse_age: {kind: numerical, low: 18, high: 99, integer: true}
  arrival: {kind: datetime, low: 2024-01-01, high: 2024-12-31, nullable: false}
  departure: {kind: datetime, low: 2024-01-01, high: 2025-01-31, nullable: false}
  called: {kind: datetime, low: 2024-01-01, high: "2024-03-31T23:59:00", unit: min, cycles: [day, week]}
  opens: {kind: time, low: "08:00", high: "18:00", unit: m, objects: time}
  stay: {kind: duration, low: 0 days, high: 90 days, unit: h}
  room: {kind: numerical, low: 0, high: 900, decimals: 2, nullable: false}
  extras: {kind: numerical, low: 0, high: 300, decimals: 2, nullable: false}
  bill: {kind: numerical, low: 0, high: 1200, decimals: 2, nullable: false}
  paid: {kind: numerical, low: 0, high: 1200, decimals: 2, nullable: false}
  person: {kind: identifier}
  notes: {kind: text}
"""

RULES = """
constraints:
  - age < 18 implies married == 'no'
  - spouse_age is missing iff married == 'no'
  - arrival < departure
  - bill == room + extras
  - paid == bill
  - {kind: determined, column: country, by: city,
     mapping: {Oslo: Norway, Bergen: Norway, Rome: Italy, Bari: Italy}}
  - {kind: allowed, columns: [married, job], rows: [["no", pupil], ["no", none], ["no", cook], ["no", clerk],
     ["no", judge], ["yes", none], ["yes", cook], ["yes", clerk], ["yes", judge]]}
"""

OPEN = """
columns:
  city: {kind: categorical}
  job: {kind: categorical, other: elsewhere}
  age: {kind: numerical, integer: true}
  height: {kind: numerical}
  arrival: {kind: datetime}
  called: {kind: datetime, unit: min}
  opens: {kind: time, objects: time}
  stay: {kind: duration}
  room: {kind: numerical, step: 0.01}
  person: {kind: faker, provider: name}
  notes: {kind: identifier, pattern: '[A-Z]{2}-[0-9]{4}'}
"""

NAMES = ["city", "job", "age", "height", "married", "room", "extras"]
NUMBERS = ["age", "height", "room", "extras", "bill"]
CATEGORIES = ["city", "country", "job", "married"]
TIMES = ["arrival", "departure", "called", "opens", "stay"]


def part_of(names: list[str], text: str = COLUMNS) -> str:
    """Return a schema of some of the columns."""
    return "\n".join(
        line for line in text.splitlines() if line[:2] != "  " or line.split(":")[0].strip() in names
    )


ACCEPT: dict[str, Any] = {
    "risk": 0.1,
    "criteria": [
        {"margin": ["city", "married"], "error": 0.2},
        {"mean": "age", "within": 5, "where": {"married": "yes"}},
        {"proportion": {"married": "yes", "age": {"low": 40}}, "within": 0.1},
        {"slope": "height", "against": "age", "within": 0.5},
    ],
}


def answers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with two columns randomised as a respondent does it: 8 of 10 cells are kept."""
    rng, frame = np.random.default_rng(1), frame.copy()
    for name, values in (("city", ["Oslo", "Bergen", "Rome", "Bari"]), ("married", ["no", "yes"])):
        frame[name] = frame[name].where(rng.random(len(frame)) < 0.8, rng.choice(values, len(frame)))
    return frame


RANDOMISED = part_of(["city", "married", "age"]).replace("values", "keep: 0.8, values")
ALL_RANDOMISED = part_of(["city", "married"], RANDOMISED)


def arrow(frame: pd.DataFrame) -> Any:
    """Return the rows as a table of Arrow."""
    import pyarrow as pa

    return pa.Table.from_pandas(frame, preserve_index=False)


def polars(frame: pd.DataFrame) -> Any:
    """Return the rows as a polars data frame."""
    import polars as pl

    return pl.from_pandas(frame)


def categories(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with dtypes of categories, whole numbers that may be missing, and 32 bits."""
    narrow = {"city": "category", "age": "Int16", "height": "float32", "room": "float64", "married": "string"}
    return frame.astype({name: dtype for name, dtype in narrow.items() if name in frame})


HOSPITAL = """
tables:
  patients:
    key: patient
    columns:
      sex: {kind: categorical, values: [f, m]}
      born: {kind: datetime, low: 1925-01-01, high: 2019-12-31}
  visits:
    key: visit
    parent: patients
    link: patient
    order: arrived
    columns:
      arrived: {kind: datetime, low: 2020-01-01, high: 2024-12-31}
      left: {kind: datetime, low: 2020-01-01, high: 2025-03-31}
      ward: {kind: categorical, values: [dialysis, eyes, surgery]}
      cost: {kind: numerical, low: 0, high: 2000, decimals: 2}
    constraints: [arrived <= left, arrived >= patients.born]
  medicines:
    parent: visits
    link: visit
    columns:
      drug: {kind: categorical}
      given: {kind: datetime, low: 2020-01-01, high: 2025-03-31}
      days: {kind: numerical, low: 1, high: 90, integer: true}
    constraints: [given >= visits.arrived]
  drugs: {public: drugs.csv, key: drug}
"""


def drugs() -> pd.DataFrame:
    """Return the look-up table of `HOSPITAL`."""
    return pd.DataFrame({"drug": ["A1", "B2", "C3", "D4"], "route": ["eye", "mouth", "mouth", "skin"]})


def hospital(patients: int = 600, seed: int = 0) -> dict[str, pd.DataFrame]:
    """Return three linked tables that keep the rules of `HOSPITAL`, without the look-up table."""
    rng = np.random.default_rng(seed)
    born = pd.Timestamp("1925-01-01") + pd.to_timedelta(rng.integers(0, 95 * 365, patients), "D")
    people = pd.DataFrame(
        {"patient": 10**6 * seed + np.arange(patients), "sex": rng.choice(["f", "m"], patients), "born": born}
    )
    visits_of = rng.poisson(np.where(born.year < 1960, 3.0, 1.0))
    patient = np.repeat(np.arange(patients), visits_of)
    arrived = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1800, len(patient)), "D")
    stay = rng.gamma(1.5, 4, len(patient)).astype(int)
    ward = np.where(born.year[patient] < 1950, "dialysis", rng.choice(["eyes", "surgery"], len(patient)))
    visits = pd.DataFrame(
        {
            "visit": np.arange(len(patient)) + 1000,
            "patient": people["patient"].to_numpy()[patient],
            "arrived": arrived,
            "left": arrived + pd.to_timedelta(stay, "D"),
            "ward": ward,
            "cost": (40.0 * stay * rng.lognormal(0, 0.4, len(patient))).clip(0, 2000).round(2),
        }
    )
    medicines_of = rng.poisson(np.where(ward == "dialysis", 2.0, 1.0))
    row = np.repeat(np.arange(len(patient)), medicines_of)
    medicines = pd.DataFrame(
        {
            "visit": visits["visit"].to_numpy()[row],
            "drug": np.where(ward[row] == "eyes", "A1", rng.choice(["B2", "C3", "D4"], len(row))),
            "given": arrived[row] + pd.to_timedelta(rng.integers(0, 9, len(row)), "D"),
            "days": rng.choice([3, 7, 14, 90], len(row)),
        }
    )
    return {"patients": people, "visits": visits, "medicines": medicines}


LIVES = """
tables:
  workers: {key: worker, columns: {born: {kind: numerical, low: 1950, high: 1989, integer: true}}}
  years:
    parent: workers
    link: worker
    order: year
    one: first(job) == 'first'
    columns:
      year: {kind: numerical, low: 1990, high: 2019, integer: true}
      married: {kind: categorical, values: ["no", "yes"]}
      job: {kind: categorical, values: [first, head, other]}
      region: {kind: categorical, values: [n, s]}
      pension: {kind: numerical, low: 0, high: 16, integer: true}
      course: {kind: categorical, values: [a, b, c, d, e, f]}
      role: {kind: categorical, values: [head, member]}
    constraints:
      - year rises
      - year >= workers.born
      - married stays yes
      - region lasts
      - pension never falls
      - course is unique
      - at most 2 role == 'head'
"""


def workers(number: int = 400) -> dict[str, pd.DataFrame]:
    """Return workers and their years; some years break rules of `LIVES`."""
    rng = np.random.default_rng(3)
    worker = np.repeat(np.arange(number), rng.integers(0, 6, number))
    words = {
        "married": ["no", "yes"],
        "region": ["n", "s"],
        "course": [*"abcdef"],
        "role": ["head", "member"],
    }
    years = pd.DataFrame(
        {
            "worker": worker,
            "year": rng.integers(1990, 2020, len(worker)),
            "job": np.where(
                np.diff(worker, prepend=-1) > 0, "first", rng.choice(["head", "other"], len(worker))
            ),
            "pension": rng.integers(0, 17, len(worker)),
            **{name: rng.choice(values, len(worker)) for name, values in words.items()},
        }
    )
    return {
        "workers": pd.DataFrame({"worker": range(number), "born": rng.integers(1950, 1990, number)}),
        "years": years.sort_values(["worker", "year"]),
    }
