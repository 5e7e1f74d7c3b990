"""What to expect of a run on a table of which only the schema and a rough number of rows are known.

Distributions and dependences are assumed to be typical, so errors are accurate to a factor of about two.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import hypot, isnan, sqrt

import numpy as np

from privsyn.inference.higher_order import candidates
from privsyn.inference.prior.dispersion import MEAN_OF_ABSOLUTE
from privsyn.marginals.domain import Domain, Floats
from privsyn.methods.budget import FIRST_LOOK, Split
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
    """

    rows: int
    parts: dict[str, float]
    count_noise: float
    one_way_error: float
    pair_error: float
    seconds: float
    memory: float
    pair_cost: float = 0.0

    @property
    def error(self) -> float:
        """The error of two columns, or of one if there are no two."""
        return self.one_way_error if isnan(self.pair_error) else self.pair_error


def expect(domain: Domain, rho: float, rows: int, law: Law, *, finding: float) -> Expectation:
    """Return the parts of the budget and the expected errors, following `methods.default`."""
    left = (1 - finding) * rho
    split = Split.for_domain(left, domain, rows, _informative(domain, left, rows, law), law=law)
    if not candidates(domain):
        split = split.without("sets")
    first, second = split.first_look + split.one_ways, split.pairs + split.second_look
    spent = {
        "values, bounds and grids": finding * rho,
        "one-ways": first,
        "scores": split.departures + split.concordances + split.sets,
        "pairs and bigger tables": second,
    }
    number = len(domain) * (len(domain) - 1) // 2
    a_pair = second / max(number, 1)
    # Each pair also measures its two columns; a pair with b values sums b noisy counts for a value.
    of_others = 2 * law.rho(a_pair) * sum(1 / size for size in domain.sizes)
    both = (split.first_look, split.one_ways)
    sigma = 1 / sqrt(2 * sum(law.rho(cost / len(domain)) for cost in both) + of_others)
    one_ways = [one_way_error(size, sigma, rows) for size in domain.sizes]
    of_pairs = [
        hypot(pair_error(a, b, a_pair, rows, law), one, two)
        for (a, one), (b, two) in combinations(zip(domain.sizes, one_ways, strict=True), 2)
    ]
    cells = rows * len(domain)
    return Expectation(
        rows=rows,
        parts={what: part / rho for what, part in spent.items() if part},
        count_noise=sigma,
        one_way_error=float(np.mean(one_ways)),
        pair_error=float(np.mean(of_pairs)) if of_pairs else float("nan"),
        seconds=START + A_PAIR * rows * number + A_CELL * cells,
        memory=PROGRAM + A_ROW * cells,
        pair_cost=a_pair if of_pairs else 0.0,
    )


def _informative(domain: Domain, rho: float, rows: int, law: Law) -> Floats:
    """Return how many values of each column are expected to stand out of the noise of the first look."""
    sigma = 1 / sqrt(2 * law.rho(FIRST_LOOK * rho / len(domain)))
    return np.array([np.count_nonzero(rows * typical_shares(size) > sigma) for size in domain.sizes], float)


def typical_shares(size: int) -> Floats:
    """Return typical shares of the values of a column, by Zipf's law: the k-th is 1/k of the first."""
    weights = 1 / np.arange(1, size + 1)
    return np.asarray(weights / weights.sum())


def one_way_error(size: int, sigma: float, rows: int) -> float:
    """Return the expected error; the error of a value is at most its number of rows."""
    errors = np.minimum(MEAN_OF_ABSOLUTE * sigma * sqrt(1 - 1 / size), rows * typical_shares(size))
    return float(errors.sum() / (2 * rows))


def pair_error(a: int, b: int, cost: float, rows: int, law: Law) -> float:
    """Return the mean error of pairs whose budget is split evenly among the best share of them to measure."""
    return min(
        share * _table_error(a, b, law.rho(cost / share), rows) + (1 - share) * _table_error(a, b, 0.0, rows)
        for share in SHARES_MEASURED
    )


def _table_error(a: int, b: int, rho: float, rows: int) -> float:
    """Return the posterior error of a typical dependence; see `privsyn.inference.selection`."""
    expected = rows * np.multiply.outer(typical_shares(a), typical_shares(b))
    root = USUAL_DEPENDENCE * 2 * rows / (MEAN_OF_ABSOLUTE * np.sqrt(expected).sum())
    prior = root**2 * expected
    left = MEAN_OF_ABSOLUTE * np.sqrt(prior / (1 + 2 * rho * prior)).sum()
    return float(left / (2 * rows) * sqrt((1 - 1 / a) * (1 - 1 / b)))
