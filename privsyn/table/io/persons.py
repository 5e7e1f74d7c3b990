"""Identify the rows of each person by the column of identifiers that `unit` names."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pandas as pd

from privsyn.errors import InputError, replace_errors
from privsyn.marginals.domain import Floats, Ints, Mask
from privsyn.table.encoding.dtypes import OBJECT, TEXT, Dtype, family, number_type, shown_dtype
from privsyn.table.schema.guesses import MARKS
from privsyn.table.schema.schema import check_column_names

ABSENT = {*MARKS, "NaT"}
"""Texts that are no identifier, with or without spaces around them: several persons may share them."""

UNDECODED = "\ufffd"
"""Replaces bytes that are not UTF-8, so different bytes become alike. A text with it is no identifier."""

KEY = secrets.token_bytes(16)
"""Key of this process and its workers. Without it fingerprints reveal nothing.

privsyn writes neither to a disk. Dask or Spark may (docs/privacy.md).
"""

PRINT = 16
"""Bytes of a fingerprint."""

NOBODY = -1
"""The code of a row without an identifier."""


def persons_of(table: pd.DataFrame, unit: str) -> Ints:
    """Return a code for each row, the same for all rows of one person; -1 where there is no identifier.

    Parameters
    ----------
    table : pandas.DataFrame
    unit : str
        The column of identifiers: text or whole numbers.

    Raises
    ------
    InputError
        If there is no such column, or its dtype cannot hold identifiers. No cell raises.

    Examples
    --------
    >>> table = pd.DataFrame({"who": ["b", "7", "007", None, "b"], "visits": 1})
    >>> persons_of(table, "who").tolist()
    [0, 1, 2, -1, 0]
    """
    check_column_names(table.columns)
    check_unit_column(table.columns, unit)
    _check_dtype(unit, table[unit].dtype)
    names = np.array([*identifiers(table[unit]), None], dtype=object)[:-1]
    return pd.factorize(names)[0].astype(np.int64)  # None is coded as -1


def check_unit_column(names: Collection[object], unit: str) -> None:
    """Refuse a `unit` that is not among the names of the table, and quote none of these.

    In a file without a header they are the cells of its first row.
    """
    if unit not in names:
        raise InputError(f"the table has no column {unit!r}, which unit names: correct one of them")


def _check_dtype(unit: str, dtype: Dtype) -> None:
    """Refuse a dtype that cannot hold identifiers."""
    if family(_written(dtype)) not in ("text", "integer", "real", "object"):
        raise InputError(
            f"column {unit!r}: an identifier is text or a whole number, not {shown_dtype(_written(dtype))}"
        )
    if dtype == OBJECT and dtype != TEXT:
        raise InputError(
            f"column {unit!r}: its dtype is object, which does not say what an identifier is:"
            " convert it with astype('str'), or astype('Int64') for whole numbers"
        )


def _written(dtype: Dtype) -> Dtype:
    """Return the dtype of the identifiers themselves, also in a column of categories."""
    return dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype


def identifiers(cells: pd.Series) -> list[bytes | None]:
    """Return the identifier of each row, None where there is none.

    The promise per person relies on two facts, which the ledger lists: one person has one identifier, and no
    two persons share one. So two cells are the same identifier if and only if they are written alike:

    - text is compared character by character. ``7`` and ``007`` are two persons, and so are texts that differ
      in spaces, capitals or Unicode form. If two spellings were joined, two persons would share k rows. When
      one leaves, k rows of the other could take their place.
    - whole numbers are compared by value, because the dtype says that they are numbers.
    - floating-point numbers are identifiers only if they are whole and their type separates them from their
      neighbours (below 2^53 in float64). Others may stand for several persons.
    - a column of objects is read as text, as older versions of pandas store it. What is not text there is no
      identifier, so nobody can be 7 in one row and "7" in another.

    A row without an identifier is dropped. Its own cell alone decides this, and it moves no other row
    (`kept_rows`), so dropping it is safe.

    >>> identifiers(pd.Series(["7", "007", " 7", "Ann", None, "NA"]))
    [b'7', b'007', b' 7', b'Ann', None, None]
    >>> identifiers(pd.Series([7.0, 0.5, 2.0**53]))
    [b'7', None, None]
    """
    if isinstance(cells.dtype, pd.CategoricalDtype):
        names = [*identifiers(pd.Series(cells.cat.categories)), None]  # pandas' code of missing is -1
        return [names[code] for code in cells.cat.codes.tolist()]
    read: Callable[[object], bytes | None] = _text
    if family(cells.dtype) == "integer":
        read = _integer
    elif family(cells.dtype) == "real":
        read = partial(_float, below=2.0 ** (np.finfo(number_type(cells.dtype)).nmant + 1))
    with replace_errors("the identifiers could not be read: please report this, unless memory ran out"):
        return list(map(read, cells.tolist()))


def _text(cell: object) -> bytes | None:
    try:
        text = str.__str__(cell)  # a subclass of str may define its own
        return None if UNDECODED in text or text.strip() in ABSENT else text.encode("utf-8", "surrogatepass")
    except Exception:  # no text, or an object that raises any error
        return None


def _integer(cell: object) -> bytes | None:
    return str(cell).encode() if isinstance(cell, int) else None


def _float(cell: object, below: float) -> bytes | None:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < below:
        return str(int(cell)).encode()
    return None


def fingerprints(table: pd.DataFrame, unit: str, key: bytes = KEY) -> Ints:
    """Return two numbers for each row that depend on its identifier alone; zeros where there is none.

    They identify the rows of a person in every part of a table and every process. The probability that a
    person shares all 128 bits with one of n others is at most n / 2^128, below 10^-29 for a billion.
    """

    def digest(name: bytes | None) -> bytes:
        return bytes(PRINT) if name is None else blake2b(name, digest_size=PRINT, key=key).digest()

    cells = table[unit]
    if cells.dtype == OBJECT:  # 1, 1.0 and True are equal there, but only text is an identifier
        places, names = np.arange(len(cells)), identifiers(cells)
    else:
        places, different = pd.factorize(cells)
        names = [*identifiers(pd.Series(different)), None]  # the place of missing cells is -1
    found = b"".join(map(digest, names))
    return np.frombuffer(found, np.int64).reshape(-1, 2)[places]


def order_keys(name: str, frames: Iterator[pd.DataFrame]) -> Floats:
    """Return the number or time of each row in a column, NaN where there is none. Private."""

    def keys(cells: pd.Series) -> Floats:
        if cells.dtype.kind == "M":
            return np.where(
                cells.isna(), np.nan, cells.to_numpy().astype("datetime64[us]").astype(np.float64)
            )
        return pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)

    return np.concatenate([keys(frame[name]) for frame in frames])


def codes_of(prints: Ints) -> Ints:
    """Return a code for each row, the same for equal fingerprints; -1 for zeros.

    >>> codes_of(np.array([[5, 5], [0, 0], [5, 6], [5, 5]])).tolist()
    [1, -1, 2, 1]
    """
    codes = pd.DataFrame(prints).groupby([0, 1]).ngroup().to_numpy(np.int64)
    return np.where(prints.any(axis=1), codes, NOBODY)


@dataclass(frozen=True, eq=False)
class KeptRows:
    """The rows of a part of a table that are kept, so that nobody has more than the limit.

    They were chosen when the table was read before. If the rows came in another order now, some person might
    keep more than the limit. Then reading fails, and nothing that was counted is answered.

    Parameters
    ----------
    unit : str
        The column of identifiers, which is left out and never synthesised.
    rows : int
        Number of rows of the part.
    kept : array of uint8
        A bit for each row, packed, because a cluster sends it to every machine.
    mark : bytes
        A digest of all `fingerprints` of the part, in their order.
    key : bytes
        The key of fingerprints and mark.
    also : tuple of str
        Further columns that are left out.
    added : pandas.DataFrame, optional
        Columns that each row gets; one row for each row of the part.
    """

    unit: str
    rows: int = field(repr=False)
    kept: npt.NDArray[np.uint8] = field(repr=False)
    mark: bytes = field(repr=False)
    key: bytes = field(repr=False)
    also: tuple[str, ...] = ()
    added: pd.DataFrame | None = field(default=None, repr=False)

    @classmethod
    def of(cls, unit: str, prints: Ints, kept: Mask, key: bytes = KEY) -> KeptRows:
        """Return the choice of rows among those with these fingerprints.

        >>> table = pd.DataFrame({"who": ["b", "a", "b"], "visits": [1, 2, 3]})
        >>> bound = KeptRows.of("who", fingerprints(table, "who"), np.array([True, True, False]))
        >>> [rows["visits"].tolist() for rows in bound.kept_of([table[:2], table[2:]])]
        [[1, 2], []]
        """
        mark = blake2b(prints.tobytes(), digest_size=32, key=key).digest()
        return cls(unit, len(prints), np.packbits(kept), mark, key)

    def kept_of(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Yield the rows that are kept; raise at the end if the rows are not those of the choice."""
        kept = np.unpackbits(self.kept, count=self.rows).astype(np.bool_)
        mark, start = blake2b(digest_size=32, key=self.key), 0
        for frame in frames:
            mark.update(fingerprints(frame, self.unit, self.key).tobytes())
            these = slice(start, start + len(frame))
            start = these.stop
            if start <= self.rows:
                yield self._columns(frame.loc[kept[these]], these, kept[these])
        if start != self.rows or mark.digest() != self.mark:
            raise InputError(
                "the rows come in another order each time they are read: write the table to a file first"
            )

    def _columns(self, frame: pd.DataFrame, these: slice, kept: Mask) -> pd.DataFrame:
        """Return the rows of a part that are kept, with the columns that a table of them has."""
        frame = frame.drop(columns=[self.unit, *self.also])
        if self.added is None:
            return frame
        added = self.added.iloc[these].loc[kept]
        return frame.assign(**{str(name): cells.array for name, cells in added.items()})
