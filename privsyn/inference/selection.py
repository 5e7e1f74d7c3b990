r"""Which tables to measure and with how much of the budget, in one convex problem.

Let the cells of a table have prior variance :math:`\tau_c^2`, and measure them with noise variance
:math:`1/(2\rho)`. After shrinking, the expected L1 error is

.. math:: e(\rho) = \sqrt{2/\pi} \sum_c \tau_c / \sqrt{1 + 2 \rho \tau_c^2}.

It is convex and falls from its value at :math:`\rho = 0` (not measured). The sum of the errors is least where
all measured tables have the same slope. A table that is flatter than that even at 0 is not worth measuring.
DenseMarg (`methods.paper.learn`) is the published rule.

A pair with an ordered attribute is measured at the resolution with the least expected error. Coarse groups
have little noise; fine groups show more detail. The expected error of each resolution after denoising follows
from the pair's dispersion and the prior spectrum. A pair's error at a budget is the least of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise

import numpy as np

from privsyn.inference import _kernels
from privsyn.inference.measured_columns import Estimate
from privsyn.inference.prior.dispersion import MEAN_OF_ABSOLUTE
from privsyn.inference.prior.smoothing import Waves, groups_of
from privsyn.inference.weights import IMPORTANT
from privsyn.marginals.domain import Attributes, Codes, Floats, Ints, Mask
from privsyn.marginals.marginal import LEVELS, Grouping, Marginal, groups_at
from privsyn.marginals.tolerances import TINY_BUDGET

RhoOf = Callable[[Floats], Floats]
"""From costs to the rho of Gaussian noise with the same variance."""

STEPS: Floats = np.append(0.0, np.logspace(-6, 0, 73))  # shares of the budget at which slopes are tabulated
_STEPS: list[float] = STEPS.tolist()
BESIDE = 1.03  # a look lets the expected error of tables that are not important grow at most by this factor
FINELY = 1.25  # ratio of the weights of important tables that are tried
HALVINGS = 100  # bisection steps for the common slope


MOST_PAIRS = 50_000  # measured pairs, as of 300 attributes: with more, synthesis is not feasible


def near_pairs(
    names: Attributes, limit: int, target: str | None = None, important: Sequence[Attributes] = ()
) -> tuple[Attributes, ...]:
    """Return all pairs, in order; if there are more than `limit`, the pairs of near columns.

    The pairs with the target and the pairs inside an `important` set are always returned.

    The order of the columns is public. Related columns often stand together.

    >>> near_pairs(("a", "b", "c", "d"), 5)
    (('a', 'b'), ('a', 'c'), ('b', 'c'), ('b', 'd'), ('c', 'd'))
    >>> len(near_pairs(("a", "b", "c", "d"), 6))
    6
    """
    width, number = 0, 0
    while width < len(names) and number + len(names) - width - 1 <= limit:
        width, number = width + 1, number + len(names) - width - 1
    named = {frozenset(pair) for names_of_set in important for pair in combinations(names_of_set, 2)}
    reach = width if target is None and not named else len(names)
    return tuple(
        (a, b)
        for index, a in enumerate(names)
        for distance, b in enumerate(names[index + 1 : index + 1 + reach])
        if distance < width or target in (a, b) or (named and frozenset((a, b)) in named)
    )


def slopes_of(variances: list[Floats], budget: float, rho_of: RhoOf | None = None) -> Floats:
    """Return how fast the errors of tables fall at each of the `STEPS`, from their cells' prior variances.

    With `rho_of`, the budget is not in zCDP: this function converts costs to the rho of Gaussian noise with
    the same variance. The errors need not be convex in such a cost. So the slopes are slopes of their convex
    hull, and a table gets at least the cost at which it is worth measuring, or nothing.
    """
    if not variances:
        return np.zeros((0, len(STEPS)))
    cells = np.concatenate([table.ravel() for table in variances])
    ends = np.cumsum([table.size for table in variances])
    if rho_of is None:
        return _kernels.slopes(cells, ends, budget * STEPS)
    return slopes_along(_kernels.errors(cells, ends, rho_of(budget * STEPS)), budget)


def expected_errors(variances: list[Floats], rhos: Floats | None = None) -> Floats:
    """Return the expected L1 error of each table, in records, at its budget in zCDP; by default without any.

    >>> expected_errors([np.full((2, 2), 100.0)]).round(1).tolist()
    [31.9]
    """
    pairs = zip(variances, np.zeros(len(variances)) if rhos is None else rhos, strict=True)
    return MEAN_OF_ABSOLUTE * np.array([np.sqrt(v / (1 + 2 * rho * v)).sum() for v, rho in pairs])


def slopes_along(errors: Floats, budget: float) -> Floats:
    """Return the negative slope of the convex hull of each table's errors at the `STEPS`.

    Parameters
    ----------
    errors : array of shape (tables, steps)
    budget : float
        In total, in the unit of the private table: rho of zCDP, or epsilon.
    """
    slopes = np.zeros(errors.shape)
    for table, curve in enumerate(errors.tolist()):  # plain floats: NumPy's are slow one by one
        hull = [0]
        for step in range(1, len(curve)):
            while len(hull) > 1 and _fall(curve, hull[-2], hull[-1]) < _fall(curve, hull[-1], step):
                hull.pop()
            hull.append(step)
        falls = [_fall(curve, *ends) for ends in pairwise(hull)]
        along = np.repeat(falls, np.diff(hull))
        slopes[table] = (np.append(along, along[-1]) + np.append(along[0], along)) / 2
    return np.asarray(np.maximum(slopes, 0.0) / budget)


def _fall(curve: list[float], start: int, end: int) -> float:
    return (curve[start] - curve[end]) / (_STEPS[end] - _STEPS[start])


def curves_of(
    variances: list[Floats], errors: Floats, smooth: Mask, budget: float, rho_of: RhoOf | None
) -> tuple[Floats, Floats]:
    """Return how fast each table's error falls at each of the `STEPS`, and its error with no budget.

    Parameters
    ----------
    variances : list of arrays
        Prior variances of the cells of each table that is not smooth.
    errors : array of shape (smooth tables, steps)
        Expected error of each smooth table, such as those of `Resolutions`.
    smooth : array of bool of shape (tables,)
    budget, rho_of : as for `slopes_of`
    """
    gains, before = np.empty((len(smooth), len(STEPS))), np.empty(len(smooth))
    gains[~smooth], before[~smooth] = slopes_of(variances, budget, rho_of), expected_errors(variances)
    gains[smooth], before[smooth] = slopes_along(errors, budget), errors[:, 0]
    return gains, before


def allocate(gains: Floats, budget: float, *, weights: Floats | None = None, jumps: bool = False) -> Floats:
    """Split `budget` over tables so that all have the same weighted slope.

    Parameters
    ----------
    gains : array of shape (tables, steps)
        How fast each table's error falls at each of the `STEPS` of `budget`; decreasing along the steps.
    budget : float
        In total, in the unit of the private table: rho of zCDP, or epsilon.
    weights : array of shape (tables,), optional
        Weight of an error in each table. Default: equal.
    jumps : bool
        Whether gains may be constant over several steps. Tables that are alike then get the budget of the
        last of these steps one after another, as long as it lasts.

    Returns
    -------
    array of shape (tables,)
        Sums to `budget`; 0 for a table that is not worth measuring. Equal if all tables are certain.

    Examples
    --------
    Two equal tables get half each; a nearly certain one gets nothing:

    >>> sure, unsure = np.full((2, 2), 1e-6), np.full((2, 2), 1e6)
    >>> allocate(slopes_of([unsure, sure, unsure], 0.1), 0.1).round(6).tolist()
    [0.05, 0.0, 0.05]
    """
    if not len(gains):
        return np.zeros(0)
    if weights is not None:
        gains = gains * weights[:, np.newaxis]
    low, high = 0.0, float(gains[:, 0].max())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):  # adjacent numbers: nothing changes any more
            break
        if _budgets(gains, middle, budget).sum() > budget:
            low = middle
        else:
            high = middle
    budgets = _budgets(gains, high, budget)  # not `low`: at slope 0 even a certain table would take all
    if jumps:
        budgets = _filled(budgets, _budgets(gains, low, budget), budget)
    if not budgets.any():
        return np.full(len(gains), budget / len(gains))
    return budgets * (budget / budgets.sum())


def allocate_first(
    gains: Floats, before: Floats, budget: float, weights: Floats, named: Mask, *, jumps: bool = False
) -> Floats:
    """Split `budget` as `allocate` does, with more for the tables that are `named`.

    Errors in these weigh `IMPORTANT` times, or less: the expected error of the other tables together is at
    most `BESIDE` times what it would be without names. This suits any amount of noise. Where noise hides
    most tables, others lose little with their budget. Where they are clear, their errors grow with the root
    of what they lose.

    Parameters
    ----------
    gains, budget, weights, jumps : as for `allocate`
    before : array of shape (tables,)
        Expected error of each table with no budget, in the unit of `gains` times `budget`.
    named : array of bool of shape (tables,)

    Examples
    --------
    >>> variances = [np.full((2, 2), 1e4)] * 10
    >>> before, named = expected_errors(variances), np.arange(10) == 3
    >>> budgets = allocate_first(slopes_of(variances, 0.1), before, 0.1, np.ones(10), named)
    >>> bool(budgets[3] > 1.4 * budgets[0] > 0), round(float(budgets.sum()), 12)
    (True, 0.1)
    """
    fair = allocate(gains, budget, weights=weights, jumps=jumps)
    if not named.any() or named.all():
        return fair
    weights_of_rest = weights[~named]
    fallen = np.cumsum((gains[~named, 1:] + gains[~named, :-1]) / 2 * np.diff(budget * STEPS), axis=1)
    fallen = np.insert(fallen, 0, 0.0, axis=1)

    def error(budgets: Floats) -> float:
        return float(weights_of_rest @ (before[~named] - _at(fallen, budgets[~named] / budget)))

    looks = 2 if jumps else 1  # with Laplace noise there is no second one
    limit, factor = BESIDE**looks * error(fair), IMPORTANT
    while factor > 1:
        budgets = allocate(gains, budget, weights=np.where(named, factor, 1.0) * weights, jumps=jumps)
        if error(budgets) <= limit:
            return budgets
        factor /= FINELY
    return fair


def allocate_most(
    gains: Floats, before: Floats, budget: float, weights: Floats, named: Mask, *, jumps: bool
) -> Floats:
    """Return `allocate_first` of the pairs, but 0 for all except `MOST_PAIRS` whose errors fall fastest."""
    budgets = allocate_first(gains, before, budget, weights, named, jumps=jumps)
    if np.count_nonzero(budgets) <= MOST_PAIRS:
        return budgets
    order = np.lexsort((-gains[:, 0] * weights * (budgets > 0), ~named))
    selected, result = np.sort(order[:MOST_PAIRS]), np.zeros(len(budgets))
    some = (gains[selected], before[selected], budget, weights[selected], named[selected])
    result[selected] = allocate_first(*some, jumps=jumps)
    return result


def _at(curves: Floats, shares: Floats) -> Floats:
    """Return the value of each curve over the `STEPS` at a share of the budget, interpolated."""
    after = np.searchsorted(STEPS, shares).clip(1, len(STEPS) - 1)
    part = (shares - STEPS[after - 1]) / (STEPS[after] - STEPS[after - 1])
    rows = np.arange(len(curves))
    return np.asarray((1 - part) * curves[rows, after - 1] + part * curves[rows, after])


def _filled(budgets: Floats, more: Floats, budget: float) -> Floats:
    """Return the budgets, raised to `more` table after table as long as the sum stays within `budget`."""
    for table in np.flatnonzero(more > budgets):
        if budgets.sum() - budgets[table] + more[table] <= budget:
            budgets[table] = more[table]
    return budgets


def _budgets(gains: Floats, slope: float, budget: float) -> Floats:
    """Return the budget at which each table's gain has fallen to `slope`, interpolated between steps.

    A budget that rounding leaves is none: its noise would exceed every count.
    """
    budgets = np.zeros(len(gains))
    rows = np.flatnonzero(gains[:, 0] > slope)  # gains decrease: the others are not worth measuring
    after = np.clip((gains[rows] > slope).sum(axis=1), 1, len(STEPS) - 1)
    above, below = gains[rows, after - 1], gains[rows, after]
    fall = above - below
    part = np.divide(above - slope, fall, out=np.zeros_like(fall), where=fall > 0).clip(0.0, 1.0)
    shares = STEPS[after - 1] + part * (STEPS[after] - STEPS[after - 1])
    budgets[rows] = budget * np.where(shares < TINY_BUDGET, 0.0, shares)
    return budgets


_Parts = tuple[Ints, Floats, Floats, Floats, Floats]


class Resolutions:
    """The groups of each attribute at each level, and the expected errors of pairs measured in them.

    Parameters
    ----------
    waves : Waves
    rho_of : callable, optional
        From costs to rho, if budgets are not in zCDP.
    groups_of : callable, optional
        Return the group of each code of a one-way table at a level. Default: groups with about equally many
        records.
    """

    def __init__(
        self,
        waves: Waves,
        rho_of: RhoOf | None = None,
        groups_of: Callable[[Marginal, int], Codes] = groups_at,
    ) -> None:
        self._rho_of = rho_of
        self._one_ways = {table.attributes[0]: table for table in waves.one_ways}
        self._waves = waves
        self._groups = {name: _levels(table, groups_of) for name, table in self._one_ways.items()}
        self._places: dict[tuple[str, bytes], int] = {}
        self._parts: list[_Parts] = []

    def groups(self, attributes: Attributes, level: int) -> Grouping:
        """Return the groups of some attributes' codes at a level, or at the finest that they have."""
        levels_of_names = (self._groups[name] for name in attributes)
        return Grouping(tuple(levels[min(level, len(levels) - 1)] for levels in levels_of_names))

    def levels(self, attributes: Attributes) -> int:
        """Return the number of levels of a table over some attributes."""
        return max(len(self._groups[name]) for name in attributes)

    def errors_at(
        self, level: int, pairs: Sequence[Attributes], dispersions: Floats, budget: float
    ) -> Floats:
        """Return the expected L1 error, in records, of pairs measured at a level, at each budget step."""
        indices = {
            name: self._find(name, self.groups((name,), level).groups[0]) for pair in pairs for name in pair
        }
        axes = [[indices[name] for name in pair] for pair in pairs]
        return self._errors(axes, dispersions, np.zeros(len(pairs)), budget)

    def errors_left(self, pairs: Sequence[Estimate], budget: float) -> Floats:
        """Return the expected L1 error of pairs measured a second time, at each budget step; in records."""
        axes = [list(map(self._find, p.attributes, groups_of(p.measured))) for p in pairs]
        precisions = np.array([1 / float(p.measured.variance.mean()) for p in pairs])
        return self._errors(axes, np.array([p.dispersion for p in pairs]), precisions, budget)

    def _find(self, name: str, group: Codes) -> int:
        """Return the index of the parts of an attribute in these groups, which are computed once.

        Parts are the units, variances and gains of the components, and the masses and priors of the units.
        """
        key = (name, group.tobytes())
        if key in self._places:
            return self._places[key]
        self._places[key] = len(self._parts)
        one_way = self._one_ways[name]
        shares = np.maximum(one_way.counts / one_way.total, 1e-9)
        ordered = one_way.domain.ordered[0] if one_way.domain.ordered[0] > 2 else 0
        nominal_shares = shares[ordered:]
        nominal, even = np.arange(len(nominal_shares)), np.ones(len(nominal_shares))
        parts: _Parts = nominal, nominal_shares, even, nominal_shares, 1 / nominal_shares
        if ordered:
            spectrum = self._waves.along(name, group)
            mass = shares[:ordered].sum()
            gains, prior = np.zeros(len(spectrum.variances)), 0.0
            covariance = self._waves.covariance(name)[:ordered, :ordered]
            for scale in self._groups[name]:  # errors count at each scale, most at coarse ones
                along, across = Grouping((scale[:ordered],)), Grouping((scale[:ordered],) * 2)
                held, lift = along.join(shares[:ordered]), along.join(spectrum.lift[:ordered])
                weight = 1 / len(held) / mass
                gains += weight * (lift**2 / held[:, np.newaxis]).sum(axis=0)
                prior += weight * float((np.diag(across.join(covariance)) / held).sum())
            parts = (
                np.append(np.zeros(len(gains), np.int64), 1 + nominal),
                np.append(spectrum.variances, nominal_shares),
                np.append(gains, even),
                np.append(mass, nominal_shares),
                np.append(prior, 1 / nominal_shares),
            )
        self._parts.append(parts)
        return self._places[key]

    def _errors(
        self, axes: list[list[int]], dispersions: Floats, precisions: Floats, budget: float
    ) -> Floats:
        if not axes:
            return np.zeros((0, len(STEPS)))
        rhos = budget * STEPS if self._rho_of is None else self._rho_of(budget * STEPS)
        units, variances, gains, masses, priors = map(np.concatenate, zip(*self._parts, strict=True))
        starts, firsts = (np.cumsum([0, *(len(part[field]) for part in self._parts)]) for field in (0, 3))
        spectra = _kernels.Spectra(starts, units, variances, gains, firsts, masses, priors)
        scales = dispersions * next(iter(self._one_ways.values())).total
        return _kernels.smooth_errors(
            np.array(axes, np.int64).reshape(-1, 2), scales, precisions, spectra, rhos
        )


def _levels(one_way: Marginal, groups_of: Callable[[Marginal, int], Codes]) -> list[Codes]:
    """Return the groups of an attribute at each level, from two groups to all codes."""
    ordered = one_way.domain.ordered[0]
    groups = [groups_of(one_way, level) for level in LEVELS if level < ordered]
    return [*groups, np.arange(one_way.domain.sizes[0], dtype=np.int32)]
