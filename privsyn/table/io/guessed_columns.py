"""Guesses of what the columns of a file without types hold. They become public inputs of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from privsyn.table.io.missing_marks import ANSWERS, MARKS, without_marks
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.columns import Categorical, Column, Datetime, Numerical

_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = "[0-9]{2}:[0-9]{2}:[0-9]{2}"
_TIME = rf"{_DATE}([T ][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]+)?)?)?"

GUESSES: tuple[tuple[str, Column, str], ...] = (
    ("True|False", Categorical([False, True]), "true and false"),
    ("TRUE|FALSE", Categorical(["FALSE", "TRUE"]), "TRUE and FALSE"),
    ("true|false", Categorical(["false", "true"]), "true and false in small letters"),
    (_DATE, Datetime(unit="D"), "dates"),
    (
        rf"{_DATE}T{_CLOCK}",
        Datetime(unit="s", format="%Y-%m-%dT%H:%M:%S"),
        "times such as 2020-01-31T12:00:00",
    ),
    (rf"{_DATE}T{_CLOCK}Z", Datetime(unit="s", format="%Y-%m-%dT%H:%M:%SZ"), "times that end in Z"),
    (
        rf"{_DATE} {_CLOCK}\.[0-9]{{3}}",
        Datetime(unit="s", format="%Y-%m-%d %H:%M:%S.%L"),
        "times with milliseconds",
    ),
    (
        rf"{_DATE} {_CLOCK}\.[0-9]{{6}}",
        Datetime(unit="s", format="%Y-%m-%d %H:%M:%S.%f"),
        "times with microseconds",
    ),
    (_TIME, Datetime(unit="s"), "times"),
)
"""What is guessed from the cells without a schema, beside numbers: a pattern, the kind, and its name. Each is
written again as it was read, if the pattern leaves no choice."""

ANY_TEXT = Categorical()
"""What is guessed if nothing else fits."""


def guess_columns(
    texts: Iterable[pa.Table], missing: Mapping[str, Sequence[str]], dialect: CsvFormat
) -> dict[str, Column]:
    """Return for each column the first kind that all its cells match."""
    kinds = {f"^({pattern})$": column for pattern, column, _ in _guesses(dialect)}
    matching, present = {name: list(kinds) for name in missing}, set()
    for text in texts:
        for name, patterns in matching.items():
            cells = without_marks(text[name], missing[name])
            if cells.null_count < len(cells):
                present.add(name)
            matching[name] = [
                p for p in patterns if pc.all(pc.match_substring_regex(cells, p)).as_py() is not False
            ]
    return {
        name: kinds[patterns[0]] if patterns and name in present else ANY_TEXT
        for name, patterns in matching.items()
    }


def _guesses(dialect: CsvFormat) -> list[tuple[str, Column, str]]:
    """Return what is guessed of the cells of a file.

    Whole numbers that are all written with .0, as pandas writes them beside missing cells, stay so. Groups of
    digits are of three, unlike those of dates.

    >>> for pattern, *_ in _guesses(CsvFormat(point=",", thousands="."))[:2]:
    ...     print(pattern)
    [-+]?(0|[1-9][0-9]{0,17}|[1-8][0-9]{18}|[1-9][0-9]{0,2}([.][0-9]{3}){1,4})
    [-+]?(0|[1-9][0-9]{0,17}|[1-8][0-9]{18})[,]0
    """
    groups = "" if dialect.thousands is None else f"|[1-9][0-9]{{0,2}}([{dialect.thousands}][0-9]{{3}})"
    digits_of_integer, point = "0|[1-9][0-9]{0,17}|[1-8][0-9]{18}", f"[{dialect.point}]"
    digits = rf"(0|[1-9][0-9]*{groups and groups + '+'})({point}[0-9]*)?|{point}[0-9]+"
    zero = Numerical(integer=True, format=f"1234{dialect.point}0")
    return [
        (
            f"[-+]?({digits_of_integer}{groups and groups + '{1,4}'})",
            Numerical(integer=True),
            "whole numbers",
        ),
        (f"[-+]?({digits_of_integer}){point}0", zero, f"whole numbers with {dialect.point}0"),
        (  # infinite numbers are missing
            rf"[-+]?(({digits})([eE][-+]?[0-9]+)?|(?i:inf(inity)?))",
            Numerical(integer=False),
            "real numbers",
        ),
        *GUESSES,
    ]


def guessed_facts(guessed: Mapping[str, Column], dialect: CsvFormat) -> Iterator[str]:
    """Yield a sentence for each kind that was guessed, and one for the texts that stand for missing."""
    names_of = {column: name for _, column, name in _guesses(dialect)} | {ANY_TEXT: "text"}
    kinds: dict[str, list[str]] = {}
    for name, column in guessed.items():
        kinds.setdefault(names_of[column], []).append(repr(name))
    for kind, names in kinds.items():
        yield f"that these columns are of {kind} (read off the file): {', '.join(names)}"
    if guessed:
        yield f"that these texts stand for a missing cell, as the empty one does: {' '.join(MARKS[1:])}"
    if any(column != ANY_TEXT for column in guessed.values()):
        yield f"that these do so too in columns that are not of text: {' '.join(ANSWERS)}"
