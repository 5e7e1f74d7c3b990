"""The one error that is the caller's to mend."""

from __future__ import annotations

import reprlib
from numbers import Real


class InputError(ValueError):
    """A mistake in what the caller passed: one line that says what, where and what to do.

    The text names columns, settings and files, which are public; it never shows a value of the table. Where
    another error is its cause it is raised after that one's ``except`` block, for what a library says of a
    failure may quote a row, and ``__context__`` would keep it.
    """


def shown(value: object) -> str:
    """A number or a name as it was given; of anything else only the type, for it may hold the table.

    >>> shown(-1), shown("much"), shown([1, 2])
    ('-1', "'much'", 'a list')
    """
    return reprlib.repr(value) if isinstance(value, Real | str) else f"a {type(value).__name__}"
