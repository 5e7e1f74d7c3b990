"""Domain: the names and sizes of coded attributes. Records: rows of codes over a domain.

Arrays have types by content, and value objects keep read-only copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from operator import gt
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
"""Array of any comparable values."""

Floats = npt.NDArray[np.float64]

Counts = Floats
"""Counts of records: whole numbers, unless noise or arithmetic changed them."""

Ints = npt.NDArray[np.int64]

Integers = npt.NDArray[np.integer]
"""Integers of any width."""

Codes = npt.NDArray[np.int32]
"""Codes of attributes, from 0 up."""

Mask = npt.NDArray[np.bool_]
"""True for the selected elements."""

Numbers = Mapping[str, Floats]
"""A number for each row, by column."""


def keep(owner: object, *fields: str, dtype: npt.DTypeLike | None = None) -> None:
    """Replace the arrays, or tuples of arrays, of a frozen value object by read-only copies.

    Call it first in ``__post_init__``.
    """
    for field in fields:
        value = getattr(owner, field)
        copies = [np.array(array, dtype=dtype) for array in (value if isinstance(value, tuple) else (value,))]
        for copy in copies:
            copy.setflags(write=False)
        object.__setattr__(owner, field, tuple(copies) if isinstance(value, tuple) else copies[0])


Attributes = tuple[str, ...]


@dataclass(frozen=True)
class Domain:
    """Attributes in order, each with the number of values it can take.

    Parameters
    ----------
    names : tuple of str
        Attribute names, all different.
    sizes : tuple of int
        ``sizes[j]`` is the number of codes of attribute ``j``: ``0 .. sizes[j] - 1``.
    ordered : tuple of int, optional
        ``ordered[j]`` is how many leading codes of attribute ``j`` have a meaningful order, such as bins
        of a number. Default: 0, a nominal attribute.

    Examples
    --------
    >>> domain = Domain(("age", "sex"), (10, 2), ordered=(10, 0))
    >>> domain.project(("sex",)).shape
    (2,)
    >>> domain.cells
    20
    """

    names: Attributes
    sizes: tuple[int, ...]
    ordered: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        names, sizes = tuple(self.names), tuple(map(int, self.sizes))
        ordered = tuple(self.ordered) or (0,) * len(names)
        if not len(names) == len(sizes) == len(ordered):
            raise ValueError(f"{len(names)} names, {len(sizes)} sizes, {len(ordered)} orders")
        if len(set(names)) != len(names):
            raise ValueError(f"two attributes share a name in {names}")
        if min(sizes, default=1) < 1:
            raise ValueError(f"sizes {sizes}: every attribute needs at least one value")
        if min(ordered, default=0) < 0 or any(map(gt, ordered, sizes)):
            raise ValueError(f"ordered {ordered} does not fit sizes {sizes}")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "ordered", ordered)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, as the shape of a table of counts."""
        return self.sizes

    @property
    def cells(self) -> int:
        """Number of cells of the full table, an exact Python integer."""
        return prod(self.sizes)

    @cached_property
    def size_of(self) -> dict[str, int]:
        """The size of each attribute."""
        return dict(zip(self.names, self.sizes, strict=True))

    @cached_property
    def ordered_of(self) -> dict[str, int]:
        """The number of ordered codes of each attribute."""
        return dict(zip(self.names, self.ordered, strict=True))

    @property
    def strides(self) -> tuple[int, ...]:
        """Change of a cell's flat index when the code of an attribute grows by 1.

        Examples
        --------
        >>> Domain(("a", "b", "c"), (2, 3, 5)).strides
        (15, 5, 1)
        """
        return tuple(prod(self.sizes[axis + 1 :]) for axis in range(len(self.sizes)))

    def axes(self, attributes: Attributes) -> tuple[int, ...]:
        """Return the positions of `attributes`; raise ``KeyError`` for an unknown one."""
        axis_of = self._places
        return tuple([axis_of[name] for name in attributes])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: axis for axis, name in enumerate(self.names)}

    def project(self, attributes: Attributes) -> Domain:
        """Return the domain of `attributes` alone, in the order given."""
        axes = self.axes(attributes)
        sizes, ordered = tuple([self.sizes[a] for a in axes]), tuple([self.ordered[a] for a in axes])
        if len(set(axes)) < len(axes):
            return Domain(attributes, sizes, ordered)  # raises
        domain = object.__new__(Domain)  # nothing to check: a wide table has half a million pairs
        domain.__dict__.update(names=tuple(attributes), sizes=sizes, ordered=ordered)
        return domain

    def joined(self, second: Domain) -> Domain:
        """Return the domain with the attributes of another one behind its own.

        >>> Domain(("age",), (10,)).joined(Domain(("sex",), (2,))).shape
        (10, 2)
        """
        return Domain(self.names + second.names, self.sizes + second.sizes, self.ordered + second.ordered)


NO_ATTRIBUTES = Domain((), ())


@dataclass(frozen=True, eq=False)
class Records:
    """Rows of codes over a domain.

    Parameters
    ----------
    domain : Domain
    codes : integer array of shape (n, d)
        ``0 <= codes[i, j] < domain.sizes[j]``. Kept as int32, column by column, read-only.

    Examples
    --------
    >>> Records(Domain(("a", "b"), (2, 3)), np.array([[0, 2], [1, 1]])).project(("b",)).codes.tolist()
    [[2], [1]]
    """

    domain: Domain
    codes: Codes

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes)
        if codes.ndim != 2 or codes.shape[1] != len(self.domain):
            raise ValueError(f"codes of shape {codes.shape} over {len(self.domain)} attributes")
        if codes.size and codes.dtype.kind not in "iu":
            raise ValueError(f"codes are integers, not {codes.dtype}")
        if codes.size and ((codes.min(axis=0) < 0) | (codes.max(axis=0) >= self.domain.sizes)).any():
            raise ValueError("a code lies outside its domain")  # which code and which row is private
        codes = np.array(codes, dtype=np.int32, order="F")  # a copy: whoever froze an array can thaw it
        codes.setflags(write=False)
        object.__setattr__(self, "codes", codes)

    def __len__(self) -> int:
        return len(self.codes)

    def project(self, attributes: Attributes) -> Records:
        """Return the columns of `attributes`, in the order given."""
        return Records(self.domain.project(attributes), self.codes[:, self.domain.axes(attributes)])
