"""Arguments and options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from dataclasses import fields, replace
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privsyn.abilities import LINKED, check_abilities
from privsyn.cli.common.engine_data import DatabaseUrl, database_url
from privsyn.errors import InputError, replace_errors
from privsyn.files import is_url
from privsyn.settings import Settings
from privsyn.sizes import MOST_ROWS

if TYPE_CHECKING:
    from privsyn.table.database.database import Database
    from privsyn.table.schema.schema import Schema

FILE_ALONE = (
    "only `privsyn synth` takes the URL of a database; give a file, to `privsyn plan` the schema, and to"
    " `privsyn budget` the path before .budget.jsonl"
)
"""Why a URL is refused. It is not shown, since it may have a password."""

WRITES = "Files to write:"
"""The panel, in the help of a command, of the options that name a file to be written."""

FORMATS = ".csv, .csv.gz, .parquet, .xlsx, .dta, .sav, .duckdb or .sqlite"
OUT = f"The synthetic table: {FORMATS} ('out.duckdb::orders'); of linked tables a new folder or a database."


def table_path(text: str) -> Path:
    """Return the path of a table; refuse a URL, and a query that a path would change."""
    if is_url(text):
        raise typer.BadParameter(FILE_ALONE)
    if "::" in text and str(Path(text)) != text:
        raise typer.BadParameter("a query must not have // or /./ or end in /: make a view of it")
    return Path(text)


def _table_or_url(text: str) -> Path | DatabaseUrl:
    """Return the path of a table, or the URL of a database."""
    return database_url(text) if is_url(text) else table_path(text)


DataOrUrl = Annotated[
    Any,
    typer.Argument(
        metavar="DATA",
        parser=_table_or_url,
        help=f"The private table: {FORMATS}, or a folder of Parquet files; a folder or database of"
        " linked tables. In a workbook or database:"
        " 'book.xlsx::Sheet2', 'shop.duckdb::orders', or a query as 'shop.duckdb::select ...'."
        " Or the URL of a database that counts the rows itself: 'postgres://user@host/shop'.",
    ),
]

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        parser=table_path,
        help=f"The private table: {FORMATS}, or a folder of Parquet files; a folder or database of"
        " linked tables. In a workbook or database:"
        " 'book.xlsx::Sheet2', 'shop.duckdb::orders', or a query as 'shop.duckdb::select ...'.",
    ),
]

DataOrNone = Annotated[
    Path | None,
    typer.Argument(
        metavar="[DATA]",
        parser=table_path,
        help=f"The private table: {FORMATS}, or a folder of Parquet files; a folder or database of linked"
        " tables. It may be left out with --from.",
    ),
]

Target = Annotated[str | None, typer.Option(metavar="COL", help="A column that models predict.")]

Names = list[str] | None
"""Of an option that takes names separated by commas, and may be repeated."""

Models = Annotated[
    Names,
    typer.Option(
        "--model", metavar="NAMES", help="Models: boosting,linear (default), forest, mlp, distilled."
    ),
]

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", metavar="PLACE", help="A metric of your own: module:function, or an entry point. Repeat."
    ),
]

Unit = Annotated[
    str | None,
    typer.Option(metavar="COL", help="The column that identifies a person in every table: compare persons."),
]

Identifiers = Annotated[
    bool, typer.Option("--identifiers", help="As for `synth`, and nothing more: --unit says it here.")
]

Order = Annotated[
    str | None, typer.Option(metavar="COL", help="With --unit, the column that orders the rows of a person.")
]

Out = Annotated[Path, typer.Argument(metavar="OUT", help=OUT)]

Rows = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=MOST_ROWS,
        help="Number of rows, or of persons if their rows belong together. Default: the private estimate.",
    ),
]

ExcelSafe = Annotated[
    bool,
    typer.Option(
        "--excel-safe",
        help="In a CSV, put ' before text that a spreadsheet would run as a formula (=, +, -, @).",
    ),
]

AboutFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="More of the publisher's words, in YAML as under about: in a schema, such as title: Visits.",
    ),
]

Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files, or tables of a database.")]


class ProgressFormat(StrEnum):
    """How progress is shown."""

    BAR = "bar"
    JSON = "json"


BudgetFile = Annotated[
    Path | None,
    typer.Option(
        "--budget",
        metavar="FILE",
        help="Keeps what was spent on DATA. Default: DATA.budget.jsonl, beside it.",
    ),
]

NoBudget = Annotated[
    bool, typer.Option("--no-budget", help="Keep no budget file: the ledger says that the run is unrecorded.")
]

Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Print all remarks. Default: at most ten short lines, the verdict first."),
]

PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="The most that may be spent on DATA, as YAML. Default: privsyn.policy.yaml beside it, if any.",
    ),
]

ShowProgress = Annotated[
    ProgressFormat,
    typer.Option(help="json, for programs: a line {stage, done, total} on standard error for each step."),
]

FIELDS = {setting.name: setting for setting in fields(Settings)}


def spelling_of(setting: str) -> str:
    """Return the option that gives a setting."""
    flag = f"--{setting.replace('_', '-')}"
    return str(FIELDS[setting].metadata.get("flag", flag)) if setting in FIELDS else flag


def settings_options(
    *names: str, without: Collection[str] = (), required: Collection[str] = ()
) -> list[Parameter]:
    """Return the options for settings, by default for all that have a help."""
    options = []
    for setting in FIELDS.values():
        words, is_required = setting.metadata, setting.name in required
        if "help" not in words or setting.name in without or (names and setting.name not in names):
            continue
        kind, default, flags = words.get("type", setting.type), setting.default, list[str]()
        if "flag" in words:
            kind, default, flags = bool, False, [words["flag"]]
        text = words["help"] + ("" if is_required else words.get("optional", ""))
        option = typer.Option(*flags, help=text, min=words.get("least"), metavar=words.get("metavar"))
        options.append(_parameter(setting.name, kind, option, Parameter.empty if is_required else default))
    return options


def _parameter(name: str, kind: Any, option: Any, default: Any = None) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


CSV_PANEL = "CSV files; a schema may give these as csv:"


def _csv_option(name: str, metavar: str, text: str) -> Parameter:
    return _parameter(name, str | None, typer.Option(metavar=metavar, rich_help_panel=CSV_PANEL, help=text))


CSV = [
    _csv_option("delimiter", "SIGN", "Between cells: , or ; or | or tab. Default: a comma."),
    _csv_option("encoding", "NAME", "Such as latin-1, cp1252 or utf-8. Default: utf-8."),
    _csv_option("decimal", "SIGN", "In numbers, . or a comma."),
    _csv_option("thousands", "SIGN", "Between groups of three digits. Default: none."),
    _parameter(
        "header",
        bool | None,
        typer.Option(
            "--header",
            rich_help_panel=CSV_PANEL,
            help="The first line has the names of the columns, also if they are numbers such as years. They"
            " become public.",
        ),
    ),
]
"""The options for the format of CSV files."""

Given = dict[str, Any]
"""The values of a group of options by name."""


def takes(**groups: list[Parameter]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command receive each group of options as one argument of that name, their values by name.

    The options stand in the help where the argument stands in the signature.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        arguments = signature(command, eval_str=True).parameters
        parameters = [option for name in arguments for option in groups.get(name, [arguments[name]])]

        @wraps(command)
        def expanded(*arguments: Any, **options: Any) -> None:
            values = {
                group: {
                    option.name: _value_of(option, options.pop(option.name, option.default))
                    for option in members
                }
                for group, members in groups.items()
            }
            command(*arguments, **options, **values)

        expanded.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return expanded

    return decorate


def _value_of(option: Parameter, value: Any) -> Any:
    """Return the value of a setting; a flag stands for the value that it `means`."""
    if (setting := FIELDS.get(option.name)) is None or "flag" not in setting.metadata:
        return value
    return setting.metadata["means"] if value else setting.default


def read_public(schema: Path | None, csv: Given) -> Database:
    """Return the tables that a file declares, or the one table of a schema, or of none.

    The options give the format of the CSV file of one table; see `with_format`.
    """
    from privsyn.table.database.database import Database
    from privsyn.table.database.yaml_form import as_database

    database = as_database(schema)
    if database.single is None:
        check_abilities([LINKED], csv)
        return database
    table = replace(database.tables[database.root], schema=with_format(database.schema, csv))
    return Database.of_one(table)


def with_format(public: Schema | None, csv: Given) -> Schema | None:
    """Return the schema of one table with the format of CSV files that the options give.

    An option comes before the schema's setting. If nothing but defaults is left, it is None.
    """
    from privsyn.table.kinds.csv_format import CsvFormat
    from privsyn.table.schema.schema import Schema

    before = CsvFormat() if public is None else public.csv
    names = {"decimal": "point"}  # the other options have the schema's names
    settings = {names.get(name, name): value for name, value in csv.items() if value is not None}
    if settings.get("delimiter") in ("tab", r"\t"):
        settings["delimiter"] = "\t"
    with replace_errors(lambda error: f"--{error}".replace("--point", "--decimal"), InputError):
        format_ = replace(before, **settings)
    if format_ == before:
        return public
    if public is not None and (public.columns or public.missing or public.about):
        return replace(public, csv=format_)
    return None if format_ == CsvFormat() else Schema({}, csv=format_)


def check_lookups(data: Path, schema: Path | None) -> None:
    """Refuse a schema that looks values up in the private table itself: what it looks up is published."""
    from privsyn.cli.common.terminal import say
    from privsyn.table.database.yaml_form import as_database
    from privsyn.table.schema.yaml_file import lookup_files

    if schema is None or as_database(schema).single is None:  # raises if the file cannot be read
        return
    for path in lookup_files(schema):
        if path.resolve() == data.resolve():
            raise InputError(f"{schema}: looks values up in {data}, the private table: give a public one")
        if schema.resolve().parent not in path.resolve().parents:
            say(f"{path}: published with the synthetic table, because {schema} looks values up in it")


def split(names: Names) -> list[str]:
    """Return all names that an option has, each once. A comma in parentheses separates none.

    >>> split(["default, paper", "paper"]), split(None), split(["paper(rounds=9, step=(1, 0.9, 9)), default"])
    (['default', 'paper'], [], ['paper(rounds=9, step=(1, 0.9, 9))', 'default'])
    """
    parts: list[str] = []
    for text in names or ():
        part = ""
        for piece in text.split(","):
            part = f"{part},{piece}" if part else piece
            if part.count("(") <= part.count(")"):
                parts.append(part.strip())
                part = ""
        parts += [part.strip()] if part else []
    return list(dict.fromkeys(parts))


def numbers(option: str, texts: Names) -> list[float]:
    """Return the numbers that an option has, in its order.

    >>> numbers("--epsilon", ["0.1,1", "10"]), numbers("--epsilon", None)
    ([0.1, 1.0, 10.0], [])
    """
    text = ",".join(texts or ())
    with replace_errors(f"{option} {text}: must be numbers separated by commas, like 0.1,1,10", ValueError):
        return [float(part) for part in text.split(",")] if texts else []


def import_from_here(paths: Names) -> list[str]:
    """Return the paths ``module:function`` of the user. The modules may be in the working folder."""
    if paths:
        sys.path.insert(0, str(Path.cwd()))
    return paths or []


def own_metrics(paths: Names) -> list[str]:
    """Register the metrics of the user, so that ``--score`` knows them; return their paths."""
    from privsyn.evaluation.registry import add_metric

    for path in import_from_here(paths):
        add_metric(path)
    return paths or []
