"""The draft as a YAML file for review: a comment above each column says what to decide."""

from __future__ import annotations

from privsyn.table.drafting.draft import draft_schema, draft_with_wide, is_csv, is_short
from privsyn.table.schema.columns import Categorical, Coded, Column, Identifier, Numerical
from privsyn.table.schema.time_columns import Datetime, Duration
from privsyn.table.schema.yaml_file import to_yaml

READ = """\
# DRAFT, made from the rows of the private table. Review it: whatever stands here is treated as public.
# "READ" names what was read from the rows. Replace it by what anybody may know (from a codebook, a form,
# a law), or leave it out: values, low and high are then found under privacy. Then delete these comments.
# Bounds are rounded outwards. "exact" bounds are the smallest and the largest cell.
"""

MARKS_READ = """\
# READ: texts in the file that usually stand for a missing cell. They come out as empty cells.
# Remove those that are values, as "None" may be an answer.
"""

UNREAD = """\
# DRAFT, made from names and types alone: no row was read. Review each line, and add what anybody may know:
# it saves budget. What is left out (values, low and high) is found under privacy.
"""

NO_TYPES = """\
# A CSV has no types: only the names in its header are known. Say which kind each column is.
"""

_IDENTIFIER = (
    "NAMED LIKE AN IDENTIFIER: not read, new ones are generated. If it is none, say which kind it is."
)

_WIDE = (
    "WIDE: nearly all numbers lie within a tenth of these bounds. They cost accuracy: choose bounds"
    " that anybody may know, and clip the rest."
)

MANY_NUMBERS = 5
"""Numbers in a list. A list this long may show the value of a single row."""


def draft_text(table: object, *, unit: str | None = None, read: bool = True) -> str:
    """Return the draft as the text of a schema file, with comments for its reviewer."""
    if read:
        draft, wide = draft_with_wide(table, unit)
    else:
        draft, wide = draft_schema(table, unit=unit, read=False), ()
    header = READ if read else UNREAD + (NO_TYPES if is_csv(table) else "")
    header += MARKS_READ if draft.missing else ""
    remark = _read if read else _unread
    notes = {
        name: " ".join(filter(None, (remark(column), _WIDE if name in wide else "")))
        for name, column in draft.columns.items()
    }
    return header + to_yaml(draft, {name: note for name, note in notes.items() if note})


def _read(column: Column) -> str:
    """Return what was read from the rows, and a question to the reviewer."""
    if isinstance(column, Identifier):
        return _IDENTIFIER
    if not isinstance(column, Coded):
        return ""
    facts = [*_facts(column), *([] if column.nullable else ["no cell missing"])]
    return " ".join(filter(None, (f"READ: {', '.join(facts)}." if facts else "", _question(column))))


def _facts(column: Coded) -> list[str]:
    match column:
        case Categorical(values=values) if values is not None:
            return [f"{len(values)} values"]
        case Numerical(low=low, high=high):
            exact = column.integer and low is not None and high is not None and is_short(low, high)
            digits = ["all whole"] if column.integer else [f"{column.decimals} decimals"]
            return [
                "exact bounds" if exact else "bounds",
                *(digits if column.integer or column.decimals else []),
                *([] if column.step is None else [f"all multiples of {column.step:,}"]),
            ]
        case Datetime(step=step):
            return ["first and last year", *([] if step is None else [f"all multiples of {step}"])]
        case Duration():
            return ["bounds"]
    return []


def _question(column: Coded) -> str:
    match column:
        case Categorical(values=None):
            return "Common values are found. Free text? {kind: text} leaves it out."
        case Categorical(values=values) if sum(type(v) in (int, float) for v in values or ()) >= MANY_NUMBERS:
            return "Counts or amounts? Then bounds reveal less: {kind: numerical, low: , high: }."
    return ""


def _unread(column: Column) -> str:
    """Return which public facts the reviewer may add."""
    match column:
        case Identifier():
            return _IDENTIFIER
        case Categorical(values=None):
            return "values: ? Or is it {kind: numerical}, {kind: datetime}, {kind: text}?"
        case Numerical(low=None) | Duration(low=None) | Datetime(low=None):
            return "low: , high: ?"
        case _:
            return ""
