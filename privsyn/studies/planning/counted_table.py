"""What a run counts of a table: its budget, its noise and its errors, from public facts alone.

Distributions are assumed to be typical. How strongly columns depend on each other is public nowhere, and
decides the error of pairs: it is planned for a weak, a usual and a strong dependence. Time and memory are
rough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, reduce
from itertools import combinations, product
from math import hypot, prod, sqrt

import numpy as np

from privsyn.inference.higher_order import candidates
from privsyn.inference.ordered.binning import HEAVY
from privsyn.inference.prior.dispersion import MEAN_OF_ABSOLUTE
from privsyn.inference.selection import BESIDE
from privsyn.inference.weights import IMPORTANT, important_in
from privsyn.marginals.domain import Attributes, Domain, Floats
from privsyn.methods.budget import FIRST_COUNT, PREVIOUS_ROWS, Split
from privsyn.methods.columns import IMPORTANT_COLUMN
from privsyn.methods.reading import OF_LINKED
from privsyn.private.noise_laws import Law
from privsyn.synthesis.chains import NUMBER_OF_ROWS

USUAL_DEPENDENCE = 0.08
"""Assumed total variation between a pair of columns and the product of its marginals, in the values or groups
in which the pair is counted."""

WEAK, STRONG = 0.01, 0.5
"""`USUAL_DEPENDENCE` of columns that hardly depend on each other, and of columns that strongly do. Planned
errors have the range between both. At epsilon 1 the errors of 18 tables (coded, of numbers, linked) are those
of dependences of .015 to .4."""

USUAL_LINK = 0.2
"""`USUAL_DEPENDENCE` of a column and an attribute of another row, in groups of similar size. The means in
three public databases, with numbers in eighths, are .13 to .28 (number of child rows), .13 to .19 (parent and
child) and .14 to .20 (a row and the next)."""

OF_PREVIOUS_ROW = "previous "
"""Precedes the name of a column of the row before."""

COMPARED, COMPARED_RANGES = 10, 20
"""Values, and ranges of numbers, in which `evaluate` compares tables, at most; beside missing cells."""

CLEAR_PAIR = 0.8
"""Mean rows of a cell of a pair of ordered columns at the level that is measured, in standard deviations of
noise over the root of the dependence. The cells of runs on 17 tables at epsilon 0.2 to 5 had 0.7 standard
deviations, where columns depend strongly, to 10."""

CLEAR_ROWS = 3.0
"""Rows of a group of neighbouring values of one column, in standard deviations of noise."""

MOST_GROUPS = round(1 / HEAVY)
"""Groups in which a column of numbers is counted, at most."""

SHARES_MEASURED = (1.0, 0.5, 0.25, 0.125)
"""Shares of the pairs that may be measured. With Laplace noise, fewer pairs are measured much better."""


@dataclass(frozen=True, eq=False)
class CountedTable:
    """What a run counts of one table, and the errors that are expected of it.

    By default no other row is linked to its rows.

    Parameters
    ----------
    law : Law
    rho : float
        Budget of a row.
    rows : float
        Number of rows that are counted in one-way tables.
    sizes : mapping of a column to its number of codes
    groups : mapping of a column to its number of groups in pairs that link rows
    important : tuple of sets of columns that matter most
    bound : int
        On what a person adds to a table of counts.
    pair_rows : float
        Rows that are counted in a pair for each row that is counted in a one-way table.
    above : mapping of an attribute of the person, or of a row above, to its number of groups
    below : mapping of each attribute that rows below know to its number of groups
    previous : mapping of an attribute of the row before to its number of groups
    lags : int
        See `TablePlan`.
    weights : mapping of a column that sums up rows below to the weight of an error in a table with it
    finding : float
        Share of the table's budget with which values, bounds and grids are found. `rho` is the rest.
    exact : tuple of sets of columns whose exact counts are public
    ordered : set of the columns whose neighbouring values are joined to groups
    weighted : bool
        Whether rows have weights, with which each column is counted.
    """

    law: Law
    rho: float
    rows: float
    sizes: Mapping[str, int]
    groups: Mapping[str, int]
    important: tuple[Attributes, ...] = ()
    bound: int = 1
    pair_rows: float = 1.0
    above: Mapping[str, int] = field(default_factory=dict)
    below: Mapping[str, int] = field(default_factory=dict)
    previous: Mapping[str, int] = field(default_factory=dict)
    lags: int = 1
    weights: Mapping[str, float] = field(default_factory=dict)
    finding: float = 0.0
    exact: tuple[Attributes, ...] = ()
    ordered: frozenset[str] = frozenset()
    weighted: bool = False

    @cached_property
    def split(self) -> tuple[Split, Floats]:
        """The parts of the budget, and the share of each column in the budget of one-way tables."""
        counted = {**self.sizes, **self.above}
        domain = Domain(tuple(counted), tuple(counted.values()))
        split, shares = split_for(domain, self.rho, self.rows, self.law, self.important)
        return (split.for_weights() if self.weighted and len(self.sizes) > 1 else split), shares

    @property
    def parts(self) -> dict[str, float]:
        """The questions, each with its share of the table's budget."""
        split, _ = self.split
        costs = {
            "one-ways": split.first_count + split.one_ways,
            "scores": split.departures + split.concordances + split.sets,
            "pairs with the weights": split.weights,
            "pairs and bigger tables": split.pairs + split.second_look,
        }
        shares = {question: (1 - self.finding) * cost / self.rho for question, cost in costs.items()}
        shares = {"values, bounds and grids": self.finding} | shares
        return {question: share for question, share in shares.items() if share}

    @cached_property
    def pair_costs(self) -> tuple[float, float]:
        """The budget of an important pair, and of another pair that weighs 1, if all are measured.

        Errors fall with the root of the budget. So their weighted sum is least with budgets as weight^(2/3).
        """
        split, _ = self.split
        cost = split.pairs * (1 - PREVIOUS_ROWS * bool(self.previous)) + split.second_look
        pairs = [*combinations(self.sizes, 2), *product(self.sizes, [*self.above, *self.previous])]
        if not self.important:
            second_before = max(self.lags - 1, 0) * len(self.sizes)
            weight = sum(map(self._weight, pairs)) + second_before
            return (cost / max(weight, 1.0),) * 2
        among = important_in(pairs, self.important)
        if not among.any() or among.all():
            return (cost / max(len(pairs), 1),) * 2
        weights = np.where(among, IMPORTANT ** (2 / 3), 1.0)
        # Others err at most `BESIDE` times as much after each of two looks: this budget is left to them.
        gained = 1 - BESIDE**-4 * float(np.mean(~among))
        gained = min(gained, float(weights[among].sum() / weights.sum()))
        return float(cost * gained / among.sum()), float(cost * (1 - gained) / (~among).sum())

    @cached_property
    def sigmas(self) -> dict[str, float]:
        """The noise in a count of each one-way table, of all measurements together."""
        return {
            name: 1 / sqrt(2 * (rho + self._rho_of_pairs(name))) for name, rho in self._rhos_alone.items()
        }

    @cached_property
    def _rhos_alone(self) -> dict[str, float]:
        """The rho of each one-way table, without the pairs."""
        (split, shares), counted = self.split, {**self.sizes, **self.above}
        first_count = self.law.rho(split.first_count / len(counted))
        one_ways = [self.law.rho(split.one_ways * share) for share in shares]
        return {name: first_count + one_way for name, one_way in zip(counted, one_ways, strict=True)}

    def _rho_of_pairs(self, name: str) -> float:
        """Return the rho with which all pairs together measure a column.

        A pair with b values of the other column sums b noisy counts for a value. If it is counted in fewer
        groups of an ordered column than the column alone, it says little of the column.
        """
        partners = [column for column in {**self.sizes, **self.above} if column != name]
        levels = [self._levels((name, partner)) for partner in partners]
        if any(level[name] < self._joined.get(name, 0) for level in levels):
            return 0.0
        counts = sum(1 / level[partner] for level, partner in zip(levels, partners, strict=True))
        return self.pair_rows**2 * self.law.rho(self.pair_costs[1]) * counts

    @cached_property
    def _joined(self) -> dict[str, int]:
        """The number of groups of each column: values are joined until each group has `CLEAR_ROWS`."""
        clear = {name: self.rows * sqrt(2 * self._rhos_alone[name]) / CLEAR_ROWS for name in self.ordered}
        groups = {name: min(max(round(number), 2), MOST_GROUPS) for name, number in clear.items()}
        return {name: min(size, groups.get(name, size)) for name, size in self.sizes.items()}

    @cached_property
    def one_way_errors(self) -> dict[str, float]:
        """The error of each column, in the groups in which it is counted."""
        return self._one_way_errors(self._joined)

    @cached_property
    def group_errors(self) -> dict[str, float]:
        """The errors of columns and of attributes of rows above, in groups."""
        sizes = {**self.groups, **self.above}
        return {
            name: one_way_error(typical_shares(size), self.sigmas[name], self.rows)
            for name, size in sizes.items()
        }

    def error(self, columns: Attributes, dependence: float = USUAL_DEPENDENCE) -> float:
        """Return the expected error of a table of own columns: of their dependence and of each column.

        A pair is counted in groups of its ordered columns. The error is that of the groups, as in a release.
        """
        if self._is_known(columns):
            return 0.0
        sizes = {name: self._joined[name] for name in columns}
        if len(columns) == 2:
            sizes = self._levels(columns, dependence)
        sides = tuple(self._shares(name, size) for name, size in sizes.items())
        if important_in([columns], self.important)[0]:
            measured = len(columns) < 3 or self.split[0].sets  # Laplace noise: triples are not measured
            rho = self.law.rho(self.pair_costs[0]) if measured else 0.0
            (error,) = _table_errors(sides, [rho], self.rows, dependence)
        else:
            error = self._pair_error(sides, columns, dependence)
        return hypot(error, *self._one_way_errors(sizes).values())

    def compared_error(self, columns: Attributes) -> float:
        """Return the error that `evaluate` is expected to find in a table of a column or of two.

        It compares more values or ranges of each column than most pairs are counted in, and rows: both tables
        differ from what they are drawn from by chance.
        """
        if self._is_known(columns):
            return 0.0
        limits = {name: COMPARED_RANGES if name in self.ordered else COMPARED for name in columns}
        sizes = {name: min(self.sizes[name], limits[name]) for name in columns}
        scatter = [
            float(np.sqrt(side * (1 - side)).sum()) for side in map(self._shares, sizes, sizes.values())
        ]
        # Of the differences of the cells of two samples of n rows, in total variation; of two columns, of
        # their dependence alone. Rows follow counts of few values, so this is too much for such columns.
        chance = MEAN_OF_ABSOLUTE * prod(scatter) / sqrt(2 * self.rows)
        noise = self._one_way_errors(sizes).values()
        if len(columns) == 1:
            return hypot(chance, *noise)
        groups = self._levels(columns)
        sides = tuple(self._shares(name, size) for name, size in groups.items())
        return hypot(chance, self._pair_error(sides, columns, USUAL_DEPENDENCE), *noise)

    def _levels(self, pair: Attributes, dependence: float = USUAL_DEPENDENCE) -> dict[str, int]:
        """Return the number of groups of both columns of a pair: more, the stronger they depend."""
        counted = {**self._joined, **self.above}
        sizes = {name: counted[name] for name in pair}
        ordered = [name for name in pair if name in self.ordered]
        if not ordered:
            return sizes
        rho = self.law.rho(self.pair_rows**2 * self._weight(pair) * self.pair_costs[1])
        cells = self.rows * sqrt(2 * rho * dependence) / CLEAR_PAIR
        cells /= prod(sizes[name] for name in pair if name not in ordered)
        groups = max(round(cells ** (1 / len(ordered))), 2)
        return sizes | {name: min(sizes[name], groups) for name in ordered}

    def _shares(self, name: str, size: int) -> Floats:
        """Return the assumed shares of the values of a column, which are equal for groups of numbers."""
        return np.full(size, 1 / size) if name in self.ordered else typical_shares(size)

    def link_error(self, pair: Attributes) -> float:
        """Return the expected error of a column and an attribute of another row, both in groups.

        Attributes of other rows are not counted in a table without links: nothing of the dependence is left.
        """
        groups, error = {**self.groups, **self.above, **self.previous}, USUAL_LINK
        if groups.keys() >= {*pair}:
            sides = tuple(typical_shares(groups[name]) for name in pair)
            error = self._pair_error(sides, pair, USUAL_LINK)
        columns = [name.removeprefix(OF_PREVIOUS_ROW) for name in pair if name in groups]
        return hypot(error, *(self.group_errors[name] for name in columns))

    def _pair_error(self, sides: tuple[Floats, ...], pair: Attributes, dependence: float) -> float:
        cost = self.pair_rows**2 * self._weight(pair) * self.pair_costs[1]
        return pair_error(sides, cost, self.rows, self.law, dependence)

    def _weight(self, pair: Attributes) -> float:
        """Return the budget of a pair over the budget of another one; see `pair_costs`.

        An error in a pair with the number of rows of the person weighs `OF_LINKED` times; with the number of
        child rows, or with what says how a lasting column of theirs runs, as in `weights`.
        """
        weights = {NUMBER_OF_ROWS: OF_LINKED, **self.weights}
        return float(prod(weights.get(name, 1.0) for name in pair) ** (2 / 3))

    def _one_way_errors(self, sizes: Mapping[str, int]) -> dict[str, float]:
        """Return the error of each column in a number of groups; the noise of joined groups is summed."""
        errors = dict.fromkeys(sizes, 0.0)
        for name, size in sizes.items():
            if not self._is_known((name,)):
                joined = self._joined.get(name, size) / size if name in self.ordered else 1.0
                sigma = sqrt(joined) * self.sigmas[name]
                errors[name] = one_way_error(self._shares(name, size), sigma, self.rows)
        return errors

    def _is_known(self, columns: Attributes) -> bool:
        """Return whether the exact counts of some columns together are public."""
        return any(set(columns) <= set(exact) for exact in self.exact)


def split_for(
    domain: Domain, rho: float, rows: float, law: Law, important: tuple[Attributes, ...] = ()
) -> tuple[Split, Floats]:
    """Return the parts of the budget, and the share of each column in the budget of one-way tables."""
    sigma = 1 / sqrt(2 * law.rho(FIRST_COUNT * rho / len(domain)))  # of the first look at a column
    above_noise = {
        name: float(np.count_nonzero(rows * typical_shares(size) > sigma))
        for name, size in domain.size_of.items()
    }
    split = Split.for_domain(rho, domain, rows, above_noise, law=law)
    if not candidates(domain, important=important):
        split = split.without("sets")
    named = np.isin(domain.names, [name for columns in important for name in columns])
    shares = np.full(len(domain), 1 / len(domain))
    if split.pairs:
        more = np.where(named, IMPORTANT_COLUMN, 1.0) * shares
        split, shares = split.for_important(float(more.sum())), more / more.sum()
    return split, shares


@cache
def typical_shares(size: int) -> Floats:
    """Return typical shares of the values of a column, by Zipf's law: the k-th is 1/k of the first."""
    weights = 1 / np.arange(1, size + 1)
    shares = np.asarray(weights / weights.sum())
    shares.setflags(write=False)
    return shares


def one_way_error(shares: Floats, sigma: float, rows: float) -> float:
    """Return the expected error of a column; the error of a value is at most its number of rows."""
    errors = np.minimum(MEAN_OF_ABSOLUTE * sigma * sqrt(1 - 1 / len(shares)), rows * shares)
    return float(errors.sum() / (2 * rows))


def pair_error(
    sides: tuple[Floats, ...], cost: float, rows: float, law: Law, dependence: float = USUAL_DEPENDENCE
) -> float:
    """Return the mean error of pairs whose budget is split evenly among the best share of them to measure.

    Parameters
    ----------
    sides : tuple of arrays
        The shares of the values of each column.
    cost : float
        Budget of a pair, if all are measured.
    """
    rhos = [law.rho(cost / share) for share in SHARES_MEASURED]
    unmeasured, *errors = _table_errors(sides, [0.0, *rhos], rows, dependence)
    return min(
        share * error + (1 - share) * unmeasured for share, error in zip(SHARES_MEASURED, errors, strict=True)
    )


def _table_errors(
    sides: tuple[Floats, ...], rhos: list[float], rows: float, dependence: float
) -> list[float]:
    """Return the posterior error of a dependence for each rho; see `privsyn.inference.selection`."""
    expected = rows * reduce(np.multiply.outer, sides)
    root = dependence * 2 * rows / (MEAN_OF_ABSOLUTE * np.sqrt(expected).sum())
    prior = root**2 * expected
    remaining = [MEAN_OF_ABSOLUTE * np.sqrt(prior / (1 + 2 * rho * prior)).sum() for rho in rhos]
    free = sqrt(prod(1 - 1 / len(side) for side in sides))
    return [float(error / (2 * rows) * free) for error in remaining]
