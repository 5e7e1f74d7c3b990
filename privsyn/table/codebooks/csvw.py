"""CSVW: W3C metadata of tables in CSV files, as plain JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privsyn.errors import InputError, about
from privsyn.table.codebooks.codebook import (
    Codebook,
    CodebookColumn,
    CodebookTable,
    ForeignKey,
    Type,
    in_one_line,
    table_name,
)
from privsyn.table.codebooks.plain import as_list, as_mapping, csv_format, included_bound

KIND = "CSV on the Web"
CONTEXT = "http://www.w3.org/ns/csvw"
INHERITED = ("datatype", "null", "required", "separator")
"""What a column has of its schema, its table, or the group of tables."""

_WHOLE = (
    "integer long int short byte nonNegativeInteger positiveInteger unsignedLong unsignedInt unsignedShort"
)
TYPES: Mapping[str, Type] = {
    **dict.fromkeys(
        [*_WHOLE.split(), "unsignedByte", "nonPositiveInteger", "negativeInteger", "gYear"], "integer"
    ),
    **dict.fromkeys(("number", "decimal", "double", "float"), "number"),
    **dict.fromkeys(("date", "gDate"), "date"),
    **dict.fromkeys(("datetime", "dateTime", "dateTimeStamp"), "datetime"),
    **dict.fromkeys(("duration", "dayTimeDuration"), "duration"),
    **dict.fromkeys(("string", "normalizedString", "token", "language", "Name", "NMTOKEN"), "text"),
    **dict.fromkeys(("anyURI", "QName", "gDay", "gMonth", "gMonthDay", "gYearMonth"), "text"),
    **dict.fromkeys(("json", "xml", "html", "binary", "base64Binary", "hexBinary"), "object"),
    "time": "time",
    "boolean": "boolean",
}

SIGNS = {"yyyy": "%Y", "MM": "%m", "M": "%-m", "dd": "%d", "d": "%-d", "HH": "%H", "mm": "%M", "ss": "%S"}
"""Parts of the formats of dates, and the same in the terms of ``strftime``."""

LEAST = {
    "nonNegativeInteger": 0,
    "positiveInteger": 1,
    "unsignedInt": 0,
    "unsignedLong": 0,
    "unsignedShort": 0,
}


def recognises(plain: Any) -> bool:
    """Return whether plain data are metadata of CSVW."""
    return isinstance(plain, Mapping) and CONTEXT in str(plain.get("@context", ""))


def read(path: Path, plain: Any) -> Codebook:
    """Return what metadata say of a table, or of a group of tables."""
    group = [as_mapping("a table", table) for table in as_list("tables", plain.get("tables") or [plain])]
    tables = [_table(table, plain, path) for table in group if not table.get("suppressOutput")]
    publisher = plain.get("dc:publisher") or plain.get("dct:publisher")
    publisher = publisher.get("schema:name") if isinstance(publisher, Mapping) else publisher
    licence = plain.get("dc:license") or plain.get("dct:license")
    licence = licence.get("@id") if isinstance(licence, Mapping) else licence
    return Codebook.of(
        KIND,
        tables,
        title=_in_words(plain.get("dc:title") or plain.get("dct:title")),
        publisher=_in_words(publisher),
        licence=_in_words(licence),
    )


def _table(table: Mapping[str, Any], group: Mapping[str, Any], path: Path) -> CodebookTable:
    url = str(table.get("url") or path.name.removesuffix("-metadata.json"))
    name = table_name(url)
    with about(f"table {name!r}"):
        schema = table.get("tableSchema")
        if isinstance(schema, str):
            raise InputError(f"its tableSchema is {schema!r}, another file: put it into this one")
        schema = as_mapping("tableSchema", schema or {})
        above = {
            key: part[key]
            for part in (group, table, schema)
            for key in INHERITED
            if part.get(key) is not None
        }
        columns = [
            as_mapping("a column", column) for column in as_list("columns", schema.get("columns") or [])
        ]
        columns = [column for column in columns if not column.get("virtual")]
        titles = {str(column.get("name") or _title(column)): _title(column) for column in columns}
        key = _names(schema.get("primaryKey"), titles)
        links = []
        for plain in as_list("foreignKeys", schema.get("foreignKeys") or []):
            reference = as_mapping("reference", as_mapping("a foreign key", plain).get("reference"))
            if (target := reference.get("resource")) is not None:
                columns_of_link = _names(plain.get("columnReference"), titles)
                links.append(
                    ForeignKey(
                        columns_of_link, table_name(str(target)), _names(reference.get("columnReference"), {})
                    )
                )
        dialect = as_mapping("dialect", table.get("dialect") or group.get("dialect") or {})
        return CodebookTable(
            name=name,
            columns=tuple(_column({**above, **column}, key) for column in columns),
            label=_in_words(table.get("dc:title") or table.get("dc:description")),
            key=key,
            links=tuple(links),
            csv=csv_format(delimiter=dialect.get("delimiter"), encoding=dialect.get("encoding")),
            file=url,
        )


def _names(plain: Any, titles: Mapping[str, str]) -> tuple[str, ...]:
    names = [plain] if isinstance(plain, str) else as_list("a key", plain or [])
    return tuple(titles.get(str(name), str(name)) for name in names)


def _title(column: Mapping[str, Any]) -> str:
    """Return the name of a column in the header of the file."""
    title = _in_words(column.get("titles")) or str(column.get("name") or "")
    if not title:
        raise InputError("a column has neither a name nor titles")
    return title


def _in_words(plain: Any) -> str:
    """Return the first of several texts, which may be in several languages."""
    while isinstance(plain, Mapping | list) and plain:
        values = plain if isinstance(plain, list) else list(plain.values())
        plain = plain["@value"] if isinstance(plain, Mapping) and "@value" in plain else values[0]
    return in_one_line(plain)


def _column(column: Mapping[str, Any], key: tuple[str, ...]) -> CodebookColumn:
    name, datatype = _title(column), column.get("datatype", "string")
    with about(f"column {name!r}"):
        facts = {"base": datatype} if isinstance(datatype, str) else as_mapping("datatype", datatype)
        base, form = str(facts.get("base", "string")), facts.get("format")
        kind = TYPES.get(base, "")
        kind = "object" if column.get("separator") else kind
        remarks, marks = list[str](), column.get("null", "")
        low = facts.get("minimum", facts.get("minInclusive", LEAST.get(base)))
        high = facts.get("maximum", facts.get("maxInclusive"))
        if "minExclusive" in facts:
            low, remarks = included_bound("low", facts["minExclusive"], kind)
        if "maxExclusive" in facts:
            high, more = included_bound("high", facts["maxExclusive"], kind)
            remarks += more
        values: tuple[tuple[Any, str], ...] = ()
        if kind == "boolean" and isinstance(form, str) and "|" in form:
            yes, _, no = form.partition("|")
            kind, values = "text", ((no, ""), (yes, ""))
        if kind in ("date", "datetime", "time") and isinstance(form, str):
            written = _strftime(form)
            remarks += [f"The codebook writes it as {form}: add its format."] if written == "" else []
        else:
            written = None
        label = _in_words(
            column.get("dc:description") or column.get("rdfs:comment") or column.get("dct:description")
        )
        return CodebookColumn(
            name=name,
            type=kind,
            label=label or (str(column["name"]) if column.get("name") not in (None, name) else ""),
            values=values,
            low=low,
            high=high,
            missing=tuple(filter(None, map(str, marks if isinstance(marks, list) else [marks]))),
            required=column.get("required") is True,
            unique=key == (name,),
            pattern=form if kind == "text" and isinstance(form, str) and not values else None,
            format=written or None,
            role="identifier" if base == "anyURI" else "",
            remarks=tuple(remarks),
        )


def _strftime(form: str) -> str | None:
    """Return a format of dates in the terms of ``strftime``; None for ISO form, "" if it has other parts.

    >>> _strftime("dd.MM.yyyy"), _strftime("yyyy-MM-dd"), _strftime("EEE d")
    ('%d.%m.%Y', None, '')
    """
    if form in ("yyyy-MM-dd", "yyyy-MM-ddTHH:mm:ss", "HH:mm:ss"):
        return None
    written = re.sub(r"[A-Za-z]+", lambda part: SIGNS.get(part[0], "?" if part[0] != "T" else "T"), form)
    return "" if "?" in written else written
