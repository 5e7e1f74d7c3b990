"""Guesses of what the columns of a file without types hold. They become public inputs of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from privsyn.table.io.missing_marks import MARKS, without_marks
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.columns import Categorical, Column, Datetime, Numerical

GUESSES: Mapping[Column, str] = {
    Numerical(integer=True): "whole numbers",
    Numerical(integer=False): "real numbers",
    Categorical([False, True]): "true and false",
    Datetime(unit="D"): "dates",
    Datetime(unit="s"): "times",
    Categorical(): "text",
}
"""What is guessed from the cells without a schema, and its name; text if nothing else fits."""

_FLAG = r"^(?i:true|false)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?$"


def guess_columns(
    texts: Iterable[pa.Table], missing: Mapping[str, Sequence[str]], dialect: CsvFormat
) -> dict[str, Column]:
    """Return for each column the first kind that all its cells match."""
    kinds = dict(zip((*_numbers(dialect), _FLAG, _DATE, _TIME), GUESSES, strict=False))
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
        name: kinds[patterns[0]] if patterns and name in present else Categorical()
        for name, patterns in matching.items()
    }


def _numbers(dialect: CsvFormat) -> tuple[str, str]:
    """Return the patterns of whole and of real numbers. Groups of digits are of three, unlike those of dates.

    >>> _numbers(CsvFormat(point=",", thousands="."))[0]
    '^[-+]?(0|[1-9][0-9]{0,14}|[1-9][0-9]{0,2}([.][0-9]{3}){1,4})$'
    """
    groups = "" if dialect.thousands is None else f"|[1-9][0-9]{{0,2}}([{dialect.thousands}][0-9]{{3}})"
    integers = rf"^[-+]?(0|[1-9][0-9]{{0,14}}{groups and groups + '{1,4}'})$"
    digits = rf"(0|[1-9][0-9]*{groups and groups + '+'})([{dialect.point}][0-9]*)?|[{dialect.point}][0-9]+"
    return integers, rf"^[-+]?(({digits})([eE][-+]?[0-9]+)?|(?i:inf(inity)?))$"  # infinite ones are missing


def guessed_facts(guessed: Mapping[str, Column]) -> Iterator[str]:
    """Yield a sentence for each kind that was guessed, and one for the texts that stand for missing."""
    kinds: dict[str, list[str]] = {}
    for name, column in guessed.items():
        kinds.setdefault(GUESSES[column], []).append(repr(name))
    for kind, names in kinds.items():
        yield f"that these columns are of {kind} (read off the file): {', '.join(names)}"
    if guessed:
        yield f"that these texts stand for a missing cell, as the empty one does: {' '.join(MARKS[1:])}"
