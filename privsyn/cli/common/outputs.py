"""Check before any work that results can be written, by public facts alone; and write all files or none."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from privsyn.abilities import LINKED
from privsyn.cli.common.terminal import say
from privsyn.errors import InputError, plural
from privsyn.files import atomic_path, check_file, closing_files
from privsyn.sizes import WITH_ROWS_BELOW, check_memory
from privsyn.table.codec.codec import Codec
from privsyn.table.database.database import Database
from privsyn.table.database.derived_columns import fewest_cells
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.io.formats import (
    Location,
    check_present,
    ending_of,
    every_table,
    file_of,
    holds_tables,
    is_typed,
    tables_in,
)
from privsyn.table.io.output_type import PANDAS, OutputType
from privsyn.table.io.parquet import is_folder, left_out, parts_of
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.read_in_memory import check_excel_safe, read_columns
from privsyn.table.io.write import check_for_tables, write_table
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    from privsyn.progress import Progress
    from privsyn.release.release import Release

Outputs = Mapping[str, Path | None]
"""Output paths by the name of the argument; None if it was not given."""


def check_data(path: Path, database: Database) -> Path | dict[str, str]:
    """Return what `fit` takes: a table, or where each of linked tables is; refuse what is neither."""
    if database.single is not None:
        if database.schema is not None and is_folder(path) and every_table(path):
            raise InputError(
                f"{path}: is a folder of several tables, and the schema is of one: give its file, or a schema"
                " of linked tables, which `privsyn schema` drafts from the folder"
            )
        check_table(path)
        return path
    if holds_tables(path):
        check_file(Location.of(path).file)
    return tables_in(path, database.names, database.may_lack)


def check_table(path: Path) -> None:
    """Refuse a path that names no table; print which files of a folder are not read."""
    check_present(path)
    Location.of(path).format.require()
    if is_folder(path):
        parts_of(path)  # a folder without a Parquet file is no table
    if skipped := left_out(path):
        files = f"{skipped[0].name!r} is" if len(skipped) == 1 else f"{plural(len(skipped), 'file')} are"
        say(f"privsyn: {path}: {files} not read, not ending in .parquet", err=True)


def check_outputs(
    outputs: Outputs,
    *,
    inputs: Iterable[Path | None],
    force: bool,
    appended: Collection[str] = (),
    tables: Collection[str] = (),
) -> None:
    """Refuse a path that cannot be written, a file in two roles, and files that exist already.

    This is the one rule of all commands: an output that exists needs ``--force``. A database may exist,
    without the tables to be written.

    Parameters
    ----------
    outputs : mapping of an argument to a Path
    inputs : iterable of Path
    force : bool
        Whether existing files are overwritten.
    appended : collection of str, optional
        Arguments whose files the command only appends to.
    tables : collection of str, optional
        The tables that are written into a database. Default: the table that its path names.
    """
    taken = {file_of(path).resolve(): "an input" for path in inputs if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        file = file_of(path)
        _check_output(name, file)
        if (resolved := file.resolve()) in taken:
            raise InputError(f"{name} {path}: is {taken[resolved]} too: give it a name of its own")
        taken[resolved] = name
    if not force:
        for name, path in outputs.items():
            if path is None or name in appended:
                continue
            if holds_tables(file_of(path)):
                listed = ", ".join(map(repr, tables_there(path, tables)))
                if listed:
                    raise InputError(
                        f"{name} {path}: has {listed} already: give another name, or --force to replace it"
                    )
            elif file_of(path).exists():
                raise InputError(
                    f"{name} {path}: exists already: give another name, or --force to overwrite it"
                )
    _tell_of_leftovers(file_of(path) for path in outputs.values() if path is not None)


def check_folder(
    folder: Path | None, files: Iterable[Path], *, inputs: Iterable[Path | None] = (), force: bool
) -> None:
    """Refuse a folder to be filled that is a file, and files in it as `check_outputs` does.

    A folder that does not exist is created later.
    """
    if folder is not None and folder.is_file():
        raise InputError(f"--out {folder}: is a file: give a folder to fill")
    inputs = tuple(inputs)
    for file in files:
        if folder is None or folder.exists():
            check_outputs({"--out": file}, inputs=inputs, force=force)


def output_files(
    out: Path, tables: Collection[str], files: Outputs, *, excel_safe: bool
) -> dict[str, Path | None]:
    """Return the outputs that are files. Linked `tables` are written into a new folder, or a database.

    Refuse an `out` that is neither, and others in that folder: the model is written first, and the folder
    must be empty after that.
    """
    if not tables:
        check_excel_safe(out, excel_safe=excel_safe)
        ending_of(out)
    if not tables or holds_tables(out):
        return {"OUT": out, **files}
    check_for_tables(out)
    for name, path in files.items():
        if path is not None and out.resolve() in path.resolve().parents:
            raise InputError(f"{name} {path}: the folder {out} is for the tables alone: give another folder")
    return dict(files)


BUDGET = "the budget file"
"""The name of the one output that runs append to."""


def check_files(
    out: Path,
    outputs: Outputs,
    inputs: Iterable[Path | None],
    *,
    tables: Collection[str] = (),
    force: bool,
) -> None:
    """Refuse files of `privsyn synth` that cannot be written, end in another way, or exist already.

    Without ``--model``, the model is kept beside `out` until all is written.

    Parameters
    ----------
    out : Path
    outputs, inputs : as for `check_outputs`
    tables : collection of str, optional
        The tables that are written into a database `out`.
    force : bool
        Whether existing files are overwritten.
    """
    inputs = tuple(inputs)
    check_outputs(outputs, inputs=inputs, force=force, appended=(BUDGET,), tables=tables)
    check_page("--report", outputs.get("--report"))
    check_page("--public-report", outputs["--public-report"])
    check_markdown("--sheet", outputs["--sheet"])
    if outputs["--model"] is None:
        check_rescue(out, (*inputs, *outputs.values()), force=force)


def rescue_of(out: Path) -> Path:
    """Return the temporary place of the model, used if `--model` is not given."""
    return out.with_name(f"{out.name}.rescue.privsyn")


def check_rescue(out: Path, paths: Iterable[Path | None], *, force: bool) -> None:
    """Refuse to overwrite the model of a failed run, or another file with the name of the rescue model."""
    rescue = rescue_of(out)
    if any(path is not None and path.resolve() == rescue.resolve() for path in paths):
        raise InputError(f"{rescue}: the model is kept there until all is written: choose another name")
    if rescue.exists() and not force:
        raise InputError(
            f"{rescue}: is the model of an earlier run that failed: draw from it with `privsyn sample` at no"
            " cost in privacy, or delete it, or give --force"
        )


def _check_output(name: str, path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{name} {path}: is a folder: give a file name in it")
    if path.exists() and not path.is_file():
        raise InputError(f"{name} {path}: is a device or pipe: give the name of a file")
    if not path.parent.is_dir():
        raise InputError(f"{name} {path}: there is no folder {path.parent}: create it first")
    try:
        with tempfile.TemporaryFile(dir=path.parent):  # only an attempt shows permissions, mounts and quotas
            pass
    except OSError as error:
        raise InputError(
            f"{name} {path}: nothing can be written there ({error.strerror}): choose another folder"
        ) from None


def _tell_of_leftovers(outputs: Iterable[Path]) -> None:
    """Print the hidden temporary files of killed runs: they may be large.

    They are not deleted, because another run may still be writing them.
    """
    for path in outputs:
        output = path.resolve()
        pattern = r"(\.[0-9a-f]{8}-)+" + re.escape(output.name)
        with suppress(OSError):  # a folder may be writable but not readable
            for name in sorted(file.name for file in output.parent.iterdir()):
                if re.fullmatch(pattern, name):
                    say(
                        f"privsyn: {name!r}: was left beside {path.name} by a run that was killed,"
                        " unless one is at work now: delete it",
                        err=True,
                    )


def check_page(name: str, path: Path | None) -> None:
    """Refuse the name of a web page that does not end in .html or .htm."""
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{name} {path}: is a web page: let its name end in .html")


def check_markdown(name: str, path: Path | None) -> None:
    """Refuse the name of a text in Markdown that does not end in .md."""
    if path is not None and path.suffix.lower() != ".md":
        raise InputError(f"{name} {path}: is Markdown: let its name end in .md")


def exists_already(path: Path, tables: Collection[str] = ()) -> bool:
    """Return whether writing a table, or linked `tables`, would replace one."""
    if holds_tables(file := file_of(path)):
        return bool(tables_there(path, tables))
    return file.is_file()


def tables_there(path: Path, tables: Collection[str] = ()) -> list[str]:
    """Return which of the tables to be written a database has already."""
    database = Location.of(path)
    if not database.file.exists() or not database.file.stat().st_size:
        return []
    there = {name.casefold() for name in database.format.door.catalogue(database)}
    return [name for name in tables or (database.table,) if name.casefold() in there]


@contextmanager
def staged(outputs: Outputs) -> Iterator[dict[str, Path]]:
    """Yield a temporary path for each output. On success all files are renamed, on failure all deleted."""
    with ExitStack() as stack:
        parts = {
            name: stack.enter_context(atomic_path(path)) for name, path in outputs.items() if path is not None
        }
        try:
            yield parts
        except InputError as error:  # it names the temporary path, which the user does not know
            text = str(error)
            for name, part in parts.items():
                text = text.replace(str(part), str(outputs[name]))
            raise InputError(text) from None


def write_text(path: Path, text: str) -> None:
    """Write a text file. Errors name this file, not another staged one."""
    with atomic_path(path) as part:
        part.write_text(text, encoding="utf-8")


def write_sample(
    release: Release,
    out: Path,
    rows: int | None,
    *,
    given: Any = None,
    balance: str | None = None,
    population: bool = False,
    seed: int | None = None,
    data: Mapping[str, Any] | Path | None = None,
    excel_safe: bool,
    progress: Progress | None,
) -> dict[str, tuple[int, int]]:
    """Write synthetic rows into a file, or linked tables into a folder or database.

    Parameters
    ----------
    release, out, rows, given, balance, population, seed, excel_safe, progress
        As for `sample` and `sample_to`.
    data : mapping of a table to its path, optional
        Files in a folder have the ending of the first of these. Default: .csv.

    Returns
    -------
    dict of a table to its numbers of rows and columns; of one table under the name ""
    """
    if LINKED in release.kinds:
        paths = data.values() if isinstance(data, Mapping) else ()
        endings = [ending_of(path) for path in paths if isinstance(path, str)]  # no table in a database
        ending = endings[0] if endings and endings[0] in (".csv", ".csv.gz", ".parquet") else ".csv"
        return release.sample_into(
            out, rows, given=given, seed=seed, ending=ending, excel_safe=excel_safe, progress=progress
        )
    if given is None and balance is None and not population:
        return {"": release.sample_to(out, rows, seed=seed, excel_safe=excel_safe, progress=progress)}
    table = release.sample(
        rows, given=given, balance=balance, population=population, seed=seed, progress=progress
    )
    model = release.table()
    return {"": write_table(table, out, model.codec.schema, model.form, excel_safe=excel_safe)}


def rehearse(
    data: Any,
    out: Path,
    database: Database,
    *,
    unit: str | None,
    rows: int | None,
    report: bool,
) -> None:
    """Refuse a run whose results could not be written or loaded after epsilon is spent.

    It refuses a schema that a model file cannot hold, a listed value that `out` cannot hold, a dtype too
    small for the identifiers of `rows` rows, rows of linked tables that memory cannot hold, and a report
    without its libraries. `fit` checks the table.
    """
    if database.is_linked and rows is not None:
        check_memory(rows, rows * fewest_cells(database), WITH_ROWS_BELOW)
    if report:
        import privsyn.evaluation.models
        import privsyn.evaluation.report  # noqa: F401
    if database.single is None:
        return
    codec = None
    with suppress(Exception):  # `fit` reports files that cannot be read
        head, form = _columns(data, database.schema, unit)
        codec = Codec.for_table(OpenSchema.of(database.schema, head).fill({}, {}), head, fine=True)
    if codec is None:
        return
    plain, back = json.dumps(codec.to_dict()), None
    with suppress(Exception):
        back = Codec.from_dict(json.loads(plain))
    if back != codec:
        raise InputError("the schema does not come back from a model file as it was: please report this")
    _write(codec, form, out, rows)


def _columns(data: Any, schema: Schema | None, unit: str | None) -> tuple[pd.DataFrame, OutputType]:
    """Return a table with the names and dtypes of the columns, without the unit column, and its type."""
    if is_typed(data):
        with closing_files():
            table = read_in_batches(data, schema)
        head, form = table.head, table.form
    else:
        head, form = read_columns(data, schema), PANDAS
    return head.drop(columns=[] if unit is None else unit, errors="ignore"), form


def _write(codec: Codec, form: OutputType, out: Path, rows: int | None) -> None:
    """Write a few rows in the format of `out` to a temporary file."""
    specimen = codec.specimen(np.random.default_rng(0))
    if rows is not None:
        codec.specimen(
            np.random.default_rng(0), max(rows - len(specimen), 0)
        )  # are there enough identifiers?
    complaint = ""
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder, f"rehearsal{ending_of(out)}")
        try:
            write_table(
                form.only(set(codec.names).difference(codec.dropped)).cast(specimen, codec.schema),
                part,
                codec.schema,
                form,
            )
        except InputError as error:
            complaint = str(error).replace(str(part), str(out))
    if complaint:
        raise InputError(complaint)
