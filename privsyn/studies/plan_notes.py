"""Say in a sentence what bounds and target of a plan cost, from the schema alone."""

from __future__ import annotations

from privsyn.methods.default import TARGET
from privsyn.table.encoding.grid import FINE
from privsyn.table.schema.columns import Numerical
from privsyn.table.schema.schema import Schema

MOST = 3
"""Number of columns that a sentence names."""


def notes(schema: Schema, target: str | None) -> tuple[str, ...]:
    r"""Return the sentences that apply to a schema and a target.

    >>> schema = Schema({"pay": Numerical(0, 256_000), "age": Numerical(0, 99, integer=True)})
    >>> print(*notes(schema, "age"), sep="\n")
    numbers are counted in cells, which grow with the bounds: up to 1,000 for pay
    target age: errors in tables with it weigh 4 times; the errors below are means over all tables
    """
    found = []
    if cells := _cells(schema):
        widest = sorted(cells.items(), key=lambda item: -item[1])[:MOST]
        listed = ", ".join(f"{_shown(width)} for {name}" for name, width in widest)
        found.append(f"numbers are counted in cells, which grow with the bounds: up to {listed}")
    if schema.randomised:
        names = ", ".join(schema.randomised)
        found.append(f"randomised by the respondents, so their errors are larger than planned: {names}")
    if target is not None:
        found.append(
            f"target {target}: errors in tables with it weigh {TARGET:g} times;"
            " the errors below are means over all tables"
        )
    return tuple(found)


def _shown(width: float) -> str:
    return f"{width:,.0f}" if width >= 100 else f"{width:.3g}"


def _cells(schema: Schema) -> dict[str, float]:
    """Return the width of the widest fine cell of each column whose numbers are not counted one by one.

    Half of the cells are evenly spaced (`Grid.fine`), so none is wider than their distance.
    """
    widths = {}
    for name, column in schema.coded.items():
        if isinstance(column, Numerical) and column.low is not None and column.high is not None:
            reach = float(column.high) - float(column.low)
            decimals = column.fixed_decimals
            if decimals is None or reach * 10.0**decimals >= FINE:
                widths[name] = reach / (FINE // 2)
    return widths
