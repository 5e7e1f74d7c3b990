"""`privsyn evaluate` and `privsyn attack`: compare a synthetic table with the real one, and attack it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.common import options
from privsyn.cli.common.terminal import say_text


@options.takes(csv=options.CSV)
def evaluate(
    real: Annotated[
        Path, typer.Argument(metavar="REAL", help="The private table: a file, or a folder of Parquet files.")
    ],
    synthetic: Annotated[Path, typer.Argument(metavar="SYNTHETIC", help="The synthetic table.")],
    schema: Annotated[
        Path | None, typer.Option(help="The schema of the synthetic table. Default: bins from both tables.")
    ] = None,
    unit: options.Unit = None,
    order: options.Order = None,
    target: options.Target = None,
    test: Annotated[
        Path | None,
        typer.Option(help="Real rows that SYNTHETIC was not made from. Default: a fifth of REAL."),
    ] = None,
    model: options.Models = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="A column from which models do not learn. Repeat.")
    ] = None,
    metric: options.Metrics = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all numbers to this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a web page to this file.")] = None,
    *,
    csv: options.Given,
) -> None:
    """Measure how far SYNTHETIC is from REAL. It READS REAL: its output is not private."""
    import privsyn
    from privsyn.cli.common.console import show_files
    from privsyn.cli.common.outputs import check_outputs, check_page, check_table, staged, write_text

    outputs = {"--json": json_file, "--report": report}
    check_table(real)
    check_table(synthetic)
    if test is not None:
        check_table(test)
    check_outputs(outputs, inputs=(real, synthetic, schema, test))
    check_page("--report", report)
    public = options.read_public(schema, csv)
    with staged(outputs) as places:
        scores = privsyn.evaluate(
            real,
            synthetic,
            public,
            unit=unit,
            order=order,
            target=target,
            test=test,
            models=model.split(",") if model else True,
            leave_out=leave_out or (),
            metrics=options.own_metrics(metric),
            report=places.get("--report"),
        )
        if json_file is not None:
            write_text(places["--json"], scores.to_json())
    say_text(str(scores))
    show_files(outputs)


@options.takes(csv=options.CSV)
def attack(
    real: Annotated[Path, typer.Argument(metavar="REAL", help="The rows from which SYNTHETIC was made.")],
    synthetic: Annotated[Path, typer.Argument(metavar="SYNTHETIC", help="The synthetic table.")],
    control: Annotated[
        Path, typer.Argument(metavar="CONTROL", help="Similar rows that were not used to make it.")
    ],
    schema: Annotated[Path | None, typer.Option(help="The schema of SYNTHETIC.")] = None,
    unit: options.Unit = None,
    order: options.Order = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="A column to infer; may be repeated. Default: all."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random choice of rows.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all numbers to this file.")] = None,
    *,
    csv: options.Given,
) -> None:
    """Attack rows of REAL and rows of CONTROL, and compare. It READS REAL: its output is not private."""
    import privsyn
    from privsyn.cli.common.console import show_files
    from privsyn.cli.common.outputs import check_outputs, check_table, staged, write_text

    outputs = {"--json": json_file}
    tables = real, synthetic, control
    for table in tables:
        check_table(table)
    check_outputs(outputs, inputs=(*tables, schema))
    public = options.read_public(schema, csv)
    with staged(outputs) as places:
        risks = privsyn.attack(*tables, public, unit=unit, order=order, secrets=secret, seed=seed)
        if json_file is not None:
            write_text(places["--json"], risks.to_json())
    say_text(str(risks))
    show_files(outputs)
