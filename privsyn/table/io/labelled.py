"""Files of Stata and SPSS. Their value labels are metadata, as a codebook is: public lists of values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.errors import replace_errors, unless_own
from privsyn.table.encoding.dtypes import INDEX, family
from privsyn.table.io.formats import DeclaredTable, Labels, Location, TypedFile, label_facts, plain, text_of
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.schema import Schema

ROWS_OF_BATCH = 2**16
"""Rows of a batch."""

WELL_FORMED = "that all texts are in the encoding that the file declares"

_NUMBERS = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "float": pa.float32()}
_DAY = re.compile(r"%-?t?d.*|(A|E|S|J)?DATE[0-9.]*", re.IGNORECASE)
_TIME = re.compile(r"%-?t[cC].*|(DATETIME|YMDHMS)[0-9.]*", re.IGNORECASE)
_WHOLE = re.compile(r"[FN][0-9]+(\.0)?", re.IGNORECASE)


@dataclass(frozen=True)
class _Clock:
    """How a program stores dates and times: as numbers since an instant.

    Parameters
    ----------
    begins : numpy.datetime64
    of_dates, of_times : int
        Milliseconds in a unit of dates, and in one of times.
    formats : pair of str
        How dates and times are shown.
    """

    begins: np.datetime64
    of_dates: int
    of_times: int
    formats: tuple[str, str]


_CLOCKS = {
    "Stata": _Clock(np.datetime64("1960-01-01", "ms"), 86_400_000, 1, ("%td", "%tc")),
    "SPSS": _Clock(np.datetime64("1582-10-14", "ms"), 1000, 1000, ("DATE11", "DATETIME20")),
}


def open_typed(location: Location, schema: Schema | None) -> TypedFile:
    """Return the columns of a file, their value labels, and the rows. Missing codes of SPSS are missing."""
    import pyreadstat

    clock = _CLOCKS[location.format.name]
    read = pyreadstat.read_dta if location.format.name == "Stata" else pyreadstat.read_sav
    damaged = f"{location.file}: not a file of {location.format.name}, or a damaged one"
    with replace_errors(damaged):
        meta = read(location.file, metadataonly=True, user_missing=True)[1]
        labels = {
            name: coded_labels
            for name in meta.column_names
            if (coded_labels := _labels_of(name, meta)) and _lists_labels(name, coded_labels, schema)
        }
        types = pa.schema([(name, _type_of(name, meta, labels)) for name in meta.column_names])

    def batches() -> Iterator[pa.RecordBatch]:
        with replace_errors(damaged):
            chunks = pyreadstat.read_file_in_chunks(
                read, location.file, chunksize=ROWS_OF_BATCH, disable_datetime_conversion=True
            )
            for frame, _ in chunks:
                cells = [_cells(frame[field.name], field, labels, clock) for field in types]
                yield pa.RecordBatch.from_arrays(cells, schema=types)

    return TypedFile(types, batches, labels, (WELL_FORMED, *label_facts(labels)))


def _labels_of(name: str, meta: Any) -> tuple[tuple[Any, str], ...]:
    """Return the codes with their labels, in order, without those that stand for a missing cell."""
    labels: Mapping[Any, str] = meta.variable_value_labels.get(name, {})
    is_text = meta.readstat_variable_types[name] == "string"
    missing = meta.missing_ranges.get(name, [])
    listed = [
        (code, label)
        for code, label in sorted((c, t) for c, t in labels.items() if isinstance(c, str) == is_text)
        if not any(ends["lo"] <= code <= ends["hi"] for ends in missing)
    ]
    codes = [code if is_text else float(code) for code, _ in listed]
    return tuple(zip(codes, distinct_labels(listed), strict=True))


def distinct_labels(listed: Sequence[tuple[Any, str]]) -> list[str]:
    """Return the labels of codes: two codes of one label stay two values.

    >>> distinct_labels([(1, "yes"), (2, "no"), (3, "no"), (4, "")])
    ['yes', 'no', 'no (3)', '4']
    """
    labels: dict[str, None] = {}
    for code, text in listed:
        label = text.strip() or str(code)
        while label in labels:
            label = f"{label} ({code})" if isinstance(code, str) else f"{label} ({code:g})"
        labels[label] = None
    return list(labels)


def _lists_labels(name: str, labels: tuple[tuple[Any, str], ...], schema: Schema | None) -> bool:
    """Return whether a column is one of labelled values, not a number of which a few values have a label.

    A schema decides. Without one, a single label is a remark on a number (99: "unknown"). So are two that
    are more than one apart: the ends of a scale.
    """
    if schema is not None and name in schema.columns:
        column = schema.columns[name]
        texts = {label for _, label in labels}
        return column.lists_values and (not column.is_public or bool(texts & set(column.listed)))
    return is_listed(labels)


def is_listed(labels: tuple[tuple[Any, str], ...]) -> bool:
    """Return whether labels are those of a list of values, by their number and their codes.

    >>> is_listed(((1.0, "no"), (2.0, "yes"))), is_listed(((0.0, "never"), (10.0, "always")))
    (True, False)
    """
    codes = [code for code, _ in labels]
    return len(codes) > 2 or (len(codes) == 2 and (isinstance(codes[0], str) or codes[1] - codes[0] <= 1))


def is_day(shown: str) -> bool:
    """Return whether a format of Stata or SPSS shows dates.

    >>> is_day("%td"), is_day("DATE11"), is_day("F8.2")
    (True, True, False)
    """
    return _DAY.fullmatch(shown) is not None


def is_time(shown: str) -> bool:
    """Return whether a format of Stata or SPSS shows times."""
    return _TIME.fullmatch(shown) is not None


def is_whole(shown: str) -> bool:
    """Return whether a format of SPSS shows whole numbers."""
    return _WHOLE.fullmatch(shown) is not None


def _type_of(name: str, meta: Any, labels: Labels) -> pa.DataType:
    kind, shown = meta.readstat_variable_types[name], meta.original_variable_types[name]
    if name in labels:
        return pa.dictionary(INDEX, pa.string(), ordered=True)
    if kind == "string":
        return pa.string()
    if is_day(shown):
        return pa.date32()
    if is_time(shown):
        return pa.timestamp("ms")
    if kind == "double" and is_whole(shown):  # SPSS has no type of whole numbers
        return pa.int64()
    return _NUMBERS.get(kind, pa.float64())


def _cells(cells: pd.Series, field: pa.Field, labels: Labels, clock: _Clock) -> pa.Array:
    """Return a column in its type. Each cell is converted alone; one that does not fit is missing."""
    kind = field.type
    if field.name in labels:
        codes_of_labels = {code: location for location, (code, _) in enumerate(labels[field.name])}
        codes = cells.astype(object).map(codes_of_labels.get)
        indices = pa.array(codes.fillna(-1).to_numpy(np.int32), INDEX, mask=codes.isna().to_numpy(bool))
        return pa.DictionaryArray.from_arrays(
            indices, pa.array([label for _, label in labels[field.name]]), ordered=True
        )
    if pa.types.is_string(kind):
        return pa.array([cell if isinstance(cell, str) and cell else None for cell in cells], kind)
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    if pa.types.is_temporal(kind):
        step = clock.of_dates if pa.types.is_date(kind) else clock.of_times
        with np.errstate(over="ignore"):  # a warning would show that there is such a cell
            numbers = np.round(numbers * step) + float(np.int64(clock.begins))
        if pa.types.is_date(kind):
            numbers = np.floor(numbers / 86_400_000)
    if pa.types.is_floating(kind):
        return pa.array(numbers, kind, mask=np.isnan(numbers))
    width = pa.int32() if pa.types.is_date(kind) else pa.int64() if pa.types.is_timestamp(kind) else kind
    limits = np.iinfo(width.to_pandas_dtype())
    numbers = np.rint(numbers)
    absent = ~((numbers >= max(limits.min, -(2**53))) & (numbers <= min(limits.max, 2**53)))
    values = np.where(absent, 0, numbers).astype(width.to_pandas_dtype())
    return pa.array(values, width, mask=absent).cast(kind)


def write(
    frames: Iterator[pd.DataFrame], part: Path, location: Location, labels: Labels, _declared: DeclaredTable
) -> None:
    """Write a file of Stata or SPSS, with the value labels that the private table had."""
    import pyreadstat

    stata = location.format.name == "Stata"
    frame = pd.concat(list(frames), ignore_index=True)
    columns: dict[str, Any] = {}
    texts: dict[str, dict[Any, str]] = {}
    shown: dict[str, str] = {}
    for name, cells in ((str(name), frame[name]) for name in frame.columns):
        kind = family(cells.dtype)
        if kind == "category" and (
            name in labels or family(cells.cat.categories.dtype) in ("text", "object")
        ):
            columns[name], texts[name] = _coded(cells, labels.get(name, ()))
        elif kind == "datetime":
            columns[name], shown[name] = _as_numbers(cells, _CLOCKS[location.format.name])
        elif kind in ("integer", "boolean"):
            integers = cells.astype("Int64")
            fits = bool((integers.abs() < 2**31).fillna(True).all())  # neither has longer integers
            columns[name] = integers.astype("Int32" if fits else "Float64")
        elif kind in ("real", "decimal"):
            columns[name] = cells.astype("float64")
        else:
            columns[name] = pd.Series([_text(cell) for cell in cells], dtype=object)
    unwritable = (
        f"{location}: cannot be written: {location.format.name} limits the names of columns (letters, digits"
        f" and _, at most {32 if stata else 64}) and the length of texts: rename or leave out a column"
    )
    save = pyreadstat.write_dta if stata else pyreadstat.write_sav
    with replace_errors(unless_own(unwritable)):
        save(pd.DataFrame(columns), part, variable_value_labels=texts, variable_format=shown)


def _text(cell: Any) -> str:
    cell = plain(cell)
    return cell if isinstance(cell, str) else text_of(cell, CsvFormat())


def _coded(cells: pd.Series, private_labels: tuple[tuple[Any, str], ...]) -> tuple[pd.Series, dict[Any, str]]:
    """Return categories as the codes of the private table, and further ones after its last code."""
    listed = [str(category) for category in cells.cat.categories]
    codes: dict[str, Any] = {label: code for code, label in private_labels}
    if any(isinstance(code, str) for code in codes.values()):
        values = [codes.get(label, label) for label in listed]
        coded = pd.Series(
            [values[location] if location >= 0 else "" for location in cells.cat.codes], dtype=object
        )
        return coded, dict(zip(values, listed, strict=True))
    last = max(codes.values(), default=0)
    for label in listed:
        if label not in codes:
            codes[label] = last = last + 1
    integers = all(float(code).is_integer() for code in codes.values())
    of_places = np.array([codes[label] for label in listed] + [np.nan])
    numbers = pd.Series(of_places[cells.cat.codes.to_numpy()])
    if integers:
        return numbers.astype("Int32"), {int(code): label for label, code in codes.items()}
    return numbers, {float(code): label for label, code in codes.items()}


def _as_numbers(cells: pd.Series, clock: _Clock) -> tuple[pd.Series, str]:
    """Return dates or times as the numbers of Stata or SPSS, and the format that shows them."""
    times = np.array([np.datetime64("NaT" if pd.isna(c) else str(plain_time(c)), "ms") for c in cells])
    times = times.astype("datetime64[ms]")
    elapsed = (times - clock.begins) / np.timedelta64(1, "ms")
    if (times == times.astype("datetime64[D]"))[~np.isnat(times)].all():
        return pd.Series(elapsed / clock.of_dates), clock.formats[0]
    return pd.Series(elapsed / clock.of_times), clock.formats[1]


def plain_time(value: Any) -> str:
    """Return a date or time in ISO form, without its time zone."""
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return re.sub(r"(?<=:[0-9]{2})(\.[0-9]+)?([+-][0-9]{2}:[0-9]{2}|Z)$", r"\1", text)
