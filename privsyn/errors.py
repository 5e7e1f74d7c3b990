"""The one error that is the caller's to mend, the warnings, and how they word what they show."""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Sequence
from numbers import Real


class InputError(ValueError):
    """A mistake in what the caller passed: one line that says what, where and what to do.

    The text names columns, settings and files, which are public; it never shows a value of the table. Where
    another error is its cause it is raised after that one's ``except`` block, for what a library says of a
    failure may quote a row, and ``__context__`` would keep it.
    """


def safe_repr(value: object) -> str:
    """A number or a name as it was given; of anything else only the type, for it may hold the table.

    >>> safe_repr(-1), safe_repr("much"), safe_repr([1, 2])
    ('-1', "'much'", 'a list')
    """
    return reprlib.repr(value) if isinstance(value, Real | str) else f"a {type(value).__name__}"


def plural(number: float, thing: str) -> str:
    """So many of a thing, in words.

    >>> plural(1, "row"), plural(48_842, "row"), plural(0, "pair")
    ('1 row', '48,842 rows', '0 pairs')
    """
    text = f"{number:,.0f}"
    return f"{text} {thing}" if text == "1" else f"{text} {thing}s"


class AbsentWarning(UserWarning):
    """A sample with classes of equal size lacks a class, for the release counts no row of it."""


def warn_absent(name: str, values: Sequence[object]) -> None:
    """Warn the caller of `sample` of classes that are left out. It depends on the release alone."""
    if values:
        warnings.warn(about_absent(name, values), AbsentWarning, stacklevel=4)


def about_absent(name: str, values: Sequence[object]) -> str:
    """Say which values of a column are left out.

    >>> about_absent("job", ["clerk", "cook"])
    "balance 'job': left out, for the release counts no row of them: 'clerk', 'cook'"
    """
    named = ", ".join(map(repr, values[:5])) + (f" and {len(values) - 5} more" if len(values) > 5 else "")
    return f"balance {name!r}: left out, for the release counts no row of them: {named}"


class DroppedWarning(UserWarning):
    """The schema calls a column free text, so the synthetic table lacks it."""


class ObjectsWarning(UserWarning):
    """A column of Python objects is not declared, so that most kinds of cell in it are not synthesised."""


def warn_objects(names: Sequence[str]) -> None:
    """Warn the caller of `fit` of columns whose dtype says nothing. It depends on schema and dtypes alone."""
    text = (
        f"columns of Python objects, of which only text, numbers and booleans are synthesised: "
        f"{', '.join(map(repr, names))}. Declare others in the schema: Time(), Duration(), "
        "Datetime(objects='date'), Numerical(objects='decimal')"
    )
    warnings.warn(text, ObjectsWarning, stacklevel=3)


def warn_dropped(names: Sequence[str]) -> None:
    """Warn the caller of `fit` of columns that are left out. It depends on the schema alone."""
    text = f"free text is left out of the synthetic table: {', '.join(map(repr, names))}"
    warnings.warn(text, DroppedWarning, stacklevel=3)
