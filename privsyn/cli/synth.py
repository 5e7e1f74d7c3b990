"""`privsyn synth`: a synthetic table from a private one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import randbits
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privsyn.cli.common import options
from privsyn.cli.common.engine_data import DatabaseUrl, check_account, source_and_path
from privsyn.errors import InputError, kept_disagreements, short

if TYPE_CHECKING:
    from privsyn.account.account import Account
    from privsyn.cli.common.summary import Line
    from privsyn.evaluation.scores import Origin
    from privsyn.synthesizer import PrivSyn
    from privsyn.table.database.database import Database


ADD_UP = "the costs of both tables add up: docs/composition.md"


@options.takes(settings=options.settings_options(), csv=options.CSV)
def synth(
    data: options.DataOrUrl,
    out: options.Out,
    *,
    settings: options.Given,
    table: Annotated[
        str | None,
        typer.Option(help="With the URL of a database: the table. Default: the only one there."),
    ] = None,
    sql: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=options.WRITES,
            help="With the URL of a database: write all SQL that it gets to this file.",
        ),
    ] = None,
    rows: options.Rows = None,
    model: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=options.WRITES, help="Write the model to this file, for `privsyn sample`."
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(rich_help_panel=options.WRITES, help="Write the ledger to this file, as JSON."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=options.WRITES,
            help="Write a web page that compares both tables. It READS DATA: not private.",
        ),
    ] = None,
    public_report: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=options.WRITES,
            help="Write a web page with released counts, error bars and privacy cost: may be published.",
        ),
    ] = None,
    sheet: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=options.WRITES,
            help="Write a data sheet with metadata (JSON-LD), as Markdown: may be published.",
        ),
    ] = None,
    excel_safe: options.ExcelSafe = False,
    force: options.Force = False,
    budget: options.BudgetFile = None,
    no_budget: options.NoBudget = False,
    policy: options.PolicyFile = None,
    progress: options.ShowProgress = options.ProgressFormat.BAR,
    verbose: options.Verbose = False,
    csv: options.Given,
) -> None:
    """Make a synthetic table with the columns, types and dependences of DATA."""
    from privsyn.cli.common import compiling

    compiling.compile_ahead()  # before the libraries, which take a second to import
    from privsyn.cli.common import progress_bars, summary
    from privsyn.cli.common.keeping import end_without_table, model_saved, write_public_pages
    from privsyn.cli.common.outputs import exists_already, rehearse, write_sample
    from privsyn.cli.common.recording import BudgetPlace, account_of, fit_recorded
    from privsyn.cli.common.summary import Line
    from privsyn.cli.common.terminal import say
    from privsyn.release.acceptance.judge import SEED
    from privsyn.table.schema.yaml_file import about_file

    source, data = source_and_path(data, policy or out, table, sql, report)
    check_account(source, budget, policy, declined=no_budget or settings["epsilon"] is None)
    results = {"--model": model, "--ledger": ledger, "--public-report": public_report, "--sheet": sheet}
    account = account_of(data, out, settings, BudgetPlace(budget, declined=no_budget), policy)
    options.check_lookups(data, settings["schema"])
    database = options.read_public(settings["schema"], csv)
    inputs = (data, *_files_named_by(settings), policy)
    outputs = {**results, "--report": report, "--sql": sql}
    private, outputs = _check(
        source, out, database, inputs, outputs, account, excel_safe=excel_safe, force=force
    )
    if report is not None and rows == 0:
        raise InputError("--report compares rows, and --rows 0 makes none: leave out one of them")
    shown = partial(progress_bars.progress, progress)
    rehearsed = partial(rehearse, private, out, database, rows=rows, report=report is not None)
    with about_file(settings["schema"]):
        fitted = fit_recorded({**settings, "schema": database}, private, account, shown, rehearsed)
    release, verdict = fitted.release_, fitted.ledger_.acceptance
    accepted, noise = verdict is None or verdict.met, release.too_little_signal
    # What was paid for is kept, whatever fails below.
    with model_saved(fitted, account, out=out, model=model, ledger=ledger) as written:
        if accepted and noise is None:
            seed = fitted.seed if verdict is None or rows is not None else SEED  # the table that was tested
            if report is not None and seed is None:
                seed = randbits(128)  # the rows of the file are those of the report
            existed = exists_already(out, database.shown_names)
            with shown() as bars, kept_disagreements() as remarks:
                shapes = write_sample(
                    release, out, rows, seed=seed, data=private, excel_safe=excel_safe, progress=bars
                )
            write_public_pages(fitted, out, results, written)
            lines = summary.table_lines(shapes, out, release, estimated=rows is None)
            files = {name: path if path in written else None for name, path in outputs.items()}
            lines += [*map(Line, summary.file_lines(files)), *summary.digest_lines(files["--model"])]
            lines += [Line(f"{out} was replaced. If it was published, {ADD_UP}")] * existed
            _show(fitted, lines, account.so_far, remarks, verbose=verbose, model=files["--model"])
            if report is not None:
                _compare(fitted, private, fitted.sample(rows, seed=seed), database, report)
        else:
            summary.show_acceptance(fitted.ledger_)
            summary.show_files({"--ledger": ledger if ledger in written else None})
    if not accepted:
        say(*filter(None, [account.so_far]))
        summary.show_refused(fitted.ledger_, out, model)
        summary.show_losses(fitted.losses_)
        raise typer.Exit(1)
    if noise is not None:
        end_without_table(fitted, account, noise, out, model)


def _files_named_by(settings: Mapping[str, Any]) -> list[Path | None]:
    """Return the files that the settings name, which no output may replace."""
    from privsyn.table.totals.counts_table import files_of

    totals = [Path(file) for path in settings["totals"] or () for file in files_of(path)]
    return [*map(settings.get, ("schema", "accept", "public")), *totals, *(settings["since"] or ())]


def _check(
    data: Path | DatabaseUrl,
    out: Path,
    database: Database,
    inputs: Sequence[Path | None],
    outputs: Mapping[str, Path | None],
    account: Account,
    *,
    excel_safe: bool,
    force: bool,
) -> tuple[Any, dict[str, Path | None]]:
    """Refuse what cannot be read or written; return the tables to be read, and the files to be written."""
    from privsyn.cli.common.outputs import BUDGET, check_data, check_files, output_files
    from privsyn.cli.common.recording import check_recordable

    tables = database.shown_names
    inputs = (*inputs, *(Path(table.public) for table in database.public.values()))
    private = data.open(database) if isinstance(data, DatabaseUrl) else check_data(data, database)
    files = output_files(out, tables, {BUDGET: account.path, **outputs}, excel_safe=excel_safe)
    check_recordable(None if isinstance(data, DatabaseUrl) else data, account)
    check_files(out, files, inputs, tables=tables, force=force)
    return private, files


def _show(
    fitted: PrivSyn,
    files: Sequence[Line],
    spent: str | None,
    remarks: Sequence[str],
    *,
    verbose: bool,
    model: Path | None,
) -> None:
    """Print the verdict, the files, the privacy cost and what was lost, the most important lines at least."""
    from privsyn.cli.common import summary
    from privsyn.cli.common.summary import Line
    from privsyn.private.run_ledger import acceptance_lines
    from privsyn.release.losses.lines import lines_of, worst_lines_of

    ledger, losses = fitted.ledger_, fitted.losses_
    always = {*worst_lines_of(losses, in_full=verbose)}
    verdicts, details = summary.outlook_lines(fitted.release_)
    missing = (
        "--no-missing: a missing cell of the table counts as the lower bound, or as the first value"
        " listed; if many are missing, fill the cells of the synthetic table instead"
    )
    criteria = acceptance_lines(ledger)
    facts = ledger.public_inputs
    tables = 0 if fitted.public is None and fitted.since is None else len(fitted.release_.tables)
    public_lines = [Line(short(fact), int(tables > 1)) for fact in facts[len(facts) - tables :]]
    public = summary.public_input_line(replace(ledger, public_inputs=facts[: len(facts) - len(public_lines)]))
    lines = [
        *verdicts,
        *map(Line, criteria[:1]),
        *(Line(text, 4) for text in criteria[1:]),
        *files,
        *map(Line, summary.privacy_lines(ledger)),
        *([Line(spent)] if spent else []),
        *public_lines,
        *(Line(text, 2) for text in [*remarks, *([] if fitted.nullable else [missing])]),
        *(Line(text, 0 if text in always else 2) for text in lines_of(losses, in_full=verbose)),
        *details,
        *(Line(text, 4) for text in [*([public] if public else []), *summary.search_lines(ledger)]),
    ]
    summary.show_summary(lines, verbose=verbose, model=model)


def _compare(
    fitted: PrivSyn,
    private: Path | dict[str, str],
    synthetic: Any,
    database: Database,
    report: Path,
) -> None:
    """Write the comparison of the private and the synthetic tables, and print its path."""
    import privsyn
    from privsyn.cli.common import progress_bars, summary
    from privsyn.studies.error_trace import trace
    from privsyn.table.io.read_in_memory import read_in_memory

    real: Any = private
    unit = fitted.unit if fitted.identifiers else None
    origins: Sequence[Origin] = ()
    if database.single is not None:
        real = read_in_memory(private, database.schema, unit=fitted.unit).frame
        if unit is None:
            real = real.drop(columns=[] if fitted.unit is None else fitted.unit)
            origins = trace(fitted.release_, real, synthetic)
    with progress_bars.waiting("comparing the tables and training models"):
        privsyn.evaluate(
            real,
            synthetic,
            database,
            unit=unit,
            order=fitted.order,
            target=fitted.target,
            report=report,
            ledger=fitted.ledger_.to_dict(),
            origins=origins,
        )
    summary.show_files({"--report": report})
