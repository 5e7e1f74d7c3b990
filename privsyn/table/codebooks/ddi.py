"""DDI-Codebook 2.5 and earlier: XML of archives, with variables, their categories and valid ranges.

Numbers that a codebook counted in the rows (``sumStat``, ``catStat``) are not taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from privsyn.errors import InputError, about, replace_errors
from privsyn.table.codebooks.codebook import (
    Codebook,
    CodebookColumn,
    CodebookTable,
    Type,
    in_one_line,
    table_name,
)
from privsyn.table.codebooks.plain import number_or_none

KIND = "DDI-Codebook"

OF_FORMATS: Mapping[str, Type] = {"date": "date", "time": "time", "year": "integer"}
"""The types of some formats of variables."""


def read(path: Path) -> Codebook:
    """Return what a codebook says of its files, each a table."""
    with replace_errors('needs lxml: run pip install "privsyn[codebooks]"', ImportError):
        from lxml import etree
    # The file may come from anybody: no entity is expanded, and nothing is fetched.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    try:
        root = etree.parse(path, parser).getroot()
    except etree.XMLSyntaxError as error:
        raise InputError(f"not XML (line {error.lineno})") from None
    if _tag(root) != "codeBook":
        raise InputError(f"its root is {_tag(root)}, and that of a DDI-Codebook is codeBook")
    files = {
        str(part.get("ID")): in_one_line(_first(part, "fileName"))
        for part in _all(root, "fileDscr")
        if part.get("ID")
    }
    variables: dict[str, list[CodebookColumn]] = {}
    for variable in _all(root, "var"):
        file_ids = (variable.get("files") or "").split() or [""]
        column = _column(variable)
        for file_id in file_ids:
            variables.setdefault(file_id if file_id in files else "", []).append(column)
    if not variables:
        raise InputError("the codebook describes no variable")
    tables = [
        CodebookTable(
            name=table_name(files.get(file_id) or path.name),
            columns=tuple(columns),
            file=files.get(file_id, ""),
        )
        for file_id, columns in variables.items()
    ]
    names = [table.name for table in tables]
    if len(set(names)) < len(names):
        raise InputError("the codebook has two files of one name")
    study = next(_all(root, "stdyDscr"), root)
    return Codebook.of(
        KIND,
        tables,
        title=in_one_line(_first(study, "titl")),
        publisher=in_one_line(_first(study, "distrbtr") or _first(study, "producer")),
        licence=in_one_line(_first(study, "copyright")),
        contact=in_one_line(_first(study, "contact")),
    )


def _tag(element: Any) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _all(element: Any, tag: str) -> Iterator[Any]:
    return (part for part in element.iter() if isinstance(part.tag, str) and _tag(part) == tag)


def _children(element: Any, tag: str) -> list[Any]:
    return [part for part in element if isinstance(part.tag, str) and _tag(part) == tag]


def _first(element: Any, tag: str) -> str:
    """Return the text of the first element of a name, of its parts too; "" if there is none."""
    return next(("".join(part.itertext()) for part in _all(element, tag)), "")


def _own(element: Any, tag: str) -> str:
    """Return the text of the first child of a name."""
    return next(("".join(part.itertext()) for part in _children(element, tag)), "")


def _column(variable: Any) -> CodebookColumn:
    name = variable.get("name") or variable.get("ID")
    if not name:
        raise InputError("a variable has no name")
    with about(f"variable {name!r}"):
        form = next(iter(_children(variable, "varFormat")), None)
        is_text = form is not None and form.get("type") == "character"
        values, marks = list[tuple[Any, str]](), list[str]()
        for category in _children(variable, "catgry"):
            code = in_one_line(_own(category, "catValu"))
            if not code:
                continue
            values.append((code, in_one_line(_own(category, "labl"))))
            if (category.get("missing") or "").upper() == "Y":
                marks.append(code)
        low, high, listed = _range(variable)
        marks += _invalid(variable, [code for code, _ in values])
        numbers = [number_or_none(code) for code, _ in values]
        is_number = (
            not is_text and None not in numbers and (form is not None or low is not None or bool(values))
        )
        decimals = number_or_none(variable.get("dcml"))
        ends = [end for end in (*numbers, low, high) if end is not None]
        is_whole = (
            decimals == 0 or (decimals is None and variable.get("intrvl") == "discrete") or bool(values)
        )
        kind: Type = "text" if is_text else ""
        if is_number:
            kind = "integer" if is_whole and all(isinstance(end, int) for end in ends) else "number"
            values = [(number, label) for number, (_, label) in zip(numbers, values, strict=True)]
            marks = [str(number if (number := number_or_none(mark)) is not None else mark) for mark in marks]
        category_of_format = "" if form is None else str(form.get("category") or "")
        if category_of_format in OF_FORMATS and not values:
            kind = OF_FORMATS[category_of_format]
            low, high = (low, high) if kind == "integer" else (None, None)
        labelled = {str(value) for value, _ in values}
        values += [(value, "") for value in listed if str(value) not in labelled]
        question = in_one_line(_first(variable, "qstnLit"))
        return CodebookColumn(
            name=str(name),
            type=kind,
            label=in_one_line(_own(variable, "labl")) or question,
            values=tuple(values),
            ordered=variable.get("nature") == "ordinal",
            low=low,
            high=high,
            missing=tuple(dict.fromkeys(marks)),
            decimals=int(decimals) if kind == "number" and decimals and decimals <= 12 else None,
        )


def _range(variable: Any) -> tuple[float | None, float | None, list[Any]]:
    """Return the ends of the valid range, and valid items."""
    lows, highs, items = [], [], []
    for valid in _children(variable, "valrng"):
        for part in _children(valid, "range"):
            lows.append(number_or_none(part.get("min")))
            highs.append(number_or_none(part.get("max")))
        for item in _children(valid, "item"):
            value = number_or_none(item.get("VALUE"))
            items.append(item.get("VALUE") if value is None else value)
    low = None if None in lows or not lows else min(end for end in lows if end is not None)
    high = None if None in highs or not highs else max(end for end in highs if end is not None)
    return low, high, [item for item in items if item is not None]


def _invalid(variable: Any, codes: list[str]) -> list[str]:
    """Return the codes of missing cells: invalid items, and the categories in an invalid range."""
    marks = []
    for invalid in _children(variable, "invalrng"):
        marks += [str(item.get("VALUE")) for item in _children(invalid, "item") if item.get("VALUE")]
        for part in _children(invalid, "range"):
            low, high = (number_or_none(part.get(end)) for end in ("min", "max"))
            for code in codes:
                number = number_or_none(code)
                above = number is not None and (low is None or number >= low)
                if number is not None and above and (high is None or number <= high):
                    marks.append(code)
    return marks
