"""Composition: what several releases from one table promise together, by several theorems side by side.

Every theorem turns the ledgers into an epsilon at one common delta:

- *sequential*: epsilons and deltas add up. It needs nothing but the promises.
- *advanced* (Dwork, Rothblum and Vadhan, 2010; for different epsilons Kairouz, Oh and Viswanath, 2015,
  Theorem 3.5): about the root of the sum of squares, for a further delta.
- *optimal*: the least epsilon that follows from the promises alone (Kairouz, Oh and Viswanath, 2015, Theorem
  3.3; Murtagh and Vadhan, 2016, Theorem 1.5). It composes the randomised responses of all promises.
- *zCDP*: rhos add up (Bun and Steinke, 2016). A pure epsilon has rho = epsilon^2 / 2.
- *RDP*: Renyi divergences add up at every order, and the best order counts (Mironov, 2017). Of a pure epsilon
  they are those of randomised response, which are smaller than its rho says.
- *exact*: what the noise itself gives. Gaussian answers are together one Gaussian answer, mu^2 = sum of
  mu_i^2. Pure runs and runs with another accounting are composed with it as randomised responses, which
  dominate them.
- *parallel*: the largest epsilon and the largest delta. It holds only if no person's row is in two of the
  tables, which the caller states. If it is stated of some tables alone, of each set of tables that one person
  may be in the epsilon is composed, and the largest counts.

If a run has columns that the respondents randomised beside others, their epsilons are added, and no theorem
on noise is used. A randomised table itself has other neighbours (one record is changed) and is refused.

All but the last hold if later releases were chosen after seeing earlier ones, provided that each epsilon and
delta was fixed before the first release. They are not privacy filters: if an epsilon was chosen after seeing
an earlier release, only a limit that was fixed in advance is a promise (docs/composition.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, expm1, fsum, inf, log, log1p, nextafter, sqrt, tanh

import numpy as np
from scipy.special import gammaln, ndtri_exp

from privsyn.errors import InputError, plural
from privsyn.marginals.domain import Floats
from privsyn.private.accounting import Accounting, delta_for, epsilon_for

MOST_POINTS, MOST_BESIDE_GAUSSIAN = 2**16, 2**11
"""Most privacy losses that are kept. With more, losses are rounded up to a grid of this length."""

ROUNDING = 1e-10
"""Relative increase of every probability, far above its rounding errors."""

LEAST_EPSILON = 1e-300
"""Replaces an epsilon of 0."""

LARGEST_DELTA = 1 - 1e-12
"""A larger delta is no promise."""

ORDERS: Floats = 1 + np.geomspace(1e-3, 1e5, 2_000)
"""Orders of Renyi divergences. Each gives a valid epsilon. The best of these is within 0.1 % of the best."""

HALVINGS = 60
"""Bisection steps for epsilon: from a sum of 1,000 down to less than a rounding error."""


@dataclass(frozen=True)
class Promise:
    """What one release promises, in numbers.

    Parameters
    ----------
    epsilon, delta : float
    accounting : "gaussian", "zcdp", "classical" or "pure"
    budget : float
        The cost that the promise allows: rho, or epsilon with pure accounting.
    reserved : float
        The delta of all thresholds together.
        The promise of an epsilon and a delta, without a law of noise, has pure accounting and reserves delta.
    local_epsilon : float, optional
        The epsilon of the columns that the respondents randomised. Default: there is none.
    bounded_range : bool
        Whether the privacy losses of any two tables lie within an interval of length epsilon, as those of
        the exponential mechanism do. Only with pure accounting.
    """

    epsilon: float
    delta: float
    accounting: Accounting
    budget: float
    reserved: float = 0.0
    local_epsilon: float | None = None
    bounded_range: bool = False

    @classmethod
    def pure(cls, epsilon: float, delta: float = 0.0, *, bounded_range: bool = False) -> Promise:
        """Return the promise of an epsilon and a delta, of whatever mechanism."""
        return cls(epsilon, delta, "pure", epsilon, delta, bounded_range=bounded_range)

    @property
    def rho(self) -> float:
        """The cost in zCDP besides the reserved delta.

        A pure epsilon costs epsilon^2 / 2 (Bun and Steinke, 2016, Proposition 1.4). If the privacy losses lie
        within an interval of length epsilon, it costs epsilon^2 / 8 (Cesar and Rogers, 2021, Lemma 3.4).
        """
        if self.accounting != "pure":
            return self.budget
        return self.budget**2 / (8 if self.bounded_range else 2)

    @property
    def gaussian_rho(self) -> float:
        """The rho of one Gaussian answer that is at most as private; infinite if none is known.

        The trade-off function of a pure epsilon consists of two segments that meet in (1, 1) / (1 +
        e^epsilon). That of a Gaussian answer is convex and meets it there and at both ends if mu = -2
        Phi^-1(1 / (1 + e^epsilon)). So it lies below, and a pure epsilon is mu-GDP. With losses in an
        interval of length epsilon, the corner that is furthest from equality is that of epsilon / 2.
        """
        if self.accounting == "gaussian":
            return self.budget
        if self.accounting != "pure":
            return inf
        loss = self.budget / 2 if self.bounded_range else self.budget
        return 2 * float(ndtri_exp(-np.logaddexp(0.0, loss))) ** 2

    def epsilon_at(self, delta: float) -> float:
        """Return the epsilon that holds at `delta`, rounded up; infinite at a delta that is reserved."""
        remainder = delta - self.reserved
        if remainder < 0 or (remainder == 0 and self.accounting != "pure"):
            return inf
        return epsilon_for(self.budget, remainder, self.accounting)

    def delta_at(self, epsilon: float) -> float:
        """Return the delta that holds at `epsilon`, rounded up."""
        return min(1.0, self.reserved + delta_for(self.budget, epsilon, self.accounting))

    def group(self, size: int, delta: float | None = None) -> Bound:
        """Return what holds for `size` records together.

        Parameters
        ----------
        size : int
        delta : float, optional
            Default: that of the promise. Of a pure epsilon that reserves delta: delta (1 + e^epsilon + ... +
            e^((size - 1) epsilon)).
        """
        target = self.delta if delta is None else delta
        if size == 1:
            return Bound("group", self.epsilon_at(target), target, "the promise")
        if not self.reserved:
            if self.accounting == "pure":
                scaled, formula = replace(self, budget=size * self.budget), "k epsilon"
            else:
                scaled, formula = replace(self, budget=size**2 * self.budget), "k^2 rho, so k mu"
            return Bound("group", scaled.epsilon_at(target), target, formula)
        formula = "k epsilon at delta (e^(k epsilon) - 1) / (e^epsilon - 1)"
        if self.accounting == "pure" and delta is None:
            return Bound(
                "group", size * self.epsilon, min(1.0, self.delta * growth(self.epsilon, size)), formula
            )
        # Every point of the curve is a promise of its own. The delta for the group first falls with epsilon,
        # as that of the promise does, and then rises with the factor.
        epsilons = np.geomspace(1e-4, 1e3, 2_000)
        holding = [e for e in epsilons.tolist() if self.delta_at(e) * growth(e, size) <= target]
        return Bound("group", size * holding[0] if holding else inf, target, formula)

    def subsampled(self, rate: float, delta: float | None = None) -> Bound:
        """Return what holds if each record was in the table with probability `rate`, independently.

        An epsilon and a delta become ln(1 + q (e^epsilon - 1)) and q delta, for neighbours that add or remove
        a record (Balle, Barthe and Gaboardi, 2018, Theorem 8).
        """
        target = rate * self.delta if delta is None else delta
        epsilon = self.epsilon_at(self.delta if delta is None else min(delta / rate, LARGEST_DELTA))
        amplified = inf if epsilon == inf else rounded_up(_amplified(epsilon, rate))
        return Bound("subsampled", amplified, target, "ln(1 + q (e^epsilon - 1)) at q delta")


@dataclass(frozen=True)
class Bound:
    """What one theorem says about all releases together.

    Parameters
    ----------
    theorem : str
    epsilon, delta : float
        The epsilon is infinite if the theorem says nothing at this delta.
    needs : str
        What it rests on.
    """

    theorem: str
    epsilon: float
    delta: float
    needs: str

    @property
    def formula(self) -> str:
        """The formula of the theorem."""
        return FORMULAS.get(self.theorem, self.needs)


FORMULAS = {
    "sequential": "epsilon = sum of epsilon_i, delta = sum of delta_i",
    "advanced": "epsilon = sum of epsilon_i tanh(epsilon_i / 2) + sqrt(2 ln(1 / delta') sum of epsilon_i^2),"
    " delta = delta' + sum of delta_i",
    "optimal": "delta = sum of P(loss) max(0, 1 - e^(epsilon - loss)) over losses of randomised responses",
    "zCDP": "rho = sum of rho_i; delta = min over alpha of e^((alpha - 1)(alpha rho - epsilon))"
    " (1 - 1 / alpha)^alpha / (alpha - 1)",
    "RDP": "D_alpha = sum of D_alpha,i; epsilon = min over alpha of D_alpha"
    " + (alpha ln(1 - 1 / alpha) - ln(delta (alpha - 1))) / (alpha - 1)",
    "exact": "mu^2 = sum of mu_i^2;"
    " delta = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu)",
    "parallel": "epsilon = max of epsilon_i, delta = max of delta_i",
}
"""The formula of each theorem."""


@dataclass(frozen=True)
class Composition:
    """The joint promise of several releases, by each theorem; `epsilon` and `delta` are the smallest.

    Parameters
    ----------
    bounds : tuple of Bound
    releases : int
    neighbours : str
    """

    bounds: tuple[Bound, ...]
    releases: int
    neighbours: str

    @property
    def best(self) -> Bound:
        """The bound with the smallest epsilon; of equal ones the one with the smaller delta."""
        return min(self.bounds, key=lambda bound: (bound.epsilon, bound.delta))

    @property
    def epsilon(self) -> float:
        """The smallest epsilon."""
        return self.best.epsilon

    @property
    def delta(self) -> float:
        """The delta at which it holds."""
        return self.best.delta

    def __repr__(self) -> str:
        best = self.best
        lines = [f"{plural(self.releases, 'release')}; neighbours: {self.neighbours}"]
        for bound in self.bounds:
            epsilon = "none" if bound.epsilon == inf else f"{bound.epsilon:.4f}"
            mark = "*" if bound is best else " "
            lines.append(f"{mark} {bound.theorem:<12}{epsilon:>10}{bound.delta:>10.3g}  {bound.needs}")
        return "\n".join([lines[0], f"  {'theorem':<12}{'epsilon':>10}{'delta':>10}  from", *lines[1:]])


@dataclass(frozen=True)
class PerQuery:
    """The epsilon that each of several pure mechanisms may have, by each theorem; `epsilon` is the largest.

    Parameters
    ----------
    bounds : tuple of Bound
        The epsilon is that of a mechanism, the delta that of all together.
    queries : int
    total : float
        The epsilon of all together.
    """

    bounds: tuple[Bound, ...]
    queries: int
    total: float

    @property
    def best(self) -> Bound:
        """The theorem that allows the largest epsilon."""
        return max(self.bounds, key=lambda bound: bound.epsilon)

    @property
    def epsilon(self) -> float:
        """The largest epsilon."""
        return self.best.epsilon

    def __repr__(self) -> str:
        lines = [f"{self.queries} queries: epsilon {self.total!r}, delta {self.best.delta!r} together"]
        lines.append(f"  {'theorem':<12}{'epsilon each':>14}  formula")
        for bound in self.bounds:
            mark = "*" if bound is self.best else " "
            lines.append(f"{mark} {bound.theorem:<12}{bound.epsilon:>14.6f}  {bound.formula}")
        return "\n".join(lines)


def per_query(queries: int, epsilon: float, delta: float) -> PerQuery:
    """Return the epsilon that each of `queries` pure mechanisms may have, by each theorem, rounded down."""
    theorems: dict[str, Callable[[Sequence[Promise], float], float]] = {
        "sequential": lambda promises, _: fsum(promise.epsilon for promise in promises),
        "advanced": _advanced,
        "optimal": _optimal,
        "zCDP": _zcdp,
        "RDP": _renyi,
    }
    bounds = [
        Bound(name, _largest(theorem, queries, epsilon, delta), delta, "")
        for name, theorem in theorems.items()
    ]
    return PerQuery(tuple(bounds), queries, epsilon)


def _largest(
    theorem: Callable[[Sequence[Promise], float], float], queries: int, epsilon: float, delta: float
) -> float:
    """Return the largest epsilon of a query at which the theorem gives at most `epsilon`, rounded down."""
    low, high = 0.0, epsilon
    if theorem([Promise.pure(high)] * queries, delta) <= epsilon:
        return high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if theorem([Promise.pure(middle)] * queries, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def compose(
    promises: Sequence[Promise],
    neighbours: str,
    delta: float | None = None,
    sets: Sequence[Sequence[int]] = (),
) -> Composition:
    """Return what several promises about one table say together; see `Ledger.compose`.

    Each person changes the answers of the releases of one of the `sets`, which hold their positions. Default:
    of all releases.
    """
    sum_of_deltas = fsum(promise.delta for promise in promises)
    target = sum_of_deltas if delta is None else delta
    if not 0 <= target < 1:
        raise InputError(f"delta must be from 0 to below 1; got {target:g}")
    local = len(promises) > 1 and any(promise.local_epsilon is not None for promise in promises)
    # Local epsilons are added whether or not the runs read the same randomised cells: this is safe.
    epsilons = [promise.epsilon + local * (promise.local_epsilon or 0.0) for promise in promises]
    needs = f"the promises{', and those of randomised cells' * local}: epsilons and deltas add up"
    bounds = [_promised("sequential", fsum(epsilons), sum_of_deltas, target, needs)]
    if not local:  # the other theorems are about the noise of questions alone
        bounds += [
            Bound("advanced", _advanced(promises, target), target, "the promises"),
            Bound("optimal", _optimal(promises, target), target, "the promises: no less follows from them"),
            Bound("zCDP", _zcdp(promises, target), target, "the noise: rhos add up"),
            Bound("RDP", _renyi(promises, target), target, "the noise: Renyi divergences add up"),
            Bound("exact", _exact(promises, target), target, "the noise: squares of mu add up"),
        ]
    if len(sets) > 1:
        bounds.append(_parallel(promises, epsilons, sets, target))
    return Composition(tuple(bounds), len(promises), neighbours)


def _parallel(
    promises: Sequence[Promise], epsilons: Sequence[float], sets: Sequence[Sequence[int]], target: float
) -> Bound:
    """Return the largest epsilon of the sets, at the largest delta: a person is in the tables of one set."""
    apart = max(map(len, sets)) == 1
    needs = "that no person is in two of the tables" if apart else "which tables have no person in common"
    needs = f"the caller's statement {needs}"
    bounds = [Bound("", epsilons[index], promises[index].delta, needs) for (index, *rest) in sets if not rest]
    shared = [Counter(promises[index] for index in members) for members in sets if len(members) > 1]
    for counted in {frozenset(counts.items()): counts for counts in shared}.values():
        bounds.append(compose([*counted.elements()], "").best)
    epsilon, delta = max(bound.epsilon for bound in bounds), max(bound.delta for bound in bounds)
    return _promised("parallel", epsilon, delta, target, needs)


def growth(epsilon: float, size: int) -> float:
    """Return 1 + e^epsilon + ... + e^((size - 1) epsilon), by which the delta of a group grows, rounded
    up.
    """
    exponent = size * epsilon
    return inf if exponent > 700 else nextafter(expm1(exponent) / expm1(epsilon) * (1 + ROUNDING), inf)


def _amplified(epsilon: float, rate: float) -> float:
    """Return ln(1 + rate (e^epsilon - 1)); above 30, ln rate + epsilon and a little."""
    return log1p(rate * expm1(epsilon)) if epsilon < 30 else log(rate + (1 - rate) * exp(-epsilon)) + epsilon


def rounded_up(epsilon: float) -> float:
    """Return `epsilon` plus the rounding errors of a few functions."""
    return nextafter(epsilon * (1 + 1e-14), inf)


def _promised(theorem: str, epsilon: float, delta: float, target: float, needs: str) -> Bound:
    """Return a bound that holds at a delta of its own, if that is at most the target."""
    return Bound(theorem, epsilon if delta <= target else inf, delta, needs)


def _advanced(promises: Sequence[Promise], delta: float) -> float:
    """Return the sum of e_i tanh(e_i / 2), plus sqrt(2 ln(1 / slack) sum of e_i^2) for a slack in delta."""
    slack = delta - fsum(promise.delta for promise in promises)
    if not slack > 0:
        return inf
    if inf in [promise.epsilon for promise in promises]:
        return inf
    drift = fsum(promise.epsilon * tanh(promise.epsilon / 2) for promise in promises)
    spread = fsum(promise.epsilon**2 for promise in promises)
    return drift + sqrt(2 * log(1 / slack) * spread)


def _optimal(promises: Sequence[Promise], delta: float) -> float:
    """Compose the randomised responses of all promises; a promise of rho alone has none."""
    if inf in [promise.epsilon for promise in promises]:
        return inf
    losses, chances = responses([promise.epsilon for promise in promises])
    sure = -expm1(fsum(log1p(-promise.delta) for promise in promises))  # 1 - prod(1 - delta_i)
    remainder = (delta - sure) / (1 - sure)

    def beyond(epsilon: float) -> float:
        return float(chances @ -np.expm1(np.minimum(epsilon - losses, 0.0)))

    return _least(beyond, remainder, float(losses[-1]))


def _zcdp(promises: Sequence[Promise], delta: float) -> float:
    """Add the rhos of the budgets; reserved deltas are taken off. Pure runs alone need no delta."""
    rho = fsum(promise.rho for promise in promises)
    remainder = delta - fsum(promise.reserved for promise in promises)
    return epsilon_for(rho, remainder, "zcdp") if remainder > 0 else inf


def _renyi(promises: Sequence[Promise], delta: float) -> float:
    """Add the Renyi divergences of all promises, and convert them at the best order.

    The conversion is that of Canonne, Kamath and Steinke (2020, Proposition 12), as for zCDP.
    """
    remainder = delta - fsum(promise.reserved for promise in promises)
    if not remainder > 0:
        return inf
    divergence = np.sum([_divergences(promise) for promise in promises], axis=0)
    beta = ORDERS - 1
    excess = (ORDERS * np.log1p(-1 / ORDERS) - np.log(beta) - log(remainder)) / beta
    return max(0.0, rounded_up(float(np.min(divergence + excess))))


def _divergences(promise: Promise) -> Floats:
    """Return the Renyi divergence of each order in `ORDERS`, besides the reserved delta.

    Of randomised response with the epsilon e it is ln(p^a q^(1 - a) + q^a p^(1 - a)) / (a - 1), with p = e^e
    q and p + q = 1. Randomised response dominates every mechanism of that epsilon.
    """
    gaussian = ORDERS * promise.rho
    if promise.accounting != "pure":
        return gaussian
    epsilon = promise.budget
    response = np.logaddexp(ORDERS * epsilon, (1 - ORDERS) * epsilon) - np.logaddexp(0.0, epsilon)
    return np.minimum(gaussian, response / (ORDERS - 1))


def _exact(promises: Sequence[Promise], delta: float) -> float:
    """Compose all Gaussian runs to one Gaussian answer, and the others to randomised responses with it."""
    gaussian = [promise for promise in promises if promise.accounting == "gaussian"]
    dominated = [promise for promise in promises if promise.accounting != "gaussian"]
    if inf in [promise.epsilon for promise in dominated]:
        return inf
    rho = fsum(promise.budget for promise in gaussian)
    log_of_none = fsum(log1p(-promise.delta) for promise in dominated)
    sure = -expm1(log_of_none)
    remainder = (delta - fsum(promise.reserved for promise in gaussian) - sure) / (1 - sure)
    losses, chances = responses([promise.epsilon for promise in dominated], MOST_BESIDE_GAUSSIAN)
    points = list(zip(losses.tolist(), chances.tolist(), strict=True))

    def beyond(epsilon: float) -> float:
        return fsum(chance * _profile(rho, epsilon - loss) for loss, chance in points)

    if not dominated:
        return epsilon_for(rho, remainder, "gaussian") if remainder > 0 else inf
    if not rho:
        return _optimal(dominated, delta)
    return (
        _least(beyond, remainder, float(losses[-1]) + epsilon_for(rho, remainder, "gaussian"))
        if remainder > 0
        else inf
    )


def _profile(rho: float, epsilon: float) -> float:
    """Return the delta of a Gaussian answer at any epsilon, by its symmetry at one below 0."""
    delta = delta_for(rho, max(abs(epsilon), LEAST_EPSILON), "gaussian")
    return delta if epsilon >= 0 else exp(epsilon) * delta - expm1(epsilon)


def responses(epsilons: Sequence[float], points: int = MOST_POINTS) -> tuple[Floats, Floats]:
    """Return the privacy losses of the composed randomised responses, increasing, and their probabilities.

    The randomised response of epsilon has the loss epsilon with probability e^epsilon / (1 + e^epsilon), and
    else -epsilon. It dominates every mechanism of that epsilon. Losses are sums. If there are too many, they
    are rounded up, which gives a larger epsilon and is safe.

    Examples
    --------
    >>> losses, chances = responses([1.0, 1.0])
    >>> losses.tolist(), chances.round(3).tolist()
    ([-2.0, 0.0, 2.0], [0.072, 0.393, 0.534])
    """
    losses, chances = np.zeros(1), np.ones(1)
    step = 2 * fsum(epsilons) / points
    for epsilon, times in sorted(Counter(epsilons).items()):
        ups = np.arange(times + 1.0)
        log_chance = gammaln(times + 1) - gammaln(ups + 1) - gammaln(times - ups + 1)
        log_chance -= ups * log1p(exp(-epsilon)) + (times - ups) * (epsilon + log1p(exp(-epsilon)))
        losses = np.add.outer(losses, epsilon * (2.0 * ups - times)).ravel()
        chances = np.multiply.outer(chances, np.exp(log_chance)).ravel()
        if len(losses) > points:
            losses = np.ceil(losses / step) * step
        losses, indices = np.unique(losses, return_inverse=True)
        chances = np.asarray(np.bincount(indices, chances), np.float64)
    return losses, chances


def _least(beyond: Callable[[float], float], delta: float, largest: float) -> float:
    """Return the least epsilon from 0 to `largest` at which `beyond` is at most `delta`, rounded up.

    `beyond` falls with epsilon. It is increased by its rounding errors.
    """
    if delta <= 0:  # at 0, the chance of the largest loss counts, even if no double can hold it
        return inf if delta < 0 else largest
    low, high = 0.0, largest
    if beyond(0.0) * (1 + ROUNDING) <= delta:
        return 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) * (1 + ROUNDING) <= delta else (middle, high)
    return high
