"""`privsyn synth`: a private table in, a synthetic table and its ledger out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.options import Data, Delta, Epsilon, ExcelSafe, Force, Out, Rows, RowsPerUnit, Unit


def synth(
    data: Data,
    out: Out,
    epsilon: Epsilon,
    delta: Delta = 1e-9,
    schema: Annotated[
        Path | None, typer.Option(help="What is public about the columns; `privsyn schema` drafts one.")
    ] = None,
    unit: Unit = None,
    rows_per_unit: RowsPerUnit = None,
    target: Annotated[
        str | None,
        typer.Option(help="A column to be predicted from the others: what tells of it matters more."),
    ] = None,
    rows: Rows = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Makes the run repeatable, noise included: NOT PRIVATE.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="Keep the model here, for `privsyn sample`.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="Keep the ledger here, as JSON.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Compare both tables on a web page here. It READS DATA: not private.")
    ] = None,
    public_report: Annotated[
        Path | None,
        typer.Option(
            help="What was released, its error bars and its cost, on a web page here: may be published."
        ),
    ] = None,
    memory: Annotated[
        str, typer.Option(help="For rows and counts; a table that takes more is read several times.")
    ] = "2GB",
    paper: Annotated[bool, typer.Option("--paper", help="The published algorithm, step for step.")] = False,
    excel_safe: ExcelSafe = False,
    force: Force = False,
) -> None:
    """Make a synthetic table with the columns, types and dependences of DATA."""
    import privsyn
    from privsyn.cli.console import (
        progress,
        show_dropped,
        show_files,
        show_identifiers,
        show_nothing_found,
        show_privacy,
        show_report,
    )
    from privsyn.cli.outputs import check_new, check_outputs, check_page, check_table, staged, write_text
    from privsyn.studies.error_trace import trace
    from privsyn.table.encoding.identifiers import called_identifiers
    from privsyn.table.io.read import check_excel_safe, ending_of, read_table
    from privsyn.table.io.write import write_blocks
    from privsyn.table.schema.yaml_file import read_schema

    outputs = {"OUT": out, "--model": model, "--ledger": ledger, "--public-report": public_report}
    check_table(data)
    ending_of(out)
    check_excel_safe(out, excel_safe=excel_safe)
    check_outputs(outputs | {"--report": report}, inputs=(data, schema))
    check_page("--report", report)
    check_page("--public-report", public_report)
    check_new("--model", model, force=force)
    public = None if schema is None else read_schema(schema)
    with progress() as bars:
        fitted = privsyn.PrivSyn(
            epsilon,
            delta,
            public,
            unit=unit,
            rows_per_unit=rows_per_unit,
            target=target,
            seed=seed,
            method="published" if paper else "default",
            memory=memory,
            progress=bars,
        ).fit(data)
        synthetic = None if report is None else fitted.sample(rows)  # a comparison needs all rows at once
        blocks = fitted.sample_blocks(rows) if synthetic is None else iter([synthetic])
        with staged(outputs) as places:
            known, form = fitted.release_.codec.schema, fitted.release_.form
            shape = write_blocks(blocks, places["OUT"], known, form, excel_safe=excel_safe)
            if model is not None:
                fitted.save(places["--model"])
            if ledger is not None:
                write_text(places["--ledger"], fitted.ledger_.to_json())
            if public_report is not None:
                privsyn.report(fitted.release_, places["--public-report"])
    show_files(shape, out, fitted.ledger_, estimated=rows is None, model=model, ledger=ledger)
    if public_report is not None:
        typer.echo(f"{public_report}: what was released, and how sure it is")
    show_dropped(fitted.release_.codec.dropped)
    show_identifiers(called_identifiers(fitted.release_.codec.schema) if public is None else ())
    show_nothing_found(public, fitted.release_.codec.schema)
    show_privacy(fitted.ledger_)
    if report is not None and synthetic is not None:
        # By itself: whatever goes wrong here, what was paid for with privacy is kept.
        spent = fitted.ledger_.to_dict()
        real = read_table(data, public, unit=unit).frame.drop(columns=[] if unit is None else unit)
        origins = trace(fitted.release_, real, synthetic)
        privsyn.evaluate(real, synthetic, public, target=target, report=report, ledger=spent, origins=origins)
        show_report(report)
