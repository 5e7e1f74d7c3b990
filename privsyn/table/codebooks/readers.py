"""The formats of codebooks, and how that of a file is recognised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privsyn.errors import InputError, about
from privsyn.files import check_file, read_text
from privsyn.table.codebooks import csvw, ddi, json_schema, redcap, sql, statistics_file, table_schema
from privsyn.table.codebooks.codebook import Codebook
from privsyn.table.codebooks.plain import read_json


@dataclass(frozen=True)
class JsonReader:
    """A format of codebooks in JSON.

    Parameters
    ----------
    recognises : function of plain data
    read : function of a path and its plain data
    """

    recognises: Callable[[Any], bool]
    read: Callable[[Path, Any], Codebook]


JSON = (
    JsonReader(csvw.recognises, csvw.read),
    JsonReader(table_schema.recognises, table_schema.read),
    JsonReader(json_schema.recognises, json_schema.read),
)
"""The formats in JSON; the first that recognises a file reads it."""

FORMATS = (
    "Frictionless (datapackage.json, Table Schema), CSVW, JSON Schema, DDI-Codebook (.xml), SPSS, Stata and"
    " SAS (.sav, .por, .dta, .sas7bdat, .xpt), REDCap (.csv), SQL (.sql)"
)
"""All formats, in words."""

YAML = (".yaml", ".yml")


def is_codebook(path: Path) -> bool:
    """Return whether a path is to be read as a codebook, and not as a schema in YAML."""
    return path.suffix.lower() not in YAML


def read_file(path: Path) -> Codebook:
    """Return what a codebook says, whatever its format. No row is read.

    Raises
    ------
    InputError
        If the file is no codebook that can be read; the message begins with its name.
    """
    ending = path.suffix.lower()
    check_file(path)
    with about(str(path)):
        if ending in (*statistics_file.READERS, statistics_file.CATALOGUE):
            return statistics_file.read(path)
    text = read_text(path)  # its errors name the file
    start = text.lstrip()
    with about(str(path)):
        if ending == ".xml" or start.startswith("<"):
            return ddi.read(path)
        if ending == ".json" or start.startswith(("{", "[")):
            plain = read_json(path)
            for reader in JSON:
                if reader.recognises(plain):
                    return reader.read(path, plain)
        elif ending == ".csv" and redcap.recognises(start):
            return redcap.read(path)
        elif ending in (".sql", ".ddl") or (ending != ".csv" and sql.recognises(start)):
            return sql.read(path)
        raise InputError(f"no codebook that can be read: {FORMATS}")
