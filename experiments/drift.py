"""How often `release.drift` is alarmed: without drift, and where new rows are changed.

    python experiments/drift.py --folder DATA [--data adult,hmeq] [--eps 0.2,1,5] [--seeds 0,1,2]

Each run fits a random half of a table, and compares the other half: as it is; with a tenth of its rows
changed, of which each column is shuffled alone; and without every fifth row of the target's largest class. An
alarm is a p-value below 0.01. One row a run goes to experiments/drift.csv, the alarms to docs/engineer.md.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from runs import DELTA, Row, markdown, measured_tables, parser, write_section
from tables import Table

from privsyn import PrivSyn

HERE = Path(__file__).parent
ROWS = HERE / "drift.csv"
LEVEL = 0.01
CHANGES = {"same": "no drift", "shuffled": "a tenth shuffled", "rarer": "a class rarer"}


def main() -> None:
    """Run what the command line asks for, and write the section from all rows."""
    seeds = ",".join(map(str, range(10)))
    settings = parser(__doc__, data="adult,br2000,nltcs,hmeq", eps="0.2,1,5", seeds=seeds).parse_args()
    rows = measured_tables(ROWS, settings, p_values)
    write_section("engineer.md", "drift", section(rows))


def p_values(table: Table, epsilon: float, seed: int) -> Row:
    """Return the smallest p-value of each kind of new rows."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(table.frame))
    old, new = (table.frame.iloc[half].reset_index(drop=True) for half in np.array_split(order, 2))
    model = PrivSyn(epsilon, DELTA, table.schema, target=table.target, seed=seed).fit(old)
    tenth = len(new) // 10
    shuffled = new[:tenth].apply(lambda column: column.take(rng.permutation(tenth)).array)
    largest = new[table.target] == new[table.target].mode()[0]
    rows = {
        "same": new,
        "shuffled": pd.concat([shuffled.astype(new.dtypes), new[tenth:]], ignore_index=True),
        "rarer": new[~(largest & (np.arange(len(new)) % 5 == 0))],
    }
    return {name: model.release_.drift(changed)["p_value"].min() for name, changed in rows.items()}


def section(rows: pd.DataFrame) -> str:
    """Return the share of runs with an alarm."""
    lines = []
    for (data, epsilon), runs in rows.groupby(["data", "epsilon"], sort=False):
        alarms = [f"{(runs[name] < LEVEL).mean():.0%}" for name in CHANGES]
        lines.append([data, f"{epsilon:g}", str(len(runs)), *alarms])
    return markdown(("table", "epsilon", "runs", *CHANGES.values()), lines)


if __name__ == "__main__":
    main()
