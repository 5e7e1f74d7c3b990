"""Real tables as populations: private tables are rows drawn from them with replacement.

The truth is the whole table. The estimates were chosen before the first run, and no result changed them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from statistics_of_tables import Found, Statistic, difference, logistic, mean, odds
from tables import read

from privsyn import Schema


def correlation(x: np.ndarray, y: np.ndarray) -> Found:
    """Return Fisher's z of the correlation, and its variance by the delta method for any distribution."""
    a, b = ((z - z.mean()) / z.std() for z in (x.astype(float), y.astype(float)))
    r = float((a * b).mean())
    influence = (a * b - r * (a**2 + b**2) / 2) / (1 - r**2)
    return float(np.arctanh(r)), float(influence.var(ddof=1) / len(x))


LARGE, RICH, MARRIED = 750_000, ">50K", "Married-civ-spouse"

ADULT: Mapping[str, Statistic] = {
    "mean of age": ("age", mean),
    "mean of hours": ("hours-per-week", mean),
    "mean of capital-gain": ("capital-gain", mean),
    "share, age >= 65": ("age", lambda a: mean(a >= 65)),
    "share, rich": ("income", lambda a: mean(a == RICH)),
    "share, rich women": ("sex income", lambda a, b: mean((a == "Female") & (b == RICH))),
    "group difference, hours by sex": ("hours-per-week sex", lambda a, b: difference(a, b == "Male")),
    "group difference, age by income": ("age income", lambda a, b: difference(a, b == RICH)),
    "group difference, education by income": (
        "education-num income",
        lambda a, b: difference(a, b == RICH),
    ),
    "group difference, education by race": ("education-num race", lambda a, b: difference(a, b == "White")),
    "correlation, education hours": ("education-num hours-per-week", correlation),
    "correlation, age hours": ("age hours-per-week", correlation),
    "correlation, age education": ("age education-num", correlation),
    "log odds ratio, income sex": ("income sex", lambda a, b: odds(a == RICH, b == "Male")),
    "log odds ratio, income married": ("income marital-status", lambda a, b: odds(a == RICH, b == MARRIED)),
    "log odds ratio, race sex": ("race sex", lambda a, b: odds(a == "White", b == "Male")),
    "logistic, income on sex (and education)": (
        "income sex education-num",
        lambda a, b, c: logistic(a == RICH, b == "Male", c),
    ),
    "logistic, income on education (and married)": (
        "income education-num marital-status",
        lambda a, b, c: logistic(a == RICH, b, c == MARRIED),
    ),
    "logistic, income on age (and hours)": (
        "income age hours-per-week",
        lambda a, b, c: logistic(a == RICH, b / 10, c / 10),
    ),
    "logistic, income on hours (and sex)": (
        "income hours-per-week sex",
        lambda a, b, c: logistic(a == RICH, b / 10, c == "Male"),
    ),
}
HOUSES: Mapping[str, Statistic] = {
    "mean of price": ("price", mean),
    "mean of sqft_living": ("sqft_living", mean),
    "mean of bedrooms": ("bedrooms", mean),
    "share, price >= 750,000": ("price", lambda a: mean(a >= LARGE)),
    "share, price >= 750,000 and grade >= 9": (
        "price grade",
        lambda a, b: mean((a >= LARGE) & (b >= 9)),
    ),
    "group difference, price by view": ("price view", lambda a, b: difference(a, b > 0)),
    "group difference, price by grade": ("price grade", lambda a, b: difference(a, b >= 9)),
    "group difference, sqft_living by floors": ("sqft_living floors", lambda a, b: difference(a, b >= 2)),
    "correlation, sqft_living price": ("sqft_living price", correlation),
    "correlation, grade price": ("grade price", correlation),
    "correlation, bedrooms price": ("bedrooms price", correlation),
    "correlation, lat price": ("lat price", correlation),
    "correlation, condition yr_built": ("condition yr_built", correlation),
    "log odds ratio, price grade": ("price grade", lambda a, b: odds(a >= LARGE, b >= 9)),
    "log odds ratio, price condition": ("price condition", lambda a, b: odds(a >= LARGE, b >= 4)),
    "logistic, price on sqft_living (and grade)": (
        "price sqft_living grade",
        lambda a, b, c: logistic(a >= LARGE, b / 1000, c),
    ),
    "logistic, price on grade (and condition)": (
        "price grade condition",
        lambda a, b, c: logistic(a >= LARGE, b, c),
    ),
    "logistic, price on bedrooms (and floors)": (
        "price bedrooms floors",
        lambda a, b, c: logistic(a >= LARGE, b, c),
    ),
}


@dataclass(frozen=True, eq=False)
class Rows:
    """A population that is a table."""

    frame: pd.DataFrame
    schema: Schema

    @classmethod
    def of(cls, folder: Path, name: str, *without: str) -> Rows:
        """Read a table, without some columns."""
        table = read(folder, name)
        columns = {name: kind for name, kind in table.schema.columns.items() if name not in without}
        return cls(table.frame[list(columns)], replace(table.schema, columns=columns))

    def draw(self, rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """Return rows drawn with replacement; the whole table if `rows` is at least its length."""
        if rows >= len(self.frame):
            return self.frame
        return self.frame.iloc[rng.integers(0, len(self.frame), rows)].reset_index(drop=True)
