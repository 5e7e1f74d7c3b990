"""`privsyn schema` and `privsyn randomize`: what comes before a run, for the owner and for respondents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privsyn.abilities import CHECK, CODEBOOK, LINKED, NOBODY, check_abilities
from privsyn.cli.common import options
from privsyn.cli.common.terminal import say, say_text

if TYPE_CHECKING:
    from privsyn.table.kinds.csv_format import CsvFormat


@options.takes(settings=options.settings_options("unit", "identifiers", "order"), csv=options.CSV)
def schema(
    data: options.DataOrNone = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            rich_help_panel=options.WRITES,
            help="Write the draft here, not to standard output.",
        ),
    ] = None,
    codebook: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="CODEBOOK",
            help="A public codebook: Frictionless (datapackage.json), CSVW, JSON Schema, DDI, REDCap, SQL, or"
            " the head of a file of SPSS, Stata or SAS. FILE::TABLE names a table. No DATA: reads no row.",
        ),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            help="Count the cells that this schema, or codebook, would change, and linked rows without a"
            " parent; exit status 1 if rows break a constraint, or no cell of a column, link or order fits."
        ),
    ] = None,
    from_dtypes: Annotated[
        bool, typer.Option("--from-dtypes", help="Draft from names and types alone; read no row.")
    ] = False,
    persons: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Of several tables: the one whose rows are the persons; or TABLE.COLUMN, a column that names"
            " persons who have no table. Default: names and links decide.",
        ),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(
            "--public",
            metavar="TABLE",
            help="Of several tables: one that everybody may know. It is published as it is. May be repeated.",
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--also",
            metavar="TABLE",
            help="Of several tables: one more whose rows are persons, as staff are. May be repeated.",
        ),
    ] = None,
    *,
    settings: options.Given,
    force: options.Force = False,
    csv: options.Given,
) -> None:
    """Draft a schema, to be reviewed by a person. It READS DATA and quotes it: keep it private until then.

    With --from and no DATA, the schema is what a public codebook says, and no row is read.

    Of a folder or database it drafts all tables: their keys, parents, links and orders.

    What the database declares comes first. Tables that could be public are proposed, not assumed.
    """
    from privsyn.cli.common.outputs import check_outputs, check_table, staged, write_text
    from privsyn.table.codebooks.schema_text import located
    from privsyn.table.drafting.review import draft_files
    from privsyn.table.drafting.with_codebook import DescribedTable
    from privsyn.table.io.csv_table import PLAIN
    from privsyn.table.io.formats import every_table

    unit, order = settings["unit"], settings["order"]
    if data is None:
        requests = {"unit": unit, "order": order, "check": check, "from_dtypes": from_dtypes, **csv}
        _from_codebook(codebook, out, (persons, public, also), requests, force=force)
        return
    if unit is None:
        check_abilities([NOBODY], settings)
    if check is not None:
        drafted = {"out": out, "from_dtypes": from_dtypes, "from": codebook}
        check_abilities([CHECK], {**drafted, "persons": persons, "public": public, "also": also})
        _check(data, check, unit, order, csv)
        return
    tables = every_table(data)
    if tables:
        first, (location, _) = next(iter(tables.items()))
        example = f"{data}::{first}" if data.is_file() else location
        _check_several_tables(data, example, unit=unit, from_dtypes=from_dtypes)
    else:
        _check_one_table(data, persons=persons, public=public, also=also)
        check_table(data)
    outputs: dict[str, Path | None] = {"--out": out}
    check_outputs(outputs, inputs=(data, None if codebook is None else located(codebook)[0]), force=force)
    form = options.with_format(None, csv)
    dialect, stem = PLAIN if form is None else form.csv, None if out is None else out.stem
    folder = None if out is None else out.parent
    if tables:
        draft, look_ups = _linked_draft(tables, codebook, dialect, (persons, public, also), stem, folder)
    else:
        described = None if codebook is None else DescribedTable.of(codebook, data)
        dialect = dialect if described is None else described.csv_of(dialect)
        draft, look_ups = draft_files(
            data, stem=stem, unit=unit, order=order, read=not from_dtypes, csv=dialect, codebook=described
        )
    texts = {"--out": draft}
    for name, text in look_ups.items():
        path = Path(name) if out is None else out.with_name(name)
        check_outputs({"look-up": path}, inputs=(data, out), force=force)
        outputs[name], texts[name] = path, text
    with staged(outputs) as paths:
        for name, path in paths.items():
            write_text(path, texts[name])
    for name in look_ups:
        say(f"{name}: a look-up, read from the rows", err=True)
    if out is None:
        say_text(draft)
    _say_what_is_open(draft)
    source = "names and types alone" if from_dtypes else "the private rows"
    source = source if codebook is None else f"{codebook} and {source}"
    called = "this draft" if out is None else f"{out}: this draft"
    say(f"privsyn: {called} comes from {source}; review every line before you use it", err=True)


def _say_what_is_open(draft: str) -> None:
    """Print which tables were not drafted, and what the draft asks about the persons."""
    from privsyn.errors import plural
    from privsyn.table.drafting.personality import WHO
    from privsyn.table.drafting.persons_without_table import GATHERED, UNLISTED

    if outside := draft.count("# NOT DRAFTED: "):
        say(f"privsyn: not drafted: {plural(outside, 'table')}; see NOT DRAFTED in the draft", err=True)
    for words in (GATHERED, WHO, UNLISTED):
        if words in draft:
            say(f"privsyn: see {words} in the draft: it decides who is protected", err=True)


def _linked_draft(
    tables: dict[str, Any],
    codebook: str | None,
    dialect: CsvFormat,
    roles: tuple[str | None, list[str] | None, list[str] | None],
    stem: str | None,
    folder: Path | None,
) -> tuple[str, dict[str, str]]:
    """Return the draft of several tables; `roles` are the persons, the public tables, and further persons."""
    from privsyn.table.drafting.linked import LinkedDraft
    from privsyn.table.drafting.roles import Roles
    from privsyn.table.drafting.with_codebook import DescribedTable, described_tables
    from privsyn.table.schema.about import TO_FILL

    described, (persons, public, also) = dict[str, DescribedTable](), roles
    if codebook is not None:
        tables, described = described_tables(codebook, tables)
    linked = LinkedDraft.read(tables, dialect, Roles(persons, public or (), also or ()), described)
    words = next((table.about for table in described.values()), TO_FILL)  # of the codebook, so of each table
    return linked.text(stem, folder, words)


def _from_codebook(
    codebook: str | None,
    out: Path | None,
    roles: tuple[str | None, list[str] | None, list[str] | None],
    requests: dict[str, Any],
    *,
    force: bool,
) -> None:
    """Write what a codebook says as a schema; refuse `requests` that need a table."""
    from privsyn.cli.common.outputs import check_outputs, staged, write_text
    from privsyn.errors import InputError, plural
    from privsyn.table.codebooks.declare import LEFT_OPEN
    from privsyn.table.codebooks.schema_text import codebook_text, located

    if codebook is None:
        raise InputError("give DATA, the private table, or --from with a public codebook")
    check_abilities([CODEBOOK], requests)
    persons, public, also = roles
    outputs: dict[str, Path | None] = {"--out": out}
    check_outputs(outputs, inputs=(located(codebook)[0],), force=force)
    folder = None if out is None else out.parent
    text = codebook_text(codebook, persons, public or (), also or (), folder=folder)
    with staged(outputs) as paths:
        for path in paths.values():
            write_text(path, text)
    if out is None:
        say_text(text)
    called = "this schema" if out is None else f"{out}: this schema"
    still_open = text.count(f"{LEFT_OPEN}: ")
    rest = (
        f"; {plural(still_open, 'column')} {'is' if still_open == 1 else 'are'} left open"
        if still_open
        else ""
    )
    say(f"privsyn: {called} comes from {codebook}, and no row was read{rest}", err=True)


def _check_several_tables(data: Path, example: str, *, unit: str | None, from_dtypes: bool) -> None:
    """Refuse options that only one table has; `example` is how to name one of the tables."""
    from privsyn.errors import InputError

    option, why = "--unit", "the persons are the rows of one table: --persons names it"
    if from_dtypes:
        option, why = "--from-dtypes", "their keys are found in the rows"
    if unit is not None or from_dtypes:
        raise InputError(
            f"{option}: {data} has several tables: leave it out ({why}), or draft one, as {example}"
        )


def _check_one_table(
    data: Path, *, persons: str | None, public: list[str] | None, also: list[str] | None
) -> None:
    """Refuse options that name one of several tables."""
    from privsyn.errors import InputError

    if persons is not None:
        raise InputError(f"--persons: {data} is one table; --unit names its column of persons")
    for option, names in (("--public", public), ("--also", also)):
        if names:
            raise InputError(f"{option}: {data} is one table; it names one of several tables")


def _check(data: Path, check: Path, unit: str | None, order: str | None, csv: dict[str, Any]) -> None:
    """Print what a schema of one table, or of several, would leave out or change in the rows."""
    from privsyn.cli.common.outputs import check_data
    from privsyn.errors import InputError
    from privsyn.evaluation.integrity import check_rules
    from privsyn.evaluation.linked_rows import as_one
    from privsyn.table.codebooks.readers import is_codebook
    from privsyn.table.drafting.check_tables import check_tables
    from privsyn.table.drafting.draft import check_schema

    if is_codebook(check):
        _check_codebook(data, check, unit, csv)
        return
    database = options.read_public(check, csv)
    check_data(data, database)
    if database.single is None:
        check_abilities([LINKED], {"unit": unit})
        _show(check, [*check_tables(data, database), *check_rules(data, database)])
    elif database.schema is None:
        raise InputError(f"{check}: has no column to be checked")
    else:
        findings = check_schema(data, database.schema, unit=unit)
        if database.about_persons:
            findings += check_rules(data, as_one(database, unit, order))
        _show(check, findings)


def _check_codebook(data: Path, check: Path, unit: str | None, csv: dict[str, Any]) -> None:
    """Print what differs between a table and a codebook."""
    from privsyn.cli.common.outputs import check_table
    from privsyn.errors import InputError
    from privsyn.table.drafting.with_codebook import DescribedTable, check_codebook
    from privsyn.table.io.csv_table import PLAIN
    from privsyn.table.io.formats import every_table

    if tables := every_table(data):
        example = f"{data}::{next(iter(tables))}" if data.is_file() else next(iter(tables.values()))[0]
        raise InputError(f"--check: a codebook is compared with one table, as {example}")
    check_table(data)
    form = options.with_format(None, csv)
    described_table = DescribedTable.of(check, data)
    _show(check, check_codebook(data, described_table, unit=unit, csv=PLAIN if form is None else form.csv))


def _show(check: Path, findings: list[str]) -> None:
    """Print what was counted; exit with 1 if the schema is wrong."""
    from privsyn.table.discovery.broken_constraints import ADVICE, Misfit

    say("privsyn: NOT PRIVATE, for the owner's eyes only: this was counted in the private rows", err=True)
    say(*findings)
    needed = {line.advice for line in findings if isinstance(line, Misfit)}
    corrections = [advice for advice in ADVICE if advice in needed]
    for advice in corrections:
        say(f"privsyn: {check}: {advice}", err=True)
    if corrections:
        raise typer.Exit(1)


@options.takes(settings=options.settings_options("allow_weak_privacy"), csv=options.CSV)
def randomize(
    data: options.Data,
    out: Annotated[Path, typer.Argument(metavar="OUT", help=options.OUT.replace("synthetic", "randomised"))],
    schema: Annotated[Path, typer.Option(help="The values of the columns, as YAML.")],
    keep: Annotated[
        float | None,
        typer.Option(
            help="Randomise all columns: the probability that a cell is kept."
            " Default: those with `keep` in the schema."
        ),
    ] = None,
    force: options.Force = False,
    *,
    settings: options.Given,
    csv: options.Given,
) -> None:
    """Randomise answers before they are collected; also writes OUT.ledger.json and OUT.schema.yaml."""
    from privsyn.cli.common.outputs import check_outputs, check_table, staged, write_text
    from privsyn.cli.common.summary import show_privacy
    from privsyn.errors import plural
    from privsyn.methods.randomise import randomize as randomise
    from privsyn.table.io.formats import ending_of
    from privsyn.table.io.write import write_table
    from privsyn.table.schema.yaml_file import read_schema, to_yaml

    ledger, for_fit = (out.with_name(f"{out.name}.{ending}") for ending in ("ledger.json", "schema.yaml"))
    outputs = {"OUT": out, "the ledger": ledger, "the schema": for_fit}
    check_table(data)
    ending_of(out)
    check_outputs(outputs, inputs=(data, schema), force=force)
    public = options.with_format(read_schema(schema), csv) or schema
    sent = randomise(data, public, keep, **settings)
    with staged(outputs) as paths:
        rows, columns = write_table(sent.table, paths["OUT"], sent.schema, sent.form)
        write_text(paths["the ledger"], sent.ledger.to_json())
        write_text(paths["the schema"], to_yaml(sent.schema))
    say(f"{out}: {plural(rows, 'row')}, {plural(columns, 'column')}, randomised")
    say(f"{ledger}: the promise of each column")
    say(f"{for_fit}: the schema with which `privsyn synth {out.name} ...` reads it")
    for promise in sent.ledger.local:
        say(
            f"{promise.column}: keep {promise.keep:g} of {plural(promise.values, 'value')}:"
            f" epsilon {promise.epsilon:.4f}"
        )
    if unchanged := [name for name in sent.schema.columns if name not in sent.schema.randomised]:
        say(f"NOT RANDOMISED, in {out.name} unchanged: {', '.join(unchanged)}")
    show_privacy(sent.ledger)
