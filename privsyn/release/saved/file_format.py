"""Save a release in one file, a zip of JSON and NumPy arrays. The same release gives the same bytes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import IO, Any

from privsyn.arguments import check_path
from privsyn.errors import InputError, replace_errors
from privsyn.files import atomic_path, is_url, opened_url
from privsyn.marginals.domain import Array
from privsyn.private.run_ledger import RunLedger
from privsyn.release.published.models import path_of_model
from privsyn.release.saved.arrays import Arrays, most_memory, packed_arrays, unpacked_size
from privsyn.release.saved.tables import (
    UnusableError,
    check_registered,
    memory_of,
    table_from_plain,
    table_to_plain,
)
from privsyn.release.table_model import TableModel
from privsyn.table.database.database import Database
from privsyn.table.database.lookups import LookupTable
from privsyn.table.database.yaml_form import LINKS, database_from_plain, database_to_plain
from privsyn.table.schema.about import read_about

FORMAT = 13  # increased when an older reader would misread the file

ZIP = b"PK"  # the first bytes of any zip file

TEXT, ARRAYS = "release.json", "arrays.npz"
"""The members of a file."""

KEYS = {"format", "ledger", "database", "single", "tables"}
"""What `pack` writes besides arrays, and `about` of several tables."""

Model = tuple[Database, dict[str, TableModel]]


def pack(database: Database, tables: Mapping[str, TableModel]) -> bytes:
    """Return the bytes of the file."""
    plain, arrays = dict[str, Any](), dict[str, Array]()
    for index, (name, model) in enumerate(tables.items()):
        plain[name], its_arrays = table_to_plain(model)
        arrays |= {f"{index}.{array}": cells for array, cells in its_arrays.items()}
    text = {
        "format": FORMAT,
        "ledger": tables[database.root].ledger.to_dict(),
        "database": database_in_model(database),
        "single": database.single,
        "tables": plain,
    }
    if database.about is not None:
        text["about"] = database.about.to_plain()
    packed = packed_arrays(arrays, sum(map(memory_of, plain.values())))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name, member in ((TEXT, json.dumps(text, indent=1)), (ARRAYS, packed)):
            file.writestr(zipfile.ZipInfo(name), member)  # without the time
    return content.getvalue()


def read_model(path: str | PathLike[str] | IO[bytes]) -> Model:
    """Return the tables of a release from a file; raise an `InputError` if `pack` did not write all of it.

    The file may come from anywhere, so nothing is unpacked before its size is known.
    """
    opened = _opened(path)
    problem = "is no model: give a file that `privsyn synth --model` or `save` wrote"
    try:
        with opened() as begun:
            if begun.read(2) == ZIP:
                problem = "is no whole model: it was cut short or changed; copy or save it again"
        with opened() as content, zipfile.ZipFile(content) as file:
            if min(member.header_offset for member in file.infolist()):
                raise ValueError("a model holds a zip of arrays: here that one ends")
            return _read(file)
    except FileNotFoundError:
        problem = "there is no such file"
    except UnusableError as error:
        problem = str(error)
    except Exception:  # noqa: S110  # zipfile, json, NumPy and our constructors raise many kinds
        pass
    raise InputError(f"{path if isinstance(path, str | PathLike) else 'the open file'}: {problem}")


def _read(file: zipfile.ZipFile) -> Model:
    """Return the tables of a release from an open file; raise if `pack` did not write it."""
    members = _members_of(file)
    text = _parsed(members.get(TEXT) or members["database.json"])
    if text["format"] != FORMAT:
        raise UnusableError("a model of another version of privsyn: fit again with this one")
    if sorted(members) != [ARRAYS, TEXT] or text.keys() - {"about"} != KEYS:
        raise ValueError("it holds what `pack` never writes")
    database, ledger = (
        database_from_model(text["database"], text["single"]),
        RunLedger.from_dict(text["ledger"]),
    )
    database = replace(database, about=read_about(text.get("about")))
    if text["tables"].keys() != {*database.names}:
        raise ValueError("other tables than the database has")
    for name, plain in text["tables"].items():
        check_registered(plain)
        if ("columns" in plain) == (not database.is_linked):
            raise ValueError(
                f"{name}: a table of a database has a list of its columns, and no other table has"
            )
    with zipfile.ZipFile(io.BytesIO(members[ARRAYS])) as packed:
        memory = unpacked_size(packed) + sum(map(memory_of, text["tables"].values()))
        if memory > most_memory(len(members[ARRAYS])):
            raise UnusableError(f"needs {memory / 1e6:,.0f} MB of memory: not a release that privsyn saved")
        arrays, models = Arrays(packed), dict[str, TableModel]()
        for index, (name, plain) in enumerate(text["tables"].items()):
            above = {table: models[table] for table in database.above(name)}
            names = database.title(name), database.shown_name(name)
            model = table_from_plain(plain, arrays.within(f"{index}."), ledger, names, above)
            declared = database.tables[name]
            models[name] = replace(
                model,
                lasting=declared.lasting,
                constant=tuple(declared.constant),
                formulas=declared.computed_above,
            )
        arrays.end()
    return database, models


def database_in_model(database: Database) -> dict[str, Any]:
    """Return the tables of a database and how they are linked, with the cells of look-up tables."""
    tables = {name: replace(table, schema=None) for name, table in database.tables.items()}
    plain: dict[str, Any] = database_to_plain(Database(tables, bare=True))["tables"]
    for name, table in database.public.items():
        plain[name]["public"] = table.public.to_plain()
    return plain


def database_from_model(plain: Mapping[str, Any], single: str | None) -> Database:
    """Return the database that `database_in_model` wrote; raise if it did not write it."""
    for table in plain.values():
        if set(table) - {*LINKS, "constraints"}:
            raise ValueError("a model has no schema of a database")
        if "public" in table:  # cells, never a path: a model names no other file to be read
            table["public"] = LookupTable.from_plain(table["public"], table["key"])
    return replace(database_from_plain({"tables": plain}, bare=True), single=single)


def _opened(path: str | PathLike[str] | IO[bytes]) -> Callable[[], IO[bytes]]:
    """Return a function that opens a file from its start, also one that the caller has opened, or a URL."""
    if is_url(path):
        with opened_url(str(path), "rb") as remote:
            content = remote.read()
        return lambda: io.BytesIO(content)
    if not callable(read := getattr(path, "read", None)):
        file = Path(path_of_model(check_path(path)))
        return lambda: file.open("rb")
    content = read()
    if not isinstance(content, bytes):
        raise InputError('the open file has text: open it with mode "rb"')
    return lambda: io.BytesIO(content)


def _members_of(file: zipfile.ZipFile) -> dict[str, bytes]:
    """Return the members of a file; refuse compressed ones, which `pack` never writes."""
    if any(member.compress_type != zipfile.ZIP_STORED for member in file.infolist()):
        raise ValueError("its members are compressed, which `pack` never does")
    if sum(member.file_size for member in file.infolist()) > file.start_dir:
        raise ValueError("its members lie upon each other: they would take more memory than the file")
    members = {name: file.read(name) for name in file.namelist()}
    if len(members) < len(file.namelist()):
        raise ValueError("two members have one name: one of them would not be read")
    return members


def _parsed(text: bytes) -> Any:
    """Return plain data from JSON; raise at NaN, which no release has."""

    def constant(name: str) -> float:
        if name == "NaN":
            raise ValueError("NaN")
        return float(name)

    return json.loads(text, parse_constant=constant)


def write_model(packed: bytes, path: str | PathLike[str] | IO[bytes]) -> None:
    """Write a model to a file, whole or not at all, if it can be read back.

    Parameters
    ----------
    packed : bytes
    path : path, URL, or file that is open for writing bytes

    Raises
    ------
    InputError
        If the file cannot be written or read back.
    """
    if is_url(path):
        check_loads(io.BytesIO(packed), str(path))
        with opened_url(str(path), "wb") as remote:
            remote.write(packed)
        return
    if callable(write := getattr(path, "write", None)):
        check_loads(io.BytesIO(packed), "the open file")
        with replace_errors('the open file has text: open it with mode "wb"', TypeError):
            write(packed)
        return
    target = check_path(path)
    with atomic_path(target) as part:
        part.write_bytes(packed)
        check_loads(part, target)


def check_loads(part: str | PathLike[str] | IO[bytes], path: str | PathLike[str]) -> None:
    """Refuse to keep a file `part`, meant for `path`, that `read_model` would refuse."""
    with suppress(InputError):
        read_model(part)
        return
    raise InputError(
        f"{path}: the model was not saved, because it could not be read back: please report this"
    )
