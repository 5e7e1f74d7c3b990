"""Expectation: the split of a run's budget, its noise, error, time and memory, from public facts alone.

Distributions and dependences are assumed to be typical, so errors are accurate to a factor of about two. Time
and memory are rough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations
from math import hypot, isnan, prod, sqrt
from types import MappingProxyType

import numpy as np

from privsyn.inference.higher_order import candidates
from privsyn.inference.prior.dispersion import MEAN_OF_ABSOLUTE
from privsyn.inference.selection import BESIDE
from privsyn.inference.weights import IMPORTANT, important_in
from privsyn.marginals.domain import Attributes, Domain, Floats
from privsyn.methods.budget import FIRST_LOOK, Split
from privsyn.methods.columns import IMPORTANT_COLUMN
from privsyn.private.laws import Law

USUAL_DEPENDENCE = 0.06
"""Assumed total variation between a pair of columns and the product of its marginals. Planned errors of pairs
were 0.7 to 2.3 times the measured errors on five tables at epsilon 0.2, 1 and 5."""

SHARES_MEASURED = (1.0, 0.5, 0.25, 0.125)
"""Shares of the pairs that may be measured. With Laplace noise, fewer pairs are measured much better."""

# Seconds on one core of 2025, and bytes, fitted to tables of 6,000 to 49,000 rows.
START, A_PAIR, A_CELL = 0.7, 0.5e-6, 2.5e-6  # s; a pair and row of the fit; a cell of the synthetic table
PROGRAM, A_ROW = 250e6, 80.0  # bytes; a cell of the table


@dataclass(frozen=True)
class Expectation:
    """The expected result for a table with this number of rows.

    Parameters
    ----------
    rows : int
    parts : mapping of a question to its share of the budget
    count_noise : float
        Standard deviation of the noise in a one-way count, from all measurements combined, in rows.
    one_way_error, pair_error : float
        Mean expected total variation of the tables of one and of two columns; the second is NaN without
        pairs.
    seconds : float
    memory : float
        In bytes.
    pair_cost : float
        Budget of one pair, if all are measured, for one row.
    important : mapping of a set of columns to its expected error
        The columns that matter most together; see `in_words`.
    """

    rows: int
    parts: dict[str, float]
    count_noise: float
    one_way_error: float
    pair_error: float
    seconds: float
    memory: float
    pair_cost: float = 0.0
    important: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def error(self) -> float:
        """The error of two columns, or of one if there are no two."""
        return self.one_way_error if isnan(self.pair_error) else self.pair_error


Named = Mapping[str, tuple[Attributes, ...]]
"""Sets of columns that matter most, in words, and the sets of attributes that each is counted as."""


def expect(
    domain: Domain,
    rho: float,
    rows: int,
    law: Law,
    *,
    finding: float,
    important: Named = MappingProxyType({}),
) -> Expectation:
    """Return the parts of the budget and the expected errors, following `methods.default`."""
    sets = tuple(one for each in important.values() for one in each)
    split, shares = split_for(domain, (1 - finding) * rho, rows, law, sets)
    spent = {
        "values, bounds and grids": finding * rho,
        "one-ways": split.first_look + split.one_ways,
        "scores": split.departures + split.concordances + split.sets,
        "pairs and bigger tables": split.pairs + split.second_look,
    }
    pairs = list(combinations(domain.names, 2))
    an_important, a_pair = _costs_of_pairs(split.pairs + split.second_look, pairs, sets)
    # Each pair also measures its two columns; a pair with b values sums b noisy counts for a value.
    of_others = 2 * law.rho(a_pair) * sum(1 / size for size in domain.sizes)
    first_look = law.rho(split.first_look / len(domain))
    sigmas = [1 / sqrt(2 * (first_look + law.rho(split.one_ways * share)) + of_others) for share in shares]
    size = dict(zip(domain.names, domain.sizes, strict=True))
    alone = {name: one_way_error(size[name], sigma, rows) for name, sigma in zip(size, sigmas, strict=True)}

    def error_of(names: Attributes) -> float:
        sizes = tuple(size[name] for name in names)
        if not important_in([names], sets)[0]:
            own = pair_error(sizes, a_pair, rows, law)
        else:
            measured = len(names) < 3 or split.sets  # triples are not measured with Laplace noise
            own = _table_error(sizes, law.rho(an_important) if measured else 0.0, rows)
        return hypot(own, *(alone[name] for name in names))

    of_pairs = list(map(error_of, pairs))
    cells = rows * len(domain)
    return Expectation(
        rows=rows,
        parts={what: part / rho for what, part in spent.items() if part},
        count_noise=float(np.mean(sigmas)),
        one_way_error=float(np.mean([*alone.values()])),
        pair_error=float(np.mean(of_pairs)) if of_pairs else float("nan"),
        seconds=START + A_PAIR * rows * len(pairs) + A_CELL * cells,
        memory=PROGRAM + A_ROW * cells,
        pair_cost=a_pair if of_pairs else 0.0,
        important={what: float(np.mean([*map(error_of, each)])) for what, each in important.items()},
    )


def split_for(
    domain: Domain, rho: float, rows: float, law: Law, important: tuple[Attributes, ...] = ()
) -> tuple[Split, Floats]:
    """Return the parts of the budget, and the share of each column in the budget of one-way tables."""
    split = Split.for_domain(rho, domain, rows, _informative(domain, rho, rows, law), law=law)
    if not candidates(domain, important=important):
        split = split.without("sets")
    named = np.isin(domain.names, [name for one in important for name in one])
    shares = np.full(len(domain), 1 / len(domain))
    if split.pairs:
        more = np.where(named, IMPORTANT_COLUMN, 1.0) * shares
        split, shares = split.for_important(float(more.sum())), more / more.sum()
    return split, shares


def _costs_of_pairs(
    cost: float, pairs: Sequence[Attributes], important: tuple[Attributes, ...]
) -> tuple[float, float]:
    """Return the budget of an important pair, and of another one, if all are measured.

    Errors fall with the root of the budget. So their weighted sum is least with budgets as weight^(2/3).
    """
    among = important_in(pairs, important)
    weights = np.where(among, IMPORTANT ** (2 / 3), 1.0)
    if not among.any() or among.all():
        each = cost / max(len(pairs), 1)
        return each, each
    # Others err at most `BESIDE` times as much after each of two looks: this budget is left to them.
    gained = 1 - BESIDE**-4 * float(np.mean(~among))
    gained = min(gained, float(weights[among].sum() / weights.sum()))
    return float(cost * gained / among.sum()), float(cost * (1 - gained) / (~among).sum())


def _informative(domain: Domain, rho: float, rows: float, law: Law) -> Floats:
    """Return how many values of each column are expected to stand out of the noise of the first look."""
    sigma = 1 / sqrt(2 * law.rho(FIRST_LOOK * rho / len(domain)))
    return np.array([np.count_nonzero(rows * typical_shares(size) > sigma) for size in domain.sizes], float)


def typical_shares(size: int) -> Floats:
    """Return typical shares of the values of a column, by Zipf's law: the k-th is 1/k of the first."""
    weights = 1 / np.arange(1, size + 1)
    return np.asarray(weights / weights.sum())


def one_way_error(size: int, sigma: float, rows: float) -> float:
    """Return the expected error; the error of a value is at most its number of rows."""
    errors = np.minimum(MEAN_OF_ABSOLUTE * sigma * sqrt(1 - 1 / size), rows * typical_shares(size))
    return float(errors.sum() / (2 * rows))


def pair_error(
    sizes: tuple[int, ...], cost: float, rows: float, law: Law, dependence: float = USUAL_DEPENDENCE
) -> float:
    """Return the mean error of pairs whose budget is split evenly among the best share of them to measure."""
    return min(
        share * _table_error(sizes, law.rho(cost / share), rows, dependence)
        + (1 - share) * _table_error(sizes, 0.0, rows, dependence)
        for share in SHARES_MEASURED
    )


def _table_error(
    sizes: tuple[int, ...], rho: float, rows: float, dependence: float = USUAL_DEPENDENCE
) -> float:
    """Return the posterior error of a dependence; see `privsyn.inference.selection`."""
    expected = rows * reduce(np.multiply.outer, map(typical_shares, sizes))
    root = dependence * 2 * rows / (MEAN_OF_ABSOLUTE * np.sqrt(expected).sum())
    prior = root**2 * expected
    left = MEAN_OF_ABSOLUTE * np.sqrt(prior / (1 + 2 * rho * prior)).sum()
    return float(left / (2 * rows) * sqrt(prod(1 - 1 / size for size in sizes)))
