"""The budget of a run, from the promise to each question.

A cost is a rho of zCDP. With delta 0 all noise is Laplace noise, and every cost named rho is an epsilon.

1. The run: `rho_for` turns epsilon and delta into rho. `Run.budget` sets the tests of criteria aside.
2. The numbers of rows per person get `FOR_ROWS` of what is left, if a person may have several rows. Which
   columns last along these rows gets `FOR_LASTING`, if there are candidates.
3. The tables: `BudgetOfTables` divides the rest among them (`TablePlan`). With one table it gets all.
4. Within a table, what the schema leaves open: `FOR_VALUES`, `FOR_BOUNDS` and so on, if it leaves any.
5. From a person to a row: of a person with k rows, each row has 1 / k^2 of rho, 1 / k of an epsilon
   (`Law.of_row`).
6. The questions of the default method: `Split`, with `PREVIOUS_ROWS` of the pairs' part in child tables.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass, replace
from math import fsum, sqrt
from typing import Literal

import numpy as np

from privsyn.errors import InputError, safe_repr, spelled, warn_noise
from privsyn.marginals.domain import Domain
from privsyn.marginals.tolerances import TINY_SHARE
from privsyn.private.noise_laws import GAUSSIAN, Law

LEAST_BUDGET = 1e-15  # in rho: with less, the noise would be tens of millions of records
LOUD = 10_000  # records: the noise in a single count of which the caller is warned

FOR_LASTING = 0.02  # share of the run, without tests: which columns of child tables last
FOR_ROWS = 0.02  # share of the run, without tests: the numbers of rows per person
OF_KEYS = 0.01  # factor of the budget of a table of keys alone: only the number of its rows is of use

# Shares of a table's budget, spent only if something of the kind is to be found. Mean total variation of
# pairs at epsilon 1 without a schema, on adult, hmeq and br2000: .0328 .155 .0124 for shares of 0.1 and 0.06,
# and .0325 .148 .0113 for 0.15 and 0.1. Larger shares cost more than they gain.
FOR_COMMON_VALUES, FOR_VALUES, FOR_BOUNDS, FOR_CLOSER_BOUNDS = 0.03, 0.12, 0.1, 0.02
FOR_SIZE = 0.005  # how many rows or numbers there are, which decides the shares of values and of bounds
MOST_FOR_VALUES = 0.4  # share of the second round, if values of many rows would not stand out otherwise
MOST_FOR_BOUNDS = 0.4  # share for bounds, if few rows would not stand out of the noise otherwise
MOST_FOR_SEARCH = 0.55  # share for values and bounds together
ALL_FOR_BOUNDS = FOR_SIZE + FOR_BOUNDS, FOR_SIZE + MOST_FOR_BOUNDS + FOR_CLOSER_BOUNDS  # at least, at most
FOR_LATTICES = 0.01  # a count of ten to twenty cells a column, of which only shares of some percent matter
FOR_SPREADS = 0.005  # which columns of orders spread less than their gaps: only quartiles matter
LEAST_FOR_FREQUENT, MOST_FOR_FREQUENT = 0.005, 0.02  # shares for frequent numbers, if any are looked for
THRESHOLDS = 0.3  # share of delta, if values are to be found

# Shares of what each row then has. experiments/ablations.py shows the effect of each on the benchmark tables,
# epsilon 0.2 to 5. experiments/robustness.py shows what the one-ways need if the table carries little
# information.
FIRST_COUNT = 0.05  # at the one-ways: how large is the table, and which values are rare
LEAST_ONE_WAYS = 0.1  # share of the one-ways
USUAL_NOISE = 0.002  # at which they get the least
GROWTH = 0.3  # exponent of their share in the noise
HOPELESS = 0.75  # noise of the informative cells, over their mean count, at which the one-ways get all
MOST_BESIDE_PAIRS = 0.6  # share of the one-ways, as long as pairs would show more than noise
ENOUGH = 0.2  # noise of the informative cells at which they would get all, were it not for the pairs
TREND_GROUPS = 8  # of an ordered attribute, in which its pairs show their trend

# With a target and much noise, the tables of each column with it get a share before all other tables: a model
# learns most from them. Chosen for the AUC of models on adult, br2000, hmeq and nltcs, epsilon 0.2 to 5. At a
# noise of .12 a share of .7 is best, at .3 all; up to .06 no share is better than the choice by scores.
LABEL_ALONE = 0.16  # noise of a cell, over its mean count, at which they get all
LEAST_LABEL = 0.5  # share: with less, the tables are counted in groups too coarse for a second look

# With weights of rows, the tables of each column with them get a share, whatever the scores: without such a
# table a weighted share has no narrow interval. The other tables lose in proportion.
WEIGHTS = 0.25

# Shares of what the one-ways leave; the pairs get the rest.
DEPARTURES = 0.025  # of pairs from independence, at least
MOST_DEPARTURES = 0.2  # at most: few records, many columns
CLEAR = 0.1  # standard deviation of a departure, over the number of records, that suffices for the choice
SETS = 0.02  # of the departures of sets of three to five attributes
SETS_WITH_TARGET = 0.05  # the same with a target, where the scores then are clear
CLEAR_SETS = 0.02  # standard deviation of such a score, over the number of records, up to which they are
SECOND_LOOK = 0.15  # at pairs and bigger tables
FROM_PAIRS = 0.15  # of the pairs' part: most that columns of important sets get of it

# Of what is left for pairs, the concordances of pairs of numbers get a share. experiments/ordered.py shows
# what they are worth.
LEAST_CONCORDANCES, MOST_CONCORDANCES = 0.1, 0.3
CERTAIN = 0.025  # standard deviation of a concordance, over the number of records, that suffices
UNCERTAIN = 0.1  # the same: with more noise no concordance is measured
SHARES_TRIED = 21  # from the least to the most
LEAST_RHO = 1e-300  # avoids division by 0
PREVIOUS_ROWS = 0.1  # share of the pairs' part in child tables: the columns of the rows before each row

# The same with Laplace noise. Its standard deviation is proportional to 1 / cost, not to 1 / sqrt(cost). So
# two measurements of a table are worse than one, and the departures of many sets cost more.
PURE_DEPARTURES, PURE_SETS, PURE_SECOND_LOOK = 0.02, 0.0, 0.0


@dataclass(frozen=True)
class Budget:
    """What a run may cost, for all rows of a person.

    Parameters
    ----------
    rho_of_questions, rho_of_tests : float
        Cost of all questions of discovery and of the method, and of the tests of criteria.
    deltas : mapping of a table to its delta for the thresholds of values
    """

    rho_of_questions: float
    rho_of_tests: float
    deltas: Mapping[str, float]


@dataclass(frozen=True)
class TablePlan:
    """What a table gets of the budget, and the detail of its links that this budget can measure.

    Parameters
    ----------
    rho : float
        Cost of all questions to the table, for all rows of a person.
    groups : int
        Number of groups of each number of a row above, in counts with the columns of a row of this table.
    lags : int
        Number of rows before each row whose columns its row has. 0 if the noise hides all links: then a row
        depends neither on rows before it nor on rows above it.
    """

    rho: float
    groups: int
    lags: int


SCORED = ("departures", "concordances", "pairs", "sets", "second_look")
"""The parts of a `Split` that follow scores; the others are asked of every column."""


@dataclass(frozen=True)
class Split:
    """The parts of the budget, as costs, in the order in which they are spent.

    Examples
    --------
    >>> split = Split.of(1.0, one_ways=0.5)
    >>> [round(part, 4) for part in (split.first_count, split.one_ways, split.departures, split.pairs)]
    [0.05, 0.45, 0.0125, 0.4025]
    >>> round(split.sets, 4), round(split.second_look, 4), round(split.total, 12)
    (0.01, 0.075, 1.0)
    """

    first_count: float
    one_ways: float
    label: float
    weights: float
    departures: float
    concordances: float
    pairs: float
    sets: float
    second_look: float

    @classmethod
    def of(
        cls,
        rho: float,
        *,
        one_ways: float,
        first_count: float = FIRST_COUNT,
        departures: float = DEPARTURES,
        concordances: float = 0.0,
        pure: bool = False,
    ) -> Split:
        """Return the split of `rho`.

        Parameters
        ----------
        rho : float
        one_ways : float
            Share of the one-ways, including the first count; 1 if no pairs are measured.
        first_count : float
            Share of the first count; see `first_share`.
        departures : float
            Share of the pairs' departures in what the one-ways leave.
        concordances : float
            Share of the concordances of pairs of numbers in what is left for pairs.
        pure : bool
            Whether the noise is Laplace.
        """
        first = first_count * rho
        if one_ways >= 1:
            return cls(first, rho - first, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        rest, remainder = one_ways * rho - first, rho - one_ways * rho
        shares = (departures, SETS, SECOND_LOOK)
        if pure:
            shares = (PURE_DEPARTURES, PURE_SETS, PURE_SECOND_LOOK)
        scored, sets, second = (share * remainder for share in shares)
        trends = concordances * (remainder - fsum((scored, sets, second)))
        pairs = rho - fsum((first, rest, scored, trends, sets, second))
        return cls(first, rest, 0.0, 0.0, scored, trends, pairs, sets, second)

    @classmethod
    def for_domain(
        cls,
        rho: float,
        domain: Domain,
        total: float,
        informative: Mapping[str, float],
        *,
        law: Law = GAUSSIAN,
        ranked: Collection[str] = (),
    ) -> Split:
        """Return the split for about `total` records over `domain`, by the noise of its one-ways.

        Parameters
        ----------
        rho : float
        domain : Domain
        total : float
        informative : mapping of an attribute to a number
            How many cells of each attribute stand out of the noise. The counts of others are public: they are
            not asked, and cost nothing.
        law : Law, optional
        ranked : collection of attributes, optional
            The attributes of listed values that have an order. Their few cells show their concordances.
        """
        one_ways = 1.0 if len(domain) < 2 else 0.0
        if len(domain) > 1 and (counted := len(informative)):
            of_gaussian = counted * law.rho(rho / counted)  # the one-ways share the cost
            noise = sqrt(counted / (2 * of_gaussian)) / total
            sizes = float(np.mean([domain.size_of[name] for name in informative]))
            share = one_way_share(noise * sizes, noise * float(np.mean([*informative.values()])))
            # Each column gets what it would get beside columns that are not public, and pairs get the rest.
            one_ways = share if share >= 1 else share * counted / len(domain)
        remainder = (1 - one_ways) * rho
        in_order = {name for name, ordered in domain.ordered_of.items() if ordered > 2}
        # Nominal pairs of few records hardly differ in what they show; they need the budget themselves.
        departures = departures_share(remainder, len(domain), total) if in_order else DEPARTURES
        numbers = len(in_order.difference(ranked))
        return cls.of(
            rho,
            one_ways=one_ways,
            first_count=first_share(len(domain), len(informative), pure=law.name == "laplace"),
            departures=departures,
            concordances=concordances_share(remainder, numbers, total, law),
            pure=law.name == "laplace",
        )

    def without(self, part: Literal["departures", "concordances", "sets", "second_look"]) -> Split:
        """Return the split if a question is not asked: the pairs get its part.

        >>> Split.of(1.0, one_ways=0.5).without("sets").total
        1.0
        """
        return replace(self, pairs=self.pairs + getattr(self, part), **{part: 0.0})

    def for_important(self, factor: float) -> Split:
        """Return the split with `factor` times the budget for the one-ways, and less for departures.

        The pairs lose what the one-ways gain, at most `FROM_PAIRS` of theirs. The one-ways at most double. So
        in a large table, where they have little noise and a small part, they take little.

        The departures show which pairs are worth measuring. Important ones are measured anyway. So departures
        get their least share, whatever their noise.

        >>> split = Split.of(1.0, one_ways=0.5).for_important(1.2)
        >>> round(split.one_ways, 4), round(split.pairs, 4), round(split.total, 12)
        (0.5104, 0.3421, 1.0)
        """
        remainder = self.total - self.first_count - self.one_ways
        departures = min(self.departures, DEPARTURES * remainder)
        pairs = self.pairs + self.departures - departures
        moved = min(min(factor - 1, 1.0) * self.one_ways, FROM_PAIRS * pairs)
        return replace(self, one_ways=self.one_ways + moved, departures=departures, pairs=pairs - moved)

    def for_label(self, label: float, one_ways: float) -> Split:
        """Return the split with a budget for the tables of each column with the target, and for one-ways.

        All other questions lose in proportion. The tables with the target get what is left without these.

        >>> split = Split.of(1.0, one_ways=0.5).for_label(0.3, 0.2)
        >>> round(split.label, 4), round(split.pairs, 4), round(split.total, 12)
        (0.3, 0.3622, 1.0)
        """
        before, after = self.rest - self.one_ways, self.rest - label - one_ways
        if not before or after <= TINY_SHARE * self.rest:
            nothing = dict.fromkeys(SCORED, 0.0)
            return replace(self, one_ways=one_ways, label=self.rest - one_ways, **nothing)
        parts = {name: getattr(self, name) * (after / before) for name in SCORED}
        return replace(self, one_ways=one_ways, label=label, **parts)

    def for_weights(self) -> Split:
        """Return the split with a budget for the tables of each column with the weights of rows.

        The tables with the target, and all that follows scores, lose it in proportion.

        >>> split = Split.of(1.0, one_ways=0.5).for_weights()
        >>> round(split.weights, 4), round(split.pairs, 4), round(split.total, 12)
        (0.125, 0.3019, 1.0)
        """
        parts = {name: (1 - WEIGHTS) * getattr(self, name) for name in ("label", *SCORED)}
        return replace(self, weights=self.rest - self.one_ways - fsum(parts.values()), **parts)

    def for_sets(self, sets: int, total: float, law: Law) -> Split:
        """Return the split for the scores of some sets with the target: with more if that makes them clear.

        What two columns say of a rare class together moves few of about `total` records. The pairs lose what
        the scores gain, and have it all if there are no sets.

        >>> split = Split.of(1.0, one_ways=0.5)
        >>> [round(split.for_sets(100, total, GAUSSIAN).sets, 4) for total in (1e3, 1e5)]
        [0.01, 0.025]
        """
        if not sets:
            return self.without("sets")
        more = self.sets * SETS_WITH_TARGET / SETS
        if self.pairs < more or noise_in_scores(more, sets, law) > CLEAR_SETS * total:
            return self
        return replace(self, sets=more, pairs=self.pairs - (more - self.sets))

    @property
    def asks_pairs(self) -> bool:
        """Whether any table of two columns is asked."""
        return bool(self.pairs or self.label or self.weights)

    @property
    def rest(self) -> float:
        """What the first count leaves."""
        return self.total - self.first_count

    @property
    def total(self) -> float:
        """The budget that was split."""
        return fsum(astuple(self))


def first_share(attributes: int, counted: int, *, pure: bool) -> float:
    """Return the share of the budget of the first count at the one-ways, of which some are counted.

    With a single attribute nothing else is measured. It then gets all of a Laplace budget, because two counts
    would be noisier than one.

    >>> first_share(1, 1, pure=True), first_share(1, 1, pure=False), first_share(5, 1, pure=False)
    (1.0, 0.05, 0.01)
    """
    return 1.0 if attributes < 2 and counted and pure else FIRST_COUNT * counted / attributes


def one_way_share(noise: float, informative: float) -> float:
    """Return the share of the budget for the one-ways.

    The noisier the counts, the more of the learnable information is in the one-ways. Their share first grows
    as a power of the noise, chosen for the errors of pairs and models over five tables, epsilon 0.2 to 5. In
    short and wide tables it grows in proportion to the noise of the informative cells. Pairs keep their part
    until this noise is `HOPELESS` of the mean count. With 0.5 in place of 0.75, abalone, insurance, obesity
    and wine have 1.02 times the error of rank correlations (epsilon 0.1 to 0.3, six seeds).

    Parameters
    ----------
    noise : float
        Standard deviation of a one-way count over the mean count, if the one-ways had the whole budget.
    informative : float
        The same, with only the cells that stand out of the noise; see `columns.informative_cells`.

    Examples
    --------
    >>> [round(one_way_share(noise, noise / 2), 2) for noise in (0.001, 0.01, 0.05, 0.4, 1.2, 1.5)]
    [0.1, 0.16, 0.26, 0.6, 0.8, 1.0]
    """
    share = max(LEAST_ONE_WAYS, LEAST_ONE_WAYS * (noise / USUAL_NOISE) ** GROWTH, informative / ENOUGH)
    return min(max(min(share, MOST_BESIDE_PAIRS), informative / HOPELESS), 1.0)


def label_share(noise: float) -> float:
    """Return the share of the tables of each column with the target, in what the first count leaves.

    They are all that a model can learn from if noise hides everything else. If they are clear, scores choose
    better which tables to measure, and these among them.

    Parameters
    ----------
    noise : float
        Standard deviation of a count over the mean count of an informative cell, if these tables had it all.
        It is the mean over the classes of the target.

    Examples
    --------
    >>> [round(label_share(noise), 2) for noise in (0.02, 0.06, 0.08, 0.12, 2.0)]
    [0.0, 0.0, 0.5, 0.75, 1.0]
    """
    share = min(noise / LABEL_ALONE, 1.0)
    return share if share >= LEAST_LABEL else 0.0


def check_enough(cost: float, law: Law, epsilon: float, largest: int) -> None:
    """Refuse a budget with which the noise would exceed every count, and warn of one with which it may.

    The bound on a person's rows is chosen during the run. The budget must suffice for the largest, because
    no run may fail halfway. The warning is about the smallest, 1 row: with any other the noise is larger.

    Parameters
    ----------
    cost : float
        Of a person.
    law : Law
    epsilon : float
    largest : int
        The largest bound on a person's rows; 1 if each row is a person.
    """
    if law.rho(law.of_row(cost, largest)) < LEAST_BUDGET:
        lower = "" if largest == 1 else f", or give a lower {spelled('rows_per_unit')}"
        named = f"{spelled('epsilon')} {safe_repr(epsilon)}"
        raise InputError(f"{named} is too small: the noise exceeds every count. Raise it{lower}")
    noise = law.tail(law.scale(cost, 1.0))
    if noise > LOUD:
        warn_noise(epsilon, noise)


def departures_share(rho: float, attributes: int, total: float) -> float:
    """Return the share of `rho` for the departures of all pairs: enough to tell strong pairs from weak ones.

    A pair that is worth measuring departs by more than a tenth of the records. If the noise is larger, the
    budget of the pairs is spread over all of them.

    >>> [departures_share(0.005, 7, total) for total in (400.0, 1000.0, 10_000.0)]
    [0.2, 0.2, 0.025]
    """
    pairs = attributes * (attributes - 1) / 2
    needed = pairs / (2 * (CLEAR * total) ** 2)  # the cost of sensitivity sqrt(pairs) with this noise
    return MOST_DEPARTURES if needed >= MOST_DEPARTURES * rho else max(DEPARTURES, needed / rho)


def noise_in_scores(rho: float, tables: int, law: Law) -> float:
    """Return the standard deviation of the noise in each of the departures of some tables, in records.

    >>> [round(noise_in_scores(0.005, tables, GAUSSIAN)) for tables in (1, 400)]
    [10, 200]
    """
    return 1 / sqrt(2 * max(law.rho(rho / max(tables, 1)), LEAST_RHO))


def concordances_share(rho: float, numbers: int, total: float, law: Law = GAUSSIAN) -> float:
    """Return the share of `rho` for the concordances of all pairs of `numbers` columns: enough to be clear.

    The fewer records there are, the larger the share. It is 0 if even the largest would not show anything.

    >>> [round(concordances_share(0.005, 7, total), 3) for total in (100.0, 1000.0, 3000.0, 10_000.0)]
    [0.0, 0.3, 0.3, 0.1]
    """
    pairs = numbers * (numbers - 1) // 2
    if not (pairs and rho > 0):
        return 0.0
    shares = np.linspace(LEAST_CONCORDANCES, MOST_CONCORDANCES, SHARES_TRIED)
    # The answers share the cost equally. This is the noise of each, over the number of records.
    noise = 1 / np.sqrt(np.maximum(2 * law.rho(shares * rho / pairs), LEAST_RHO)) / total
    if noise[-1] > UNCERTAIN:
        return 0.0
    return float(shares[min(int(np.count_nonzero(noise > CERTAIN)), SHARES_TRIED - 1)])
