"""The draft as a file that a person can review in a minute: above each column, what to ask oneself."""

from __future__ import annotations

from privsyn.table.drafting.draft import draft_schema, is_csv, is_short
from privsyn.table.schema.columns import Categorical, Coded, Column, Identifier, Numerical
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.time_columns import Datetime, Duration
from privsyn.table.schema.yaml_file import to_yaml

READ = """\
# DRAFT, made by looking at the rows of the private table. It is not public until a person has made it so.
# "READ" names what was read off the rows. Review each: whatever stands here is treated as known to everybody.
# Replace what only the rows could tell by what anybody may know (from a codebook, a form, a law), or leave it
# out: values, low and high are then found under privacy. At last delete these comments.
# Bounds are rounded outwards unless it says "exact": those are the least and the largest cell.
"""

MARKS_READ = """\
# READ: texts in the file that as a rule stand for a missing cell; they come out as empty cells.
# Take out one that is a value, as "None" may be an answer.
"""

UNREAD = """\
# DRAFT, made from names and types alone: no row was looked at. Review each line, and add what anybody may
# know: it saves budget. What is left out (values, low and high) is found under privacy.
"""

NO_TYPES = """\
# A CSV has no types: all that is known are the names in its header. Say of each column what kind it is.
"""

IMPORTED = """\
# Made from a file of another program: what it says is taken as public. Review each line.
"""

_IDENTIFIER = "CALLED LIKE AN IDENTIFIER: not looked at; new ones are made. If it is none, say what it is."

MANY_NUMBERS = 5
"""Of so many listed numbers, the list may tell of a single row."""


def draft_text(table: object, *, unit: str | None = None, read: bool = True) -> str:
    """The draft as the text of a schema file, which begins by saying what it is."""
    draft = draft_schema(table, unit=unit, read=read)
    header = READ if read else UNREAD + (NO_TYPES if is_csv(table) else "")
    return commented(draft, header + (MARKS_READ if draft.missing else ""), read=read)


def commented(draft: Schema, header: str, *, read: bool) -> str:
    """A schema file with a remark above each column that wants one."""
    remark = _read if read else _unread
    notes = {name: remark(column) for name, column in draft.columns.items()}
    return header + to_yaml(draft, {name: note for name, note in notes.items() if note})


def _read(column: Column) -> str:
    """What was read off the rows, and so must be judged public; and what to think of."""
    if isinstance(column, Identifier):
        return _IDENTIFIER
    if not isinstance(column, Coded):
        return ""
    what, thought = _facts(column)
    facts = [*what, *([] if column.nullable else ["no cell missing"])]
    return " ".join([*([f"READ: {', '.join(facts)}."] if facts else []), *thought])


def _facts(column: Coded) -> tuple[list[str], list[str]]:
    match column:
        case Categorical(values=None):
            thought = "Common values are found. Free text? {kind: text} leaves it out."
            return [], [thought]
        case Categorical(values=values):
            numbers = [value for value in values or () if type(value) in (int, float)]
            thought = "Counts or amounts? Then bounds tell less: {kind: numerical, low: , high: }."
            return [f"{len(values or ())} values"], [thought] if len(numbers) >= MANY_NUMBERS else []
        case Numerical(low=low, high=high):
            exact = column.integer and low is not None and high is not None and is_short(low, high)
            digits = "all whole" if column.integer else f"{column.decimals} decimals"
            return [
                "exact bounds" if exact else "bounds",
                *([digits] if column.integer or column.decimals else []),
            ], []
        case Datetime():
            return ["first and last year"], []
        case Duration():
            return ["bounds"], []
        case _:
            return [], []


def _unread(column: Column) -> str:
    """What to add, from what anybody may know."""
    match column:
        case Identifier():
            return _IDENTIFIER
        case Categorical(values=None):
            return "values: ? Or is it {kind: numerical}, {kind: datetime}, {kind: text}?"
        case Numerical(low=None) | Duration(low=None) | Datetime(low=None):
            return "low: , high: ?"
        case _:
            return ""
