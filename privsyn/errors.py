"""The one error that is the caller's to mend."""

from __future__ import annotations


class InputError(ValueError):
    """A mistake in what the caller passed: one line that says what, where and what to do.

    The text names columns, settings and files, which are public; it never shows a value of the table.
    """
