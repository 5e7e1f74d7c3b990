"""Places in regions: the table of docs/constraints.md, and the errors with known totals of both levels.

    python experiments/hierarchy.py --folder DATA [--seeds 3] [--eps 0.2,1]

Adult with two more columns: each of 60 places lies in one of 8 regions, which depend on education and marital
status. Seeded, and so NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
from runs import DELTA, markdown
from tables import add_data_argument, read

from privsyn import Categorical, Lookup, PrivSyn, Schema, Within

REGIONS, PLACES = 8, 60
CAUSES = ["education", "marital-status"]
BANDS = [17, 25, 35, 45, 55, 65, 91]  # of ages
HEADS = ("schema", "epsilon", "pairs with the region", "pairs with the place", "other pairs")


def with_places(frame: pd.DataFrame, seed: int = 7) -> pd.DataFrame:
    """Return the table with a region and a place: rows of alike causes live in alike regions."""
    rng = np.random.default_rng(seed)
    causes = frame[CAUSES].astype(str).agg("|".join, axis=1)
    preferences = {cause: rng.dirichlet(np.full(REGIONS, 0.7)) for cause in causes.unique()}
    region = np.array([rng.choice(REGIONS, p=preferences[cause]) for cause in causes])
    sizes = 2 + rng.multinomial(PLACES - 2 * REGIONS, np.full(REGIONS, 1 / REGIONS))
    first, place = np.cumsum(sizes) - sizes, np.zeros(len(frame), np.int64)
    for number, size in enumerate(sizes):  # the k-th place of a region has 1/k of the rows of its first
        weights = 1 / np.arange(1, size + 1)
        rows = region == number
        place[rows] = first[number] + rng.choice(size, rows.sum(), p=weights / weights.sum())
    names = [f"P{number:02}" for number in range(PLACES)]
    return frame.assign(region=[f"R{number}" for number in region], place=[names[code] for code in place])


def schemas(schema: Schema, frame: pd.DataFrame) -> dict[str, Schema]:
    """Return the schema without places, and with them in three ways."""
    region, place = (
        Categorical(sorted(frame[name].unique()), nullable=False) for name in ("region", "place")
    )
    alone, both = {**schema.columns, "region": region}, {**schema.columns, "region": region, "place": place}
    hierarchy = frame[["place", "region"]].drop_duplicates()
    return {
        "without places": Schema(alone),
        "`Within`": Schema(both, constraints=[Within({"place": "region"}, hierarchy)]),
        "the region computed by `Lookup`": Schema(both, constraints=[Lookup(hierarchy, "place", "region")]),
        "both columns, no rule": Schema(both),
    }


def binned(frame: pd.DataFrame, real: pd.DataFrame) -> pd.DataFrame:
    """Return the table with each number as one of 16 bins of the real table."""
    cuts = {
        name: np.unique(real[name].quantile(np.arange(1, 16) / 16)) for name in real.select_dtypes("number")
    }
    return frame.assign(**{name: np.searchsorted(cuts[name], frame[name], side="right") for name in cuts})


def errors(real: pd.DataFrame, made: pd.DataFrame) -> list[float]:
    """Return the mean total variation of pairs with the region, with the place, and of all others."""
    real, made = binned(real, real), binned(made, real)
    columns = [name for name in real if name not in ("region", "place")]

    def mean_error(pairs: list[tuple[str, str]]) -> float:
        shares = [
            [frame.groupby(list(pair), dropna=False).size() / len(frame) for frame in (real, made)]
            for pair in pairs
            if set(pair) <= {*made.columns}
        ]
        return float(np.mean([first.sub(second, fill_value=0).abs().sum() / 2 for first, second in shares]))

    others = [(first, second) for place, first in enumerate(columns) for second in columns[:place]]
    kinds = [[(name, "region") for name in columns], [(name, "place") for name in columns], others]
    return [mean_error(pairs) if set(pairs[0]) <= {*made.columns} else np.nan for pairs in kinds]


def exact_counts(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """Return exact counts of region by sex, of place by age in bands, and of the places of each region."""
    bands = [f"{low}-{high - 1}" for low, high in pairwise(BANDS)]
    banded = frame.assign(age=pd.cut(frame["age"], BANDS, right=False, labels=bands).astype(str))
    sets = (["region", "sex"], ["place", "age"], ["place", "region"])
    return [banded.groupby(names).size().reset_index(name="count") for names in sets]


def main() -> None:
    """Print a line for each schema and epsilon, and one for `Within` with totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--eps", default="0.2,1")
    settings = parser.parse_args()
    table = read(settings.folder, "adult")
    frame = with_places(table.frame)
    cases = [(name, schema, None) for name, schema in schemas(table.schema, frame).items()]
    cases.append(("`Within`, known totals", cases[1][1], exact_counts(frame)))
    rows = []
    for epsilon in map(float, settings.eps.split(",")):
        for name, schema, totals in cases:
            real = frame[[*schema.columns]]
            runs = []
            for seed in range(settings.seeds):
                model = PrivSyn(epsilon, DELTA, schema, totals=totals, seed=seed).fit(real)
                runs.append(errors(real, model.sample(len(frame), seed=seed)))
            rows.append([name, f"{epsilon:g}", *(f"{error:.4f}" for error in np.mean(runs, axis=0))])
            sys.stdout.write(markdown(rows[-1], []).splitlines()[0] + "\n")
    sys.stdout.write(markdown(HEADS, rows))


if __name__ == "__main__":
    main()
