"""A ledger as plain data for JSON, and as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import fsum
from textwrap import shorten
from typing import TYPE_CHECKING, Any, TypeVar

from privsyn.notebook import html, html_table
from privsyn.private.acceptance import Acceptance
from privsyn.private.laws import LawName
from privsyn.private.randomised_response import LocalPromise
from privsyn.private.spend import ONE_WAYS, Spend

if TYPE_CHECKING:
    from privsyn.private.ledger import Ledger

T = TypeVar("T")

CURVE = (1e-12, 1e-9, 1e-6, 1e-5, 1e-3)
"""The deltas, besides the promised one, at which a ledger states epsilon."""

LINES = 8
"""Number of spends that are printed one by one. The others are printed as one line."""

WIDTH = 52
"""Printed characters of a question."""

TERMS: dict[LawName, tuple[str, str]] = {"gaussian": ("sigma", "rho"), "laplace": ("scale", "epsilon")}
"""What the scale and the cost of an answer are called."""


def _law(ledger: Ledger) -> LawName:
    return "laplace" if ledger.accounting == "pure" else "gaussian"


def to_plain(ledger: Ledger) -> dict[str, Any]:
    """Return the ledger as plain data, with the cost of every question and the epsilon at several deltas."""
    if ledger.elsewhere is not None:
        return {
            "elsewhere": ledger.elsewhere,
            "public_inputs": list(ledger.public_inputs),
            "version": ledger.version,
        }
    scale, cost = TERMS[_law(ledger)]
    deltas = sorted(
        delta
        for delta in {*CURVE, ledger.promised_delta}
        if delta > ledger.reserved or delta == ledger.promised_delta
    )
    return {
        "promise": {"epsilon": ledger.promised_epsilon, "delta": ledger.promised_delta},
        "private": ledger.private,
        "neighbours": ledger.neighbours,
        "unit": ledger.unit,
        "rows_per_unit": ledger.rows_per_unit,
        "accounting": ledger.accounting,
        cost: ledger.cost,
        "budget": ledger.budget,
        "reserved_delta": ledger.reserved,
        "mu": ledger.mu,
        "curve": [{"delta": delta, "epsilon": ledger.epsilon(delta)} for delta in deltas],
        "randomness": ledger.randomness,
        "public_inputs": list(ledger.public_inputs),
        "spends": [
            {
                "what": spend.what,
                "answers": spend.answers,
                "sensitivity": spend.sensitivity,
                scale: spend.sigma,
                cost: spend.cost,
                "delta": spend.delta,
            }
            for spend in ledger.spends
        ],
        "version": ledger.version,
        **({"local": _local(ledger)} if ledger.local else {}),
        **({} if ledger.acceptance is None else {"acceptance": ledger.acceptance.to_plain()}),
    }


def _local(ledger: Ledger) -> dict[str, Any]:
    """Return the randomised columns with the epsilon of each, and that of all together."""
    columns = [
        {"column": each.column, "keep": each.keep, "values": each.values, "epsilon": each.epsilon}
        for each in ledger.local
    ]
    unchanged = {"unchanged": list(ledger.unchanged)} if ledger.unchanged else {}
    return {"epsilon": ledger.local_epsilon, "columns": columns, **unchanged}


def from_plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a ledger from plain data; raise an error if it has another shape."""
    if "elsewhere" in fields:
        inputs = tuple(map(str, fields["public_inputs"]))
        return elsewhere(str(fields["elsewhere"]), inputs, str(fields["version"]))
    if not (
        type(fields["private"]) is bool and all(isinstance(text, str) for text in fields["public_inputs"])
    ):
        raise TypeError
    law: LawName = "laplace" if fields["accounting"] == "pure" else "gaussian"
    spends = tuple(
        Spend(
            line["what"],
            int(line["answers"]),
            float(line["sensitivity"]),
            float(line[TERMS[law][0]]),
            float(line["delta"]),
            law,
        )
        for line in fields["spends"]
    )
    return {
        "spends": spends,
        "promised_epsilon": float(fields["promise"]["epsilon"]),
        "promised_delta": float(fields["promise"]["delta"]),
        "accounting": fields["accounting"],
        "randomness": str(fields["randomness"]),
        "private": fields["private"],
        "public_inputs": tuple(fields["public_inputs"]),
        "version": str(fields["version"]),
        "unit": _optional(str, fields["unit"]),
        "rows_per_unit": _optional(int, fields["rows_per_unit"]),
        "local": tuple(
            LocalPromise(str(line["column"]), float(line["keep"]), int(line["values"]))
            for line in fields.get("local", {}).get("columns", ())
        ),
        "unchanged": tuple(map(str, fields.get("local", {}).get("unchanged", ()))),
        "acceptance": Acceptance.from_plain(fields["acceptance"]) if "acceptance" in fields else None,
    }


def elsewhere(promise: str, inputs: tuple[str, ...], version: str) -> dict[str, Any]:
    """Return the arguments of a ledger of counts that were measured elsewhere."""
    return {
        "spends": (),
        "promised_epsilon": 0.0,
        "promised_delta": 0.0,
        "accounting": "gaussian",
        "randomness": "measured elsewhere",
        "private": True,
        "public_inputs": inputs,
        "version": version,
        "elsewhere": promise,
    }


def _optional(kind: type[T], value: object) -> T | None:
    """Return `value`, which must be None or exactly of this type."""
    if value is not None and type(value) is not kind:
        raise TypeError
    return value


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
        return [
            f"the counts were measured elsewhere: {ledger.elsewhere}",
            f"privsyn {ledger.version} read no private row",
        ]
    return [
        f"epsilon {ledger.promised_epsilon!r}, delta {ledger.promised_delta!r};"
        f" neighbours: {ledger.neighbours}",
        *([] if ledger.unit is None else [f"a person: all rows with one {ledger.unit!r}"]),
        f"{ledger.randomness}; {ledger.accounting} accounting; privsyn {ledger.version}",
        *_local_lines(ledger),
    ]


def _public(ledger: Ledger) -> list[str]:
    return [
        *acceptance_lines(ledger),
        *([f"reserved for thresholds: delta {ledger.reserved:.4g}"] if ledger.reserved else []),
        *(f"public: {sentence}" for sentence in ledger.public_inputs),
    ]


def _local_lines(ledger: Ledger) -> list[str]:
    """Return a line for each column that the respondents randomised, and one for all together."""
    if not ledger.local:
        return []
    lines = [
        f"randomised by the respondents: {each.column!r}, keep {each.keep!r}, {each.values} values:"
        f" epsilon {each.epsilon:.4f}"
        for each in ledger.local
    ]
    return [*lines, f"all randomised cells of a record together: epsilon {ledger.local_epsilon:.4f}, delta 0"]


def acceptance_lines(ledger: Ledger) -> list[str]:
    """Return the verdict on all criteria, and on each; no line if there are none."""
    acceptance = ledger.acceptance
    return [] if acceptance is None else [str(acceptance), *map(str, acceptance.criteria)]


def names_of(columns: Iterable[str]) -> str:
    """Return column names, quoted, as a list in a sentence."""
    return ", ".join(map(repr, columns))


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
    rows: list[tuple[str, ...]] = [("what", "sensitivity", *TERMS[_law(ledger)], "share")]
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
