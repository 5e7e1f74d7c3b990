"""Files of SPSS, Stata and SAS: names, labels, value labels and missing codes. No row is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privsyn.errors import InputError, replace_errors
from privsyn.table.codebooks.codebook import (
    Codebook,
    CodebookColumn,
    CodebookTable,
    Type,
    in_one_line,
    table_name,
)
from privsyn.table.io.labelled import is_day, is_listed, is_time, is_whole

READERS: Mapping[str, tuple[str, str]] = {
    ".sav": ("SPSS", "read_sav"),
    ".zsav": ("SPSS", "read_sav"),
    ".por": ("SPSS", "read_por"),
    ".dta": ("Stata", "read_dta"),
    ".sas7bdat": ("SAS", "read_sas7bdat"),
    ".xpt": ("SAS", "read_xport"),
}
"""The program and the function of pyreadstat for each ending."""

CATALOGUE = ".sas7bcat"
"""The ending of the file beside a table of SAS that has its value labels."""

MOST_OF_RANGE = 1000
"""Codes of a range of missing whole numbers that are listed."""


def read(path: Path) -> Codebook:
    """Return what the head of a file says of its columns."""
    if path.suffix.lower() == CATALOGUE:
        raise InputError(
            "a catalogue of SAS has no columns: give the .sas7bdat file, with the catalogue beside it"
        )
    with replace_errors('needs pyreadstat: run pip install "privsyn[codebooks]"', ImportError):
        import pyreadstat
    program, reader = READERS[path.suffix.lower()]
    settings: dict[str, Any] = {"user_missing": True} if reader in ("read_sav", "read_dta") else {}
    beside = path.with_suffix(CATALOGUE)
    if program == "SAS" and reader == "read_sas7bdat" and beside.exists():
        settings["catalog_file"] = str(beside)
    with replace_errors(f"not a file of {program}, or a damaged one"):
        meta = getattr(pyreadstat, reader)(str(path), metadataonly=True, **settings)[1]
    columns = tuple(_column(name, meta, program) for name in meta.column_names)
    table = CodebookTable(name=table_name(path.name), columns=columns, label=in_one_line(meta.file_label))
    return Codebook.of(f"file of {program}", [table], title=in_one_line(meta.file_label))


def _column(name: str, meta: Any, program: str) -> CodebookColumn:
    kind_read, shown = (
        meta.readstat_variable_types.get(name, ""),
        str(meta.original_variable_types.get(name, "")),
    )
    is_text = kind_read == "string"
    labels = {
        _plain(code): label.strip() for code, label in (meta.variable_value_labels.get(name) or {}).items()
    }
    values = sorted(
        ((code, label) for code, label in labels.items() if isinstance(code, str) == is_text),
        key=lambda pair: pair[0],
    )
    marks, remarks = _missing(meta.missing_ranges.get(name, []), [code for code, _ in values])
    # Letters such as .a and Z are missing cells of Stata and SAS, which no file of another format has.
    kind: Type = "text" if is_text else "number"
    if not is_text and is_day(shown):
        kind = "date"
    elif not is_text and is_time(shown):
        kind = "datetime"
    elif kind_read in ("int8", "int16", "int32") or (not is_text and is_whole(shown)):
        kind = "integer"
    valid = tuple((code, label) for code, label in values if str(code) not in marks)
    measure = str(meta.variable_measure.get(name, ""))
    labelled = is_listed(tuple((code if is_text else float(code), label) for code, label in valid))
    if labelled and kind == "number" and all(isinstance(code, int) for code, _ in valid):
        kind = "integer"
    if valid and not labelled:
        few = ", ".join(f"{code} = {label}" for code, label in valid)
        remarks.append(f"A few numbers have a label: {few}.")
    return CodebookColumn(
        name=name,
        type=kind,
        label=in_one_line(meta.column_names_to_labels.get(name)),
        values=tuple(values)
        if labelled
        else tuple((code, label) for code, label in values if str(code) in marks),
        ordered=measure == "ordinal",
        missing=tuple(marks),
        remarks=tuple(remarks),
    )


def _plain(code: Any) -> Any:
    return int(code) if isinstance(code, float) and code.is_integer() else code


def _missing(ranges: list[Mapping[str, Any]], codes: list[Any]) -> tuple[list[str], list[str]]:
    """Return the codes of missing cells as text, and a remark on a range that cannot be listed."""
    marks: list[str] = []
    remarks = []
    for ends in ranges:
        low, high = _plain(ends["lo"]), _plain(ends["hi"])
        if low == high:
            marks.append(str(low))
        elif isinstance(low, int) and isinstance(high, int) and high - low < MOST_OF_RANGE:
            marks += map(str, range(low, high + 1))
        else:
            marks += [str(code) for code in codes if low <= code <= high]
            remarks.append(f"Numbers from {low} to {high} are missing: list those that occur under missing.")
    return list(dict.fromkeys(marks)), remarks
