"""What --given says on the command line."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from privsyn.errors import InputError, safe_repr
from privsyn.table.schema.columns import Categorical, Numerical
from privsyn.table.schema.schema import Schema


def parse_given(schema: Schema, texts: Sequence[str]) -> dict[str, Any]:
    """``column=value`` each, the value read as the column has it.

    >>> parse_given(Schema({"zip": Categorical(["01", "02"]), "age": Numerical(0, 9)}), ["zip=01", "age=7"])
    {'zip': '01', 'age': 7}
    """
    _check_names(schema.coded, texts)
    given: dict[str, Any] = {}
    for text in texts:
        name, equals, said = text.partition("=")
        if not equals:
            raise InputError(f"--given wants a column and a value, as in sex=Female; got {safe_repr(text)}")
        column, value = schema.coded[name], said
        if isinstance(column, Categorical):
            value = next((v for v in column.values or () if str(v) == said), said)  # type: ignore[assignment]
        elif isinstance(column, Numerical):
            try:
                value = int(said) if said.lstrip("+-").isdigit() else float(said)  # type: ignore[assignment]
            except ValueError:
                raise InputError(f"--given {name}: {safe_repr(said)} is not a number") from None
        given[name] = value
    return given


def _check_names(names: Collection[str], given: Sequence[str]) -> None:
    """Refuse a column that is not there, and one that is to have two values."""
    said = [text.partition("=")[0] for text in given if "=" in text]
    for name in said:
        if name not in names:
            raise InputError(
                f"--given {safe_repr(name)}: there is no such column among those to be synthesised"
            )
        if said.count(name) > 1:
            raise InputError(
                f"--given {safe_repr(name)}: is said twice, and a row has one value: give it once"
            )
