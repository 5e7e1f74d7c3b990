"""Constraints as plain data, for YAML and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from privsyn.errors import InputError, shown
from privsyn.table.constraints import (
    Allowed,
    Constraint,
    Determined,
    Forbidden,
    Increasing,
    MissingWhen,
    Total,
)
from privsyn.table.plain import plain_value

_KINDS: dict[str, type[Constraint]] = {
    "forbidden": Forbidden,
    "allowed": Allowed,
    "determined": Determined,
    "increasing": Increasing,
    "total": Total,
    "missing": MissingWhen,
}


def constraint_of(place: int, said: object) -> Constraint:
    """The constraint that `plain_constraint` wrote, or a person; `place` is where it stands in the list.

    >>> constraint_of(1, {"kind": "increasing", "columns": ["start", "end"]})
    Increasing(columns=('start', 'end'), strict=False)
    """
    try:
        kind = said.get("kind") if isinstance(said, Mapping) else None
        if not isinstance(kind, str) or kind not in _KINDS:
            raise InputError(f"it is a mapping whose kind is one of {', '.join(_KINDS)}")
        settings = {str(key): value for key, value in said.items() if key != "kind"}  # type: ignore[attr-defined]
        known = {field.name: field.default is MISSING for field in fields(_KINDS[kind])}
        for key in settings:
            if key not in known:
                raise InputError(f"{shown(key)} is not known here: allowed are {', '.join(known)}")
        for key, needed in known.items():
            if needed and key not in settings:
                raise InputError(f"{key!r} is missing")
        return _KINDS[kind](**settings)
    except InputError as error:
        raise InputError(f"constraint {place}: {error}") from None


def kind_of(constraint: Constraint) -> str:
    """Return the kind of a constraint as a schema file writes it."""
    return next(kind for kind, class_ in _KINDS.items() if isinstance(constraint, class_))


def plain_constraint(constraint: Constraint) -> dict[str, Any]:
    """The constraint as mappings, lists, text and numbers.

    >>> plain_constraint(Total("net", {"gross": 1, "tax": -1}))
    {'kind': 'total', 'column': 'net', 'of': {'gross': 1, 'tax': -1}}
    """
    kind = kind_of(constraint)
    settings = {field.name: getattr(constraint, field.name) for field in fields(constraint)}
    changed = {f.name for f in fields(constraint) if settings[f.name] != f.default}
    if isinstance(constraint, Determined) and len(constraint.by) == 1:
        settings["by"], settings["mapping"] = constraint.by[0], dict(constraint.rows)
    return {"kind": kind, **{key: plain_value(kind, settings[key]) for key in settings if key in changed}}
