"""Convert between rho, sigma, epsilon and delta. All rounding is towards more noise.

Every answer is Gaussian: ``N(q, sigma^2)`` for a vector ``q`` of L2 sensitivity Delta. Its cost is
``rho = Delta^2 / (2 sigma^2)``, the unit in which the budget is split, and the costs add up. A whole run is
accounted as *one* Gaussian answer with ``mu = Delta / sigma = sqrt(2 rho)``. Later questions and their sigmas
may depend on earlier answers. Fully adaptive composition for Gaussian differential privacy holds if the sum
of ``mu_i^2`` has a bound that is fixed in advance (Smith and Thakurta, 2022; for zCDP, Feldman and Zrnic,
2021). The budget is this bound.

There are three ways from rho to (epsilon, delta), the tightest first:

- ``"gaussian"``: the exact profile of the Gaussian (Balle and Wang, 2018, Theorem 8; Dong, Roth and Su, 2019,
  Corollary 2.13). It holds for Gaussian noise only.
- ``"zcdp"``: the best bound from zCDP (Canonne, Kamath and Steinke, 2020, Proposition 12 in v4). It holds for
any
  rho-zCDP mechanism, such as the discrete Gaussian.
- ``"classical"``: ``epsilon = rho + 2 sqrt(rho ln(1 / delta))`` (Bun and Steinke, 2016, Proposition 1.3),
which the
  PrivSyn paper uses.

A run with ``"pure"`` accounting has discrete Laplace noise and a delta of 0. Its costs are epsilons, which
add up (`privsyn.private.noise_laws`). At a delta above 0 its epsilon follows from randomised response, the
worst mechanism of that epsilon (Kairouz, Oh and Viswanath, 2015).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import exp, expm1, inf, isfinite, log1p, nextafter, pi, sqrt
from numbers import Real
from typing import Literal, get_args

from scipy.special import erfcx, ndtr

from privsyn.errors import InputError, spelled

Accounting = Literal["gaussian", "zcdp", "classical", "pure"]

MARGIN = 1e-12
"""Relative increase of every delta. It exceeds the rounding errors in delta and in the last bits of rho, for
epsilon up to 1,000 and delta from 1e-100. There, no exponent is a sum of terms above about 2,000."""

CANCELLATION = 1e-14
"""The exact profile is a difference of two terms. It is also increased by this part of the larger term."""


def delta_for(rho: float, epsilon: float, accounting: Accounting) -> float:
    """Return the smallest delta at which a run of cost `rho` is (`epsilon`, delta)-private, rounded up.

    With pure accounting `rho` is an epsilon, here and in the other functions.

    Examples
    --------
    >>> [f"{delta_for(0.03, 1.0, way):.1e}" for way in ("gaussian", "zcdp", "classical")]
    ['2.0e-06', '8.4e-06', '3.9e-04']
    """
    _check_rho(rho)
    _check_epsilon(epsilon)
    return _profile(accounting)(rho, epsilon)


def epsilon_for(rho: float, delta: float, accounting: Accounting) -> float:
    """Return the smallest epsilon at which a run of cost `rho` is (epsilon, `delta`)-private, rounded up.

    Examples
    --------
    >>> [f"{epsilon_for(0.03, 1e-5, way):.3f}" for way in ("gaussian", "zcdp", "classical")]
    ['0.906', '0.990', '1.205']
    """
    _check_rho(rho)
    if accounting == "pure" and delta == 0:
        return rho
    _check_delta(delta)
    profile = _profile(accounting)
    return _crossing(lambda epsilon: profile(rho, epsilon) > delta)[1]


def rho_for(epsilon: float, delta: float, accounting: Accounting) -> float:
    """Return the largest rho whose run is (`epsilon`, `delta`)-private, rounded down: the budget.

    With pure accounting delta must be 0, and the budget is epsilon.

    Examples
    --------
    >>> [f"{rho_for(1.0, 1e-5, way):.4f}" for way in ("gaussian", "zcdp", "classical")]
    ['0.0359', '0.0306', '0.0208']
    """
    _check_epsilon(epsilon)
    if accounting == "pure" and delta == 0:
        return epsilon
    _check_delta(delta)
    profile = _profile(accounting)
    return _crossing(lambda rho: profile(rho, epsilon) <= delta)[0]


def sigma_for(rho: float, sensitivity: float) -> float:
    """Return the sigma at which a vector of L2 `sensitivity` costs `rho`: Delta / sqrt(2 rho), rounded up.

    Examples
    --------
    >>> sigma_for(0.125, 1.0)
    2.0
    """
    sigma = sensitivity / sqrt(2 * rho)
    while _cost(sigma, sensitivity) > Fraction(rho):
        sigma = nextafter(sigma, inf)
    return sigma


@lru_cache(maxsize=1024)  # many tables of a run have the same noise, and all runs of a budget file are read
def rho_of(sigma: float, sensitivity: float) -> float:
    """Return the cost of a vector of L2 `sensitivity` with noise `sigma`: Delta^2 / (2 sigma^2), rounded up.

    It reverses `sigma_for`: ``rho_of(sigma_for(rho, Delta), Delta) <= rho``, to the last bit.

    Examples
    --------
    >>> rho_of(2.0, 1.0)
    0.125
    """
    cost = _cost(sigma, sensitivity)
    nearest = float(cost)
    return nearest if Fraction(nearest) >= cost else nextafter(nearest, inf)


def _cost(sigma: float, sensitivity: float) -> Fraction:
    """Return Delta^2 / (2 sigma^2) without rounding."""
    return Fraction(sensitivity) ** 2 / (2 * Fraction(sigma) ** 2)


def _gaussian_profile(rho: float, epsilon: float) -> float:
    """Return Phi(a) - e^epsilon Phi(b) with a = mu/2 - epsilon/mu and b = -mu/2 - epsilon/mu.

    Because ``b^2 - a^2 = 2 epsilon``, the second term is ``phi(a) m(-b)``, where ``m(t) = Phi(-t) / phi(t)``
    is Mills' ratio. It cannot overflow. Neither can the first term, ``phi(a) m(-a)``, while ``a < 0``.
    """
    if rho == 0:
        return 0.0
    mu = sqrt(2 * rho)
    a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    density = exp(-a * a / 2) / sqrt(2 * pi)
    first = density * _mills(-a) if a < 0 else float(ndtr(a))
    return _raised(first - density * _mills(-b) + CANCELLATION * first)


def _mills(t: float) -> float:
    """Return the upper tail of the standard normal, divided by its density."""
    return sqrt(pi / 2) * float(erfcx(t / sqrt(2)))


def _zcdp_profile(rho: float, epsilon: float) -> float:
    """Minimise exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha over alpha > 1.

    With ``beta = alpha - 1``, the slope of the logarithm rises from minus infinity to infinity. The minimum
    is where it crosses 0. Every beta gives a valid delta, so a search that stops early is safe.
    """
    if rho == 0:
        return 0.0
    beta = _crossing(lambda beta: beta < 1e-9 or (2 * beta + 1) * rho - epsilon < log1p(1 / beta))[1]
    exponent = beta * ((1 + beta) * rho - epsilon) - beta * log1p(1 / beta) - log1p(beta)
    return _raised(exp(min(0.0, exponent)))


def _classical_profile(rho: float, epsilon: float) -> float:
    """Return the delta that solves epsilon = rho + 2 sqrt(rho ln(1 / delta))."""
    if rho == 0:
        return 0.0
    excess = max(0.0, epsilon - rho)
    return _raised(exp(-excess * excess / (4 * rho)))


def _pure_profile(cost: float, epsilon: float) -> float:
    """Return (e^cost - e^epsilon) / (1 + e^cost), the delta of randomised response, or 0."""
    if epsilon >= cost:
        return 0.0
    return _raised(-expm1(epsilon - cost) / (1 + exp(-cost)))


def _raised(delta: float) -> float:
    return min(1.0, nextafter(delta * (1 + MARGIN), inf))


def _profile(accounting: Accounting) -> Callable[[float, float], float]:
    """Return the function from rho and epsilon to delta."""
    if accounting == "gaussian":
        return _gaussian_profile
    if accounting == "zcdp":
        return _zcdp_profile
    if accounting == "classical":
        return _classical_profile
    if accounting == "pure":
        return _pure_profile
    raise InputError(f"accounting must be one of {', '.join(get_args(Accounting))}; got {accounting!r}")


def _crossing(below: Callable[[float], bool]) -> tuple[float, float]:
    """Return neighbouring doubles: the last that is `below` and the first that is not; 0 twice if 0 is not.

    Bisection continues until no double lies between. `below` was evaluated at both results, so a caller can
    take the side on which its condition holds, for any rounding errors.
    """
    if not below(0.0):
        return 0.0, 0.0
    low, high = 0.0, 1.0
    while below(high):
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if below(middle) else (low, middle)
    return low, high


def _check_rho(rho: float) -> None:
    if not (_is_number(rho) and rho >= 0):
        raise InputError(f"rho must be a finite number of at least 0; got {rho!r}")


def _check_epsilon(epsilon: float) -> None:
    if not (_is_number(epsilon) and epsilon > 0):
        raise InputError(f"{spelled('epsilon')} must be a finite number above 0; got {epsilon!r}")


def _check_delta(delta: float) -> None:
    if not (_is_number(delta) and 0 < delta < 1):
        raise InputError(
            f"{spelled('delta')} must be above 0 and below 1, usually below 1 / rows, or 0 for pure epsilon;"
            f" got {delta!r}"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
