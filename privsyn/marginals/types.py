"""What arrays are called here, by what they hold, and how value objects keep them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
"""Of whatever can be compared."""

Floats = npt.NDArray[np.float64]

Counts = Floats
"""Of records: whole, unless noise or arithmetic made them otherwise."""

Ints = npt.NDArray[np.int64]

Integers = npt.NDArray[np.integer]
"""Of any width."""

Codes = npt.NDArray[np.int32]
"""The values of attributes, from 0 up."""

Mask = npt.NDArray[np.bool_]
"""Which of some things are meant."""


def keep(owner: object, *fields: str, dtype: npt.DTypeLike | None = None) -> None:
    """Have a frozen value object keep copies of its arrays, or tuples of arrays, that nobody can write to.

    Called while it is made, before its arrays are checked.
    """
    for field in fields:
        value = getattr(owner, field)
        copies = [np.array(array, dtype=dtype) for array in (value if isinstance(value, tuple) else (value,))]
        for copy in copies:
            copy.setflags(write=False)
        object.__setattr__(owner, field, tuple(copies) if isinstance(value, tuple) else copies[0])
