"""`privsyn dummy`: rows from a schema alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.common.options import OUT, ExcelSafe, Force
from privsyn.cli.common.terminal import say

SAYS_NOTHING = (
    "DUMMY ROWS: made from the schema alone, without a table and without an epsilon. They say nothing of any"
    " data: test programs with them, and take no number from them"
)


def dummy(
    schema: Annotated[
        Path, typer.Argument(metavar="SCHEMA", help="What is public about the columns, as YAML.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help=OUT.replace("synthetic table", "rows"))],
    rows: Annotated[
        int, typer.Option(min=0, help="Number of rows; of linked tables, of the one without a parent.")
    ] = 1000,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes the rows repeatable.")] = None,
    excel_safe: ExcelSafe = False,
    force: Force = False,
) -> None:
    """Make rows from a schema alone, for code that is tested without the private table. Reads no table."""
    from privsyn.cli.common import progress_bars
    from privsyn.cli.common.outputs import check_outputs, output_files, write_sample
    from privsyn.errors import kept_disagreements, plural
    from privsyn.studies.dummy import placeholders_of, uniform_release
    from privsyn.table.database.yaml_form import as_database

    database = as_database(schema)
    outputs = output_files(out, database.shown_names, {}, excel_safe=excel_safe)
    check_outputs(outputs, inputs=(schema,), force=force, tables=database.shown_names)
    release = uniform_release(database, rows)
    with progress_bars.progress() as report, kept_disagreements():  # rules make some values rarer than others
        shapes = write_sample(release, out, rows, seed=seed, excel_safe=excel_safe, progress=report)
    for name, (rows_made, columns) in shapes.items():
        title = f"{out}: {name}: " if name else f"{out}: "
        say(f"{title}{plural(rows_made, 'row')}, {plural(columns, 'column')}")
    dropped = [
        database.shown_column(table, name)
        for table in database.shown
        for name in release.tables[table].codec.dropped
    ]
    if dropped:
        say(f"left out, as free text: {', '.join(dropped)}")
    if names := placeholders_of(database):
        say(f"placeholders, because the schema leaves them open: {', '.join(names)}")
    say(SAYS_NOTHING)
