"""The files of a run: what is in each, the same table in another format, and all in one file."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

from privsyn.app.choices import COMMAND, FORMATS, OUTPUTS, SCHEMA
from privsyn.errors import InputError
from privsyn.files import atomic_path

ALL = "everything.zip"

TABLES = {f"synthetic{ending}": f"the table, as {words}" for ending, words in FORMATS.items()}

LINKED = {
    "synthetic.zip": "the tables, a file each",
    "synthetic.sqlite": "the tables, as a SQLite database",
    "synthetic.duckdb": "the tables, as a DuckDB database",
}
"""The files of linked tables. The first is made of the folder of the run."""

FOLDER = "synthetic"

PUBLIC = (
    TABLES
    | LINKED
    | {
        OUTPUTS["--model"]: "the model: draws more rows at no further cost",
        OUTPUTS["--ledger"]: "every question, its noise and its cost",
        OUTPUTS["--public-report"]: "counts with their error bars, as a web page",
        OUTPUTS["--sheet"]: "the data sheet: complete the lines with TODO",
        SCHEMA: "what was taken as public",
        COMMAND: "the command that makes the same run",
    }
)
"""What is in each file that may be published, by name."""


def file_of(folder: Path, name: str) -> Path | None:
    """Return a file of a run that may be published; None if there is none of this name.

    The table in another format, and all files in one, are made when they are asked for.

    Parameters
    ----------
    folder : Path
        The folder of the run.
    name : str
    """
    path = folder / name
    if name == ALL:
        files = {name: folder / name for name in PUBLIC if (folder / name).is_file()}
        files.pop("synthetic.zip", None)
        return _zip(folder / ALL, files | _of_folder(folder))
    if name == "synthetic.zip":
        return _zip(path, _of_folder(folder)) if (folder / FOLDER).is_dir() else None
    if name in TABLES and not path.exists():
        convert(folder, path)
    return path if name in PUBLIC and path.is_file() else None


def listed(folder: Path) -> list[tuple[str, str, int | None]]:
    """Return name, content and size of each file; the size is None if it is made when it is asked for."""
    paths = {name: folder / name for name in PUBLIC}
    sizes = {name: path.stat().st_size if path.is_file() else None for name, path in paths.items()}
    made_on_demand = ["synthetic.zip"] if (folder / FOLDER).is_dir() else []
    if any(sizes[name] is not None for name in TABLES):
        made_on_demand = [*TABLES]
    return [
        (name, PUBLIC[name], size)
        for name, size in sizes.items()
        if size is not None or name in made_on_demand
    ]


def convert(folder: Path, path: Path) -> None:
    """Write the rows of the table in another format."""
    from privsyn.release.release import load
    from privsyn.table.io.formats import is_csv
    from privsyn.table.io.formulas import with_formulas
    from privsyn.table.io.read_in_memory import read_in_memory
    from privsyn.table.io.write import write_blocks

    written = next((folder / name for name in TABLES if (folder / name).exists()), None)
    if written is None:
        raise InputError("there is no table")
    model = load(folder / OUTPUTS["--model"]).table("another format")
    schema = model.codec.schema
    rows = read_in_memory(written, schema).frame
    rows = with_formulas(rows) if is_csv(written) else rows
    safe = is_csv(path) and path.name in TABLES  # a spreadsheet would run it
    write_blocks(iter([model.form.cast(rows, schema)]), path, schema, model.form, excel_safe=safe)


def _of_folder(folder: Path) -> dict[str, Path]:
    """Return the files of linked tables, by their paths in an archive."""
    return {f"{FOLDER}/{file.name}": file for file in sorted((folder / FOLDER).glob("*"))}


def _zip(path: Path, files: Mapping[str, Path]) -> Path:
    with atomic_path(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in files.items():
            archive.write(file, name)
    return path


def size(count: int) -> str:
    """Return the size of a file.

    >>> size(512), size(20_000), size(3_500_000)
    ('1 kB', '20 kB', '3.5 MB')
    """
    return f"{max(count / 1e3, 1):.0f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"
