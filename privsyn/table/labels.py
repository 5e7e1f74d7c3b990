"""Codes in words, for people to read: by public facts, and by which codes were counted as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from privsyn.table.codec import Codec
from privsyn.table.columns import Coder, Listed, Ordered, Time
from privsyn.table.grid import Grid

Codes = npt.NDArray[np.integer]

MISSING = "(missing)"
SECONDS_IN_A_DAY = 86400


def labels(codec: Codec, groups: Sequence[Codes]) -> tuple[tuple[str, ...], ...]:
    """Each group of codes of each column in words.

    Parameters
    ----------
    codec : Codec
    groups : for each column the group of each code, from 0 up

    Examples
    --------
    >>> import pandas as pd
    >>> from privsyn.table.schema import Categorical, Numerical, Schema
    >>> schema = Schema({"age": Numerical(0, 99, bins=4), "sex": Categorical(["F", "M"], nullable=False)})
    >>> codec = Codec.for_table(schema, pd.DataFrame({"age": [1.5], "sex": ["F"]}))
    >>> labels(codec, [np.array([0, 0, 0, 1, 2]), np.array([0, 0])])
    (('0 to 74.25', '74.25 to 99', '(missing)'), ('F (and 1 more)',))
    """
    return tuple(
        tuple(_label(coder, np.flatnonzero(group == place)) for place in range(int(group.max()) + 1))
        for coder, group in zip(codec.coders, groups, strict=True)
    )


def bin_labels(grid: Grid, in_a_day: int | None) -> list[str]:
    """Each bin in words, by its first and last point; `in_a_day` points make a day where they are times.

    >>> bin_labels(Grid.exact(0, 3, decimals=0, bins=3), None)
    ['0', '1', '2 to 3']
    """
    return [_range(grid, place, place, in_a_day) for place in range(grid.bins)]


def _label(coder: Coder, codes: Codes) -> str:
    """Neighbouring bins by their range; other codes that were counted as one by the first of them."""
    first, last = int(codes[0]), int(codes[-1])
    if isinstance(coder, Ordered) and last < coder.size and last - first + 1 == len(codes):
        return _range(coder.grid, first, last, _in_a_day(coder))
    return _word(coder, first) + (f" (and {len(codes) - 1} more)" if len(codes) > 1 else "")


def _word(coder: Coder, code: int) -> str:
    match coder:
        case _ if code == coder.size:
            return MISSING
        case Listed():
            return str(coder.pool.iloc[code])
        case Ordered():
            return _range(coder.grid, code, code, _in_a_day(coder))
        case _:
            raise TypeError(f"no words for a {type(coder).__name__}")


def _in_a_day(coder: Ordered) -> int | None:
    """How many points of its grid make a day, where they are times."""
    if not isinstance(coder, Time):
        return None
    return 1 if coder.unit == "D" else SECONDS_IN_A_DAY


def _range(grid: Grid, first: int, last: int, in_a_day: int | None) -> str:
    """From the first point of one bin to the last of another."""

    def word(point: float) -> str:
        if in_a_day is not None:
            return str(np.datetime64(int(point // in_a_day), "D"))
        return f"{point:.0f}" if point == round(point) and abs(point) < 1e12 else f"{point:.6g}"

    low, end = grid.low + grid.edges[[first, last + 1]] / grid.scale
    ends = word(low), word(end - (0 if grid.decimals is None else 10.0**-grid.decimals))
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)
