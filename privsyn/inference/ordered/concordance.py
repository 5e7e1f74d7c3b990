r"""Concordance: of each pair of ordered attributes, counted as one number.

A record is concordant if both of its codes are in the upper half of their attribute, or both are in the
lower half. It is discordant if they are in different halves. The difference of the two numbers of records is
n times the medial correlation (Blomqvist, Annals of Mathematical Statistics 1950). A table of 2 x 2 groups
shows it too, but three quarters of its noise lie in margins that are known anyway. Counted as one number, it
has half that noise.

A pair's own table and its concordance err independently. So the concordance of the estimated table is moved
towards the measured one by inverse variance. The variance of the estimates is a share of the noise of the
tables, found from all pairs together. The table is tilted by the product of each side's sign plus its rank.
Most dependence between numbers runs along the whole range, as ranks do. But ranks alone hardly move the
middle: if two numbers agree in their sign alone, they would put all records on a diagonal.

In the end, the rank correlation of each estimated table lies in the interval that its noisy counts give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from privsyn.inference.measured_columns import Estimate
from privsyn.inference.ordered.number_intervals import Ranks, correlation_interval, correlation_of
from privsyn.inference.ordered.tilt import SAME, ranks_of, tilted_to
from privsyn.inference.prior.dispersion import DISPERSIONS
from privsyn.inference.prior.smoothing import Waves
from privsyn.marginals.domain import Attributes, Floats, Ints
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import StructuralZeros

# The first three are plausible values that were not tuned. The share is that of the error variance of an
# estimated table's concordance in the noise variance of the table.
USUAL_SHARE = 0.5
LEAST_SHARE = 0.1
SURE = 3.0  # pairs: weight of the usual share
INSIDE = 2e-4  # of a correlation: an estimate is moved at most this far inside its interval
ENOUGH = 0.05  # standard deviations of the noise: the wanted concordance counts as met


@dataclass(frozen=True, eq=False)
class Concordance:
    """The noisy concordance of a pair.

    Parameters
    ----------
    signs : mapping of both attributes to integer arrays of shape (codes,)
        1 for the codes of the upper half, -1 for those of the lower half, 0 for codes without an order.
    measured : float
        Concordant records minus discordant ones, with noise.
    variance : float
        Noise variance, in records squared.
    """

    signs: Mapping[str, Ints]
    measured: float
    variance: float

    @property
    def attributes(self) -> Attributes:
        """The pair."""
        return tuple(self.signs)

    def gap(self, counts: Floats) -> float:
        """Return by how many records the concordance of a table falls short of the measured one."""
        return self.measured - self.concordance_of(counts)

    def concordance_of(self, counts: Floats) -> float:
        """Return the concordance of a table of shape (codes, codes), in records."""
        first, second = self.signs.values()
        return float(first @ counts @ second)

    def likelihoods(self, expected: Floats, waves: Waves) -> Floats:
        """Return the log-likelihood of each of the `DISPERSIONS` of the pair about its expected counts.

        The array `expected` has the shape of the pair.
        """
        a, b = (sign @ waves.covariance(name) @ sign for name, sign in self.signs.items())
        variances = DISPERSIONS * float(expected.sum() * a * b) + self.variance
        return np.asarray(-0.5 * (np.log(variances) + self.gap(expected) ** 2 / variances))

    def imposed(self, table: Marginal, wanted: float, margins: tuple[Marginal, ...]) -> Marginal:
        """Return the table, tilted to the wanted concordance (in records), with the given margins."""
        a, b = (ranks_of(side)[:, 0] + sign for side, sign in zip(margins, self.signs.values(), strict=True))
        enough = ENOUGH * self.variance**0.5 + SAME * table.total
        return tilted_to(table, margins, np.outer(a, b), self.concordance_of, wanted, enough)


def signs_of(side: Marginal) -> Ints:
    """Return a sign for each code: 1 in the upper half of the records, -1 in the lower, 0 without an order.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> age = Domain(("age",), (5,), ordered=(4,))  # the last code is the missing ones'
    >>> signs_of(Marginal(age, np.array([3.0, 1, 2, 2, 9]))).tolist()
    [-1, -1, 1, 1, 0]
    """
    counts = side.counts[: side.domain.ordered[0]]
    below = np.cumsum(counts) - counts / 2
    signs = np.zeros(len(side.counts), np.int64)
    signs[: len(counts)] = np.where(2 * below >= counts.sum(), 1, -1)
    return signs


def with_concordances(pairs: Sequence[Estimate], concordances: Sequence[Concordance]) -> tuple[Estimate, ...]:
    """Return the estimated pairs, moved towards the measured concordances.

    Concordances of pairs without a table are left out.
    """
    moved = list(pairs)
    by_pair = {concordance.attributes: concordance for concordance in concordances}
    indices = [i for i, pair in enumerate(pairs) if pair.attributes in by_pair]
    if not indices:
        return tuple(moved)
    seen = [by_pair[pairs[i].attributes] for i in indices]
    gaps = np.array([answer.gap(pairs[i].table.counts) for answer, i in zip(seen, indices, strict=True)])
    noise = np.array([answer.variance for answer in seen])
    table_variances = np.array([float(pairs[i].measured.variance.sum()) for i in indices])
    weights = 1 / (table_variances + noise)
    share = (SURE * USUAL_SHARE + weights @ (gaps**2 - noise)) / (SURE + weights @ table_variances)
    table_variances *= max(float(share), LEAST_SHARE)
    for i, answer, gap, weight_of_gap in zip(
        indices, seen, gaps.tolist(), (table_variances / (table_variances + noise)).tolist(), strict=True
    ):
        table, sides = pairs[i].table, pairs[i].margins
        moved[i] = replace(
            moved[i],
            table=answer.imposed(table, answer.concordance_of(table.counts) + weight_of_gap * gap, sides),
        )
    return tuple(moved)


def within_intervals(
    pairs: Sequence[Estimate], one_ways: Sequence[Marginal], merging: Merging, possible: StructuralZeros
) -> tuple[Estimate, ...]:
    """Return the pairs, each tilted until its rank correlation lies in its own interval.

    An estimate combines the noisy counts of its pair with other answers and a prior. It is better on average,
    but where it contradicts the pair's own counts, the prior is wrong. So it moves at most to the end of the
    interval (limited translation: Efron and Morris, JASA 1972). The margins may allow less.

    Parameters
    ----------
    pairs : sequence of Estimate
        With unbiased measurements; only pairs of ordered attributes move.
    one_ways : sequence of Marginal, one per attribute
        The margins of the pairs.
    merging : Merging
        With the shares of the original codes.
    possible : StructuralZeros
        Pairs under a constraint have no interval.
    """
    ranks = {
        table.attributes[0]: Ranks.after(merging, table) for table in one_ways if table.domain.ordered[0] > 1
    }
    moved = list(pairs)
    for index, pair in enumerate(pairs):
        table = pair.table
        if not ranks.keys() >= set(table.attributes) or not possible.mask(table.domain).all():
            continue
        a, b = (ranks[name] for name in table.attributes)
        interval = correlation_interval(pair.measured, table, (a, b))
        if interval.low <= interval.estimate <= interval.high:
            continue
        inside = min(INSIDE, (interval.high - interval.low) / 4)
        wanted = min(max(interval.estimate, interval.low + inside), interval.high - inside)
        direction = np.outer(*(ranks_of(side)[:, 0] for side in pair.margins))
        statistic = partial(correlation_of, sides=(a, b))
        tilted = tilted_to(table, pair.margins, direction, statistic, wanted, inside / 2)
        moved[index] = replace(pair, table=tilted)
    return tuple(moved)
