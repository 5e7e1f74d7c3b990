"""Why a condition was not counted as it is: its values are not listed, not found, or beyond bounds."""

from __future__ import annotations

from privsyn.errors import did_you_mean, safe_repr
from privsyn.private.find_values import VALUES, columns_of, rows_needed
from privsyn.release.table_model import TableModel
from privsyn.table.schema.condition import Condition

BEYOND = "a number in the condition is beyond the bounds of its column, to which numbers are clipped"


def why_unreleased(model: TableModel, condition: Condition) -> str:
    """Return why a condition was not counted as it is; "" if it was."""
    if not condition.replaced:
        return BEYOND if condition.uncounted else ""
    name, value = condition.replaced[0]
    column = model.codec.schema.coded[name]
    if name not in columns_of(model.ledger, VALUES, model.codec.names, model.title):
        meant = did_you_mean(value, column.listed)
        return f"{safe_repr(value)} is not listed, and counts as {column.other!r}{meant}"
    needed = rows_needed(model.ledger, model.title)
    fewer = f", for fewer than about {needed[1]:,} rows have it, or none" if needed else ""
    meant = did_you_mean(value, column.listed, may_exist=True)
    return f"{safe_repr(value)} was not found in {name!r}{fewer}; such cells are {column.other!r}{meant}"


def why_unlisted(model: TableModel, condition: Condition) -> str:
    """Return why no row has a value that a condition names; "" if each may occur."""
    if not condition.unlisted:
        return ""
    name, value = condition.unlisted[0]
    column = model.codec.schema.coded[name]
    needed = rows_needed(model.ledger, model.title)
    if name not in columns_of(model.ledger, VALUES, model.codec.names, model.title) or needed is None:
        return f"column {name!r} has no value {value!r}{did_you_mean(value, column.listed)}"
    fewer = f"fewer than about {needed[1]:,} rows have it, or none"
    meant = did_you_mean(value, column.listed, may_exist=True)
    return f"no value {value!r} was found in column {name!r}, for {fewer}{meant}"
