"""Losses that follow from the schema, names and types of a table."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import TYPE_CHECKING

from privsyn.private.find_values import BOUNDS, GRIDS, columns_of, deviation_of
from privsyn.release.losses.bounds import CLEAR
from privsyn.release.losses.kinds import KINDS, Loss, loss_of, percent
from privsyn.release.losses.lines import listed
from privsyn.release.places import levels_of_places
from privsyn.table.discovery.lattices import LEFT_OUT, TIMES_STAND_OUT
from privsyn.table.encoding.dtypes import family, holds_parts_of_seconds, parse_dtype
from privsyn.table.encoding.steps import TIMES
from privsyn.table.schema.columns import Datetime, Faker, Identifier, Numerical
from privsyn.table.schema.schema import named_like_codes

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable

SOME_TIMES = 0.1
"""Share of the rows from which it is said that noise would hide their times of day."""


def dropped_columns(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns of free text."""
    for name in model.codec.dropped:
        yield loss_of(model, name, "left out", None, "left out, as columns of kind text are")


def generated_columns(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns of identifiers and of stand-ins, of which no cell is read."""
    codec = model.codec
    for name, column in codec.schema.columns.items():
        if isinstance(column, Identifier | Faker) and family(parse_dtype(codec.dtype_of[name])) != "nothing":
            kind = "identifiers" if isinstance(column, Identifier) else "stand-ins"
            yield loss_of(model, name, kind, None, KINDS[kind].heading)


def times_of_day(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns taken as dates in which the noise would hide times of day.

    The question on their grids counts times, and the ledger has its noise. What it cannot hide is no loss.
    """
    total, codec = max(model.fitted.total, 1.0), model.codec
    for name in columns_of(model.ledger, GRIDS, codec.names, model.title):
        column = codec.schema.coded.get(name)
        if not isinstance(column, Datetime) or column.unit != "D" or name in model.not_found:
            continue
        sigma = deviation_of(model.ledger, GRIDS, name, model.title)
        share = min(LEFT_OUT + (TIMES_STAND_OUT + CLEAR) * sigma * sqrt(len(TIMES)) / total, 1.0)
        if share > SOME_TIMES:
            hidden = f"of up to {percent(share)} of the rows"
            text = (
                f"taken as dates: the noise would hide times of day {hidden}; unit: s in a schema keeps them"
            )
            yield loss_of(model, name, "times of day", None, text, f"({hidden})")


def parts_of_seconds(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns of times whose type or format has parts of a second: whole ones are made."""
    codec = model.codec
    for name, dtype in codec.dtype_of.items():
        column = codec.schema.coded.get(name)
        is_second = isinstance(column, Datetime) and column.unit == "s" and column.step in (None, "1s")
        has_parts = isinstance(column, Datetime) and any(
            part in (column.format or "") for part in ("%f", "%L")
        )
        if is_second and (has_parts or holds_parts_of_seconds(parse_dtype(dtype))):
            yield loss_of(
                model, name, "parts of seconds", None, "in whole seconds: parts of them are left out"
            )


def steps_found(model: FittedTable) -> dict[str, float]:
    """Return the step of each column of numbers whose grid was asked for under privacy, and that has one.

    It is that of the schema, or a coarser one that nearly all numbers seemed to lie on.
    """
    steps = dict[str, float]()
    for name in columns_of(model.ledger, GRIDS, model.codec.names, model.title):
        column = model.codec.schema.coded.get(name)
        if isinstance(column, Numerical) and column.step is not None and name not in model.not_found:
            steps[name] = column.step
    return steps


def rounded_numbers(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns of numbers whose grid was asked for under privacy, and that have one."""
    for name, step in steps_found(model).items():
        text = f"multiples of {step:g}, to which other numbers are rounded"
        yield loss_of(model, name, "rounded", None, text, f"{step:g}")


def words_for_missing(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns of which the schema says that a word means a missing cell."""
    codec = model.codec
    for name, column in codec.schema.coded.items():
        words = [word for word in (*codec.schema.missing, *getattr(column, "missing", ())) if word]
        if words and codec.attributes_of(name)[0] in codec.nullable:
            shown = listed([repr(word) for word in words])
            text = f"missing cells are empty: the schema has {shown} for them"
            yield loss_of(model, name, "words for missing cells", None, text, f"({shown})")


def amounts(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns whose bounds were found, and whose names are names of codes."""
    for name in columns_of(model.ledger, BOUNDS, model.codec.names, model.title):
        if named_like_codes(name):
            text = "taken as an amount, though named like codes; {kind: categorical} in a schema keeps codes"
            yield loss_of(model, name, "taken as amounts", None, text)


def hidden_places(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns of places, with the columns in which they may differ, and no count shows it."""
    hidden: dict[str, list[str]] = {}
    outer: dict[str, str] = {}
    for level in levels_of_places(model):
        if level.is_hidden:
            hidden.setdefault(level.inner, []).append(level.compared)
            outer[level.inner] = level.outer
    for inner, columns in hidden.items():
        name, around = model.codec.column_of(inner), model.codec.column_of(outer[inner])
        text = f"values in one {around!r} are made alike, or nearly so, in {listed(columns)}"
        yield loss_of(model, name, "places", None, f"{text}: no count shows how they differ there")
