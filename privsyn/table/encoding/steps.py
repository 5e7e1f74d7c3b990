"""Steps, of which all numbers of a column are multiples, and heaps: steps of more numbers than chance.

A lattice is every number ``offset + k * step`` for whole k. The lists below are public. Of two lattices in a
list, the later contains the earlier one, apart from `ENDS_IN_99`, which only whole cents contain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import timedelta
from functools import cached_property
from math import ceil, floor, isfinite
from types import MappingProxyType
from typing import Any

import numpy as np

from privsyn.errors import InputError, safe_repr
from privsyn.marginals.domain import Floats, Ints, Mask

MAX_DECIMALS = 12

SECONDS = {"s": 1, "m": 60, "h": 3600, "D": 86400}
"""Seconds in a step of each unit."""

DAY = SECONDS["D"]

_TEXT = re.compile(r"([0-9]{1,6}) ?(s|min|h|d)")

_UNITS = {"d": DAY, "h": 3600, "min": 60, "s": 1}

ON_GRID = 1e-6
"""Largest distance, in steps, at which a bound counts as a multiple of the step."""


def number_step(step: object, *, integer: bool | None, decimals: int | None) -> float:
    """Return the step of a column of numbers; refuse one with too many decimals.

    >>> number_step(10_000, integer=None, decimals=None), number_step(0.05, integer=None, decimals=None)
    (10000, 0.05)
    """
    if isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step < float("inf"):
        raise InputError(f"step is a number above 0, not {safe_repr(step)}")
    if decimals is not None:
        raise InputError("step and decimals exclude each other: give one of them")
    if decimals_of_step(step) is None:
        raise InputError(f"step {safe_repr(step)} has more than {MAX_DECIMALS} decimals")
    if integer and step != round(step):
        raise InputError(f"the step of whole numbers is whole, not {safe_repr(step)}")
    return step


def decimals_of_step(step: float) -> int | None:
    """Return how many decimals the multiples of a step have; None if these are too many.

    >>> decimals_of_step(100), decimals_of_step(0.25), decimals_of_step(1 / 3)
    (0, 2, None)
    """
    return next((d for d in range(MAX_DECIMALS + 1) if step > 0 and round(step, d) == step), None)


def time_step(step: object, *, unit: str | None = None, divides_day: bool = True) -> str:
    """Return the step of a column of times as text.

    Parameters
    ----------
    step : str or datetime.timedelta
    unit : str, optional
        The unit of the column: the step is a multiple of it.
    divides_day : bool
        Whether a day must be a multiple of the step.

    Examples
    --------
    >>> time_step("60 min"), time_step("15min"), time_step(timedelta(days=1))
    ('1h', '15min', '1d')
    """
    seconds = 0
    if isinstance(step, timedelta) and not step.microseconds:
        seconds = step.days * DAY + step.seconds
    elif isinstance(step, str) and (match := _TEXT.fullmatch(step.strip())):
        seconds = int(match[1]) * _UNITS[match[2]]
    if seconds <= 0:
        raise InputError(f"step is a length of time such as 30s, 15min, 1h or 1d, not {safe_repr(step)}")
    if divides_day and DAY % seconds:
        raise InputError(f"a day is no whole number of steps of {safe_repr(step)}")
    if unit is not None and seconds % SECONDS[unit]:
        raise InputError(f"step {safe_repr(step)} is no whole number of units {unit!r}")
    return step_text(seconds)


def step_text(seconds: int) -> str:
    """Return a number of seconds as the text of a step, in the largest unit."""
    unit, size = next((unit, size) for unit, size in _UNITS.items() if seconds % size == 0)
    return f"{seconds // size}{unit}"


def step_seconds(text: str) -> int:
    """Return the seconds in a step that `time_step` wrote.

    >>> step_seconds("15min")
    900
    """
    match: Any = _TEXT.fullmatch(text)
    return int(match[1]) * _UNITS[match[2]]


def multiples_within(low: float, high: float, step: float, decimals: int) -> tuple[float, float]:
    """Return the first and the last multiple of a step within bounds.

    >>> multiples_within(17, 90, 5, 0), multiples_within(0.02, 0.31, 0.05, 2)
    ((20.0, 90.0), (0.05, 0.3))
    """
    first, last = _nearest(ceil, low, step, -ON_GRID), _nearest(floor, high, step, ON_GRID)
    if first > last:
        raise InputError(f"no multiple of the step lies between {safe_repr(low)} and {safe_repr(high)}")
    return round(first, decimals) + 0.0, round(last, decimals) + 0.0


def multiples_around(low: float, high: float, step: float, decimals: int) -> tuple[float, float]:
    """Return the last multiple of a step up to one bound, and the first from the other.

    >>> multiples_around(17, 91, 5, 0), multiples_around(0, 1e308, 0.01, 2)
    ((15.0, 95.0), (0.0, 1e+308))
    """
    first, last = _nearest(floor, low, step, ON_GRID), _nearest(ceil, high, step, -ON_GRID)
    return round(first, decimals) + 0.0, round(last, decimals) + 0.0


def _nearest(rounding: Callable[[float], int], number: float, step: float, tolerance: float) -> float:
    """Return the multiple of a step next to a number; the number, if it has more steps than a double."""
    steps = number / step
    return rounding(steps + tolerance) * float(step) if isfinite(steps) else number


ROUNDS = 30
"""Rounds of fitting the weights of heaps. Ten are enough for a thousandth."""


@dataclass(frozen=True)
class Lattice:
    """Every number ``offset + k * step`` for whole k.

    >>> Lattice(0.25).holds(np.array([0.5, 0.6, 1e300, np.nan]), np.dtype(float)).tolist()
    [True, False, False, False]
    """

    step: float
    offset: float = 0.0

    def holds(self, numbers: Floats, dtype: np.dtype) -> Mask:
        """Return which numbers lie on the lattice, up to the rounding of their type."""
        eps = float(np.finfo(dtype).eps)
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would reveal a cell
            sizes = np.abs(numbers)
            nearest = np.round(np.rint((numbers - self.offset) / self.step) * self.step, MAX_DECIMALS)
            near = np.abs(nearest + self.offset - numbers) <= sizes * (2 * eps)
            # Databases compute what follows only where this holds: beyond, some have no doubles for it.
            telling = (sizes <= self.step / (TELLING * eps)) & ((sizes >= LEAST) | (numbers == 0))
            return np.where(telling, near, np.False_)

    def within(self, lattice: Lattice) -> bool:
        """Return whether the other lattice contains this one."""
        steps, apart = self.step / lattice.step, (self.offset - lattice.offset) / lattice.step
        return steps > 0.5 and all(abs(multiple - round(multiple)) <= WHOLE for multiple in (steps, apart))


WHOLE = 1e-6
"""Distance from a whole number, up to which a multiple of a step is one."""

TELLING = 64
"""A number lies on a lattice only if its rounding is this many times smaller than the step."""

LEAST = 2.0**-900
"""No number but zero that is smaller lies on a lattice."""

ENDS_IN_99 = Lattice(1.0, 0.99)

NUMBERS = (
    *(Lattice(digit * 10.0**power) for power in range(5, 0, -1) for digit in (1, 0.5)),
    Lattice(1.0),
    ENDS_IN_99,
    *(Lattice(step) for step in (0.5, 0.1, 0.05, 0.01, 0.005, 0.001, 0.0005, 0.0001)),
)

TIMES = tuple(Lattice(float(seconds)) for seconds in (DAY, 3600, 1800, 900, 300, 60, 1))
"""In seconds."""


def coarser(listed: Sequence[Lattice], step: float) -> tuple[Lattice, ...]:
    """Return the lattices of multiples of a step that are coarser than it; all if the step is 0: of reals."""
    base = Lattice(step)
    return tuple(lattice for lattice in listed if not step or (lattice.step > step and lattice.within(base)))


@dataclass(frozen=True)
class Heap:
    """A lattice, and the share of the values that lie on it and on no coarser heap.

    With a step of 0 the offset alone is a heap: a frequent number. It has a cell of its own, whose count says
    how many rows have it. So its share here is 0.
    """

    step: float
    offset: float
    share: float


@dataclass(frozen=True)
class Crowd:
    """An interval that many of the numbers lie in, of a tiny part of the range between the bounds.

    Half of the cells divide it evenly.
    """

    low: float
    high: float


@dataclass(frozen=True)
class Cut:
    """A number at which a cell begins: a rule, or exact counts that are public, tell it from those below."""

    number: float


Heaps = tuple[Heap | Crowd | Cut, ...]
"""What is known of where the numbers of a column lie: heaps, the coarsest first, a crowd, and cuts."""

NO_HEAPS: Mapping[str, Heaps] = MappingProxyType({})


def with_cuts(heaps: Mapping[str, Heaps], cuts: Mapping[str, Sequence[Cut]]) -> dict[str, Heaps]:
    """Return the heaps of columns with further cuts.

    >>> with_cuts({"pay": (Cut(10.0),)}, {"pay": [Cut(20.0)]})
    {'pay': (Cut(number=10.0), Cut(number=20.0))}
    """
    return {**heaps, **{name: (*heaps.get(name, ()), *added) for name, added in cuts.items()}}


def heaps_to_plain(heaps: Mapping[str, Heaps]) -> dict[str, list[list[float]]]:
    """Return the heaps of each column as plain data for JSON."""
    return {name: [list(astuple(heap)) for heap in column_heaps] for name, column_heaps in heaps.items()}


def heaps_from_plain(plain: Mapping[str, Any]) -> dict[str, Heaps]:
    """Return the heaps that `heaps_to_plain` wrote; two numbers are a crowd, and one is a cut.

    >>> heaps_from_plain({"pay": [[100.0, 0.0, 0.5], [64.0, 128.0]]})
    {'pay': (Heap(step=100.0, offset=0.0, share=0.5), Crowd(low=64.0, high=128.0))}
    """
    return {
        name: tuple(_from_plain(*map(float, heap)) for heap in column_heaps)
        for name, column_heaps in plain.items()
    }


def _from_plain(*numbers: float) -> Heap | Crowd | Cut:
    kinds: tuple[Any, ...] = (Cut, Crowd, Heap)
    return next(kind(*numbers) for kind in kinds if len(fields(kind)) == len(numbers))


@dataclass(frozen=True, eq=False)
class HeapedBins:
    """Bins of points, and how many points of each heap they hold.

    Parameters
    ----------
    firsts, ends : integer arrays of shape (bins,)
        The first point of each bin, and the point after its last.
    heaps : tuple of Heap, the coarsest first
    low, scale : float
        Point k is the number ``low + k / scale``.
    """

    firsts: Ints
    ends: Ints
    heaps: tuple[Heap, ...]
    low: float
    scale: float

    @cached_property
    def sizes(self) -> Ints:
        """The step of each heap, in points."""
        return np.array([round(heap.step * self.scale) for heap in self.heaps])

    @cached_property
    def starts(self) -> Ints:
        """A point of each heap."""
        return np.array([round((heap.offset - self.low) * self.scale) for heap in self.heaps])

    @cached_property
    def shares(self) -> Floats:
        """The share of each heap, and of the points on none."""
        shares = [heap.share for heap in self.heaps]
        return np.array([*shares, max(0.0, 1.0 - sum(shares))])

    @cached_property
    def points(self) -> Floats:
        """How many points of each bin lie on each heap and on no coarser one, and on none."""
        alone, before = [], np.zeros(len(self.firsts), np.int64)
        for heap, size, start in zip(self.heaps, self.sizes, self.starts, strict=True):
            count = (self.ends - 1 - start) // size - (self.firsts - 1 - start) // size
            alone.append(count if heap.offset else count - before)
            before = before if heap.offset else count
        return np.stack([*alone, self.ends - self.firsts - sum(alone)], axis=1).astype(np.float64)

    @property
    def widths(self) -> Floats:
        """The number of points in each bin, each weighed by how frequent its heap makes it.

        >>> bins = HeapedBins(np.array([0, 9]), np.array([9, 11]), (Heap(10.0, 0.0, 0.5),), 0.0, 1.0)
        >>> bins.widths.round(2).tolist()  # of 11 points, two are multiples of 10
        [7.64, 3.36]
        """
        weights = self.shares / np.maximum(self.points.sum(axis=0), 1)
        weighed = np.maximum(self.points @ weights, ADDED_ROWS / len(self.firsts))
        return weighed * (self.points.sum() / weighed.sum())

    def draw(self, codes: Ints, zero: int | None, rng: np.random.Generator) -> Ints:
        """Draw a point of the bin of each code, so that over all rows each heap has its share.

        Within a bin, the points of a heap are equally likely, and so are all points on no heap. One weight
        for each heap, the same in all bins, is fitted to the shares.

        Parameters
        ----------
        codes : integer array of shape (rows,)
        zero : int or None
            The point of the number zero, which lies on all heaps and counts for none.
        rng : numpy.random.Generator

        Examples
        --------
        >>> bins = HeapedBins(np.array([1]), np.array([101]), (Heap(10.0, 0.0, 0.9),), 0.0, 1.0)
        >>> points = bins.draw(np.zeros(10_000, np.int64), 0, np.random.default_rng(0))
        >>> round(float((points % 10 == 0).mean()), 2), len(np.unique(points))
        (0.9, 100)
        """
        # The chance of each heap and of the points on none, up to a factor, for each bin.
        rows = np.bincount(codes, minlength=len(self.firsts))
        is_zero = False if zero is None else (self.firsts <= zero) & (zero < self.ends)
        counted = np.where(is_zero, 0.0, rows)
        weights = np.ones(len(self.shares))
        for _ in range(ROUNDS if counted.any() else 0):
            weighed = self.points * np.maximum(weights, LEAST_WEIGHT)
            had = counted @ (weighed / weighed.sum(axis=1, keepdims=True))
            weights *= np.where(had > 0, (self.shares * counted.sum() + ADDED_ROWS) / (had + ADDED_ROWS), 1.0)
            weights /= weights.max()
        sums = (self.points * np.maximum(weights, LEAST_WEIGHT)).cumsum(axis=1)
        drawn = (rng.random(len(codes))[:, None] * sums[codes, -1:] >= sums[codes]).sum(axis=1)
        heap = np.minimum(drawn, len(self.heaps))
        sizes, starts = np.append(self.sizes, 1), np.append(self.starts, 0)
        points, pending = np.empty(len(codes), np.int64), np.arange(len(codes))
        while len(pending):  # until each point is on its heap and on no coarser one
            size, start = sizes[heap[pending]], starts[heap[pending]]
            lowest = -((start - self.firsts[codes[pending]]) // size)
            highest = (self.ends[codes[pending]] - 1 - start) // size
            points[pending] = start + size * rng.integers(lowest, highest + 1)
            coarser = np.zeros(len(pending), np.bool_)
            for index, (step, first) in enumerate(zip(self.sizes, self.starts, strict=True)):
                coarser |= (heap[pending] > index) & ((points[pending] - first) % step == 0)
            pending = pending[coarser]
        return points


ADDED_ROWS = 1e-6
"""Rows added to each heap while weights are fitted, so that none becomes zero."""

LEAST_WEIGHT = 1e-30
