"""Constraint: what every kind of constraint can do, the registry of kinds, and their form in a schema file.

Each kind is one file of `privsyn.table.enforcement`, and one line of `privsyn.table`. `privsyn/__init__.py`
exports it, and `schema.schema.json` names it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import MISSING, fields
from functools import partial
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privsyn.errors import InputError, about, replace_errors
from privsyn.table.kinds.column_settings import check_keys, plain_value, read_typed, typed_value
from privsyn.table.schema.columns import Coded, Column
from privsyn.table.schema.rules import Computation, Rule

Columns = Mapping[str, Coded]

Order = tuple[str, str, bool]
"""A column that is never above another one, that other one, and whether they are never equal."""


class Constraint(ABC):
    """A public fact that holds in every row.

    Each kind is a frozen dataclass whose fields are the settings in a schema file. A setting that holds
    values of columns is a mapping by column name, or a tuple of rows with one value for each of `columns`.

    A row with a missing cell in one of `columns` keeps the constraint, unless it names missing (None).
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]  # each kind is a dataclass

    if TYPE_CHECKING:  # a property, or a field

        @property
        def columns(self) -> Sequence[str]:
            """The columns that the constraint is about."""

    derives_last: ClassVar[bool] = False
    """Whether `derive` needs what all other constraints derive."""

    lists_values: ClassVar[bool] = False
    """Whether it lists values of its `columns`. Such columns are not encoded as gaps."""

    @property
    def computes(self) -> str | None:
        """The column that is computed from the others, if there is one. It costs no budget."""
        return None

    def meant(self, columns: Columns) -> list[Constraint]:
        """Return the constraints that a schema has in its place. Default: itself."""
        return [self]

    def derive(self, columns: Columns) -> Columns:
        """Return the columns that become public by the constraint; raise `InputError` if it cannot hold."""
        return {}

    def add_declared(self, columns: Columns, names: Collection[str]) -> Columns:
        """Return the columns of `names` that need more values or wider bounds for the constraint.

        The values or bounds of the columns `names` were discovered under privacy.
        """
        return {}

    def check(self, columns: Columns) -> None:  # noqa: B027  # a kind may have nothing to check
        """Raise `InputError` if the constraint contradicts the columns, all of which are public."""

    def orders(self, complete: Collection[str] = ()) -> list[Order]:
        """Return the pairs of columns that are in order, if that is all that the constraint says.

        Columns in order are encoded as gaps. If gaps keep the order of all pairs, `rules` are not needed and
        left out. Default: none.

        Parameters
        ----------
        complete : collection of str
            Columns without missing cells. A pair with one of these between its columns may be left out.
        """
        return []

    def kept_in_order(self, columns: Columns) -> Iterator[Order]:
        """Yield all pairs in order, also those by the bounds of `columns`. Default: those of `orders`."""
        yield from self.orders()

    @abstractmethod
    def rules(self, columns: Columns) -> list[Rule]:
        """Return the rules that rows must keep, on the numbers of the columns."""

    def computation(self, columns: Columns) -> Computation:
        """Return how the column `computes` follows from the others."""
        raise NotImplementedError(f"{type(self).__name__} computes no column")

    def explain(self) -> str:
        """Return what the constraint does, in plain English."""
        return f"{kind_of(self)}, about {', '.join(self.columns)}."

    def to_plain(self, listed: Collection[str]) -> dict[str, Any]:
        """Return the settings that differ from their defaults, as mappings, lists, text and numbers.

        Values of the `listed` columns are written with their type, because a list of values has none.
        """
        kind = kind_of(self)

        def write(name: str, value: Any) -> Any:
            return typed_value(kind, value) if name in listed else plain_value(kind, value)

        plain: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            if isinstance(value, Mapping):
                plain[field.name] = {
                    name: _each(partial(write, name), boxes) for name, boxes in value.items()
                }
            elif isinstance(value, tuple) and all(isinstance(row, tuple) for row in value):
                plain[field.name] = [list(map(write, self.columns, row)) for row in value]
            else:
                plain[field.name] = plain_value(kind, value)
        return plain

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only mappings cannot be copied or pickled; plain ones can.
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        maps = {name: dict(value) for name, value in settings.items() if isinstance(value, MappingProxyType)}
        return partial(type(self), **settings | maps), ()


CONSTRAINTS: dict[str, type[Constraint]] = {}
"""Each kind of constraint by its name in a schema file."""


def kind_of(constraint: Constraint) -> str:
    """Return the name of the kind of a constraint in a schema file."""
    return next(kind for kind, class_ in CONSTRAINTS.items() if type(constraint) is class_)


def constraint_to_plain(constraint: Constraint, listed: Collection[str] = ()) -> dict[str, Any]:
    """Return a constraint as plain data that YAML and JSON can hold.

    >>> from privsyn import Determined, Total
    >>> constraint_to_plain(Total("net", {"gross": 1, "tax": -1}))
    {'kind': 'total', 'column': 'net', 'of': {'gross': 1, 'tax': -1}}
    >>> constraint_to_plain(Determined("text", "score", {1: "Low", 2: "High"}))["mapping"]
    [[1, 'Low'], [2, 'High']]
    """
    return {"kind": kind_of(constraint), **constraint.to_plain(listed)}


def constraint_from_plain(number: int, plain: object) -> Constraint:
    """Return the constraint that `constraint_to_plain` or a person wrote.

    Parameters
    ----------
    number : int
        Where it stands in the list of constraints, counted from 1.
    plain : mapping
        The kind may also be the first key, with the first setting as its value: ``{kind: columns}``.

    Examples
    --------
    >>> constraint_from_plain(1, {"kind": "increasing", "columns": ["start", "end"]})
    Increasing(columns=('start', 'end'), strict=False)
    >>> constraint_from_plain(2, {"equal": ["billed", "paid"]})
    Equal(columns=('billed', 'paid'))
    """
    with about(f"constraint {number}"):
        if isinstance(plain, Mapping) and (short := next(iter(plain), None)) in CONSTRAINTS:
            first = fields(CONSTRAINTS[str(short)])[0].name
            plain = {"kind": short, first: plain[short], **{key: plain[key] for key in plain if key != short}}
        kind = plain.get("kind") if isinstance(plain, Mapping) else None
        if not isinstance(kind, str) or kind not in CONSTRAINTS:
            raise InputError(f"it is a mapping whose kind is one of {', '.join(CONSTRAINTS)}")
        settings = {str(key): value for key, value in plain.items() if key != "kind"}  # type: ignore[attr-defined]
        settings_needed = {field.name: field.default is MISSING for field in fields(CONSTRAINTS[kind])}
        check_keys(
            settings, settings_needed, needed=[key for key, required in settings_needed.items() if required]
        )
        return CONSTRAINTS[kind](**{key: _read_setting(value) for key, value in settings.items()})


def check_names(subject: str, names: object) -> tuple[str, ...]:
    """Return a list of distinct column names as a tuple; `subject` names the setting in the error."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise InputError(f"{subject}: give a list of column names")
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InputError(f"{subject}: give different column names, as text")
    return tuple(names)


def python_value(value: Any) -> Any:
    """Return a NumPy scalar as a value of Python's own types, and any other value unchanged."""
    if isinstance(value, np.datetime64 | np.timedelta64):  # in nanoseconds their item() is a bare number
        return value.astype(f"{value.dtype.str[1:3]}[us]").item()
    return value.item() if isinstance(value, np.generic) else value


def _each(do: Callable[[Any], Any], values: Any) -> Any:
    """Apply a function to one value, to each of several, or to the ends of a range."""
    if isinstance(values, Mapping) and set(values) <= {"low", "high"}:
        return {end: do(value) for end, value in values.items()}
    return [do(value) for value in values] if isinstance(values, list | tuple) else do(values)


def _read_setting(setting: Any) -> Any:
    """Read the typed values in a mapping by column name or by key, or in a list of rows."""
    if isinstance(setting, Mapping):
        return {key: _each(read_typed, value) for key, value in setting.items()}
    return [_each(read_typed, row) for row in setting] if isinstance(setting, list | tuple) else setting


def condition(when: Any) -> str:
    """Return a condition of `Forbidden` in words.

    >>> condition({"age": {"high": 14}, "job": ("a", None)})
    "age is at most 14, and job is 'a' or missing"
    """
    return ", and ".join(f"{name} is {_one(values)}" for name, values in when.items())


def _one(values: Any) -> str:
    if isinstance(values, tuple):
        return " or ".join("missing" if value is None else _text(value) for value in values)
    if values is None or not hasattr(values, "items"):
        return "missing" if values is None else _text(values)
    words = {"low": "at least", "high": "at most"}
    return " and ".join(f"{words[end]} {_text(value)}" for end, value in values.items())


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def add_declared(
    columns: Mapping[str, Column], names: Collection[str], constraints: Sequence[Constraint]
) -> dict[str, Column]:
    """Return the columns, with the values and bounds that constraints need in those of `names`.

    The values or bounds of these were found under privacy. Values that a constraint names are added. Columns
    that increase get common bounds.
    """
    declared = dict(columns)
    for constraint in constraints:
        declared |= constraint.add_declared(declared, names)  # type: ignore[arg-type]  # only coded columns
    return declared


def computed_by(constraints: Sequence[Constraint]) -> dict[str, Constraint]:
    """Return the columns that are computed, each with its constraint; refuse a column that two compute."""
    computing: dict[str, Constraint] = {}
    for constraint in constraints:
        if (name := constraint.computes) is not None:
            if name in computing:
                raise InputError(f"column {name!r} is computed by two constraints: drop one")
            computing[name] = constraint
    return computing


def in_order(computing: Mapping[str, Constraint]) -> list[str]:
    """Return the computed columns, each after the columns that it is computed from."""
    graph = {
        name: [source for source in constraint.columns if source != name]
        for name, constraint in computing.items()
    }
    with replace_errors("columns are computed from each other in a circle: drop a constraint", CycleError):
        return [name for name in TopologicalSorter(graph).static_order() if name in computing]


def about_constraint(number: int) -> AbstractContextManager[None]:
    """Begin the message of an `InputError` with the place of its constraint in the list."""

    def placed(error: Exception) -> str:
        return str(error) if str(error).startswith("constraint ") else f"constraint {number}: {error}"

    return replace_errors(placed, InputError)
