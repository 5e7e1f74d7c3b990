"""Important sets: the pairs and triples of columns that matter most, and are measured best. Public."""

from __future__ import annotations

from collections.abc import Sequence

from privsyn.errors import InputError, safe_repr

Sets = tuple[tuple[str, ...], ...]

LARGEST = 3  # columns of a set
MOST_SETS = 20  # with more, the budget of each is hardly larger than without


def read_important(subject: str, listed: object) -> Sets:
    """Return the sets of columns, each once. Text lists columns with commas, as on the command line.

    Parameters
    ----------
    subject : str
        The name of the setting, for messages.
    listed : sequence of sequences of names, or of text; None is an empty one

    Raises
    ------
    InputError
        If it is no such sequence, or a set has not two or three columns.

    Examples
    --------
    >>> read_important("important", [["sex", "outcome"], "band,price", ["outcome", "sex"]])
    (('sex', 'outcome'), ('band', 'price'))
    """
    if listed is None:
        return ()
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise InputError(
            f'{subject} lists pairs of columns, as in [["sex", "outcome"]]; got {safe_repr(listed)}'
        )
    sets: dict[frozenset[str], tuple[str, ...]] = {}
    for entry in listed:
        names = [name.strip() for name in entry.split(",")] if isinstance(entry, str) else entry
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise InputError(f"{subject} {safe_repr(entry)} is not a pair or a triple of columns' names")
        if not 2 <= len(set(names)) == len(names) <= LARGEST:
            raise InputError(f"{subject} {safe_repr(entry)} must name two or three different columns")
        sets.setdefault(frozenset(names), tuple(names))
    if len(sets) > MOST_SETS:
        raise InputError(f"{subject} lists {len(sets)} sets of columns: give at most {MOST_SETS}")
    return tuple(sets.values())


def in_words(sets: Sets) -> str:
    """Return the sets for people.

    >>> in_words((("sex", "outcome"), ("band", "price")))
    'sex x outcome, band x price'
    """
    return ", ".join(" x ".join(names) for names in sets)
