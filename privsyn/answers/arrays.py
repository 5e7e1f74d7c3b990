"""What arrays are called here, by what they hold."""

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
