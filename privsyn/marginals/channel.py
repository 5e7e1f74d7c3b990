r"""Channels: columns that the respondents randomised themselves, and how their counts are made unbiased.

Randomised response keeps a cell with probability :math:`p`, and otherwise replaces it by one of the
:math:`k` values, each with probability :math:`1/k` (Warner, JASA 1965). Over codes that were merged, code g
replaces with probability :math:`w_g`, its share of the k values. So the expected counts are
:math:`Q x = p x + (1 - p) w \sum x` for true counts :math:`x`, and
:math:`Q^{-1} y = (y - (1 - p) w \sum y) / p` is an unbiased estimate of them. The columns are randomised
independently. So a table over several of them has the Kronecker product of their channels: one inverse after
another, along each axis.

The variance. A respondent in cell j is counted in cell i with probability :math:`Q_{ij}`. Each respondent
has the covariance :math:`diag(Q_{.j}) - Q_{.j} Q_{.j}^T`, and they sum to
:math:`diag(Q x) - Q diag(x) Q^T`. Multiplied by the inverse on both sides this is

.. math:: Q^{-1} diag(Q x) Q^{-T} - diag(x),

the covariance of the estimates. Its diagonal is computed at the estimate of x, without its negative cells.
Noise that was added to the counts goes through the same inverse.

Pairs are shrunk with their margins fixed, so only the part of the noise counts that is in no margin. Noise of
independent cells has a share of prod(1 - 1/size) there. Here it is more: the inverse multiplies a margin by
1/p, but what is in no margin of two columns by 1/p^2. So this part has a variance of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType

import numpy as np

from privsyn.marginals.domain import Attributes, Codes, Domain, Floats, keep
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.tolerances import TINY_COUNT


@dataclass(frozen=True, eq=False)
class Channel:
    """The channel of one column.

    Parameters
    ----------
    retention : float
        Probability that a cell is kept.
    shares : array of shape (codes,)
        Probability of each code if it is not.

    Examples
    --------
    >>> channel = Channel(0.5, np.array([0.5, 0.5]))
    >>> channel.observed(np.array([80.0, 0.0]), 0).tolist()
    [60.0, 20.0]
    >>> channel.inverse(np.array([60.0, 20.0]), 0).tolist()
    [80.0, 0.0]
    """

    retention: float
    shares: Floats

    def __post_init__(self) -> None:
        keep(self, "shares")

    def join(self, group: Codes) -> Channel:
        """Return the channel of joined codes."""
        return Channel(self.retention, np.bincount(group, self.shares).astype(np.float64))

    def observed(self, counts: Floats, axis: int) -> Floats:
        """Return the expected counts after randomisation of this axis."""
        return self.retention * counts + (1 - self.retention) * self._spread(counts, axis)

    def inverse(self, counts: Floats, axis: int) -> Floats:
        """Return the unbiased counts before randomisation of this axis."""
        return (counts - (1 - self.retention) * self._spread(counts, axis)) / self.retention

    def inverse_squared(self, variances: Floats, axis: int, *, centred: bool = False) -> Floats:
        """Return the variances of the unbiased counts, from the variances of independent cells.

        The inverse has -b off the diagonal and 1/p - b on it, where b = w (1 - p) / p. If the counts are
        then centred along the axis, b is larger by its share of what the mean takes away.
        """
        off = self.shares * (1 - self.retention)
        if centred:
            off = off + (1 - off.sum()) / len(off)
        shape = [1] * variances.ndim
        shape[axis] = -1
        off = off.reshape(shape) / self.retention
        total = variances.sum(axis=axis, keepdims=True)
        return ((1 / self.retention - off) ** 2 - off**2) * variances + off**2 * total

    def _spread(self, counts: Floats, axis: int) -> Floats:
        """Return the sums along an axis, spread over its codes by their shares."""
        shape = [1] * counts.ndim
        shape[axis] = -1
        return counts.sum(axis=axis, keepdims=True) * self.shares.reshape(shape)


@dataclass(frozen=True, eq=False)
class Channels:
    """The channels of the randomised columns of a domain. All others are as they were collected.

    Parameters
    ----------
    by_attribute : mapping of an attribute to its Channel
    """

    by_attribute: Mapping[str, Channel] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def for_domain(cls, retentions: Mapping[str, float], domain: Domain) -> Channels:
        """Return the channels of columns that were randomised over all codes of the domain."""
        return cls(
            {
                name: Channel(p, np.full(domain.size_of[name], 1 / domain.size_of[name]))
                for name, p in retentions.items()
            }
        )

    def merge(self, merging: Merging) -> Channels:
        """Return the channels of merged codes."""
        return Channels(
            {
                name: channel.join(merging.groups[axis])
                for axis, name in enumerate(merging.original)
                if (channel := self.by_attribute.get(name)) is not None
            }
        )

    def random(self, attributes: Attributes) -> bool:
        """Return whether any of the attributes was randomised."""
        return any(name in self.by_attribute for name in attributes)

    def signal(self, attributes: Attributes) -> float:
        """Return the share of a table's variance about independence that is left after randomisation."""
        return prod(
            self.by_attribute[name].retention ** 2 for name in attributes if name in self.by_attribute
        )

    def observed(self, table: Marginal) -> Marginal:
        """Return the expected counts of a table after randomisation."""
        if not self.random(table.attributes):
            return table
        counts = table.counts
        for axis, name in enumerate(table.attributes):
            if name in self.by_attribute:
                counts = self.by_attribute[name].observed(counts, axis)
        return Marginal(table.domain, counts)

    def unbiased(self, measured: Measurement) -> Measurement:
        """Return a measured table as it was before randomisation: unbiased, with the variance of each cell.

        Examples
        --------
        100 respondents, of whom half answered at random:

        >>> from privsyn.marginals.domain import Domain
        >>> answers = Domain(("smokes",), (2,))
        >>> channels = Channels.for_domain({"smokes": 0.5}, answers)
        >>> found = channels.unbiased(Measurement(Marginal(answers, np.array([60.0, 40.0])), 0.0))
        >>> found.marginal.counts.tolist(), found.variance.tolist()
        ([70.0, 30.0], [75.0, 75.0])
        """
        return self._inverted(measured, centred=False)

    def beside_margins(self, measured: Measurement) -> Measurement:
        """Return the same, with the variance of independent cells that have as much noise in no margin."""
        return self._inverted(measured, centred=True)

    def _inverted(self, measured: Measurement, *, centred: bool) -> Measurement:
        if not self.random(measured.attributes):
            return measured
        counts, grouping = measured.marginal.counts, measured.grouping
        channels = {
            axis: self.by_attribute[name].join(grouping.groups[axis]) if grouping else self.by_attribute[name]
            for axis, name in enumerate(measured.attributes)
            if name in self.by_attribute
        }
        for axis, channel in channels.items():
            counts = channel.inverse(counts, axis)
        possible = np.maximum(counts, 0.0)  # with the same sum:
        possible *= max(float(counts.sum()), 0.0) / max(float(possible.sum()), TINY_COUNT)
        seen = possible
        for axis, channel in channels.items():
            seen = channel.observed(seen, axis)
        noise, exact = measured.variance + seen, possible
        for axis, size in enumerate(counts.shape):
            untouched = Channel(1.0, np.full(size, 1 / size))
            noise = channels.get(axis, untouched).inverse_squared(noise, axis, centred=centred)
            exact = untouched.inverse_squared(exact, axis, centred=centred)
        share = prod(1 - 1 / max(size, 2) for size in counts.shape) if centred else 1.0
        variance = np.maximum(noise - exact, 0.0) / share
        return Measurement(Marginal(measured.marginal.domain, counts), variance, measured.grouping)


NO_CHANNELS = Channels()
"""All columns are as they were collected."""
