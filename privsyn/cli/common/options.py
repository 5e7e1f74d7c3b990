"""Arguments and options that several commands share."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privsyn.errors import InputError, replace_errors

if TYPE_CHECKING:
    from privsyn.table.schema.schema import Schema

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="The private table: .csv, .csv.gz or .parquet, or a folder of Parquet files."
    ),
]

Epsilon = Annotated[float, typer.Option(help="The privacy budget: smaller is more private.")]

Delta = Annotated[
    float, typer.Option(help="The delta of (epsilon, delta)-differential privacy; 0 for pure epsilon.")
]

Target = Annotated[str | None, typer.Option(metavar="COL", help="A column that models predict.")]

Models = Annotated[
    str | None,
    typer.Option("--model", metavar="NAMES", help="Models to train: boosting,linear (default), forest, mlp."),
]

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", metavar="PLACE", help="A metric of your own: module:function, or an entry point. Repeat."
    ),
]

Out = Annotated[Path, typer.Argument(metavar="OUT", help="The synthetic table: .csv, .csv.gz or .parquet.")]

Rows = Annotated[
    int | None,
    typer.Option(min=0, help="Number of rows. Default: the private estimate of the table's row count."),
]

Unit = Annotated[
    str | None, typer.Option(help="The column that identifies persons. Protects all rows of a person.")
]

RowsPerUnit = Annotated[
    int | None, typer.Option(min=1, help="With --unit, the most rows kept for each person. Public.")
]

ExcelSafe = Annotated[
    bool,
    typer.Option(
        "--excel-safe",
        help="In a CSV, put ' before text that a spreadsheet would run as a formula (=, +, -, @).",
    ),
]

Force = Annotated[bool, typer.Option("--force", help="Overwrite existing models and schemas.")]

Weak = Annotated[
    bool, typer.Option("--allow-weak-privacy", help="Accept an epsilon above 100 or a delta above 0.001.")
]

_FILES = "CSV files; a schema may give these as csv:"

Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="SIGN", rich_help_panel=_FILES, help="Between cells: , or ; or | or tab. Default: a comma."
    ),
]

Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", rich_help_panel=_FILES, help="Such as latin-1, cp1252 or utf-8. Default: utf-8."
    ),
]

Decimal = Annotated[
    str | None, typer.Option(metavar="SIGN", rich_help_panel=_FILES, help="In numbers, . or a comma.")
]

Thousands = Annotated[
    str | None,
    typer.Option(
        metavar="SIGN", rich_help_panel=_FILES, help="Between groups of three digits. Default: none."
    ),
]


def read_public(
    schema: Path | None,
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    thousands: str | None,
) -> Schema | None:
    """Return the schema in a file, with the format of CSV files that the options give.

    An option comes before the schema's setting. If nothing but defaults is left, it is None.
    """
    from privsyn.table.schema.csv_format import CsvFormat
    from privsyn.table.schema.schema import Schema
    from privsyn.table.schema.yaml_file import read_schema

    public = None if schema is None else read_schema(schema)
    before = CsvFormat() if public is None else public.csv
    tab = delimiter in ("tab", r"\t")
    options = {"delimiter": "\t" if tab else delimiter, "encoding": encoding}
    options |= {"point": decimal, "thousands": thousands}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    with replace_errors(lambda error: f"--{error}".replace("--point", "--decimal"), InputError):
        csv = replace(before, **given)
    if csv == before:
        return public
    if public is not None and (public.columns or public.missing):
        return replace(public, csv=csv)
    return None if csv == CsvFormat() else Schema({}, csv=csv)


def own_metrics(places: list[str] | None) -> list[str]:
    """Register the metrics of the user, whose modules may be in the working folder; return their names."""
    from privsyn.evaluation.registry import add_metric

    if places:
        sys.path.insert(0, str(Path.cwd()))
    for place in places or ():
        add_metric(place)
    return places or []
