"""What the records of each cell add above and below the line of a ratio of two sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import product as pairs_of

import numpy as np

from privsyn.marginals.domain import Codes, Floats

NO_PLACES: Floats = np.zeros(1)
NO_PLACES.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Weights:
    """What the records of each cell add above and below the line of a ratio.

    Parameters
    ----------
    above, below : arrays of the shape of the table
        Mean over the records of each cell.
    squares : tuple of three such arrays
        Variance above, covariance, and variance below, among the records of each cell.
    place_variance : array that broadcasts to this shape
        Variance of the mean above that is due to numbers of unknown place in their cell. Default: none.
    variants : tuple of Weights
        What they may add where no count shows which records of a cell meet a condition. Default: known.
    """

    above: Floats
    below: Floats
    squares: tuple[Floats, Floats, Floats]
    place_variance: Floats = field(default_factory=lambda: NO_PLACES)
    variants: tuple[Weights, ...] = ()

    def ends_at(self, ratio: float) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Return the least and the largest `above` - ratio `below` of each cell, each with its variance."""
        if not self.variants:
            return self.at(ratio), self.at(ratio)
        means, squares = map(np.stack, zip(*(weights.at(ratio) for weights in self.variants), strict=True))
        lowest, highest = (
            (np.take_along_axis(means, index, 0)[0], np.take_along_axis(squares, index, 0)[0])
            for index in (means.argmin(axis=0)[np.newaxis], means.argmax(axis=0)[np.newaxis])
        )
        return lowest, highest

    def scaled(self, factors: Floats) -> Weights:
        """Return the weights if each cell has these factors times its records, all like its present ones."""
        moments = (factors * moment for moment in self.moments)
        place_variance = factors**2 * self.place_variance
        return Weights.of_moments(factors * self.above, factors * self.below, moments, place_variance)

    @property
    def counts_all(self) -> bool:
        """Whether the lower sum is the number of all records."""
        return bool(np.allclose(self.below, 1.0))

    @classmethod
    def ones(cls, size: int) -> Weights:
        """Return weights by which each record counts as one."""
        return cls(np.ones(size), np.ones(size), (np.zeros(size), np.zeros(size), np.zeros(size)))

    @property
    def moments(self) -> tuple[Floats, Floats, Floats]:
        """The mean square above, mean product, and mean square below, in each cell."""
        means = self.above**2, self.above * self.below, self.below**2
        first, both, second = (s + m for s, m in zip(self.squares, means, strict=True))
        return first, both, second

    @classmethod
    def of_moments(
        cls, above: Floats, below: Floats, moments: Iterable[Floats], place_variance: Floats
    ) -> Weights:
        """Return the weights with these means and `moments`."""
        first, both, second = moments
        squares = first - above**2, both - above * below, second - below**2
        return cls(above, below, squares, place_variance)

    def times(self, further: Weights) -> Weights:
        """Return the products with the weights of a further attribute, which do not depend on each other."""
        outer, sizes = np.multiply.outer, (self.above.shape, further.above.shape)
        first, second = (
            np.broadcast_to(weights.place_variance, size)
            for weights, size in zip((self, further), sizes, strict=True)
        )
        place_variance = outer(first, further.above**2 + second) + outer(self.above**2, second)
        moments = map(outer, self.moments, further.moments)
        above, below = outer(self.above, further.above), outer(self.below, further.below)
        product = Weights.of_moments(above, below, moments, place_variance)
        if not self.variants and not further.variants:
            return product
        pairs = pairs_of(self.variants or (self,), further.variants or (further,))
        return replace(product, variants=tuple(first.times(second) for first, second in pairs))

    def joined(self, groups: Codes, records: Floats) -> Weights:
        """Return the weights of groups of codes, of which each code has some records."""
        shares = records / np.bincount(groups, records)[groups]

        def mean(values: Floats) -> Floats:
            return np.bincount(groups, shares * values).astype(np.float64)

        place_variance = np.bincount(groups, shares**2 * self.place_variance).astype(np.float64)
        joined = Weights.of_moments(
            mean(self.above), mean(self.below), map(mean, self.moments), place_variance
        )
        variants = tuple(weights.joined(groups, records) for weights in self.variants)
        return replace(joined, variants=variants)

    def at(self, ratio: float) -> tuple[Floats, Floats]:
        """Return the mean and variance of `above` - ratio `below` in each cell."""
        first, both, second = self.squares
        return self.above - ratio * self.below, first - 2 * ratio * both + ratio**2 * second
