"""Keys: the column that identifies rows, or the columns that do so together."""

from __future__ import annotations

from typing import Any

from privsyn.errors import InputError, safe_repr

Key = str | tuple[str, ...]
"""The name of a column, or those of several."""


def columns_of(key: Key | None) -> tuple[str, ...]:
    """Return the columns of a key; none if there is none.

    >>> columns_of("person"), columns_of(("student", "course")), columns_of(None)
    (('person',), ('student', 'course'), ())
    """
    return () if key is None else (key,) if isinstance(key, str) else key


def key_in_words(key: Key | None) -> str:
    """Return the columns of a key in one text.

    >>> key_in_words(("student", "course"))
    'student, course'
    """
    return ", ".join(columns_of(key))


def plain_key(key: Key) -> str | list[str]:
    """Return a key as plain data for YAML and JSON.

    >>> plain_key("person"), plain_key(("person",)), plain_key(("student", "course"))
    ('person', 'person', ['student', 'course'])
    """
    names = columns_of(key)
    return names[0] if len(names) == 1 else [*names]


def read_key(setting: str, names: Any) -> Key | None:
    """Return a key or link as a name, or as a tuple of several.

    >>> read_key("key", ["student", "course"]), read_key("key", ["student"])
    (('student', 'course'), 'student')
    """
    listed = tuple(names) if isinstance(names, list | tuple) else () if names is None else (names,)
    if not all(isinstance(name, str) for name in listed) or (names is not None and not listed):
        raise InputError(f"{setting} must be a name, or a list of names; got {safe_repr(names)}")
    if twice := next((name for name in listed if listed.count(name) > 1), None):
        raise InputError(f"{setting}: {twice!r} is named twice")
    return listed[0] if len(listed) == 1 else listed or None
