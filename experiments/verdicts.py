"""How often verdicts on criteria are wrong: writes the table of docs/publisher.md.

    python experiments/verdicts.py [--tables 50] [--tests 10]

A small private table of each seed is fitted, and the errors of its synthetic table are known. A criterion of
each kind is tested with the error just above its bound, and with the error at most the one that is called
safe. The noise of each test has its own seed; the bounds follow from the private rows, which is NOT PRIVATE.
Tables that verdicts.csv holds already are not repeated. It takes half an hour.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from runs import DELTA, Row, markdown, resumed, write_section

from privsyn import Categorical, Numerical, PrivSyn, Release, Schema
from privsyn.private.acceptance import Acceptance, margins
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import SeededGaussian, SeededLaplace
from privsyn.release.acceptance.criteria import Criteria, read_criteria
from privsyn.release.acceptance.judge import SEED, Test, judge, tests_of

HERE = Path(__file__).parent
ROWS_FILE = HERE / "verdicts.csv"
HEADS = ("criterion", "noise", "tests", "wrong acceptances", "wrong refusals")
ROWS, EPSILON, RISK, SHARE = 10_000, 3.0, 0.05, 0.1
NOISE = {"Gaussian": (DELTA, SeededGaussian), "Laplace": (0.0, SeededLaplace)}
ABOVE = 1 - 1e-4  # bound of a broken criterion, as a share of its error

SCHEMA = Schema(
    {
        "sex": Categorical(["F", "M"]),
        "rich": Categorical([False, True], nullable=False),
        "age": Numerical(18, 90, integer=True, nullable=False),
        "pay": Numerical(0, 200, integer=True),
    }
)

ErrorOf = Callable[[pd.DataFrame, pd.DataFrame], float]


def people(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Pay and wealth grow with age. One in ten has no pay, and one in twenty no sex."""
    age = rng.integers(18, 91, rows)
    pay = pd.Series(np.clip(20 + age + rng.normal(0, 20, rows), 0, 200).round()).where(rng.random(rows) > 0.1)
    sex = pd.Series(rng.choice(["F", "M"], rows)).where(rng.random(rows) > 0.05)
    return pd.DataFrame(
        {"sex": sex, "rich": rng.random(rows) < age / 120, "age": age, "pay": pay.astype("Int64")}
    )


def distance(real: pd.DataFrame, made: pd.DataFrame) -> float:
    """The total variation distance of sex and wealth."""
    shares = [table.value_counts(["sex", "rich"], normalize=True, dropna=False) for table in (real, made)]
    return shares[0].sub(shares[1], fill_value=0).abs().sum() / 2


def mean(table: pd.DataFrame) -> float:
    """The mean pay."""
    return table["pay"].mean()


def group_mean(table: pd.DataFrame) -> float:
    """The mean pay of women of 40 and more years."""
    return table.loc[(table["sex"] == "F").fillna(False) & (table["age"] >= 40), "pay"].mean()


def share(table: pd.DataFrame) -> float:
    """The share of rich men of at most 60 years."""
    return ((table["sex"] == "M").fillna(False) & table["rich"] & (table["age"] <= 60)).mean()


def slope(real: pd.DataFrame, made: pd.DataFrame, y: str, x: str, *, relative: bool) -> float:
    """The error of the slope through the means of the released rows."""
    pairs = [table[[y, x]].dropna().astype(float) for table in (real, made)]
    centred = [pair - pairs[1].mean() for pair in pairs]
    private, released = (pair[y] @ pair[x] / (pair[x] @ pair[x]) for pair in centred)
    return abs(private - released) / (abs(released) if relative else 1.0)


def error_of(statistic: Callable[[pd.DataFrame], float]) -> ErrorOf:
    """Return how far a statistic of the synthetic table is off."""
    return lambda real, made: abs(statistic(real) - statistic(made))


KINDS: dict[str, tuple[Callable[[float], Row], ErrorOf, float]] = {
    "margin of two columns": (lambda e: {"margin": ["sex", "rich"], "error": e}, distance, 0.1),
    "mean": (lambda w: {"mean": "pay", "within": w}, error_of(mean), 10.0),
    "mean of a group": (
        lambda w: {"mean": "pay", "within": w, "where": {"sex": "F", "age": {"low": 40}}},
        error_of(group_mean),
        20.0,
    ),
    "share of rows": (
        lambda w: {"proportion": {"sex": "M", "rich": True, "age": {"high": 60}}, "within": w},
        error_of(share),
        0.1,
    ),
    "slope": (
        lambda w: {"slope": {"rich": True}, "against": "age", "within": w},
        lambda real, made: slope(real, made, "rich", "age", relative=False),
        0.005,
    ),
    "slope, within a percentage": (
        lambda w: {"slope": "pay", "against": "age", "within": f"{100 * w:.9f}%"},
        lambda real, made: slope(real, made, "pay", "age", relative=True),
        0.5,
    ),
}
"""Each kind: the criterion with a bound, the true error, and a bound to begin the search for a safe one."""
TOGETHER = "all six together"


def criteria(names: tuple[str, ...], bounds: np.ndarray) -> Criteria:
    """Return the criteria of these names."""
    listed = [KINDS[name][0](float(bound)) for name, bound in zip(names, bounds, strict=True)]
    return read_criteria({"criteria": listed, "share": SHARE, "risk": RISK})


def verdict(release: Release, asked: Criteria, private: PrivateTable) -> Acceptance:
    """Return the verdict on a release, with the reserved share of its budget."""
    unspent = release.with_ledger(replace(release.ledger, charges=()))
    return judge(unspent, asked, private, SHARE * release.ledger.budget).ledger.acceptance


def accepted(release: Release, asked: Criteria, private: PrivateTable, times: int) -> int:
    """Return how many of `times` verdicts accept the release. They differ in the noise of the tests alone."""
    found = tests_of(release, asked)
    excesses = [test.excess for test in found if isinstance(test, Test)]
    if len(excesses) < len(found):  # a criterion that cannot be tested, such as one with an error near 0
        return 0
    met = 0
    for _ in range(times):
        answers = private.excesses(excesses, SHARE * release.ledger.budget)
        met += all(value <= -margins(private.law, scale, RISK, 1)[0] for value, scale in answers)
    return met


def safe_bounds(
    names: tuple[str, ...], errors: np.ndarray, test: Callable[[Criteria], Acceptance]
) -> np.ndarray:
    """Return the bounds at which these errors are called safe, and hardly larger ones are."""
    first = bounds = np.array([KINDS[name][2] for name in names])
    for _ in range(20):
        safe = np.array([line.safe for line in test(criteria(names, bounds)).criteria])
        if ((errors <= safe) & (safe <= errors + 0.002 * first)).all():
            return bounds
        bounds = np.where(safe > 0, bounds + errors + 0.001 * first - safe, 1.3 * bounds)
    raise SystemExit(f"{names}: no bound was found at which the error is just safe")


def run(noise: str, seed: int, tests: int) -> Iterator[Row]:
    """A row for each kind of criterion, and one for all together."""
    real = people(ROWS, np.random.default_rng(seed))
    delta, source = NOISE[noise]
    release = PrivSyn(EPSILON, delta, SCHEMA, seed=seed).fit(real).release_
    made = release.sample(seed=SEED)
    private = PrivateTable(release.codec.encode(real), source(1000 + seed))
    errors = {name: error(real, made) for name, (_, error, _) in KINDS.items()}
    for place, (name, names) in enumerate([*((name, (name,)) for name in KINDS), (TOGETHER, tuple(KINDS))]):
        true = np.array([errors[one] for one in names])
        safe = safe_bounds(names, true, lambda asked: verdict(release, asked, private))
        broken = safe.copy()
        broken[seed % len(names)] = ABOVE * true[seed % len(names)]
        wrong = accepted(release, criteria(names, broken), private, tests)
        refused = tests - accepted(release, criteria(names, safe), private, tests)
        yield {"place": place, "criterion": name, "accepted": wrong, "refused": refused}


def section(rows: pd.DataFrame) -> str:
    """The sums as Markdown."""
    lines = []
    for (_, name, noise), group in rows.groupby(["place", "criterion", "noise"]):
        tests = int(group["tests"].sum())
        wrong = (f"{group[kind].sum()} ({group[kind].sum() / tests:.1%})" for kind in ("accepted", "refused"))
        lines.append([name, noise, f"{tests}", *wrong])
    return markdown(HEADS, lines)


def main() -> None:
    """Run what has not been run, and write the table into the page."""
    asking = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asking.add_argument("--tables", type=int, default=50)
    asking.add_argument("--tests", type=int, default=10)
    settings = asking.parse_args()
    asked = (
        {"noise": noise, "seed": seed, "tests": settings.tests}
        for noise in NOISE
        for seed in range(settings.tables)
    )
    rows = resumed(ROWS_FILE, asked, lambda one: run(one["noise"], one["seed"], one["tests"]))
    write_section("publisher.md", "verdicts", section(rows))


if __name__ == "__main__":
    main()
