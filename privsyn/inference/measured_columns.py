"""MeasuredColumns: public facts and released answers on all columns. Estimate: one table of several columns.

`PublicFacts` are what a method may know about the columns beyond their domain, before any question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from privsyn.inference.consistency import average_one_ways, estimate_total, norm_sub, variance_of_total
from privsyn.inference.ordered.binning import Axis
from privsyn.inference.ordered.support import CellCounts
from privsyn.inference.ordered.tails import Tails
from privsyn.inference.prior.dispersion import DISPERSIONS
from privsyn.marginals.channel import NO_CHANNELS, Channels
from privsyn.marginals.domain import Attributes, Codes, Domain, Floats, Ints, keep
from privsyn.marginals.known_totals import EXACT, NO_TOTALS, KnownTotals
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal, Measurement, groups_at
from privsyn.marginals.recoding import Merging, joined
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros, product
from privsyn.marginals.tolerances import TINY_COUNT

FewCells = tuple[Ints, Floats, Floats]
"""Some codes of an attribute, noisy counts of them, and their variances."""


@dataclass(frozen=True)
class PublicFacts:
    """What is public about the columns: by the schema, by the settings, or by released answers.

    Parameters
    ----------
    target : str, optional
        The attribute to be predicted. Its relations to the others matter most.
    weight : str, optional
        The attribute of the weights of rows. It is always counted with each other attribute.
    axes : mapping of an attribute to its Axis
        The attributes that are encoded in fine cells.
    zeros_after : function of a Merging
        Return the structural zeros of the merged codes.
    doubtful : collection of attributes
        Attributes whose values or bounds were found under privacy. So it may be that no row has the code of
        all other values, or a number near the bounds.
    retention : mapping of an attribute to a probability
        The attributes that the respondents randomised, and the probability that a cell kept its value.
    nullable : collection of attributes
        The attributes whose last code is that of missing cells.
    important : tuple of attributes
        Sets of two or three, in the domain's order. Their counts matter most.
    bounds_counts : mapping of an attribute to a CellCounts
        The released counts by which bounds were found, and in which of them each fine cell lies.
    frequent : mapping of an attribute to some of its fine cells
        The fine cells of frequent numbers: the codes, their released counts in records, and the variances.
    context_weights : mapping of an attribute to a weight
        Attributes that a synthetic row has before its own columns are made: the class of the number of rows
        of its person, and columns of the rows above it. Errors in a table with one of them have this weight.
    weights : mapping of an attribute to a weight
        The same of attributes of the row itself; 1 for others.
    previous : tuple of attributes
        The attributes whose value in the previous row of the same parent is one more attribute.
    lags : int
        Number of rows before a row whose values are attributes of it: 1 or 2.
    lasting : tuple of attributes
        Attributes that seldom change from row to row of a parent.
    unjoined : collection of attributes
        Ordered attributes whose cells are not joined because of noise, if there are few cells.
    ranked : collection of attributes
        The attributes of listed values that have an order.
    totals : KnownTotals
        Exact counts that are public. They are never compared with the rows.
    """

    target: str | None = None
    weight: str | None = None
    axes: Mapping[str, Axis] = field(default_factory=lambda: MappingProxyType({}))
    zeros_after: Callable[[Merging], StructuralZeros] = lambda _: NO_ZEROS
    doubtful: Collection[str] = ()
    retention: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    nullable: Collection[str] = ()
    important: tuple[Attributes, ...] = ()
    bounds_counts: Mapping[str, CellCounts] = field(default_factory=lambda: MappingProxyType({}))
    frequent: Mapping[str, FewCells] = field(default_factory=lambda: MappingProxyType({}))
    context_weights: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    weights: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    previous: Attributes = ()
    lags: int = 1
    lasting: Attributes = ()
    unjoined: Collection[str] = ()
    ranked: Collection[str] = ()
    totals: KnownTotals = NO_TOTALS


RARE = 0.2  # share of a class, over an even one, under which the classes weigh alike
MOST_BLOCKS = 8  # groups of a target that is a number, up to which they keep its variance
GROUPS = 4  # blocks of the ordered codes of an attribute: in departures, and in tables of three to five
UNKNOWN, NOTHING = np.zeros(DISPERSIONS.shape), np.zeros(())
UNKNOWN.setflags(write=False)
NOTHING.setflags(write=False)
NOT_MEASURED = Measurement(Marginal(Domain((), ()), np.zeros(())), np.zeros(()))


def sizes_in_blocks(domain: Domain) -> dict[str, int]:
    """Return the size of each attribute whose ordered codes are joined to `GROUPS` blocks."""
    return {
        name: min(ordered, GROUPS) + domain.size_of[name] - ordered
        for name, ordered in domain.ordered_of.items()
    }


@dataclass(frozen=True, eq=False)
class MeasuredColumns:
    """What is public or was released about the columns: the context of every answer about a table.

    Parameters
    ----------
    merging : Merging
        To the codes in which tables are counted.
    zeros : StructuralZeros, optional
    tails : Tails, optional
        Layout of the cells of ordered attributes. Default: one-way tables are projected by norm-sub.
    channels : Channels, optional
        Of the randomised attributes. All measurements are of the table after randomisation.
    target : str, optional
        The attribute to be predicted.
    one_ways : tuple of Measurement, one per attribute, optional
        The counts of each attribute, from questions about it alone.
    margins_known : bool
        Whether margins of larger tables say nothing new: the tables were measured by their residuals, or
        `one_ways` use these margins already.
    important : tuple of attributes, optional
        Sets of two or three, in the domain's order. Their counts matter most.
    attribute_weights : mapping of an attribute to a weight, optional
        Errors in a table have the product of the weights of its attributes. Default: 1.
    totals : KnownTotals
        Exact counts that are public, by codes before merging. No merged code joins codes of two cells.
    total_variance : float, optional
        Variance of the estimated number of records, if some answers are in several of the `one_ways`.
        Default: each answer is in one of them.
    """

    merging: Merging
    zeros: StructuralZeros = NO_ZEROS
    tails: Tails | None = None
    channels: Channels = NO_CHANNELS
    target: str | None = None
    one_ways: tuple[Measurement, ...] = ()
    margins_known: bool = False
    important: tuple[Attributes, ...] = ()
    attribute_weights: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    totals: KnownTotals = NO_TOTALS
    total_variance: float | None = None

    @property
    def domain(self) -> Domain:
        """The domain in which tables are counted."""
        return self.merging.merged

    def about_one_ways(self, tables: Iterable[Measurement]) -> tuple[Measurement, ...]:
        """Return the measurements of one-ways: these, exact sums, and `tables` unless margins are known."""
        margins = () if self.margins_known else tables
        return (*self.one_ways, *margins, *self.exact.sums(self.domain))

    def margins(self, measured: tuple[Measurement, ...]) -> tuple[float, tuple[Marginal, ...]]:
        """Return the number of records and the one-way tables, estimated from all measurements."""
        total = self.exact.total if self.exact else estimate_total(measured)
        averaged = average_one_ways(self.domain, measured, total, self._settle, self.channels.unbiased)
        return total, tuple(map(self.exact.fit, self.zeros.settle(averaged)))

    def variance_of_total(self, measured: tuple[Measurement, ...]) -> float:
        """Return the variance of the number of records that `margins` estimates."""
        if self.exact:
            return 0.0
        return variance_of_total(measured) if self.total_variance is None else self.total_variance

    def _settle(self, measured: Measurement, total: float) -> Marginal:
        """Return the counts of one attribute, non-negative and with the total."""
        if self.exact.covers(measured.attributes):
            return self.exact.counts(measured.attributes)
        if self.tails is not None:
            return self.tails.settle(measured, total)
        return Marginal(measured.marginal.domain, norm_sub(measured.marginal.counts, total))

    @cached_property
    def exact(self) -> KnownTotals:
        """The exact counts, by merged codes."""
        return self.totals.merge(self.merging)

    @cached_property
    def alone(self) -> tuple[Marginal, ...]:
        """The one-way tables, estimated from the `one_ways` alone."""
        return self.margins(self.about_one_ways(()))[1]

    @cached_property
    def blocks(self) -> Merging:
        """The merging of each attribute's ordered codes to `GROUPS` blocks."""
        return joined(self.domain, tuple(self.groups_at(one_way, GROUPS) for one_way in self.alone))

    def groups_at(self, one_way: Marginal, level: int) -> Codes:
        """Return the group of each code of an attribute at a level: of about equally many records.

        If the target is a number, few groups of it keep much of its variance, because R2 is a share of
        variance: see `Tails.blocks_of`. With equally many records in each, all of the largest numbers would
        be in one group. Of more than `MOST_BLOCKS` groups this holds no longer: small groups drown in noise.
        """
        if self.tails is None or level > MOST_BLOCKS or one_way.attributes != (self.target,):
            return groups_at(one_way, level)
        return self.tails.blocks_of(one_way, level)

    @cached_property
    def exact_tables(self) -> tuple[Estimate, ...]:
        """The tables of several columns that are known by code: each pair, then each larger one."""
        sets = filter(self.exact.covers, self.exact.sets(self.domain))
        return tuple(_exact(counts, Measurement(counts, EXACT)) for counts in map(self.exact.counts, sets))

    def exact_in_groups(
        self, margins: tuple[Marginal, ...], measured: Collection[Attributes] = ()
    ) -> tuple[Estimate, ...]:
        """Return the tables of several columns that are known in groups of codes, except those `measured`.

        Inside their groups, the columns with these `margins` are independent.
        """
        one_way, tables = dict(zip(self.domain, margins, strict=True)), []
        for attributes in self.exact.sets(self.domain):
            if attributes in measured or self.exact.covers(attributes):
                continue
            sides = tuple(one_way[name] for name in attributes)
            table = self.zeros.fit(product(self.domain.project(attributes), sides), sides)
            tables.append(_exact(self.expected(table, sides), self.exact.about(attributes)[0]))
        return tuple(tables)

    def expected(self, table: Marginal, sides: tuple[Marginal, ...]) -> Marginal:
        """Return an expected table fitted to what is known of groups of its cells; its `sides` stay."""
        names = set(table.attributes)
        if not any(len(names.intersection(counts.attributes)) > 1 for counts in self.exact.tables):
            return table
        return self.exact.fit(table, sides, self.zeros.mask(table.domain))

    def shared(self, measured: tuple[Measurement, ...]) -> Merging:
        """Return the merging that draws the cells of tails as the one-way answers say."""
        return self.merging if self.tails is None else self.tails.share(measured)


@dataclass(frozen=True, eq=False, slots=True)
class Estimate:
    """An estimate of the counts of a table of several attributes.

    Parameters
    ----------
    table : Marginal
        Expected counts before the measurement, and estimated counts after it.
    evidence : array of shape ``DISPERSIONS.shape``, optional
        Log-likelihood of each dispersion, by all answers but the measurement. Default: no answers.
    dispersion : float
        Variance of a cell about its expected count before the measurement, over that count.
    grouping : Grouping, optional
        The groups of codes that `table` counts.
    measured : Measurement, optional
        The mean of all measurements.
    margins : tuple of Marginal, optional
        Estimated counts of some of the attributes, which the table has too.
    posterior_variance : array, optional
        Posterior variance of each cell, in records squared.
    target : str, optional
        The attribute whose classes weigh alike in `spread`.
    """

    table: Marginal
    evidence: Floats = field(default_factory=lambda: UNKNOWN)
    dispersion: float = 1.0
    grouping: Grouping = NO_GROUPS
    measured: Measurement = NOT_MEASURED
    margins: tuple[Marginal, ...] = ()
    posterior_variance: Floats = field(default_factory=lambda: NOTHING)
    target: str | None = None

    def __post_init__(self) -> None:
        # A wide table has very many estimates.
        if self.evidence.flags.writeable or self.posterior_variance.flags.writeable:
            keep(self, "evidence", "posterior_variance", dtype=np.float64)
        if self.evidence.shape != DISPERSIONS.shape or not self.dispersion >= 0:
            raise ValueError(f"dispersion {self.dispersion}, evidence of shape {self.evidence.shape}")

    @property
    def attributes(self) -> Attributes:
        """Names of the attributes, in the order of the axes."""
        return self.table.attributes

    @property
    def is_measured(self) -> bool:
        """Whether there is a measurement."""
        return self.measured is not NOT_MEASURED

    @property
    def variance(self) -> Floats:
        """Prior variance of each cell, in records squared."""
        return self.dispersion * self.spread(self.table)

    def spread(self, expected: Marginal) -> Floats:
        """Return the prior variance of each cell for a dispersion of 1: its expected count.

        A table with a target departs in two ways. If the other columns depart from what is expected, a class
        of share p has p of that, a variance in proportion to p^2. If they show the class, what a cell of
        one class has more, that of another has less: in proportion to p (1 - p). If both have one dispersion,
        the sum is the expected count. It hides the second in a class under `RARE` times an even share, which
        departs by as many records as the usual class. So there the second decides alone.

        >>> cells = Marginal(Domain(("a", "y"), (2, 2)), np.array([[98.0, 2.0], [98.0, 2.0]]))
        >>> Estimate(cells, target="y").spread(cells).round(2).tolist()
        [[3.92, 3.92], [3.92, 3.92]]
        >>> usual = Marginal(cells.domain, np.array([[80.0, 20.0], [80.0, 20.0]]))
        >>> Estimate(usual, target="y").spread(usual).round(2).tolist()
        [[80.0, 20.0], [80.0, 20.0]]
        """
        if self.target not in expected.attributes:
            return expected.counts
        axis = expected.attributes.index(self.target)
        if expected.domain.ordered[axis] > 2:
            return expected.counts
        classes = expected.project((self.target,)).counts / max(expected.total, TINY_COUNT)
        if classes.min() >= RARE / len(classes):
            return expected.counts
        even = max(1 - 1 / len(classes), 1 / 2)  # what remains of each class if all have one size
        shape = [-1 if index == axis else 1 for index in range(len(expected.domain))]
        return np.asarray(expected.counts * ((1 - classes) / even).reshape(shape))


def _exact(table: Marginal, counts: Measurement) -> Estimate:
    """Return the estimate of a table from exact counts, of its cells or of groups of these."""
    no_variance = np.zeros(table.counts.shape)
    return Estimate(
        table, dispersion=0.0, grouping=counts.grouping, measured=counts, posterior_variance=no_variance
    )
