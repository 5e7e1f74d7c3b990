"""Commands that make files: each checks what is cheap, does the work, and then writes all its files or none.

What is heavy is imported inside a command, so that --help and a mistyped option answer at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.options import Data, Delta, Epsilon, ExcelSafe, Force, Out, Rows, RowsPerUnit, Unit


class StoppedError(Exception):
    """Ctrl-C, where there is more to say than that."""


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
    from privsyn.cli.files import check_new, check_outputs, check_page, check_table, staged, write_text
    from privsyn.cli.screen import (
        progress,
        show_dropped,
        show_files,
        show_identifiers,
        show_nothing_found,
        show_privacy,
        show_report,
    )
    from privsyn.studies.tracing import trace
    from privsyn.table.naming import called_identifiers
    from privsyn.table.schema_file import read_schema
    from privsyn.table.sources import check_excel_safe, ending_of, read_table, write_blocks

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
    excel_safe: ExcelSafe = False,
) -> None:
    """Draw a synthetic table from a model, at no further cost in privacy."""
    with _stopped(out) if resume else nullcontext():
        _sample(model, out, rows, given, balance, seed, resume=resume, excel_safe=excel_safe)


def folder_kept(out: Path) -> Path:
    """The folder of `privsyn.table.unfinished.folder_of`, which takes a second to load: time for Ctrl-C."""
    return Path(f"{os.path.realpath(out)}.unfinished")


@contextmanager
def _stopped(out: Path) -> Iterator[None]:
    """Say on Ctrl-C, whenever it comes, that what is kept of a sample is kept, if anything is."""
    try:
        yield
    except KeyboardInterrupt:
        if not (kept := folder_kept(out)).is_dir():
            raise
        raise StoppedError(
            f"interrupted; what is done is kept in {kept.name}: the same command goes on with it"
        ) from None


def _sample(
    model: Path,
    out: Path,
    rows: int | None,
    given: list[str] | None,
    balance: str | None,
    seed: int | None,
    *,
    resume: bool,
    excel_safe: bool,
) -> None:
    from privsyn import load
    from privsyn.cli.files import check_outputs
    from privsyn.cli.given import parse_given
    from privsyn.cli.screen import progress, show_dropped, show_files, show_privacy
    from privsyn.errors import InputError
    from privsyn.table.sources import check_excel_safe, ending_of, write_table

    plain = not given and balance is None
    ending_of(out)
    check_excel_safe(out, excel_safe=excel_safe)
    check_outputs({"OUT": out}, inputs=(model,))
    if resume and not plain:
        raise InputError(
            "--resume: is not for rows that have something given: leave out --given and --balance"
        )
    if not resume and (begun := folder_kept(out)).is_dir():
        typer.echo(
            f"privsyn: {begun.name!r}: was begun and is left as it is: --resume goes on with it", err=True
        )
    release = load(model)
    asked = parse_given(release.codec.schema, given) if given else None
    with progress() as report:
        if plain:
            shape = release.sample_to(
                out, rows, seed=seed, resume=resume, excel_safe=excel_safe, progress=report
            )
        else:
            table = release.sample(rows, given=asked, balance=balance, seed=seed, progress=report)
            shape = write_table(table, out, release.codec.schema, release.form, excel_safe=excel_safe)
    show_files(shape, out, release.ledger, estimated=rows is None and plain)
    show_dropped(release.codec.dropped)
    show_privacy(release.ledger)


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


def schema(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", help="The private table, as for synth; not with --import."),
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
    from privsyn.cli.files import check_new, check_outputs, check_table, staged, write_text
    from privsyn.errors import InputError
    from privsyn.table.draft_text import IMPORTED, commented, draft_text
    from privsyn.table.imported import import_schema

    if sum((check is not None, from_dtypes, other is not None)) > 1:
        raise InputError("--check, --from-dtypes and --import exclude each other: give one of them")
    if (data is None) == (other is None):
        raise InputError("give DATA, or else --import FILE")
    if data is not None:
        check_table(data)
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
            write_text(place, draft)
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
    typer.echo(
        "privsyn: NOT PRIVATE, for the owner's eyes only: this was counted in the private rows", err=True
    )
    typer.echo("\n".join(findings))
