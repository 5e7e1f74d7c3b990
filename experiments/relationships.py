"""How often the words beside relationships are wrong: writes the table of docs/publisher.md.

    python experiments/relationships.py --folder DATA [--data adult,nltcs,hmeq,br2000] [--eps 0.1,0.3,1,3]

Each measured pair of columns of a release is compared with its real table. Dependence is the table minus what
it would be if its columns were independent. Seeded, and so NOT PRIVATE. Runs that relationships.csv holds
already are not repeated. It takes some minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from error_bars import true_counts
from runs import DELTA, Row, markdown, parser, resumed, write_section
from tables import Table, read

from privsyn import PrivSyn
from privsyn.release.accuracy.verdicts import HOW_KEPT, strength
from privsyn.studies.publication.relationships import relationships

HERE = Path(__file__).parent
ROWS = HERE / "relationships.csv"
HEADS = (
    "words",
    "pairs",
    "the other direction",
    "over a half wrong",
    "over a quarter wrong",
    "strength outside its interval",
)


def dependence(counts: np.ndarray) -> np.ndarray:
    """The shares of a table of two columns, minus those of independent columns."""
    shares = counts / counts.sum()
    return shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))


def run(table: Table, epsilon: float, seed: int) -> Iterator[Row]:
    """A row for each word: pairs, and how many of them are wrong in each way."""
    release = PrivSyn(epsilon, DELTA, table.schema, seed=seed).fit(table.frame).release_
    wrong = {word: np.zeros(len(HEADS) - 1, int) for word in HOW_KEPT}
    for row in relationships(release.table()):
        pair = row["columns"]
        if len(pair) != 2:
            continue
        real = true_counts(release, table.frame, pair)
        released = release.accuracy_.counts(*pair)["estimate"].to_numpy().reshape(real.shape)
        here, there = dependence(released), dependence(real)
        power = row["strength"]
        off = np.abs(here - there).sum() / 2
        wrong[row["kept"]] += [
            1,
            (np.sign(here) * there).sum() <= 0,
            off > power / 2,
            off > power / 4,
            not row["low"] <= strength(real) <= row["high"],
        ]
    for word, numbers in wrong.items():
        yield {"words": word} | dict(zip(HEADS[1:], numbers.tolist(), strict=True))


def section(rows: pd.DataFrame) -> str:
    """The sums as Markdown."""
    lines = []
    for word in HOW_KEPT:
        pairs, *wrong = rows.loc[rows["words"] == word, list(HEADS[1:])].sum().tolist()
        lines.append([word, f"{pairs:,}", *(f"{n:,} ({n / max(pairs, 1):.1%})" for n in wrong)])
    return markdown(HEADS, lines)


def main() -> None:
    """Run what has not been run, and write the table into the page."""
    settings = parser(__doc__, data="adult,nltcs,hmeq,br2000", eps="0.1,0.3,1,3", seeds="0,1").parse_args()
    table = cache(partial(read, settings.folder))
    cases = (
        {"data": name, "epsilon": epsilon, "seed": seed}
        for name in settings.data
        for epsilon in settings.eps
        for seed in settings.seeds
    )
    rows = resumed(ROWS, cases, lambda case: run(table(case["data"]), case["epsilon"], case["seed"]))
    write_section("publisher.md", "relationships", section(rows))


if __name__ == "__main__":
    main()
