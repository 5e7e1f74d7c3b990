"""Names of array types by content, and read-only copies for value objects."""

from __future__ import annotations

from collections.abc import Mapping
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
