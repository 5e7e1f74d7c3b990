"""What several commands are told: their common arguments and options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="The private table: .csv, .csv.gz or .parquet, or a folder of Parquet files."
    ),
]

Epsilon = Annotated[float, typer.Option(help="The privacy promised: the smaller, the more private.")]

Delta = Annotated[float, typer.Option(help="The chance that the promise leaves open.")]

Target = Annotated[
    str | None, typer.Option(metavar="COL", help="A column that models are to learn and predict.")
]

Out = Annotated[Path, typer.Argument(metavar="OUT", help="The synthetic table: .csv, .csv.gz or .parquet.")]

Rows = Annotated[
    int | None, typer.Option(min=0, help="How many; the private estimate of the table's own if left out.")
]

Unit = Annotated[
    str | None, typer.Option(help="The column that names the person, where a person may have many rows.")
]

RowsPerUnit = Annotated[
    int | None, typer.Option(min=1, help="With --unit, the most rows kept of a person: publicly known.")
]

ExcelSafe = Annotated[
    bool,
    typer.Option(
        "--excel-safe",
        help="In a CSV, put ' before text that a spreadsheet would run as a formula (=, +, -, @).",
    ),
]

Force = Annotated[bool, typer.Option("--force", help="Overwrite what may not be made again.")]
