"""What a codebook says of a column as a kind of column, with the comment that stands above it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

from privsyn.errors import InputError, about
from privsyn.table.codebooks.codebook import CodebookColumn
from privsyn.table.io.labelled import distinct_labels
from privsyn.table.kinds.generated import Pattern
from privsyn.table.schema.columns import (
    Categorical,
    Column,
    Datetime,
    Duration,
    Identifier,
    Numerical,
    Text,
    Time,
)
from privsyn.table.schema.schema import names_rows

MOST_LABELS = 40
"""Labels of values in a comment."""

LEFT_OPEN = "LEFT OPEN"
"""How the remark begins on what the codebook does not say, and a run finds under privacy."""

_WORDS = re.compile(r"\^?\((?:\?:)?([\w .-]+(?:\|[\w .-]+)+)\)\$?|\^?([\w-]+(?:\|[\w-]+)+)\$?")


@dataclass(frozen=True)
class Declared:
    """A column as declared, and the comment above it.

    Parameters
    ----------
    column : Column
    notes : tuple of str
    """

    column: Column
    notes: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Whether the codebook lacks what a run then finds."""
        return not self.column.is_public


def declare(described: CodebookColumn, *, labelled: bool = False) -> Declared:
    """Return the kind of a column.

    Parameters
    ----------
    described : CodebookColumn
    labelled : bool
        Whether the file has the labels of values, not their codes, as pandas reads files of Stata.

    Examples
    --------
    >>> sex = CodebookColumn(name="sex", type="integer", values=((1, "male"), (2, "female"), (9, "none")),
    ...     missing=("9",))
    >>> declare(sex).column.values, declare(sex).notes
    ((1, 2), ('1 = male, 2 = female, 9 = none (missing).',))
    >>> declare(CodebookColumn(name="age", type="integer", low=0)).notes
    ('LEFT OPEN: low 0, and no high in the codebook. Bounds are found under privacy.',)
    """
    with about(f"column {described.name!r}"):
        column, remark = _kind_of(described, labelled)
    return Declared(column, tuple(filter(None, (_words_of(described), *described.remarks, remark))))


def _words_of(described: CodebookColumn) -> str:
    """Return what the column is and what its values mean."""
    label = described.label if described.label != described.name else ""
    labels = []
    for value, text in described.values:
        is_missing = str(value) in described.missing
        if (text and text != str(value)) or is_missing:
            labels.append(f"{value} = {text or value}{' (missing)' if is_missing else ''}")
    more = f" and {len(labels) - MOST_LABELS} more" if len(labels) > MOST_LABELS else ""
    meanings = f"{', '.join(labels[:MOST_LABELS])}{more}." if labels else ""
    return f"{label}: {meanings}" if label and meanings else meanings or label


def _kind_of(described: CodebookColumn, labelled: bool) -> tuple[Column, str]:
    """Return the kind, and the remark on what is left open or left out."""
    listed = _listed(described)
    names = described.role == "identifier" or (
        not listed
        and described.type in ("", "text", "integer")
        and (described.unique or (names_rows(described.name) and described.low is None))
    )
    if names:
        return _identifier(described), ""
    if described.role == "prose":
        return Text(), "Free text, so it is left out."
    if described.type == "object":
        return Text(), "No text, number or time, so it is left out."
    if listed and _is_number_with_codes(described, listed):
        return _number_with_codes(described, listed)
    if listed:
        return _list_of(described, listed, labelled), ""
    return KINDS.get(described.type, _of_unknown)(described)


def _listed(described: CodebookColumn) -> tuple[tuple[Any, str], ...]:
    """Return the values that are no missing cells, those of a pattern of words too."""
    values = described.values
    if not values and described.type in ("", "text") and described.pattern is not None:
        match = _WORDS.fullmatch(described.pattern)
        values = tuple((word, "") for word in (match[1] or match[2]).split("|")) if match else ()
    return tuple((value, label) for value, label in values if str(value) not in described.missing)


def _identifier(described: CodebookColumn) -> Identifier:
    """Return an identifier, with the pattern of its texts if they can be generated."""
    pattern = (described.pattern or "").removeprefix("^").removesuffix("$")
    with suppress(InputError):
        if pattern and described.type in ("", "text"):
            Pattern(pattern)
            return Identifier(pattern=pattern)
    return Identifier()


def _list_of(described: CodebookColumn, listed: tuple[tuple[Any, str], ...], labelled: bool) -> Categorical:
    """Return a list of values: the codes or, in a file that has them, the labels."""
    values = [value for value, _ in listed]
    if labelled and any(label for _, label in listed):
        values = distinct_labels(listed)
    return Categorical(
        list(dict.fromkeys(values)),
        nullable=not described.required,
        missing=_missing(described, values),
        ordered=True if described.ordered and len(values) > 1 else None,
    )


def _missing(described: CodebookColumn, values: list[Any]) -> tuple[str, ...]:
    """Return the marks for missing that are no listed values; the empty cell is one anyway."""
    listed = {"", *map(str, values)}
    return tuple(mark for mark in dict.fromkeys(described.missing) if mark not in listed)


def _is_number_with_codes(described: CodebookColumn, listed: tuple[tuple[Any, str], ...]) -> bool:
    """Return whether a column has numbers between bounds, of which a few have a label."""
    if described.type not in ("integer", "number") or described.low is None or described.high is None:
        return False
    within = [value for value, _ in listed if described.low <= value <= described.high]
    return described.type == "number" or len(set(within)) < described.high - described.low + 1


def _number_with_codes(described: CodebookColumn, listed: tuple[tuple[Any, str], ...]) -> tuple[Column, str]:
    """Return numbers between bounds; labelled codes outside of them are missing, and a remark says so."""
    beyond = [value for value, _ in listed if not described.low <= value <= described.high]
    codes = ", ".join(map(str, beyond))
    remark = f"{codes} lie outside the bounds, so they are missing." if beyond else ""
    return _numerical(described, tuple(map(str, beyond))), remark


def _numerical(described: CodebookColumn, codes: tuple[str, ...] = ()) -> Numerical:
    integer = described.type == "integer"
    marks = _missing(described, [])
    marks += tuple(code for code in codes if code not in marks)
    as_floats = (f"{mark}.0" for mark in marks if re.fullmatch(r"-?[0-9]+", mark))  # beside missing cells
    low, high = described.low, described.high
    if low is None or high is None:
        low, high = None, None
    elif integer:
        low, high = ceil(low), floor(high)
    return Numerical(
        low,
        high,
        integer=True if integer else None,
        decimals=None if integer or described.step is not None else described.decimals,
        step=described.step,
        nullable=not described.required,
        missing=tuple(dict.fromkeys((*marks, *as_floats))),
    )


def _of_numbers(described: CodebookColumn) -> tuple[Column, str]:
    return _numerical(described), _left_open(described)


def _left_open(described: CodebookColumn) -> str:
    """Return the remark on bounds of which the codebook lacks one or both."""
    if None not in (described.low, described.high):
        return ""
    ends = {"low": described.low, "high": described.high}
    bounds = [f"{end} {bound}" for end, bound in ends.items() if bound is not None]
    lacking = " and ".join(end for end, bound in ends.items() if bound is None)
    sentence = f"{bounds[0]}, and no {lacking} in the codebook" if bounds else f"no {lacking} in the codebook"
    return f"{LEFT_OPEN}: {sentence}. Bounds are found under privacy."


def _of_times(kind: type[Datetime] | type[Duration]) -> Callable[[CodebookColumn], tuple[Column, str]]:
    """Return what declares dates or lengths of time."""

    def declared(described: CodebookColumn) -> tuple[Column, str]:
        has_bounds = None not in (described.low, described.high)
        settings: dict[str, Any] = {
            "low": described.low if has_bounds else None,
            "high": described.high if has_bounds else None,
            "nullable": not described.required,
            "missing": _missing(described, []),
        }
        written, remark = dict[str, Any](), _left_open(described)
        if described.format is not None:
            written = {"format": described.format}
            if re.search("%:?z", described.format) and kind is Datetime:
                written["zone"] = "UTC"
                remark = f"Its times have an offset: they are counted on the clock of UTC. {remark}".strip()
            try:
                kind(**settings, **written)
            except InputError:
                written = {}
                remark = f"The codebook writes it as {described.format}: add its format. {remark}".strip()
        return kind(**settings, **written), remark

    return declared


def _of_clocks(described: CodebookColumn) -> tuple[Column, str]:
    column = Time(
        described.low,
        described.high,
        format=described.format,
        nullable=not described.required,
        missing=_missing(described, []),
    )
    return column, ""


def _of_flags(described: CodebookColumn) -> tuple[Column, str]:
    return Categorical([False, True], nullable=not described.required, missing=_missing(described, [])), ""


def _of_unknown(described: CodebookColumn) -> tuple[Column, str]:
    column = Categorical(nullable=not described.required, missing=_missing(described, []))
    pattern = "" if described.pattern is None else f" They match {described.pattern}."
    return column, (
        f"{LEFT_OPEN}: the codebook lists no values.{pattern} Common ones are found under privacy. If it is"
        " free text: {kind: text}."
    )


KINDS: Mapping[str, Callable[[CodebookColumn], tuple[Column, str]]] = {
    "integer": _of_numbers,
    "number": _of_numbers,
    "boolean": _of_flags,
    "date": _of_times(Datetime),
    "datetime": _of_times(Datetime),
    "duration": _of_times(Duration),
    "time": _of_clocks,
}
"""How a column of each type is declared that has no list of values; others may have any values."""
