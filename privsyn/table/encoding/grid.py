"""Grid: evenly spaced public points, cut into bins. Numbers and times are encoded on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from privsyn.marginals.domain import Floats, Integers, Ints
from privsyn.table.encoding.steps import Crowd, Cut, Heap, HeapedBins, Heaps

GUARD = 8
"""Points lie at least this many spacings of the floating-point type apart, so that rounding is harmless."""

REAL_POINTS = 2**40
"""Number of points for reals: finer than any count can resolve, and exact in float64."""

LEAST_GAP = 1e-306
"""Least distance of two points: the number of points in one unit is a double, too."""

ROUNDING = 1e-6
"""Largest distance, in steps of the grid, at which a number counts as lying on a point."""

NO_CONSTANTS = np.zeros(0)

DIGITS = 15
"""Digits of a double that every decimal number keeps."""

FINE = 512
"""Cells of a fine grid."""

FINEST = 2.0**-20
"""Relative to the larger bound: where the cells of a fine grid of reals begin to widen."""


@dataclass(frozen=True)
class Grid:
    """The points ``low + k / scale`` for ``k = 0 .. points - 1``, cut into bins.

    `exact` and `real` make bins of nearly equal size, from public bounds alone. `fine` changes the bins.

    Parameters
    ----------
    low, high : float
        The bounds.
    scale : float
        Number of points in one unit.
    points, bins : int
        Bin ``b`` holds the points ``b * points // bins`` up to, not including, ``(b + 1) * points // bins``,
        unless `cuts` is given.
    decimals : int or None
        Number of decimals of every point; None for reals.
    cuts : tuple of int
        The first point of each bin, then the number of points; empty for bins of nearly equal size.
    heaps : tuple of Heap, Crowd and Cut
        Which points are more frequent than their neighbours in the same bin, and where a bin begins.

    Examples
    --------
    >>> ages = Grid.exact(17, 90, decimals=0, bins=5)
    >>> ages.points, ages.edges.tolist()
    (74, [0, 14, 29, 44, 59, 74])
    >>> ages.encode(np.array([-np.inf, 17, 30, 31, 90, 200])).tolist()
    [0, 0, 0, 1, 4, 4]

    Every point drawn from a bin falls into that bin again:

    >>> ages.encode(ages.draw(np.arange(5), np.random.default_rng(0))).tolist()
    [0, 1, 2, 3, 4]
    """

    low: float
    high: float
    scale: float
    points: int
    bins: int
    decimals: int | None
    cuts: tuple[int, ...] = field(default=(), repr=False)
    heaps: Heaps = field(default=(), repr=False)

    @classmethod
    def exact(cls, low: float, high: float, *, decimals: int, bins: int, step: float | None = None) -> Grid:
        """Return the grid of all numbers with `decimals` decimals from `low` to `high`, both included.

        With a step, the numbers are `low` and whole numbers of steps above it.

        >>> Grid.exact(0, 1_000_000, decimals=0, bins=32, step=10_000).points
        101
        """
        scale = 10.0**decimals if step is None else 1 / step
        points = round((high - low) * scale) + 1
        return cls(float(low), float(high), scale, points, min(bins, points), decimals)

    @classmethod
    def real(cls, low: float, high: float, *, bins: int, dtype: np.dtype) -> Grid:
        """Return a grid so fine that it stands for all reals of `dtype` from `low` to `high`.

        The bins are equal intervals. Each includes its lower end; the last includes both ends.
        """
        low, high = float(low), float(high)
        width = high - low
        gap = max(GUARD * spacing(low, high, dtype), LEAST_GAP)
        steps = int(min(REAL_POINTS, width / gap))
        if steps < 1:
            return cls(low, high, 1.0, 1, 1, None)
        bins = min(bins, steps)
        points = bins * (steps // bins)
        return cls(low, high, points / width, points, bins, None)

    def fine(self, cells: int = FINE) -> Grid:
        """Return the same points in at most about `cells` bins; one bin per point, if there are few points.

        Otherwise half of the edges are evenly spaced. The other half are in geometric progression, away from
        zero on both sides. Zero has its own bin, and so have both bounds, to which values are clipped. So the
        bins separate spikes and small numbers, and also the parts of a long tail. Frequent numbers have bins
        of their own, too. If there is a crowd, half of the bins divide it, and both others are fewer.

        Examples
        --------
        >>> gains = Grid.exact(0, 99_999, decimals=0, bins=32).fine(20)
        >>> gains.edges.tolist()[:9], gains.edges.tolist()[-4:]
        ([0, 1, 4, 13, 46, 167, 599, 2154, 7743], [80000, 90000, 99999, 100000])
        """
        if self.points <= cells:
            cuts = np.arange(self.points + 1)
        else:
            even = np.arange(cells // 2 + 1) * (self.points / (cells // 2))
            alone = self._alone(cells // 4)
            first = even if alone is None else alone
            single, crowd = self.frequent, self._in_crowd(cells // 2)
            if crowd.size:
                first = even[::4]
            parts = [first, self._widening(cells // (4 if crowd.size else 2)), single, single + 1, crowd]
            parts.append(self._required)
            cuts = np.unique(np.concatenate(parts).astype(np.int64))
        return replace(self, bins=len(cuts) - 1, cuts=tuple(cuts.tolist()))

    def _in_crowd(self, cells: int) -> Floats:
        """Return cuts that divide the crowd evenly; none if there is no crowd.

        >>> ends = replace(Grid.exact(16_000, 2_932_896, decimals=0, bins=32), heaps=(Crowd(16_100, 16_200),))
        >>> [cut for cut in ends.fine(20).cuts if 90 < cut < 210]
        [100, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200]
        """
        for crowd in self.heaps:
            if isinstance(crowd, Crowd):
                ends = crowd.low, crowd.high
                low, high = (
                    (float(np.clip(end, self.low, self.high)) - self.low) * self.scale for end in ends
                )
                return np.rint(np.linspace(low, high, cells + 1))
        return np.zeros(0)

    def _alone(self, largest: int) -> Floats | None:
        """Return cuts on both sides of each point of the finest heap with few points; None if there is none.

        >>> from privsyn.table.encoding.steps import Heap
        >>> pay = replace(Grid.exact(0, 9999, decimals=0, bins=32), heaps=(Heap(1000, 0, 0.6),))
        >>> pay.fine(40).edges.tolist()[-5:]
        [8001, 9000, 9001, 9999, 10000]
        """
        for heap in reversed(self._lattices):
            size, start = round(heap.step * self.scale), round((heap.offset - self.low) * self.scale)
            if 0 < len(heaped := range(start % size, self.points, size)) <= largest:
                points = np.array(heaped)
                return np.concatenate([points, points + 1]).astype(np.float64)
        return None

    @property
    def _lattices(self) -> tuple[Heap, ...]:
        """The heaps whose points the grid tells apart; without single numbers."""
        heaps = (heap for heap in self.heaps if isinstance(heap, Heap))
        return tuple(heap for heap in heaps if round(heap.step * self.scale) >= 1)

    @property
    def _required(self) -> Ints:
        """The points at which cuts require a bin to begin.

        >>> from privsyn.table.encoding.steps import Cut
        >>> pay = replace(Grid.exact(0, 9999, decimals=0, bins=32), heaps=(Cut(7777.0),))
        >>> 7777 in pay.fine(40).edges
        True
        """
        return np.array(list(self._cuts), np.int64)

    @property
    def _cuts(self) -> dict[int, float]:
        """The number of each cut, by its point."""
        numbers = np.array([heap.number for heap in self.heaps if isinstance(heap, Cut)])
        points = self._nearest(numbers)
        some = ~np.isnan(points)
        return dict(zip(points[some].astype(np.int64).tolist(), numbers[some].tolist(), strict=True))

    @property
    def frequent(self) -> Ints:
        """The points of frequent numbers, ascending; none on a grid of reals.

        >>> from privsyn.table.encoding.steps import Heap
        >>> price = replace(Grid.exact(0, 9, decimals=2, bins=32), heaps=(Heap(0, 2.99, 0), Heap(0, 9.5, 0)))
        >>> price.frequent.tolist()
        [299]
        """
        numbers = np.array([heap.offset for heap in self.heaps if isinstance(heap, Heap) and not heap.step])
        inside = self.snap(numbers[: None if self.decimals is not None else 0])
        points = np.rint((inside[~np.isnan(inside)] - self.low) * self.scale)
        return np.unique(points.astype(np.int64))

    @property
    def starts(self) -> Ints:
        """The bins that cuts require to begin, without the first."""
        return np.unique(np.searchsorted(self.edges[:-1], self._required[self._required > 0]))

    @property
    def marks(self) -> Ints:
        """The bins of zero and of both bounds that are one point each, if other bins are many points."""
        points = [0, self.points - 1, *([] if self.zero is None else [self.zero])]
        bins = np.unique(np.searchsorted(self.edges, points, side="right") - 1)
        return bins[np.diff(self.edges)[bins] == 1] if self.points > self.bins > 2 else bins[:0]

    def _widening(self, cells: int) -> Floats:
        """Return points in geometric progression on both sides of zero, and those next to zero and bounds."""
        largest = max(abs(self.low), abs(self.high))
        unit = max(1 / self.scale, 0.0 if self.decimals is not None else FINEST * largest)
        sides = [(max(self.low, unit), self.high), (max(-self.high, unit), -self.low)]
        parts = [np.geomspace(*side, cells) if side[0] < side[1] else np.empty(0) for side in sides]
        if all(part.size for part in parts):
            parts = [part[::2] for part in parts]
        points = (np.concatenate([parts[0], -parts[1]]) - self.low) * self.scale
        alone = [0, self.points - 1, *([] if self.zero is None else [self.zero])]
        points = np.rint(np.concatenate([points, alone, np.add(alone, 1)]))
        return points[(points >= 0) & (points <= self.points)]

    @property
    def zero(self) -> int | None:
        """The point nearest to zero; None if zero lies outside the bounds.

        The bound of reals lies one step behind their last point, which stands for it.

        >>> debts = Grid.real(-1, 0, bins=2, dtype=np.dtype("float64"))
        >>> debts.zero == debts.points - 1
        True
        """
        if not self.low <= 0 <= self.high:
            return None
        return min(round(-self.low * self.scale), self.points - 1)

    @property
    def edges(self) -> Ints:
        """The first point of each bin, then the number of points."""
        if self.cuts:
            return np.array(self.cuts, np.int64)
        bins = np.arange(self.bins + 1, dtype=np.int64)
        width, remainder = divmod(self.points, self.bins)
        return bins * width + bins * remainder // self.bins  # bins * points // bins, without overflow

    def encode(self, numbers: Floats) -> Ints:
        """Return the bin of the point nearest to each number. Numbers are clipped; NaN is in bin 0."""
        inside = np.clip(
            np.nan_to_num(numbers, nan=self.low, posinf=np.inf, neginf=-np.inf), self.low, self.high
        )
        nearest = np.rint((inside - self.low) * self.scale).astype(np.int64)
        return np.searchsorted(self.edges[1:-1], nearest, side="right")

    def draw(self, codes: Integers, rng: np.random.Generator) -> Floats:
        """Return a drawn point of each bin in `codes`: uniformly, apart from heaps."""
        if self._lattices:
            return self._numbers(self._heaped.draw(np.asarray(codes, np.int64), self.zero, rng))
        edges = self.edges
        return self._numbers(rng.integers(edges[codes], edges[codes + 1]))

    @property
    def _heaped(self) -> HeapedBins:
        edges = self.edges
        return HeapedBins(edges[:-1], edges[1:], self._lattices, self.low, self.scale)

    @property
    def widths(self) -> Floats:
        """The number of points in each bin; a point on a heap counts as often as the heap makes it."""
        return self._heaped.widths if self._lattices else np.diff(self.edges).astype(np.float64)

    def between(self, lows: Floats, highs: Floats, rng: np.random.Generator) -> Floats:
        """Return a uniformly drawn point from each low to each high, both included; NaN if there is none.

        Examples
        --------
        >>> tens = Grid.exact(0, 1, decimals=1, bins=2)
        >>> tens.between(np.array([0.3, 0.61]), np.array([0.3, 0.69]), np.random.default_rng(0)).tolist()
        [0.3, nan]
        """
        first, last = self._ends(lows, highs)
        some = first <= last  # not where one of them is NaN
        points = np.zeros(len(first), np.int64)
        points[some] = rng.integers(first[some].astype(np.int64), last[some].astype(np.int64) + 1)
        return np.where(some, self._numbers(points), np.nan)

    def count(self, lows: Floats, highs: Floats) -> Floats:
        """Return the number of points from each low to each high, both included; NaN if either is NaN.

        Examples
        --------
        >>> Grid.exact(0, 9, decimals=0, bins=2).count(np.array([3.0, 3.1]), np.array([7.5, 3.9])).tolist()
        [5.0, 0.0]
        """
        first, last = self._ends(lows, highs)
        return np.maximum(last - first + 1, 0.0)

    def _ends(self, lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
        """Return the first and the last point from each low to each high."""
        # The last point is `high`, which rounding may put beyond it.
        end = self.points - (lows <= self.high)
        first = np.clip(np.ceil((lows - self.low) * self.scale - ROUNDING), 0, end)
        last = np.clip(np.floor((highs - self.low) * self.scale + ROUNDING), -1, self.points - 1)
        return first, last

    def points_in(self, low: float, high: float, closed: str) -> tuple[int, int]:
        """Return the first point of an interval, and the first point behind it.

        Parameters
        ----------
        low, high : float
            Beyond the bounds, too.
        closed : both, left, right or neither
            Which ends belong to the interval.

        Examples
        --------
        >>> ages = Grid.exact(0, 99, decimals=0, bins=2)
        >>> ages.points_in(20, 29, "both"), ages.points_in(65, np.inf, "both")
        ((20, 30), (65, 100))
        """
        if low == high and self.decimals is None and self.low <= low <= self.high:  # the nearest point
            nearest = min(round((low - self.low) * self.scale), self.points - 1)
            return nearest, nearest + 1
        ends = (np.clip([low, high], self.low - 1, self.high + 1) - self.low) * self.scale
        inside, beyond = np.ceil(ends - ROUNDING), np.floor(ends + ROUNDING) + 1
        first = inside[0] if closed in ("both", "left") else beyond[0]
        behind = beyond[1] if closed in ("both", "right") else inside[1]
        return int(np.clip(first, 0, self.points)), int(np.clip(behind, 0, self.points))

    def points_at(self, lows: Floats, highs: Floats) -> Ints:
        """Return the first point of each closed interval, and the first point behind it, within the bounds.

        Of reals, an end may be the double next to a constant outside the interval, as of ``x < 0.5``. The
        point is that of the constant.

        Examples
        --------
        >>> ends = np.array([-np.inf, 65.0]), np.array([17.0, np.inf])
        >>> Grid.exact(0, 99, decimals=0, bins=2).points_at(*ends).tolist()
        [18, 65]
        >>> pay, half = Grid.real(0, 1, bins=2, dtype=np.dtype("float64")), np.nextafter(0.5, 0)
        >>> below, upto = (pay.points_at(np.zeros(1) - np.inf, np.array([end])) for end in (half, 0.5))
        >>> (upto - below).tolist(), below.tolist() == [pay.points // 2]
        ([1], True)
        """
        lows, highs = lows[~np.isnan(lows)], highs[~np.isnan(highs)]
        if self.decimals is not None:
            ends = zip(lows.tolist(), highs.tolist(), strict=True)
            points = np.array([point for low, high in ends for point in self.points_in(low, high, "both")])
        else:
            below, above = constants_of(lows), constants_of(highs)
            points = np.concatenate(
                [self._nearest(below) + (below != lows), self._nearest(above) + (above == highs)]
            )
        points = np.unique(points[~np.isnan(points)].astype(np.int64))
        return points[(points > 0) & (points < self.points)]

    def cuts_at(self, points: Iterable[int], constants: Floats = NO_CONSTANTS) -> list[Cut]:
        """Return the cuts at some points.

        A point of reals that stands for one of the constants is the constant itself in every row. So is the
        lowest point, at which no cut is needed.

        >>> pay, ten = Grid.real(0, 1000, bins=2, dtype=np.dtype("float64")), np.array([10.0])
        >>> points = pay.points_at(ten, ten).tolist()
        >>> with_cuts = [replace(pay, heaps=tuple(pay.cuts_at(points, named))) for named in (ten[:0], ten)]
        >>> [grid.snap(ten).tolist() == [10.0] for grid in with_cuts]
        [False, True]
        """
        numbers = {point: self.low + point / self.scale for point in points if point < self.points}
        if self.decimals is None:
            named = dict(zip(self._nearest(constants).tolist(), constants.tolist(), strict=True))
            numbers |= {int(p): number for p, number in named.items() if p == 0 or p in numbers}
        return [Cut(number) for _, number in sorted(numbers.items())]

    def _nearest(self, numbers: Floats) -> Floats:
        """Return the nearest point of each number; NaN if there is none."""
        positions = (numbers - self.low) * self.scale
        points = np.clip(np.rint(positions), 0, self.points - 1)
        # Of reals, the last point stands for the bound one step behind it.
        tolerance = ROUNDING if self.decimals is not None else 1
        return np.where(np.abs(positions - points) <= tolerance, points, np.nan)

    def snap(self, numbers: Floats) -> Floats:
        """Return the point that each number lies on (for reals, the nearest); NaN if there is none.

        Examples
        --------
        >>> Grid.exact(0, 1, decimals=1, bins=2).snap(np.array([0.3, 0.61, 1.1])).tolist()
        [0.3, nan, nan]
        """
        points = self._nearest(numbers)
        some = ~np.isnan(points)
        return np.where(some, self._numbers(np.where(some, points, 0).astype(np.int64)), np.nan)

    @property
    def step(self) -> float:
        """The distance between neighbouring points."""
        return 1 / self.scale

    @property
    def extents(self) -> tuple[Floats, Floats]:
        """The first and the last point of each bin."""
        return self._numbers(self.edges[:-1]), self._numbers(self.edges[1:] - 1)

    def _numbers(self, points: Ints) -> Floats:
        numbers = self.low + points / self.scale
        if self.decimals is not None:
            return np.round(numbers, self.decimals)
        numbers = np.where(points == self.zero, 0.0, np.where(points == self.points - 1, self.high, numbers))
        for point, number in self._cuts.items():
            if number != self.low + point / self.scale:
                numbers = np.where(points == point, number, numbers)
        return numbers


def constants_of(ends: Floats) -> Floats:
    """Return the constants of the ends of intervals of reals.

    An end of more than `DIGITS` digits, and one next to 0, is the double next to a constant outside the
    interval, as of ``x < 0.5`` or ``x > 0``.

    >>> constants_of(np.array([np.nextafter(0.5, 0), np.nextafter(0, 1), 0.25])).tolist()
    [0.5, 0.0, 0.25]
    """
    written = np.array([float(f"{end:.{DIGITS}g}") for end in ends.tolist()])
    return np.where(np.abs(written) < np.finfo(np.float64).tiny, 0.0, written)


def spacing(low: float, high: float, dtype: np.dtype) -> float:
    """Return the spacing of `dtype` near the larger of two bounds; NaN if it cannot hold them.

    >>> spacing(0, 2**53, np.dtype("float64")), spacing(-1, 1, np.dtype("float32")) == 2**-23
    (2.0, True)
    >>> spacing(0, float(np.finfo("float32").max), np.dtype("float32")) == 2.0**104
    True
    """
    largest, limit = max(abs(low), abs(high)), np.finfo(dtype).max
    if largest > float(limit):
        return np.nan
    # Beyond the largest number there is no next one: it has the spacing of the one before.
    return float(np.spacing(min(dtype.type(largest), np.nextafter(limit, limit.dtype.type(0)))))


def holds(dtype: np.dtype, low: float, high: float, decimals: int) -> bool:
    """Return whether `dtype` distinguishes all numbers of `decimals` decimals from `low` to `high`.

    >>> holds(np.dtype("float64"), 0, 2**52, 0), holds(np.dtype("float32"), 0, 2**25, 0)
    (True, False)
    """
    gap = spacing(low, high, dtype)
    return bool(gap <= 1 if decimals == 0 else GUARD * gap <= 10.0**-decimals)
