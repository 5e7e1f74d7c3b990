"""Do real tables come back as they were? Dates as dates, whole numbers whole, as many cells missing.

    PRIVSYN_DATA=folder python experiments/real_tables.py [--epsilon 1]

Three tables in the folder, `hotel-bookings.csv.gz`, `kc-house.csv.gz` and `hmeq.csv.gz`, with the schemas in
`datasets/`, which a person wrote from what is published of them; no other work by hand. It prints the table
that stands in docs/robustness.md.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from runs import DELTA

from privsyn import Datetime, Numerical, PrivSyn, Schema, read_schema
from privsyn.table.io.write import write_table

DATASETS = Path(__file__).parent.parent / "datasets"
TABLES = ("hmeq", "kc-house", "hotel-bookings")


def main() -> None:
    """Print one row of findings for each table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("data", nargs="?", type=Path, default=os.environ.get("PRIVSYN_DATA"))
    arguments.add_argument("--epsilon", type=float, default=1.0)
    chosen = arguments.parse_args()
    if chosen.data is None:
        arguments.error("say where the tables are: PRIVSYN_DATA or an argument")
    print("| table | rows | columns | dates | whole numbers | decimals | missing, worst |")  # noqa: T201
    print("|---|---|---|---|---|---|---|")  # noqa: T201
    for name in TABLES:
        schema = read_schema(DATASETS / name / "schema.yaml")
        path = Path(chosen.data) / f"{name}.csv.gz"
        model = PrivSyn(chosen.epsilon, DELTA, schema).fit(path)
        with TemporaryDirectory() as folder:
            out = Path(folder) / f"{name}.csv"
            write_table(model.sample(), out, schema)
            cells = [f"{name}", *findings(texts(path), texts(out), schema)]
        print(f"| {' | '.join(cells)} |")  # noqa: T201


def texts(path: Path) -> pd.DataFrame:
    """Every cell of a file as it is written."""
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def findings(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema) -> list[str]:
    """What there is to say of two tables of text: of how many columns all cells look as they should."""
    same = list(real.columns) == list(synthetic.columns)
    dates = [name for name, column in schema.columns.items() if isinstance(column, Datetime)]
    numbers = {name: column for name, column in schema.columns.items() if isinstance(column, Numerical)}
    whole = [name for name, column in numbers.items() if column.integer]
    decimals = {name: column.decimals for name, column in numbers.items() if column.decimals}
    missing = {
        name: 100 * ((synthetic[name] == "").mean() - (real[name] == "").mean()) for name in schema.columns
    }
    worst = max(missing, key=lambda name: abs(missing[name]))
    return [
        f"{len(real):,}",
        f"{len(real.columns)}, in order" if same else "differ",
        looking(synthetic, dict.fromkeys(dates, r"[0-9]{4}-[0-9]{2}-[0-9]{2}|")),
        looking(synthetic, dict.fromkeys(whole, r"-?[0-9]+|")),
        looking(synthetic, {name: rf"-?[0-9]+\.[0-9]{{{count}}}|" for name, count in decimals.items()}),
        f"{missing[worst]:+.2f} points (`{worst}`)" if missing[worst] else "none in either",
    ]


def looking(table: pd.DataFrame, patterns: dict[str, str]) -> str:
    """Of how many columns every cell looks so."""
    right = sum(table[name].str.fullmatch(pattern).all() for name, pattern in patterns.items())
    return f"{right} of {len(patterns)}"


if __name__ == "__main__":
    main()
