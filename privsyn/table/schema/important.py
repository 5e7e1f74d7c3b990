"""Important sets: the pairs and triples of columns that matter most, and are measured best. Public."""

from __future__ import annotations

from collections.abc import Sequence

from privsyn.errors import InputError, safe_repr

Sets = tuple[tuple[str, ...], ...]

LARGEST = 3  # columns of a set
MOST_SETS = 20  # with more, the budget of each is hardly larger than without


def read_important(what: str, said: object) -> Sets:
    """Return the sets of columns, each once. Text lists columns with commas, as on the command line.

    Parameters
    ----------
    what : str
        The name of the setting, for messages.
    said : sequence of sequences of names, or of text; None is an empty one

    Raises
    ------
    InputError
        If it is no such sequence, or a set has not two or three columns.

    Examples
    --------
    >>> read_important("important", [["sex", "outcome"], "band,price", ["outcome", "sex"]])
    (('sex', 'outcome'), ('band', 'price'))
    """
    if said is None:
        return ()
    if isinstance(said, str) or not isinstance(said, Sequence):
        raise InputError(f'{what} lists pairs of columns, as in [["sex", "outcome"]]; got {safe_repr(said)}')
    found: dict[frozenset[str], tuple[str, ...]] = {}
    for each in said:
        names = [name.strip() for name in each.split(",")] if isinstance(each, str) else each
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise InputError(f"{what} {safe_repr(each)} is not a pair or a triple of columns' names")
        if not 2 <= len(set(names)) == len(names) <= LARGEST:
            raise InputError(f"{what} {safe_repr(each)} must name two or three different columns")
        found.setdefault(frozenset(names), tuple(names))
    if len(found) > MOST_SETS:
        raise InputError(f"{what} lists {len(found)} sets of columns: give at most {MOST_SETS}")
    return tuple(found.values())


def in_words(sets: Sets) -> str:
    """Return the sets for people.

    >>> in_words((("sex", "outcome"), ("band", "price")))
    'sex x outcome, band x price'
    """
    return ", ".join(" x ".join(names) for names in sets)
