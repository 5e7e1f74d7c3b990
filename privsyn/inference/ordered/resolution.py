"""Choose the resolution of a pair with an ordered attribute: the one with the least expected error.

Coarse groups have little noise; fine groups show more detail. The expected error of each resolution after
denoising follows from the pair's dispersion and the prior spectrum. A pair's error at a budget is the least
of these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privsyn.inference import _kernels
from privsyn.inference.prior.smoothing import Waves, groups_of
from privsyn.inference.problem import Estimate
from privsyn.inference.selection import STEPS, RhoOf
from privsyn.marginals.domain import Attributes
from privsyn.marginals.grouping import LEVELS, Grouping, groups_at
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Codes, Floats, Ints

_Parts = tuple[Ints, Floats, Floats, Floats, Floats]


class Resolutions:
    """The groups of each attribute at each level, and the expected errors of pairs measured in them.

    Parameters
    ----------
    one_ways : tuple of Marginal, one per attribute
        Non-negative counts.
    waves : Waves
    rho_of : callable, optional
        From costs to rho, if budgets are not in zCDP.
    """

    def __init__(self, one_ways: Sequence[Marginal], waves: Waves, rho_of: RhoOf | None = None) -> None:
        self._rho_of = rho_of
        self._one_ways = {table.attributes[0]: table for table in one_ways}
        self._waves = waves
        self._groups = {name: _levels(table) for name, table in self._one_ways.items()}
        self._places: dict[tuple[str, bytes], int] = {}
        self._parts: list[_Parts] = []

    def groups(self, attributes: Attributes, level: int) -> Grouping:
        """Return the groups of some attributes' codes at a level, or at the finest that they have."""
        of = (self._groups[name] for name in attributes)
        return Grouping(tuple(levels[min(level, len(levels) - 1)] for levels in of))

    def levels(self, attributes: Attributes) -> int:
        """Return the number of levels of a table over some attributes."""
        return max(len(self._groups[name]) for name in attributes)

    def errors_at(self, level: int, pairs: Sequence[Attributes], dispersions: Floats, rho: float) -> Floats:
        """Return the expected L1 error, in records, of pairs measured at a level, at each budget step."""
        place = {
            name: self._find(name, self.groups((name,), level).groups[0]) for pair in pairs for name in pair
        }
        axes = [[place[name] for name in pair] for pair in pairs]
        return self._errors(axes, dispersions, np.zeros(len(pairs)), rho)

    def errors_left(self, pairs: Sequence[Estimate], rho: float) -> Floats:
        """Return the expected L1 error of pairs measured a second time, at each budget step; in records."""
        axes = [list(map(self._find, p.attributes, groups_of(p.measured))) for p in pairs]
        precisions = np.array([1 / float(p.measured.variance.mean()) for p in pairs])
        return self._errors(axes, np.array([p.dispersion for p in pairs]), precisions, rho)

    def _find(self, name: str, group: Codes) -> int:
        key = (name, group.tobytes())
        if key not in self._places:
            self._places[key] = len(self._parts)
            self._parts.append(_components(self._one_ways[name], group, self._waves))
        return self._places[key]

    def _errors(self, axes: list[list[int]], dispersions: Floats, precisions: Floats, rho: float) -> Floats:
        rhos = rho * STEPS if self._rho_of is None else self._rho_of(rho * STEPS)
        units, variances, gains, masses, priors = map(np.concatenate, zip(*self._parts, strict=True))
        starts, firsts = (np.cumsum([0, *(len(part[of]) for part in self._parts)]) for of in (0, 3))
        spectra = _kernels.Spectra(starts, units, variances, gains, firsts, masses, priors)
        scales = dispersions * next(iter(self._one_ways.values())).total
        return _kernels.smooth_errors(
            np.array(axes, np.int64).reshape(-1, 2), scales, precisions, spectra, rhos
        )


def _levels(one_way: Marginal) -> list[Codes]:
    """Return the groups of an attribute at each level, from two groups to all codes."""
    ordered = one_way.domain.ordered[0]
    found = [groups_at(one_way, level) for level in LEVELS if level < ordered]
    return [*found, np.arange(one_way.domain.sizes[0], dtype=np.int32)]


def _components(one_way: Marginal, group: Codes, waves: Waves) -> _Parts:
    """Return the units, variances and gains of the components, and the masses and priors of the units."""
    shares = np.maximum(one_way.counts / one_way.total, 1e-9)
    ordered = one_way.domain.ordered[0] if one_way.domain.ordered[0] > 2 else 0
    others = shares[ordered:]
    nominal = np.arange(len(others))
    if not ordered:
        return nominal, others, np.ones(len(others)), others, 1 / others
    spectrum = waves.along(one_way.attributes[0], group)
    mass = shares[:ordered].sum()
    gains, prior = np.zeros(len(spectrum.variances)), 0.0
    scales = [scale[:ordered] for scale in _levels(one_way)]
    covariance = waves.covariance(one_way.attributes[0])[:ordered, :ordered]
    for scale in scales:  # errors count at each scale, most at coarse ones
        along, across = Grouping((scale,)), Grouping((scale, scale))
        held, lift = along.join(shares[:ordered]), along.join(spectrum.lift[:ordered])
        weight = 1 / len(held) / mass
        gains += weight * (lift**2 / held[:, np.newaxis]).sum(axis=0)
        prior += weight * float((np.diag(across.join(covariance)) / held).sum())
    return (
        np.concatenate([np.zeros(len(gains), np.int64), 1 + nominal]),
        np.concatenate([spectrum.variances, others]),
        np.concatenate([gains, np.ones(len(others))]),
        np.concatenate([[mass], others]),
        np.concatenate([[prior], 1 / others]),
    )
