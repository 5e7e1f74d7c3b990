"""How far off tables are that are learnt from randomised answers, beside theory: a table of docs/local.md.

    python experiments/randomised.py --folder DATA

prints it as Markdown. Every respondent randomises every column, with entropy of the operating system.
"""

from __future__ import annotations

import argparse
import sys
from math import pi, sqrt

import numpy as np
import pandas as pd
from error_bars import true_counts
from runs import Row, markdown
from tables import add_data_argument, read

from privsyn import Categorical, PrivSyn, Schema, randomize

COLUMNS = {"nltcs": None, "adult": ["sex", "race", "marital-status", "education", "income"]}
KEEPS = (0.9, 0.75, 0.5)
DRAWN = 1_000_000
HEADS = (
    "table",
    "rows",
    "keep",
    "epsilon",
    "columns, theory",
    "unbiased",
    "pairs, theory",
    "unbiased",
    "released",
    "expected",
    "independent",
    "intervals hold",
)


def run(frame: pd.DataFrame, keep: float) -> Row:
    """Mean total variation from the table before randomisation, of columns and of pairs."""
    schema = Schema({name: Categorical(sorted(frame[name].unique()), nullable=False) for name in frame})
    sent = randomize(frame, schema, keep)
    release = PrivSyn(schema=sent.schema).fit(sent.table).release_
    tables = [*release.fitted.one_ways, *release.fitted.marginals]
    rows = []
    for certainty, table in zip(release.fitted.certainties, tables, strict=True):
        true = true_counts(release, frame, table.attributes).reshape(table.counts.shape)
        low, high = certainty.intervals()
        rows.append(
            {
                "order": true.ndim,
                "theory": sqrt(2 / pi) * np.sqrt(certainty.measured.variance).sum(),
                "unbiased": np.abs(certainty.measured.marginal.counts - true).sum(),
                "released": np.abs(table.counts - true).sum(),
                "expected": 2 * len(frame) * certainty.error,
                "independent": np.abs(independent(true) - true).sum(),
                "holds": 2 * len(frame) * ((low <= true) & (true <= high)).mean(),
            }
        )
    means = pd.DataFrame(rows).groupby("order").mean() / (2 * len(frame))
    return {"epsilon": sent.ledger.promised_epsilon, "one": means.loc[1], "two": means.loc[2]}


def independent(counts: np.ndarray) -> np.ndarray:
    """The counts of a pair, if its columns were independent; of a column, its own."""
    if counts.ndim == 1:
        return counts
    return np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()


def main() -> None:
    """Each table as it is, and drawn from it with repetition to a million rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_argument(parser)
    folder, rows = parser.parse_args().folder, []
    for name, columns in COLUMNS.items():
        table = read(folder, name).frame
        frame = (table if columns is None else table[columns]).astype(str)
        for large in (frame, frame.sample(DRAWN, replace=True, random_state=0, ignore_index=True)):
            for keep in KEEPS:
                done = run(large, keep)
                of_columns = done["one"][["theory", "unbiased"]]
                of_pairs = done["two"][["theory", "unbiased", "released", "expected", "independent"]]
                errors = [f"{error:.4f}" for error in (*of_columns, *of_pairs)]
                begins = [name, f"{len(large):,}", str(keep), f"{done['epsilon']:.1f}"]
                rows.append([*begins, *errors, f"{done['two']['holds']:.1%}"])
    sys.stdout.write(markdown(HEADS, rows))


if __name__ == "__main__":
    main()
