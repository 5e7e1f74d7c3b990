"""The draft as a YAML file for review: a comment above each column says what to decide."""

from __future__ import annotations

from dataclasses import replace
from textwrap import wrap

from privsyn.errors import InputError
from privsyn.table.drafting.column_remarks import remarks_on
from privsyn.table.drafting.draft import draft_schema, draft_with_rows, is_csv
from privsyn.table.drafting.relations import propose
from privsyn.table.io.csv_text import PLAIN
from privsyn.table.schema.columns import Text
from privsyn.table.schema.csv_format import CsvFormat
from privsyn.table.schema.yaml_file import constraint_lines, to_yaml

READ = """\
# DRAFT, made from the rows of the private table. Review it: whatever stands here is treated as public.
# "READ" names what was read from the rows. Replace it by what anybody may know (from a codebook, a form,
# a law), or leave it out: values, low and high are then found under privacy. Then delete these comments.
# Bounds are rounded outwards. "exact" bounds are the smallest and the largest cell. At least five rows have
# each exact bound, and each value in a list; only 0 and 1 are listed whatever their rows.
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

WIDTH = 110
"""Characters of a comment."""

PROPOSALS = """\
# READ: every row keeps these. Remove the # of those that anybody may know to hold, also of rows to come.
constraints:
"""


def draft_text(table: object, *, unit: str | None = None, read: bool = True, csv: CsvFormat = PLAIN) -> str:
    """Return the draft as the text of a schema file, with comments for its reviewer."""
    if not read:
        draft = draft_schema(table, unit=unit, read=False, csv=csv)
        notes = {name: column.review(None) for name, column in draft.columns.items()}
        header = UNREAD + (NO_TYPES if is_csv(table) else "")
        return header + to_yaml(draft, {name: note for name, note in notes.items() if note})
    draft, frame = draft_with_rows(table, unit, csv)
    if not len(frame):
        raise InputError(
            "the table has no rows to draft from: --from-dtypes drafts from names and types alone"
        )
    header = READ + (MARKS_READ if draft.missing else "")
    notes = {
        name: "\n".join(
            line
            for remark in (column.review(frame[name]), *remarks_on(name, column, frame[name]))
            for line in wrap(remark, WIDTH, break_long_words=False, break_on_hyphens=False)
        )
        for name, column in draft.columns.items()
    }
    draft, proposals = propose(draft, frame)
    # To look for the values of a column without a cell would take a part of the budget.
    empty = {name: Text() for name in draft.coded if frame[name].isna().all()}
    draft = replace(draft, columns={**draft.columns, **empty})
    lines = "".join(f"#{line}\n" for line in constraint_lines(proposals))
    footer = PROPOSALS + lines if lines else ""
    return header + to_yaml(draft, {name: note for name, note in notes.items() if note}) + footer
