"""Constraints as plain data, for YAML and JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import partial
from typing import Any

from privsyn.errors import InputError, safe_repr
from privsyn.table.schema.constraints import (
    Allowed,
    Constraint,
    Determined,
    Forbidden,
    Increasing,
    MissingWhen,
    Total,
)
from privsyn.table.schema.plain_values import plain_value, read_typed, typed_value

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
                raise InputError(f"{safe_repr(key)} is not known here: allowed are {', '.join(known)}")
        for key, needed in known.items():
            if needed and key not in settings:
                raise InputError(f"{key!r} is missing")
        return _KINDS[kind](**{key: _READ.get(key, _as_it_is)(value) for key, value in settings.items()})
    except InputError as error:
        raise InputError(f"constraint {place}: {error}") from None


def kind_of(constraint: Constraint) -> str:
    """Return the kind of a constraint as a schema file writes it."""
    return next(kind for kind, class_ in _KINDS.items() if isinstance(constraint, class_))


def plain_constraint(constraint: Constraint, listed: Collection[str] = ()) -> dict[str, Any]:
    """The constraint as mappings, lists, text and numbers.

    The values of `listed` columns are written with their type. A mapping whose keys are not all text is
    written as rows, because JSON has no other keys.

    >>> plain_constraint(Total("net", {"gross": 1, "tax": -1}))
    {'kind': 'total', 'column': 'net', 'of': {'gross': 1, 'tax': -1}}
    >>> plain_constraint(Determined("text", "score", {1: "Low", 2: "High"}))["mapping"]
    [[1, 'Low'], [2, 'High']]
    """
    kind = kind_of(constraint)
    write = {
        name: partial(typed_value if name in listed else plain_value, kind) for name in constraint.columns
    }
    settings = {field.name: getattr(constraint, field.name) for field in fields(constraint)}
    changed = {f.name for f in fields(constraint) if settings[f.name] != f.default}
    plain = {key: plain_value(kind, value) for key, value in settings.items() if key not in _READ}
    match constraint:
        case Forbidden() | MissingWhen():
            plain["when"] = {name: _each(write[name], said) for name, said in constraint.when.items()}
        case Allowed():
            plain["rows"] = _plain_rows(constraint.rows, constraint.columns, write)
        case Determined():
            rows = _plain_rows(constraint.rows, constraint.columns, write)
            as_keys = len(constraint.by) == 1 and all(isinstance(row[0], str) for row in rows)
            plain["mapping"] = dict(rows) if as_keys else rows
            plain["by"] = constraint.by[0] if len(constraint.by) == 1 else list(constraint.by)
    return {"kind": kind, **{key: plain[key] for key in settings if key in changed}}


def _plain_rows(
    rows: Sequence[Sequence[Any]], names: Sequence[str], write: Mapping[str, Callable[[Any], Any]]
) -> list[list[Any]]:
    return [[write[name](cell) for name, cell in zip(names, row, strict=True)] for row in rows]


def _each(do: Callable[[Any], Any], said: Any) -> Any:
    """Do something with each value of a condition: one value, several, or the ends of a range."""
    if isinstance(said, Mapping) and set(said) <= {"low", "high"}:
        return {end: do(value) for end, value in said.items()}
    return [do(value) for value in said] if isinstance(said, list | tuple) else do(said)


def _read_when(when: Any) -> Any:
    return (
        {name: _each(read_typed, said) for name, said in when.items()} if isinstance(when, Mapping) else when
    )


def _read_rows(rows: Any) -> Any:
    if isinstance(rows, Mapping):
        return {key: read_typed(value) for key, value in rows.items()}
    return [_each(read_typed, row) for row in rows] if isinstance(rows, list | tuple) else rows


def _as_it_is(value: Any) -> Any:
    return value


_READ: dict[str, Callable[[Any], Any]] = {"when": _read_when, "rows": _read_rows, "mapping": _read_rows}
"""How the settings that hold values of columns are read."""
