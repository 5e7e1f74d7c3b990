"""Are constraints kept in every row, what do they cost in time, and what do they do to the error?

    python experiments/constraints.py [--rows 1000000]

Ten sets of constraints on one made-up table, each beside the same run without them: the share of rows that
keep them, the time, and the mean error of the pairs of columns that they join. The table goes to
docs/constraints.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.metadata import version
from itertools import combinations

import numpy as np
import pandas as pd
from runs import write_section

from privsyn import (
    Allowed,
    Categorical,
    Datetime,
    Determined,
    Forbidden,
    Increasing,
    MissingWhen,
    Numerical,
    PrivSyn,
    Schema,
    Total,
)

ROWS = 20_000  # of the table that is learnt
EPSILON, DELTA = 1.0, 1e-9
COMPARED = 50_000  # rows of which the error is taken
CELLS = 20  # that a number is cut into, each with as many real rows
PLACES = {
    "Oslo": ("Norway", "kr"),
    "Bergen": ("Norway", "kr"),
    "Rome": ("Italy", "eur"),
    "Milan": ("Italy", "eur"),
    "Paris": ("France", "eur"),
}
COLUMNS = {
    "city": Categorical(list(PLACES), nullable=False),
    "country": Categorical(["Norway", "Italy", "France"], nullable=False),
    "money": Categorical(["kr", "eur"], nullable=False),
    "married": Categorical(["yes", "no"], nullable=False),
    "age": Numerical(10, 90, integer=True, nullable=False),
    "spouse_age": Numerical(16, 90, integer=True),
    "start": Datetime("2015-01-01", "2018-12-31", nullable=False),
    "end": Datetime("2015-01-01", "2019-12-31", nullable=False),
    "a": Numerical(0, 500, decimals=2, nullable=False),
    "b": Numerical(0, 200, decimals=2, nullable=False),
    "total": Numerical(0, 700, decimals=2, nullable=False),
}


def table() -> pd.DataFrame:
    """People with a home, a spouse or none, a stay and a bill; all constraints hold."""
    rng = np.random.default_rng(0)
    city = rng.choice(list(PLACES), ROWS, p=[0.3, 0.1, 0.3, 0.1, 0.2])
    age = rng.integers(10, 91, ROWS)
    married = np.where((age > 17) & (rng.random(ROWS) < 0.6), "yes", "no")
    start = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 1400, ROWS), "D")
    a = rng.gamma(2, np.where(city == "Oslo", 60, 30)).clip(0, 500).round(2)
    b = (a * rng.random(ROWS) / 3).clip(0, 200).round(2)
    return pd.DataFrame(
        {
            "city": city,
            "country": [PLACES[c][0] for c in city],
            "money": [PLACES[c][1] for c in city],
            "married": married,
            "age": age,
            "spouse_age": np.where(married == "yes", (age + rng.integers(-2, 9, ROWS)).clip(16, 90), np.nan),
            "start": start,
            "end": start + pd.to_timedelta(rng.geometric(0.05, ROWS) - 1, "D"),
            "a": a,
            "b": b,
            "total": (a + b).round(2),
        }
    )


PAIRS = [(c, money) for c, (_, money) in PLACES.items()]
COUNTRY = {c: country for c, (country, _) in PLACES.items()}
CHILD = Forbidden({"age": {"high": 17}, "married": "yes"})
SPOUSE = MissingWhen("spouse_age", {"married": "no"}, only=True)
STAY = Increasing(["start", "end"])
BILL = Total("total", ["a", "b"])
HOME = Determined("country", "city", COUNTRY)

Check = Callable[[pd.DataFrame], pd.Series]
"""Which rows of a frame keep a constraint."""

KEPT: dict[str, Check] = {
    "child": lambda f: ~((f.age <= 17) & (f.married == "yes")),
    "spouse": lambda f: f.spouse_age.isna() == (f.married == "no"),
    "stay": lambda f: f.start <= f.end,
    "bill": lambda f: (f.a + f.b - f.total).abs() < 0.001,
    "home": lambda f: f.city.map(COUNTRY) == f.country,
    "money": lambda f: f.city.map(dict(PAIRS)) == f.money,
    "share": lambda f: f.b <= f.a,
}
# The constraints, and which of the above say that they are kept.
SETS: dict[str, tuple[list[object], tuple[str, ...]]] = {
    "no married child": ([CHILD], ("child",)),
    "listed combinations": ([Allowed(["city", "money"], PAIRS)], ("money",)),
    "forbidden combinations": (
        [
            Forbidden({"city": ["Oslo", "Bergen"], "money": "eur"}),
            Forbidden({"city": ["Rome", "Milan", "Paris"], "money": "kr"}),
        ],
        ("money",),
    ),
    "city gives country": ([HOME], ("home",)),
    "start before end": ([STAY], ("stay",)),
    "total": ([BILL], ("bill",)),
    "missing when single": ([SPOUSE], ("spouse",)),
    "order of reals": ([Increasing(["b", "a"])], ("share",)),
    "people": ([CHILD, SPOUSE, HOME], ("child", "spouse", "home")),
    "all": (
        [CHILD, SPOUSE, HOME, STAY, BILL, Allowed(["city", "money"], PAIRS), Increasing(["b", "a"])],
        tuple(KEPT),
    ),
}


def coded(real: pd.DataFrame, frame: pd.DataFrame, name: str) -> np.ndarray:
    """A column in few cells, the same for all frames; missing is one."""
    if isinstance(COLUMNS[name], Categorical):
        return pd.Categorical(frame[name], categories=COLUMNS[name].values).codes.astype(np.int64) + 1
    reference, cells = (
        (f[name] - pd.Timestamp("2015-01-01")).dt.days if name in ("start", "end") else f[name].astype(float)
        for f in (real, frame)
    )
    edges = np.unique(np.nanquantile(reference, np.arange(1, CELLS) / CELLS))
    return np.where(cells.isna(), 0, np.searchsorted(edges, cells, side="right") + 1)


def error(real: pd.DataFrame, ours: pd.DataFrame, pairs: list[tuple[str, str]]) -> float:
    """Mean total variation of pairs of columns."""
    errors = []
    for a, b in pairs:
        shares = [
            np.bincount(coded(real, f, a) * 32 + coded(real, f, b), minlength=1024) / len(f)
            for f in (real, ours)
        ]
        errors.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(errors))


def measured(constraints: list[object], rows: int) -> tuple[pd.DataFrame, float, float]:
    """A sample of a model with these constraints, seconds of fit, and of sample."""
    begun = time.process_time()
    model = PrivSyn(EPSILON, DELTA, Schema(COLUMNS, constraints=constraints), seed=1).fit(table())
    fitted = time.process_time()
    sample = model.sample(rows, seed=1)
    return sample, fitted - begun, time.process_time() - fitted


def main() -> None:
    """Measure every set and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows, real = parser.parse_args().rows, table()
    measured([], 1000)  # compiles
    free, free_fit, free_time = measured([], rows)
    lines = []
    for name, (constraints, checks) in SETS.items():
        ours, fit, seconds = measured(constraints, rows)
        share, before = (
            np.mean(np.logical_and.reduce([KEPT[check](f) for check in checks])) for f in (ours, free)
        )
        joined = sorted({p for c in constraints for p in combinations(sorted(set(c.columns)), 2)})
        errors = [
            error(real, f.head(COMPARED), pairs)
            for pairs in (joined, list(combinations(COLUMNS, 2)))
            for f in (free, ours)
        ]
        lines.append(
            f"| {name} | {before:.3%} | {share:.4%} | {fit / free_fit:.2f} | {seconds / free_time:.2f} | "
            + " | ".join(f"{value:.4f}" for value in errors)
            + " |"
        )
        print(lines[-1], flush=True)  # noqa: T201
    write_section(
        "constraints.md",
        "constraints",
        f"""{ROWS:,} rows, {len(COLUMNS)} columns, epsilon {EPSILON:g} at delta {DELTA:g}, one seed,
{rows:,} rows sampled; privsyn {version("privsyn")}, made by

    python experiments/constraints.py --rows {rows}

"""
        + "| constraints | kept without | kept | time, fit | time, sample "
        "| joined pairs, without | with | all pairs, without | with |\n|---"
        + 8 * "|---"
        + "|\n"
        + "\n".join(lines),
    )


if __name__ == "__main__":
    main()
