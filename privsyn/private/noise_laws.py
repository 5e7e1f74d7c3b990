"""The two laws of noise, Gaussian and discrete Laplace, and what an answer costs under each.

A *cost* is rho for Gaussian noise and epsilon for Laplace noise. Costs add up under both. So a budget is
split, and its parts are spent, in the same way. The laws differ in three points:

============================================  ========================  ============================
law                                           Gaussian                  discrete Laplace
============================================  ========================  ============================
sensitivity of m tables of counts             sqrt(m), in L2            m, in L1
cost of an answer of sensitivity Delta        Delta^2 / (2 sigma^2)     Delta / scale
cost for a person with k rows                 k^2 times that of a row   k times that of a row
noise variance of a table that costs c        1 / (2 c)                 about 2 / c^2
============================================  ========================  ============================

So m tables that share a cost c have, under both laws, the noise of m single tables of cost c / m.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from math import asinh, ceil, exp, expm1, inf, log, nextafter, sinh, sqrt
from typing import Final, Literal, Protocol, TypeVar

import numpy as np
from scipy.special import betaincc, ndtr, ndtri

from privsyn.marginals.domain import Floats
from privsyn.private.accounting import Accounting, rho_of, sigma_for

LawName = Literal["gaussian", "laplace"]

SHARED_NOISE = "a share of "
"""How the sentence of a ledger begins if several owners added the noise together."""

HEADROOM = 2.0**-40
"""Relative increase of every scale. A run's costs are shares of its budget, which are rounded. With this
increase their exact sum stays below the budget."""

FLAT, LEAST_VARIANCE = 0.02, 1e-9
"""Below this scale the discrete Laplace is 0, except with probability 4e-22. Inference divides by variances:
none is smaller than the second."""

MOST_COST = 2 * asinh(sqrt(1 / (2 * LEAST_VARIANCE)))
"""Cost of an answer of sensitivity 1 with the `LEAST_VARIANCE`."""

FAR = 4.5
"""Standard deviations at which a single cell is significant."""

C = TypeVar("C", float, Floats)


class Law(Protocol):
    """A law of noise: sensitivity, scale, cost and variance of an answer."""

    @property
    def name(self) -> LawName:
        """Its name in ledgers."""
        ...

    @property
    def accounting(self) -> Accounting:
        """The tightest accounting that holds for it."""
        ...

    def joint(self, tables: int) -> float:
        """Return the sensitivity of `tables` numbers or tables of counts that one row moves by 1 each."""
        ...

    def scale(self, cost: float, sensitivity: float) -> float:
        """Return the scale at which an answer of this sensitivity costs at most `cost`."""
        ...

    def cost(self, scale: float, sensitivity: float) -> float:
        """Return the cost of an answer, rounded up."""
        ...

    def of_person(self, cost: float, rows: int) -> float:
        """Return the cost for a person with `rows` rows of what costs `cost` for one row."""
        ...

    def of_row(self, cost: float, rows: float) -> float:
        """Return the cost for one row of what costs `cost` for a person with `rows` rows."""
        ...

    def variance(self, scale: float) -> float:
        """Return the noise variance of a number, in the unit of the answer squared."""
        ...

    def tail(self, scale: float) -> float:
        """Return the sigma of Gaussian noise that exceeds `FAR` sigmas as often as this noise does.

        Thresholds for single cells are multiples of sigma, and Laplace noise has heavier tails.
        """
        ...

    def quantile(self, scale: float, risk: float) -> int:
        """Return a whole number that noise of this scale exceeds with probability at most `risk` < 1/2."""
        ...

    def deviations(self, risk: C) -> C:
        """Return how many standard deviations the noise exceeds with probability `risk` < 1/2."""
        ...

    def rho(self, cost: C) -> C:
        """Return the rho at which Gaussian noise in a table has the variance that `cost` buys here."""
        ...


class _Gaussian:
    """Rounded Gaussian noise. The cost is rho; the scale is sigma."""

    name: Final = "gaussian"
    accounting: Final = "gaussian"

    def joint(self, tables: int) -> float:
        return sqrt(tables)

    def scale(self, cost: float, sensitivity: float) -> float:
        return sigma_for(cost, sensitivity) * (1 + HEADROOM)

    def cost(self, scale: float, sensitivity: float) -> float:
        return rho_of(scale, sensitivity)

    def of_person(self, cost: float, rows: int) -> float:
        return cost * rows**2

    def of_row(self, cost: float, rows: float) -> float:
        return cost / rows**2

    def variance(self, scale: float) -> float:
        return scale**2

    def tail(self, scale: float) -> float:
        return scale

    def quantile(self, scale: float, risk: float) -> int:
        # Rounded noise exceeds q if Z >= q + 1/2. The other half is more than the last digits of ndtri.
        return ceil(-sqrt(self.variance(scale)) * float(ndtri(risk)))

    def deviations(self, risk: C) -> C:
        quantiles: C = -ndtri(risk)
        return quantiles

    def rho(self, cost: C) -> C:
        return cost


class _Shared(_Gaussian):
    """Gaussian noise of several owners, with `excess` times the variance that an answer pays for."""

    def __init__(self, excess: float) -> None:
        self.excess = excess

    def variance(self, scale: float) -> float:
        return self.excess * scale**2

    def tail(self, scale: float) -> float:
        return sqrt(self.excess) * scale

    def rho(self, cost: C) -> C:
        return cost / self.excess


class _Laplace:
    """Discrete Laplace noise. The cost is epsilon; P(x) is proportional to exp(-|x| / scale)."""

    name: Final = "laplace"
    accounting: Final = "pure"

    def joint(self, tables: int) -> float:
        return float(tables)

    def scale(self, cost: float, sensitivity: float) -> float:
        # Two roundings, each of at most 2^-53, are far less than the headroom: the cost stays below `cost`.
        return sensitivity / cost * (1 + HEADROOM)

    def cost(self, scale: float, sensitivity: float) -> float:
        exact = epsilon_of(scale, sensitivity)
        nearest = float(exact)
        return nearest if Fraction(nearest) >= exact else nextafter(nearest, inf)

    def of_person(self, cost: float, rows: int) -> float:
        return cost * rows

    def of_row(self, cost: float, rows: float) -> float:
        return cost / rows

    def variance(self, scale: float) -> float:
        """Return 2 p / (1 - p)^2 with p = exp(-1 / scale), for inference; at least `LEAST_VARIANCE`."""
        return LEAST_VARIANCE if scale < FLAT else max(1 / (2 * sinh(1 / (2 * scale)) ** 2), LEAST_VARIANCE)

    def tail(self, scale: float) -> float:
        return scale * -log(2 * float(ndtr(-FAR))) / FAR

    def quantile(self, scale: float, risk: float) -> int:
        # P(x > q) = p^(q + 1) / (1 + p) with p = exp(-1 / scale). The headroom is more than rounding errors.
        return max(0, ceil(-scale * log(risk * (1 + exp(-1 / scale))) * (1 + HEADROOM)) - 1)

    def deviations(self, risk: C) -> C:
        # P(x > t) = exp(-t / scale) / 2, and the standard deviation is sqrt(2) times the scale. The mean of
        # two answers has lighter tails.
        quantiles: C = -np.log(2 * risk) / sqrt(2)
        return quantiles

    def rho(self, cost: C) -> C:
        """Return sinh(cost / 2)^2, by the `variance` at a scale of 1 / cost; about cost^2 / 4 if small."""
        rho: C = np.sinh(np.minimum(cost, MOST_COST) / 2) ** 2
        return rho


class _SharedLaplace(_Laplace):
    """Laplace noise of several owners: the difference of two Polya variables with r = `excess`, at least 1.

    It is the sum of a discrete Laplace variable and further noise. Its tails, in standard deviations, are
    lighter than those of Laplace noise, so `deviations` and `tail` state no less than there is.
    """

    def __init__(self, excess: float) -> None:
        self.excess = excess

    def variance(self, scale: float) -> float:
        return self.excess * super().variance(scale)

    def tail(self, scale: float) -> float:
        return sqrt(self.excess) * super().tail(scale)

    def quantile(self, scale: float, risk: float) -> int:
        # x = a - b, and b >= 0. So P(x > q) <= P(a >= q + 1), the tail of a Polya variable; 1e-6 is far more
        # than the library's error.
        rest = -expm1(-1 / scale)

        def is_rare(q: int) -> bool:
            return float(betaincc(self.excess, q + 1.0, rest)) * (1 + 1e-6) <= risk

        return bisect_left(range(2**62), True, key=is_rare)

    def rho(self, cost: C) -> C:
        return super().rho(cost) / self.excess


def shared_laplace(owners: int, honest: int) -> Law:
    """Return the law of Laplace noise that several owners add.

    Any `honest` of the `owners` together add the noise that an answer pays for: discrete Laplace. The answer
    has owners / honest times its variance, as with Gaussian noise.

    >>> shared_laplace(owners=3, honest=2).variance(4.0) / LAPLACE.variance(4.0)
    1.5
    """
    return _SharedLaplace(owners / honest)


def shared_gaussian(owners: int, honest: int) -> Law:
    """Return the law of Gaussian noise that several owners add.

    Any `honest` of the `owners` together add the sigma that an answer pays for. So the answer has
    owners / honest times its variance: the price of not trusting the others.

    >>> shared_gaussian(owners=3, honest=2).variance(4.0), GAUSSIAN.variance(4.0)
    (24.0, 16.0)
    """
    return _Shared(owners / honest)


def share_sigma(sigma: float, honest: int) -> float:
    """Return the sigma of an owner's share, in units of 1 / `honest`: sqrt(honest) sigma, rounded up.

    >>> share_sigma(3.0, 4)
    6.0
    """
    share = sqrt(honest) * sigma
    while Fraction(share) ** 2 < honest * Fraction(sigma) ** 2:
        share = nextafter(share, inf)
    return share


GAUSSIAN: Final[Law] = _Gaussian()
LAPLACE: Final[Law] = _Laplace()
LAWS: Final[dict[LawName, Law]] = {law.name: law for law in (GAUSSIAN, LAPLACE)}


def law_of(delta: float) -> Law:
    """Return the law of the noise of one owner who promises this delta."""
    return GAUSSIAN if delta else LAPLACE


def epsilon_of(scale: float, sensitivity: float) -> Fraction:
    """Return the epsilon of a Laplace answer of L1 `sensitivity`: Delta / scale, without rounding.

    One more row changes the probability of any released vector by a factor of at most exp(Delta / scale),
    because ``||x - q'||_1 - ||x - q||_1 <= ||q - q'||_1``.

    Examples
    --------
    >>> epsilon_of(8.0, 3.0)
    Fraction(3, 8)
    """
    return Fraction(sensitivity) / Fraction(scale)
