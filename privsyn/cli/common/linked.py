"""Several linked tables on the command line: from a folder or a database into another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privsyn.cli.common import console
from privsyn.cli.common.keeping import end_without_table, kept, write_public_pages
from privsyn.cli.common.outputs import BUDGET, check_files, check_outputs
from privsyn.cli.common.recording import check_recordable, fit_recorded
from privsyn.cli.common.terminal import say
from privsyn.errors import InputError, plural
from privsyn.files import check_file
from privsyn.table.database.yaml_form import as_database
from privsyn.table.io.formats import Place, ending_of, holds_tables, tables_in
from privsyn.table.io.write import check_for_tables

if TYPE_CHECKING:
    from privsyn.cli.common.task import Task
    from privsyn.private.ledger import Ledger
    from privsyn.release.release import Release
    from privsyn.synthesizer import PrivSyn
    from privsyn.table.database.declared import Database


def synth_tables(task: Task, database: Database) -> None:
    """Make synthetic tables like those in a folder or database."""
    data, out, settings, results = task.data, task.out, task.settings, task.results
    places = tables_in(data, database.names)
    check_recordable(data, task.account)
    public = [Path(each.public) for each in database.public.values()]
    others = {**results, BUDGET: task.account.path}
    inputs = (data, settings["schema"], *public)
    check_files(out, _files_of(out, others), inputs, tables=database.names, force=task.force)
    fitted = fit_recorded({**settings, "schema": database}, places, task.account, task.shown)
    model, ledger = results["--model"], results["--ledger"]
    noise = fitted.release_.too_little_signal
    with kept(fitted, task.account, out=out, model=model, ledger=ledger) as written:
        if noise is None:
            _write(task, fitted, places, others, written)
    if noise is not None:
        end_without_table(task, fitted, noise)


def _write(
    task: Task,
    fitted: PrivSyn,
    places: Mapping[str, str],
    others: Mapping[str, Path | None],
    written: list[Path],
) -> None:
    """Write the tables and what is published beside them, and print what they are."""
    out = task.out
    with task.shown() as bars:
        ending = _ending(places.values())
        shapes = fitted.release_.sample_into(
            out, task.rows, ending=ending, seed=fitted.seed, excel_safe=task.excel_safe, progress=bars
        )
    write_public_pages(fitted, out, task.results, written)
    show_tables(fitted.release_, shapes, out)
    console.show_files({name: path if path in written else None for name, path in others.items()})
    console.show_public_inputs(fitted.ledger_)
    console.show_privacy(fitted.ledger_)
    say(*filter(None, [task.account.so_far]))
    console.show_losses(fitted.losses_)
    for name, outlook in fitted.release_.outlooks().items():
        say(f"{name}: {outlook}")


def sample_tables(
    release: Release,
    model: Path,
    out: Path,
    rows: int | None,
    seed: int | None,
    *,
    excel_safe: bool,
    force: bool,
) -> None:
    """Draw the tables of a model into a new folder of CSV files, or into a database."""
    outputs = _files_of(out, {})
    check_outputs(outputs, inputs=(model,), force=force, tables=release.database.names)
    with console.progress() as bars:
        shapes = release.sample_into(out, rows, seed=seed, excel_safe=excel_safe, progress=bars)
    show_tables(release, shapes, out)
    spent: Ledger = release.ledger
    console.show_privacy(spent, spent_before=True)
    console.show_losses(release.losses)


def _files_of(out: Path, others: Mapping[str, Path | None]) -> dict[str, Path | None]:
    """Return the outputs that are files; refuse a folder `out` that is not empty, and others in it."""
    if holds_tables(out):
        return {"OUT": out, **others}
    check_for_tables(out)
    for name, path in others.items():  # the model is written first, and OUT must be empty after that
        if path is not None and out.resolve() in path.resolve().parents:
            raise InputError(f"{name} {path}: the folder {out} is for the tables alone: give another folder")
    return dict(others)


def _ending(places: Any) -> str:
    """Return the ending of the files in a folder: that of the first private one."""
    endings = [ending_of(place) for place in places]
    return endings[0] if endings and endings[0] in (".csv", ".csv.gz", ".parquet") else ".csv"


def show_tables(release: Release, shapes: Mapping[str, tuple[int, int]], out: Path) -> None:
    """Print the size of each table, and where it is."""
    for name, (rows, columns) in shapes.items():
        table = release.database.tables[name]
        said = "" if table.parent is None else f", linked to {table.parent}"
        said = said if table.public is None else ", public, as it is"
        say(f"{out}: {name}: {plural(rows, 'row')}, {plural(columns, 'column')}{said}")


def declared_tables(
    schema: Path | None, given: Mapping[str, object], csv: Mapping[str, object]
) -> Database | None:
    """Return the database if a schema file declares several tables; refuse options that these do not take.

    Parameters
    ----------
    schema : Path, optional
    given : mapping
        Such options by their names.
    csv : mapping
        The format of CSV files, which each table of a schema says for itself.
    """
    database = as_database(schema)
    if database is not None:
        refuse({**given, **{f"--{name}": value for name, value in csv.items()}})
    return database


def check_comparable(paths: Iterable[Path], database: Database) -> None:
    """Refuse what is no folder or database, before anything is read."""
    for path in paths:
        if holds_tables(path):
            check_file(Place.of(path).file)
        tables_in(path, database.names)


INSTEAD = {
    "--unit": "the persons are the rows of the table without a parent, and --check needs no other column",
    "--from-dtypes": "--check counts in the rows",
    "--output": "--check writes no file",
}


def refuse(given: Mapping[str, object]) -> None:
    """Refuse options that several tables do not take."""
    for name, value in given.items():
        if value:
            instead = INSTEAD.get(name, "say it in the schema, under each table, or make one table at a time")
            raise InputError(
                f"{name}: the schema declares several tables, which do not take it: leave it out; {instead}"
            )
