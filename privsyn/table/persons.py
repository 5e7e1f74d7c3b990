"""Which rows are one person's, by the column of identifiers that `unit` names."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import blake2b
from numbers import Real
from unicodedata import normalize
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pandas as pd

from privsyn.answers.arrays import Ints, Mask
from privsyn.errors import InputError
from privsyn.table.checks import check_names
from privsyn.table.csv_file import MARKS
from privsyn.table.dtypes import family

ABSENT = {*MARKS, "NaT"}
"""Texts that are no identifier, as a missing cell is none."""

MOST_DIGITS = 4000
"""Of a number that is an identifier: more are refused by Python, after it has worked on them for long."""

KEY = secrets.token_bytes(16)
"""Of this process, and of machines that it asks: fingerprints tell nothing to who does not know it. We write
neither to any disk; an engine may (docs/privacy.md)."""

_WHOLE = re.compile(r"([+-]?)(?=[0-9])0*+([0-9]*+)(?:\.0*+)?")  # + takes all and never tries with fewer


def persons_of(table: pd.DataFrame, unit: str) -> Ints:
    """A code for each row, the same for all rows of one person; -1 where there is no identifier.

    Parameters
    ----------
    table : pandas.DataFrame
    unit : str
        The column of identifiers: text, or whole numbers in whatever type.

    Raises
    ------
    InputError
        If there is no such column, or its dtype is one of dates, flags or lists; never for a cell.

    Examples
    --------
    >>> table = pd.DataFrame({"who": ["b", " a", "a", None, "b"], "visits": 1})
    >>> persons_of(table, "who").tolist()
    [0, 1, 1, -1, 0]
    """
    check_names(table.columns)
    if unit not in table.columns:
        raise InputError(f"the table has no column {unit!r}, which unit names: mend the one or the other")
    cells = table[unit]
    if family(cells.dtype) not in ("text", "integer", "real", "category", "object"):
        raise InputError(f"column {unit!r}: an identifier is text or a whole number, not {cells.dtype}")
    names = np.array([identifier(cell) for cell in _objects(cells)], dtype=object)
    return pd.factorize(names)[0].astype(np.int64)  # None is coded as -1


def fingerprints(table: pd.DataFrame, unit: str, key: bytes = KEY) -> Ints:
    """A code for each row that depends on its identifier alone; -1 where there is none.

    So the rows of a person are known in whatever part of a table, in whatever process. Two people who share a
    code, by a chance of 2^-63, are taken for one, which is on the safe side (see `identifier`).
    """

    def code(cell: object) -> int:
        name = identifier(cell)
        if name is None:
            return -1
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()
        return int.from_bytes(digest, "big") >> 1

    cells = _objects(table[unit])
    return np.fromiter(map(code, cells), np.int64, len(cells))


def _objects(cells: pd.Series) -> list[object]:
    """The cells as Python's objects."""
    with suppress(Exception):  # no row should raise, and none may speak through what is said of it
        return cells.tolist()
    raise InputError("the identifiers could not be read: please report this, unless memory ran out")


@dataclass(frozen=True, eq=False)
class Bound:
    """Which rows of a part of a table are kept, so that nobody has more of them than may be.

    That was decided on an earlier walk over the table. If the rows came in another order now, some person
    might keep more than the promise is for: then the walk fails, and nothing that was counted is answered.

    Parameters
    ----------
    unit : str
        The column of identifiers, which is left out: it is never synthesised.
    rows : int
        Of the part.
    kept : integer array
        A bit for each row, packed: a cluster sends it to every machine.
    mark : bytes
        Of all `fingerprints` of the part, in their order.
    key : bytes
        With which fingerprints and mark were made.
    """

    unit: str
    rows: int = field(repr=False)
    kept: npt.NDArray[np.uint8] = field(repr=False)
    mark: bytes = field(repr=False)
    key: bytes = field(repr=False)

    @classmethod
    def of(cls, unit: str, persons: Ints, kept: Mask, key: bytes = KEY) -> Bound:
        """Which are kept of the rows that have these fingerprints.

        >>> table = pd.DataFrame({"who": ["b", "a", "b"], "visits": [1, 2, 3]})
        >>> bound = Bound.of("who", fingerprints(table, "who"), np.array([True, True, False]))
        >>> [rows["visits"].tolist() for rows in bound.kept_of([table[:2], table[2:]])]
        [[1, 2], []]
        """
        mark = blake2b(persons.tobytes(), digest_size=32, key=key).digest()
        return cls(unit, len(persons), np.packbits(kept), mark, key)

    def kept_of(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """The rows that are kept, of all rows of the part in frames; it fails at their end."""
        kept = np.unpackbits(self.kept, count=self.rows).astype(np.bool_)
        mark, start = blake2b(digest_size=32, key=self.key), 0
        for frame in frames:
            mark.update(fingerprints(frame, self.unit, self.key).tobytes())
            these = slice(start, start + len(frame))
            start = these.stop
            if start <= self.rows:
                yield frame.loc[kept[these]].drop(columns=self.unit)
        if start != self.rows or mark.digest() != self.mark:
            raise InputError(
                "the rows come in another order each time they are read: write the table to a file first"
            )


def identifier(cell: object) -> str | None:
    """The one form of an identifier, in whatever type or spelling it is given; None where there is none.

    Which forms are one? Taken apart, m forms of one person's identifier would keep k rows each, and no
    promise would hold. Taken together, two people under one form share k rows: the promise holds for the two
    at once, and for one of them alone at no worse than twice the distance, for k rows may leave and k of the
    other's take their place. So in doubt they are one, and what a file, a dtype or a keyboard does to one
    identifier is undone here: 7, 7.0, "7" and "007" are one, and so are texts that differ in blanks or in how
    Unicode spells a letter. But capitals differ from small letters: where identifiers are random text they
    are other people's. Doubles beyond 2^53 lost digits before they came here, so that some people share k
    rows. What is neither text nor number (a list, a date) is no identifier; nor is anything that raises when
    it is looked at.

    >>> [identifier(cell) for cell in (7, 7.0, "007", " Ann  Lee", "NA", float("nan"), [7])]
    ['7', '7', '7', 'Ann Lee', None, None, None]
    """
    try:
        return _one_form(cell)
    except Exception:  # an object may raise what it likes
        return None


def _one_form(cell: object) -> str | None:
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "backslashreplace")
    elif isinstance(cell, Decimal) and cell.adjusted() >= MOST_DIGITS:
        return None
    elif isinstance(cell, Real | Decimal):
        whole = int(cell)  # type: ignore[arg-type]  # the stub of Real lacks it; one that is infinite raises
        cell = str(whole if cell == whole else cell)
    elif isinstance(cell, UUID):
        cell = str(cell)
    if not isinstance(cell, str):
        return None
    text = " ".join(normalize("NFKC", cell).split())
    if text in ABSENT:
        return None
    if number := _WHOLE.fullmatch(text):
        sign, digits = number[1], number[2] or "0"
        return f"-{digits}" if sign == "-" and digits != "0" else digits
    return text
