"""Coding: how a contributor codes a row, from the schema alone. So all rows of a study are coded alike."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from privsyn.abilities import COLLECTORS, check_abilities
from privsyn.collectors.board import PrivateKeys, Study
from privsyn.collectors.contribution_file import one_hot, shares_of, write_contribution
from privsyn.errors import InputError, spelled
from privsyn.marginals.domain import Ints
from privsyn.methods.reading import Opened
from privsyn.private.randomness import os_entropy
from privsyn.table.codec.codec import Codec
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import to_plain

if TYPE_CHECKING:
    from privsyn.methods.run_settings import RunSettings


def empty_head(schema: Schema | None) -> Any:
    """Return a table without rows: the columns of a schema, of the types in which a CSV file is read."""
    if schema is None:
        raise InputError(f"collectors need a {spelled('schema')}: by it contributors code their rows")
    with TemporaryDirectory() as folder:
        file = Path(folder) / "columns.csv"
        with file.open("w", newline="", encoding="utf-8") as text:
            csv.writer(text).writerow(schema.columns)
        return read_in_batches(file, replace(schema, csv=CsvFormat())).head


def codec_of(settings: RunSettings) -> Codec:
    """Return how the rows of a study are coded.

    Raises
    ------
    InputError
        If the schema leaves values or bounds open.
    """
    opened = Opened.of(empty_head(settings.database.schema), None, settings, os_entropy)
    columns = ", ".join(map(repr, opened.schema.open))
    check_abilities([COLLECTORS], {"values": [*opened.schema.open]}, columns=columns)
    return opened.codec(opened.schema.fill({}, {}))


def codes_of(file: Path, codec: Codec) -> Iterator[Ints]:
    """Yield the codes of each row of a CSV file with a header.

    Raises
    ------
    InputError
        If a column of the study is missing.
    """
    source = read_in_batches(file, codec.schema)
    missing = [name for name in codec.names if name not in source.head.columns]
    if missing:
        raise InputError(f"the row lacks the columns {', '.join(map(repr, missing))} of the schema")
    for frame in source.results(list)[0]:
        yield from codec.encode(frame[list(codec.names)]).codes.astype(int)


def contribute_file(file: Path, settings: RunSettings, folder: Path, keys: Path, fingerprint: str) -> Study:
    """Send the one row of a CSV file to the collectors of a study.

    Whoever can write to the folder can put a study there with keys of their own, and read the rows that are
    sent to it. So the fingerprint comes from the people who run the study, and not from the folder.

    Raises
    ------
    InputError
        If the file has another number of rows, or the study has another schema or fingerprint: then nothing
        is sent.
    """
    study, codec = Study.read(folder), codec_of(settings)
    if fingerprint.strip().lower() != study.fingerprint:  # that of the folder is not shown: it may be forged
        raise InputError(f"{folder}: the study has another fingerprint than you gave: nothing was sent")
    if coding_digest(codec) != study.schema:
        raise InputError(
            f"{folder}: the study has another schema, or another version of privsyn: take those of the study"
        )
    rows = list(codes_of(file, codec))
    if len(rows) != 1:
        raise InputError(f"{file}: has {len(rows)} rows: a contribution is one row")
    shares = shares_of(one_hot(rows[0], codec.domain), study)
    write_contribution(folder, study, PrivateKeys.of_file(keys), shares)
    return study


def coding_digest(codec: Codec) -> bytes:
    """Return a digest of how rows are coded: other codes have another digest."""
    public = (to_plain(codec.schema), codec.names, codec.dtypes, codec.domain, version("privsyn"))
    return sha256(repr(public).encode()).digest()
