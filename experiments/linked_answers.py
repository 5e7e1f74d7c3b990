"""How often answers of `ask` about linked tables hold, and whether the words on links agree with `evaluate`.

    python experiments/linked_answers.py held BENCH [--fits 50] [--data cdnow,travel,semcog,panel]
    python experiments/linked_answers.py words BENCH

BENCH is the folder of the bench (linked.py); its data lie beside it. `panel` is generated: 3,000 persons with
visits. *held*: twelve statistics of persons and twelve or more of rows, at epsilon 1; which part of their
intervals of 95 % contains the number of the private tables, which the script reads: NOT PRIVATE. *words*:
the word on each kind of link, beside the part of the gap between rows dealt at random and real rows that
synthetic rows close.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
from linked_peers import DELTA, Tables
from linked_scores import bench_of

from privsyn import Categorical, Database, Numerical, PrivSyn, Schema, Table, evaluate

DATA = ("cdnow", "travel", "semcog", "panel")
EPSILONS, SEED = (0.2, 1.0, 5.0), 3  # of words
NEARER = (0.05, 0.2)  # parts of the gap: at most the first counts as no nearer
LINKS = ("parent_child", "ancestors", "next")

STATISTICS = {
    "cdnow": {
        "persons": [
            *(f"purchases: share of count == {number}" for number in (1, 2)),
            *(f"purchases: share of count >= {number}" for number in (2, 3, 4, 5, 6, 8, 10, 16)),
            "purchases: mean of count",
            "purchases: mean of count among purchases: count >= 2",
        ],
        "rows": [
            "purchases: mean of dollar_value",
            "purchases: mean of number_of_cds",
            "purchases: median of dollar_value",
            "purchases: share of dollar_value >= 50",
            "purchases: share of dollar_value < 15",
            "purchases: share of number_of_cds == 1",
            "purchases: share of number_of_cds >= 4",
            "purchases: share of date < '1997-04-01'",
            "purchases: number of dollar_value >= 100",
            "purchases: mean of dollar_value among purchases: number_of_cds >= 3",
            "purchases: mean of dollar_value among purchases: date >= '1998-01-01'",
            "purchases: share of number_of_cds == 1 among purchases: dollar_value < 20",
            "purchases: mean of dollar_value among customers: count(purchases) >= 4",
            "purchases: share of dollar_value >= 50 among customers: count(purchases) == 1",
        ],
    },
    "travel": {
        "persons": [
            "households: mean of income",
            "households: share of auto_ownership == '2'",
            "households: share of num_workers == '0'",
            "households: number of auto_ownership == '0'",
            "households: mean of income among households: auto_ownership == '2'",
            "persons: share of count == 1",
            "persons: share of count >= 3",
            "persons: mean of count",
            "persons: mean of count among auto_ownership == '2'",
            "persons: share of count >= 2 among num_workers == '1'",
            "tours: mean of count",
            "tours: share of count >= 1",
        ],
        "rows": [
            "persons: mean of age",
            "persons: share of sex == '2'",
            "persons: share of ptype == '1'",
            "persons: share of pemploy == '1' among persons: age >= 30",
            "persons: mean of age among households: auto_ownership == '2'",
            "persons: share of pemploy == '1' among households: num_workers == '1'",
            "tours: share of tour_type == 'work'",
            "tours: share of tour_type == 'work' among persons: ptype == '1'",
            "tours: mean of start",
            "trips: share of outbound == 'True'",
            "trips: mean of depart",
            "trips: share of trip_mode == 'WALK' among tours: tour_mode == 'WALK'",
            "trips: mean of depart among persons: age >= 30",
        ],
    },
    "semcog": {
        "persons": [
            "households: share of race_id == '2.0'",
            "households: mean of age_of_head",
            "households: mean of hincp",
            "households: number of cars == '0.0'",
            "households: mean of hincp among households: cars == '2.0'",
            "households: share of cars == '0.0' among households: age_of_head >= 65",
            "persons: share of count >= 3",
            "persons: share of count == 1",
            "persons: mean of count",
            "persons: mean of count among cars == '2.0'",
            "persons: mean of count among age_of_head >= 65",
            "persons: share of count >= 2 among race_id == '2.0'",
        ],
        "rows": [
            "persons: share of sex == '2'",
            "persons: mean of age",
            "persons: median of age",
            "persons: share of age >= 65",
            "persons: number of relate == '0'",
            "persons: mean of age among persons: sex == '2'",
            "persons: share of esr == '6.0' among persons: age >= 65",
            "persons: share of esr == '1.0' among households: cars == '2.0'",
            "persons: mean of age among households: race_id == '2.0'",
            "persons: mean of age among households: hincp >= 60000",
            "persons: share of sex == '2' among households: type == '3'",
            "persons: share of wkhp >= 40 among households: age_of_head >= 50",
            "persons: mean of wkhp among households: cars == '2.0'",
        ],
    },
    "panel": {
        "persons": [
            "persons: share of sex == 'F'",
            "persons: share of age >= 65",
            "persons: mean of age",
            "persons: number of region == 'west'",
            "persons: mean of age among persons: region == 'north'",
            "persons: share of region == 'south' among persons: age >= 60",
            "visits: share of count >= 1",
            "visits: share of count >= 4",
            "visits: mean of count",
            "visits: mean of count among sex == 'F'",
            "visits: mean of count among age > 60",
            "visits: share of count >= 1 among region == 'north'",
        ],
        "rows": [
            "visits: share of ward == 'dialysis'",
            "visits: share of ward == 'eyes'",
            "visits: mean of cost",
            "visits: median of cost",
            "visits: share of cost >= 150",
            "visits: number of ward == 'surgery'",
            "visits: mean of cost among visits: ward == 'eyes'",
            "visits: share of ward == 'eyes' among persons: sex == 'F'",
            "visits: share of ward == 'dialysis' among persons: age >= 60",
            "visits: mean of cost among persons: sex == 'F'",
            "visits: mean of cost among persons: region == 'north'",
            "visits: share of cost >= 100 among persons: age >= 60",
        ],
    },
}


def panel() -> tuple[Database, Tables]:
    """3,000 persons: the old and the northern have more visits; wards follow these, and costs the wards."""
    rng, persons = np.random.default_rng(7), 3000
    sex, age = rng.choice(["F", "M"], persons), rng.integers(18, 91, persons)
    region = rng.choice(["north", "south", "west"], persons, p=[0.5, 0.3, 0.2])
    rate = np.where(age > 60, 2.5, 1.0) * np.where(region == "north", 1.4, 0.8)
    number = rng.poisson(rng.gamma(1.2, rate))
    who = np.repeat(np.arange(persons), number)
    often = rng.random(len(who)) < np.minimum(number[who] / 12, 0.8)
    eyes = rng.random(len(who)) < np.where(sex[who] == "F", 0.7, 0.3)
    ward = np.where(often, "dialysis", np.where(eyes, "eyes", "surgery"))
    scale = np.where(ward == "dialysis", 60, np.where(ward == "surgery", 90, 25))
    cost = rng.gamma(2.0, scale).clip(max=999).round().astype(np.int64)
    above = {
        "sex": Categorical(["F", "M"], nullable=False),
        "age": Numerical(18, 90, integer=True, nullable=False),
        "region": Categorical(["north", "south", "west"], nullable=False),
    }
    below = {
        "ward": Categorical(["dialysis", "eyes", "surgery"], nullable=False),
        "cost": Numerical(0, 999, integer=True, nullable=False),
    }
    database = Database(
        {
            "persons": Table(Schema(above), key="person"),
            "visits": Table(Schema(below), key="visit", parent="persons", link="person"),
        }
    )
    frame = pd.DataFrame({"person": np.arange(persons), "sex": sex, "age": age, "region": region})
    visits = pd.DataFrame({"person": who, "visit": np.arange(len(who)), "ward": ward, "cost": cost})
    return database, {"persons": frame, "visits": visits}


def read(bench: ModuleType, data: str) -> tuple[Database, Tables]:
    """The declared tables and the private ones."""
    if data == "panel":
        return panel()
    side, tables = bench.read(bench.HERE.parent / "data" / "linked", data)
    declared = {
        name: Table(
            Schema(bench.columns_of(table)),
            **{word: table.get(word) for word in ("key", "parent", "link", "order")},
        )
        for name, table in side["tables"].items()
    }
    return Database(declared), tables


def joined(database: Database, tables: Tables) -> Tables:
    """Each table with the numbers of rows below, and with the columns of tables above behind their names."""
    frames = dict(tables)
    for name, table in database.tables.items():
        if table.parent is not None:
            key = database.tables[table.parent].key
            number = tables[name].groupby(table.link).size().reindex(tables[table.parent][key], fill_value=0)
            column = {f"count({name})": number.to_numpy()}
            frames[table.parent] = frames[table.parent].assign(**column)
    for name, table in database.tables.items():
        if table.parent is not None:
            above = frames[table.parent]
            above = above.rename(columns={c: c if "." in c else f"{table.parent}.{c}" for c in above.columns})
            key = f"{table.parent}.{database.tables[table.parent].key}"
            frames[name] = frames[name].merge(above, left_on=table.link, right_on=key, how="left")
    return frames


def truth(question: str, database: Database, frames: Tables) -> float:
    """The answer that the private tables give to one of `STATISTICS`."""
    table, _, rest = question.partition(": ")
    statistic, _, rest = rest.partition(" of ")
    subject, _, group = rest.partition(" among ")
    of_table, _, condition = group.rpartition(": ")
    parent = database.tables[table].parent or ""
    if subject.startswith("count"):
        subject = subject.replace("count", f"`count({table})`")
        condition = condition.replace("count ", f"`count({table})` ")
        table, of_table = parent, ""
    frame = frames[table]
    if of_table and of_table != table:
        name = condition.split()[0]
        condition = condition.replace(name, f"`{of_table}.{name}`")
    rows = frame.query(condition) if condition else frame
    if statistic in ("share", "number"):
        met = rows.eval(subject)
        return float(met.mean() if statistic == "share" else met.sum())
    numbers = rows[subject.strip("`")]
    return float(numbers.mean() if statistic == "mean" else numbers.median())


def held(bench: ModuleType, data: str, fits: int) -> Iterator[str]:
    """A line for each statistic, and one for all of a kind."""
    database, tables = read(bench, data)
    frames = joined(database, tables)
    answers: dict[str, list[tuple[float, float, float]]] = {}
    for seed in range(fits):
        release = PrivSyn(1.0, DELTA, database, seed=seed).fit(tables).release_
        for question in (question for questions in STATISTICS[data].values() for question in questions):
            answer = release.ask(question)
            answers.setdefault(question, []).append((answer.low, answer.high, answer.estimate))
    for kind, questions in STATISTICS[data].items():
        together: list[bool] = []
        for question in questions:
            real = truth(question, database, frames)
            there = [ends for ends in answers[question] if not isnan(ends[0])]
            contain = [low <= real <= high for low, high, _ in there]
            half = np.mean([(high - low) / 2 for low, high, _ in there]) if there else np.nan
            error = np.sqrt(np.nanmean([(estimate - real) ** 2 for *_, estimate in answers[question]]))
            yield (
                f"{data}, {kind}: {question}: {sum(contain)} of {len(contain)} hold,"
                f" half width {half:.3g}, root mean square error {error:.3g}"
            )
            together += contain
        yield f"{data}, {kind}: {np.mean(together):.1%} of {len(together)} intervals hold"


def words(bench: ModuleType, data: str) -> Iterator[str]:
    """A line for each kind of link of a table."""
    database, tables = read(bench, data)
    for epsilon in EPSILONS:
        release = PrivSyn(epsilon, DELTA, database, seed=SEED).fit(tables).release_
        scores = evaluate(tables, release.sample(seed=1), database, models=False).linked.alike
        for table, sentence in release.outlooks().items():
            for kind in [kind for kind in LINKS if kind in scores[table]]:
                score = scores[table][kind]
                closed = (score.independent - score.synthetic) / (score.independent - score.real)
                part = (
                    "no nearer" if closed <= NEARER[0] else "up to a fifth" if closed <= NEARER[1] else "more"
                )
                yield f"{data}, epsilon {epsilon:g}, {table}, {kind}: closes {closed:.2f} ({part});"
                yield f"    {sentence}"


def main() -> None:
    """Print what is measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("held", "words"))
    parser.add_argument("bench", type=Path)
    parser.add_argument("--fits", type=int, default=50)
    parser.add_argument("--data", default=",".join(DATA))
    given = parser.parse_args()
    bench = bench_of(given.bench)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for data in given.data.split(","):
            lines = held(bench, data, given.fits) if given.task == "held" else words(bench, data)
            for line in lines:
                print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
