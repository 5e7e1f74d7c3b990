"""A ledger as lines of text."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum
from textwrap import shorten
from typing import TYPE_CHECKING

from privsyn.notebook import html, html_table
from privsyn.private.spend import ONE_WAYS, TERMS, Spend

if TYPE_CHECKING:
    from privsyn.private.ledger import Ledger

LINES = 8
"""Number of spends that are printed one by one. The others are printed as one line."""

WIDTH = 52
"""Printed characters of a question."""


def to_lines(ledger: Ledger) -> list[str]:
    """Return the lines of a printed ledger."""
    rows = _table(ledger)
    width = max((len(what) for what, *_ in rows), default=0)
    table = [f"{what:<{width}}" + "".join(f"{cell:>12}" for cell in cells) for what, *cells in rows]
    return [*_promise(ledger), *table, *_public(ledger)]


def to_html(ledger: Ledger) -> str:
    """Return the same for a notebook."""
    warning = [] if ledger.warning is None else [ledger.warning]
    rows = _table(ledger)
    table = [html_table(rows[0], rows[1:])] if rows else []
    return html("Privacy ledger", [*warning, *_promise(ledger), *_public(ledger)], *table)


def _promise(ledger: Ledger) -> list[str]:
    if ledger.elsewhere is not None:
        return [*map(str, ledger.charges), f"privsyn {ledger.version} read no private row"]
    return [
        f"epsilon {ledger.promised_epsilon!r}, delta {ledger.promised_delta!r};"
        f" neighbours: {ledger.neighbours}",
        *([] if ledger.unit is None else [f"counted of a person: {ledger.kept}"]),
        f"{ledger.randomness}; {ledger.accounting} accounting; privsyn {ledger.version}",
        *_local_lines(ledger),
    ]


RECORDED = {
    True: "recorded in the budget file of the table",
    False: "NOT RECORDED in a budget file: whoever adds up what was spent on the table must add this run",
}
"""What a ledger says of the budget file."""


def recorded_lines(ledger: Ledger) -> list[str]:
    """Return a line on whether the run is recorded in a budget file; none if the ledger does not say."""
    return [] if ledger.recorded is None else [RECORDED[ledger.recorded]]


def _public(ledger: Ledger) -> list[str]:
    return [
        *recorded_lines(ledger),
        *acceptance_lines(ledger),
        *([f"reserved for thresholds: delta {ledger.reserved:.4g}"] if ledger.reserved else []),
        *(f"public: {sentence}" for sentence in ledger.public_inputs),
    ]


def _local_lines(ledger: Ledger) -> list[str]:
    """Return a line for each column that the respondents randomised, and one for all together."""
    if not ledger.local:
        return []
    together = f"all randomised cells of a record together: epsilon {ledger.local_epsilon:.4f}, delta 0"
    return [*map(str, ledger.local), together]


def acceptance_lines(ledger: Ledger) -> list[str]:
    """Return the verdict on all criteria, and on each; no line if there are none."""
    acceptance = ledger.acceptance
    return [] if acceptance is None else [str(acceptance), *map(str, acceptance.criteria)]


def names_of(columns: Iterable[str]) -> str:
    """Return column names, quoted, as a list in a sentence."""
    return ", ".join(map(repr, columns))


def protects(unit: str | None, root: str | None = None) -> str:
    """Say who is protected: one row, or all that belongs to one person.

    Of several rows of the root with one key, one is counted, with all rows that lead to them. So a part of
    them alone is no person: if it left, another row could take its place.

    >>> protects(None), protects("who")
    ('one row', "all rows of one 'who'")
    >>> protects("who", "people")
    "all rows of 'people' with one 'who', and all rows that lead to them"
    """
    if unit is None:
        return "one row"
    if root is None:
        return f"all rows of one {unit!r}"
    return f"all rows of {root!r} with one {unit!r}, and all rows that lead to them"


def randomised_cells(ledger: Ledger) -> str:
    """Say which cells of a record randomised response protects."""
    return f"the randomised cells of one record ({names_of(each.column for each in ledger.local)})"


def not_randomised(ledger: Ledger) -> str:
    """Say which columns of a randomised table it does not protect."""
    return f"NOT RANDOMISED, exact: {names_of(ledger.unchanged)}"


def _table(ledger: Ledger) -> list[tuple[str, ...]]:
    """Return the cells to print: a header, the first spends, one row for the others, and the total."""
    if ledger.all_local or ledger.elsewhere is not None:
        return []
    total = ledger.cost
    rows: list[tuple[str, ...]] = [("what", "sensitivity", *TERMS[ledger.law], "share")]
    spends = sorted(ledger.spends, key=_place)
    for spend in spends[:LINES]:
        what = shorten(spend.what, WIDTH, placeholder=" ...")
        share = f"{spend.cost / total:.1%}"
        rows.append((what, f"{spend.sensitivity:.4g}", f"{spend.sigma:.4g}", f"{spend.cost:.4g}", share))
    if rest := spends[LINES:]:
        cost = fsum(spend.cost for spend in rest)
        rows.append((f"and {len(rest)} more, in to_json()", "", "", f"{cost:.4g}", f"{cost / total:.1%}"))
    return [*rows, ("total", "", "", f"{total:.4g}", f"of {ledger.budget:.4g}")]


def _place(spend: Spend) -> tuple[bool, float]:
    """Sort one-ways first, in their order, because all else builds on them; then the most expensive."""
    one_ways = spend.what.startswith(ONE_WAYS)
    return not one_ways, 0.0 if one_ways else -spend.cost
