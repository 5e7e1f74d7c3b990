"""The draft of a schema as one text, as most tests need it."""

from __future__ import annotations

from privsyn.table.drafting.review import draft_files


def draft_text(table, **options):
    """The text of the schema file; the look-ups beside it are left out."""
    return draft_files(table, **options)[0]


def comments(text):
    """The comments above each column, in one line."""
    found, lines = {}, []
    for line in text.split("columns:\n")[1].splitlines():
        if line.startswith("  # "):
            lines.append(line[4:])
        elif line.startswith("  ") and not line.startswith("   "):
            found[line.strip().split(":")[0].strip("'")], lines = " ".join(lines), []
    return found
