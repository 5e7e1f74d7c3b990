"""The draft of a schema as one text, as most tests need it."""

from __future__ import annotations

from privsyn.table.drafting.review import draft_files


def draft_text(table, **options):
    """The text of the schema file; the look-ups beside it are left out."""
    return draft_files(table, **options)[0]
