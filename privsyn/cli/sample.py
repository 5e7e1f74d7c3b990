"""`privsyn sample`, `report` and `dummy`: what a saved model gives at no further cost, or a schema alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from privsyn.abilities import DRAWS, POPULATION, check_abilities
from privsyn.cli.common.options import OUT, WRITES, AboutFile, ExcelSafe, Force, Out, Rows
from privsyn.cli.common.terminal import say

SAYS_NOTHING = (
    "DUMMY ROWS: made from the schema alone, without a table and without an epsilon. They say nothing of any"
    " data: test programs with them, and take no number from them"
)


def sample(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model of `privsyn synth --model`.")],
    out: Out,
    rows: Rows = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL=VALUE",
            help="A value or range for all rows, such as sex=Female, age=30..40, age=30.. or age=..40;"
            " with age= it is missing.",
        ),
    ] = None,
    balance: Annotated[
        str | None, typer.Option(metavar="COL", help="A column whose values occur equally often.")
    ] = None,
    population: Annotated[
        bool,
        typer.Option(
            "--population",
            help="Rows of the population: drawn in proportion to their weights, without these.",
        ),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Makes the sample repeatable; costs no privacy.")
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="M",
            help="M tables that differ as the noise does, one below the other; column `draw` numbers them.",
        ),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(
            help="A table, or a folder of linked ones, that IS PUBLIC, such as last year's: rows may be its"
            " rows."
        ),
    ] = None,
    since: Annotated[
        list[Path] | None,
        typer.Option(help="A saved model of earlier rows improves this one; promises add up. Repeat."),
    ] = None,
    disjoint: Annotated[
        bool,
        typer.Option(
            "--disjoint",
            help="With --since, your statement that nobody here is in an earlier table, or in two of those"
            " given: promises do not add up.",
        ),
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="With --public or --since, the column to be predicted: rows without it are not drawn.",
        ),
    ] = None,
    excel_safe: ExcelSafe = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="Say how good each table is, and name all columns of each loss. Default: at most eight of"
            " each.",
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Draw a synthetic table from a model, at no further privacy cost."""
    from privsyn import load
    from privsyn.cli.common import progress_bars, summary
    from privsyn.cli.common.outputs import check_outputs, output_files, write_sample
    from privsyn.errors import InputError, about_absent, printable, short
    from privsyn.release.conditional.conditions import parse_given

    release = load(model)
    requests = {"given": given, "balance": balance, "population": population}
    check_abilities(release.kinds, requests | {"draws": draws})
    if population:
        check_abilities([POPULATION], requests)
    if public is not None and since:
        raise InputError("--public and --since: give one of them, not both")
    if (disjoint or target is not None) and public is None and not since:
        raise InputError("--disjoint and --target are about --since or --public: add one of these")
    if draws is not None:
        check_abilities([DRAWS], requests)
    tables = release.database.shown_names
    outputs = output_files(out, tables, {}, excel_safe=excel_safe)
    check_outputs(outputs, inputs=(model, public, *(since or ())), force=force, tables=tables)
    if public is not None:
        release = release.with_public(public, target=target)
    elif since:
        release = release.with_since(since, disjoint=disjoint, target=target)
    coded = dict[str, Any]()
    for table in dict.fromkeys((release.database.single or release.database.root, release.database.root)):
        coded |= {**release.tables[table].codec.schema.coded, **release.tables[table].computed_above}
    conditions = parse_given(coded, given, release.not_given) if given else None
    with progress_bars.progress() as report:
        if draws is not None:
            made = release.draws(draws, rows, seed=seed, progress=report)
            shapes = {"": made.to_file(out, excel_safe=excel_safe)}
        else:
            shapes = write_sample(
                release,
                out,
                rows,
                given=conditions,
                balance=balance,
                population=population,
                seed=seed,
                excel_safe=excel_safe,
                progress=report,
            )
    if verbose:
        verdicts, details = summary.outlook_lines(release)
        say(*(printable(line.text) for line in (*verdicts, *details)))
    estimated = rows is None and conditions is None and balance is None and draws is None
    summary.show_tables(shapes, out, release, estimated=estimated)
    if balance is not None and (left_out := release.absent(balance)):
        say(about_absent(balance, left_out))
    if public is not None or since:
        say(*map(short, release.ledger.public_inputs[-len(release.tables) :]))
    summary.show_privacy(release.ledger, spent_before=True)
    summary.show_not_accepted(release.ledger)
    summary.show_losses(release.losses, verbose=verbose)


def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model of `privsyn synth --model`.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The web page, one file.")],
    sheet: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=WRITES, help="Write a data sheet with metadata (JSON-LD) too, as Markdown."
        ),
    ] = None,
    about: AboutFile = None,
    force: Force = False,
) -> None:
    """Write the released counts, error bars and privacy cost to a web page, as public as MODEL."""
    import privsyn
    from privsyn.cli.common import progress_bars, summary
    from privsyn.cli.common.outputs import check_markdown, check_outputs, check_page
    from privsyn.release.release import load
    from privsyn.table.schema.yaml_file import read_about_file

    outputs = {"OUT": out, "--sheet": sheet}
    check_outputs(outputs, inputs=(model, about), force=force)
    check_page("OUT", out)
    check_markdown("--sheet", sheet)
    release = load(model)
    if about is not None:
        release = release.with_about(read_about_file(about))
    with progress_bars.waiting("writing the page"):
        privsyn.report(release, out)
    summary.show_files({"--public-report": out})
    if sheet is not None:
        privsyn.sheet(release, sheet)
    summary.show_files({"--sheet": sheet})
    summary.show_privacy(release.ledger, spent_before=True)
    summary.show_losses(release.losses)


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
