"""Identify the rows of each person by the column of identifiers that `unit` names."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.errors import InputError, replace_errors
from privsyn.marginals._kernels import hash_texts
from privsyn.marginals.domain import Floats, Ints, Mask
from privsyn.table.encoding.dtypes import OBJECT, TEXT, Dtype, family, number_type, shown_dtype
from privsyn.table.encoding.parsing import moments, numbers
from privsyn.table.encoding.time_encoders import instants
from privsyn.table.io.missing_marks import ALL_MARKS
from privsyn.table.kinds.keys import Key, columns_of
from privsyn.table.schema.columns import Ordinal, column_of
from privsyn.table.schema.schema import check_column_names

ABSENT = {*ALL_MARKS, "NaT"}
"""Texts that are no identifier, with or without spaces around them: several persons may share them."""

SPACES = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""The characters that `str.strip` removes."""

UNDECODED = "\ufffd"
"""Replaces bytes that are not UTF-8, so different bytes become alike. A text with it is no identifier."""

KEY = secrets.token_bytes(16)
"""Key of this process and its workers. Without it fingerprints reveal nothing.

privsyn writes neither to a disk. Dask or Spark may (docs/privacy.md).
"""

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
    dtype = table[unit].dtype
    if family(_written(dtype)) not in ("text", "integer", "real", "object"):
        raise InputError(
            f"column {unit!r}: an identifier is text or a whole number, not {shown_dtype(_written(dtype))}"
        )
    if dtype == OBJECT and dtype != TEXT:
        raise InputError(
            f"column {unit!r}: its dtype is object, which does not say what an identifier is:"
            " convert it with astype('str'), or astype('Int64') for whole numbers"
        )
    codes = identifiers(table[unit]).dictionary_encode().indices
    return codes.fill_null(NOBODY).to_numpy(zero_copy_only=False).astype(np.int64)


def check_unit_column(names: Collection[object], unit: str, setting: str = "unit") -> None:
    """Refuse a `unit`, or what else names a column, that is not in the table, and quote none of its names.

    In a file without a header they are the cells of its first row.
    """
    if unit not in names:
        raise InputError(f"the table has no column {unit!r}, which {setting} names: correct one of them")


def _written(dtype: Dtype) -> Dtype:
    """Return the dtype of the identifiers themselves, also in a column of categories."""
    return dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype


def identifiers(cells: pd.Series) -> pa.LargeBinaryArray:
    """Return the identifier of each row, null where there is none.

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

    >>> identifiers(pd.Series(["7", "007", " 7", "Ann", None, "NA"])).to_pylist()
    [b'7', b'007', b' 7', b'Ann', None, None]
    >>> identifiers(pd.Series([7.0, 0.5, 2.0**53])).to_pylist()
    [b'7', None, None]
    """
    dtype = cells.dtype
    with replace_errors("the identifiers could not be read: please report this, unless memory ran out"):
        if isinstance(dtype, pd.CategoricalDtype):
            codes = cells.cat.codes.to_numpy()  # pandas' code of missing is -1
            return identifiers(pd.Series(dtype.categories)).take(pa.array(codes, mask=codes < 0))
        if family(dtype) == "real":
            return _written_out(_whole(cells))
        if family(dtype) == "integer":
            return _written_out(pa.array(cells))
        if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", "") == "pyarrow":
            return _written_out(_texts(pa.array(cells)))
        return pa.array(map(_text, cells.tolist()), pa.large_binary())


def identities(table: pd.DataFrame, key: Key) -> list[Any]:
    """Return what identifies each row, None where a column of its key has no identifier.

    Other cells than texts and numbers, such as dates, are taken as text: no answer about persons rests on it.

    >>> table = pd.DataFrame({"student": [7, 7, None], "day": pd.to_datetime(["2020-01-01", None, None])})
    >>> identities(table, "student"), identities(table, ("student", "day"))
    ([b'7', b'7', None], [(b'7', b'2020-01-01'), None, None])
    """
    names = []
    for column in columns_of(key):
        cells = table[column]
        has_identifiers = family(_written(cells.dtype)) in ("text", "integer", "real", "object")
        names.append(identifiers(cells if has_identifiers else cells.astype("string")).to_pylist())
    if len(names) == 1:
        return names[0]
    return [None if None in row else row for row in zip(*names, strict=True)]


def _written_out(cells: pa.Array | pa.ChunkedArray) -> pa.LargeBinaryArray:
    """Return texts or whole numbers as bytes, in one array."""
    chunks = pa.chunked_array(cells).combine_chunks()
    return chunks.cast(pa.large_string()).cast(pa.large_binary())


def _whole(cells: pd.Series) -> pa.Array:
    """Return the floating-point numbers that are identifiers, null for others."""
    below = 2.0 ** (np.finfo(number_type(cells.dtype)).nmant + 1)
    numbers = cells.to_numpy(np.float64, na_value=np.nan)
    integers = (np.abs(numbers) < below) & (np.floor(numbers) == numbers)
    return pa.array(np.where(integers, numbers, 0).astype(np.int64), mask=~integers)


def _texts(cells: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the texts that are identifiers, null for others, as `_text` for each."""
    absent = pc.is_in(pc.utf8_trim(cells, SPACES), pa.array(ABSENT, cells.type))
    return pc.if_else(
        pc.or_(absent, pc.match_substring(cells, UNDECODED)), pa.scalar(None, cells.type), cells
    )


def _text(cell: object) -> bytes | None:
    try:
        text = str.__str__(cell)  # a subclass of str may define its own
        return None if UNDECODED in text or text.strip() in ABSENT else text.encode("utf-8", "surrogatepass")
    except Exception:  # no text, or an object that raises any error
        return None


def fingerprints(table: pd.DataFrame, unit: Key, key: bytes = KEY) -> Ints:
    """Return two numbers for each row that depend on its identifier alone; zeros where there is none.

    An identifier of several columns is the list of their fingerprints, all of one length. A row has none if
    one of its columns has none.

    They identify the rows of a person in every part of a table and every process. The hash is SipHash-2-4,
    which is made for short texts and a secret key of 128 bits: without the key its values look like random
    ones. So they reveal nothing without the key, and the probability that a person shares all 128 bits
    with one of n others is at most n / 2^128, below 10^-29 for a billion.
    """
    prints = np.zeros((len(table), 2), np.uint64)
    if not unit:
        return prints.view(np.int64)
    if isinstance(unit, str):
        names = identifiers(table[unit])
        _, offsets, letters = (np.frombuffer(buffer or bytearray(), np.uint8) for buffer in names.buffers())
        ends = offsets.view(np.int64)[names.offset : names.offset + len(names) + 1]
        missing = names.is_null().to_numpy(zero_copy_only=False)
    else:
        parts = [fingerprints(table, column, key) for column in unit]
        joined = np.ascontiguousarray(np.concatenate(parts, axis=1))
        letters, ends = joined.reshape(-1).view(np.uint8), np.arange(len(table) + 1) * joined[:1].nbytes
        missing = ~np.stack([part.any(axis=1) for part in parts]).all(axis=0)
    hash_texts(letters, ends, np.frombuffer(key, np.uint64), prints)
    prints[missing] = 0
    return prints.view(np.int64)


def order_keys(name: str, frames: Iterator[pd.DataFrame], pattern: str | None = None) -> Floats:
    """Return the number or time of each row in a column, NaN where it has none. Private.

    Text is a number, or a time as `pattern` says, by default in ISO 8601. Each follows from
    its own cell. Whether a cell can be read depends on the dtype alone.
    """
    return np.concatenate([_order_of(frame[name], pattern) for frame in frames])


def _order_of(cells: pd.Series, pattern: str | None = None) -> Floats:
    """Return the number or time of each cell, NaN where it has none.

    >>> _order_of(pd.Series(["7", "x", "1970-01-01 00:01", None], dtype="category")).tolist()
    [7.0, nan, 60.0, nan]
    """
    dtype = cells.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return np.append(_order_of(pd.Series(cells.cat.categories), pattern), np.nan)[cells.cat.codes]
    if family(dtype) == "datetime":
        times = instants(cells)
        return np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64))
    column = column_of(dtype)
    if not isinstance(column, Ordinal):
        texts = cells.tolist()
        numbers_read, times = numbers(texts), moments(texts, pattern)
        timed = ~np.isnat(times) & (np.isnan(numbers_read) | (pattern is not None))
        return np.where(timed, times.astype(np.int64), numbers_read)
    keys: Floats = column.widest(dtype).encoder(dtype).read(cells)
    return keys


def codes_of(prints: Ints) -> Ints:
    """Return a code for each row, the same for equal fingerprints; -1 for zeros.

    >>> codes_of(np.array([[5, 5], [0, 0], [5, 6], [5, 5]])).tolist()
    [0, -1, 2, 0]
    """
    both = pa.py_buffer(np.ascontiguousarray(prints))  # both halves of a row as one value of 16 bytes
    values = pa.Array.from_buffers(pa.binary(16), len(prints), [None, both])
    codes = values.dictionary_encode().indices.to_numpy().astype(np.int64)
    return np.where(prints.any(axis=1), codes, NOBODY)


@dataclass(frozen=True, eq=False)
class KeptRows:
    """The rows of a part of a table that are kept, so that nobody has more than the limit.

    They were chosen when the table was read before. If the rows came in another order now, some person might
    keep more than the limit. Then reading fails, and nothing that was counted is answered.

    Parameters
    ----------
    unit : str or tuple of str
        The columns of identifiers, which are left out and never synthesised.
    rows : int
        Number of rows of the part.
    mask : array of uint8
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

    unit: Key
    rows: int = field(repr=False)
    mask: npt.NDArray[np.uint8] = field(repr=False)
    mark: bytes = field(repr=False)
    key: bytes = field(repr=False)
    also: tuple[str, ...] = ()
    added: pd.DataFrame | None = field(default=None, repr=False)

    @classmethod
    def of(cls, unit: Key, prints: Ints, mask: Mask, key: bytes = KEY) -> KeptRows:
        """Return the choice of rows among those with these fingerprints.

        >>> table = pd.DataFrame({"who": ["b", "a", "b"], "visits": [1, 2, 3]})
        >>> bound = KeptRows.of("who", fingerprints(table, "who"), np.array([True, True, False]))
        >>> [rows["visits"].tolist() for rows in bound.rows_of([table[:2], table[2:]])]
        [[1, 2], []]
        """
        mark = blake2b(prints.tobytes(), digest_size=32, key=key).digest()
        return cls(unit, len(prints), np.packbits(mask), mark, key)

    def rows_of(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Yield the rows that are kept; raise at the end if the rows are not those of the choice."""
        mask = np.unpackbits(self.mask, count=self.rows).astype(np.bool_)
        mark, start = blake2b(digest_size=32, key=self.key), 0
        for frame in frames:
            mark.update(fingerprints(frame, self.unit, self.key).tobytes())
            these = slice(start, start + len(frame))
            start = these.stop
            if start <= self.rows:
                yield self._columns(frame.loc[mask[these]], these, mask[these])
        if start != self.rows or mark.digest() != self.mark:
            raise InputError(
                "the rows come in another order each time they are read: write the table to a file first"
            )

    def _columns(self, frame: pd.DataFrame, these: slice, mask: Mask) -> pd.DataFrame:
        """Return the rows of a part that are kept, with the columns that a table of them has."""
        frame = frame.drop(columns=[*columns_of(self.unit), *self.also])
        if self.added is None:
            return frame
        added = self.added.iloc[these].loc[mask].set_axis(frame.index)
        return frame.assign(**{str(name): cells for name, cells in added.items()})  # their dtypes stay
