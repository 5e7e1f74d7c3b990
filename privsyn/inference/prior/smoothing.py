"""Pairs with an ordered attribute: measured in groups of codes, and shrunk towards smooth tables.

See `spectrum` for the prior. The prior mean is independence. A copula, Gaussian or with tail dependence,
replaces it if that explains the measured counts better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from privsyn.inference.denoising import FLOOR, denoise, settle
from privsyn.inference.prior.copula import best_correlation, best_gumbel, copula, gumbel, hermite
from privsyn.inference.prior.dispersion import DISPERSIONS, residual_likelihood
from privsyn.inference.prior.spectrum import SMOOTHNESS, Spectrum, covariance, spectrum_of
from privsyn.marginals.domain import Domain
from privsyn.marginals.grouping import Grouping
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.types import Codes, Floats

SMOOTHNESSES = (0.25, 0.5, 0.75, 1.0, 1.5)
MOST_SEEN = 200  # pairs used to choose the smoothness of all
GAINED = 2.0  # log-likelihood that a copula has to gain; noise alone gains it in 1 pair of 20


def is_smooth(pair: Domain) -> bool:
    """Return whether a pair has an attribute with an order."""
    return max(pair.ordered) > 2


@dataclass(eq=False)
class Smoother:
    """The prior along each attribute; computed once and used for all pairs.

    Parameters
    ----------
    one_ways : tuple of Marginal, one per attribute
        Non-negative counts.
    smoothness : float
        Exponent s of the prior; see `spectrum`.
    """

    one_ways: Sequence[Marginal]
    smoothness: float = SMOOTHNESS
    _covariances: dict[tuple[str, float], Floats] = field(default_factory=dict)
    _spectra: dict[tuple[str, float, bytes], Spectrum] = field(default_factory=dict)
    _hermite: dict[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._one_way = {table.attributes[0]: table for table in self.one_ways}

    def covariance(self, name: str) -> Floats:
        """Return the prior covariance along one attribute."""
        key = (name, self._smoothness(name))
        if key not in self._covariances:
            self._covariances[key] = covariance(self._one_way[name], self.smoothness)
        return self._covariances[key]

    def spectra(self, measured: Measurement) -> tuple[Spectrum, Spectrum]:
        """Return the components along both attributes of a measured pair."""
        a, b = (self.along(*of) for of in zip(measured.attributes, groups_of(measured), strict=True))
        return a, b

    def along(self, name: str, group: Codes) -> Spectrum:
        """Return the components along one attribute in groups of codes."""
        key = (name, self._smoothness(name), group.tobytes())
        if key not in self._spectra:
            self._spectra[key] = spectrum_of(self.covariance(name), group)
        return self._spectra[key]

    def likelihood(self, measured: Measurement, expected: Floats) -> Floats:
        """Return the log-likelihood of each of the `DISPERSIONS`, from residuals to the expected counts."""
        return self.likelihoods(measured, [_residual(measured, expected)])[0]

    def likelihoods(self, measured: Measurement, residuals: Sequence[Floats]) -> list[Floats]:
        """Return the same for several expected counts, from the residuals to each."""
        a, b = self.spectra(measured)
        prior = np.outer(a.variances, b.variances).ravel() * self._total(measured)
        scatter = np.multiply.outer(DISPERSIONS, prior) + float(measured.variance.mean())
        logs, energies = np.log(scatter), [(a.vectors.T @ r @ b.vectors).ravel() ** 2 for r in residuals]
        return [np.asarray(-0.5 * (logs + energy / scatter).sum(axis=1)) for energy in energies]

    def likelihood_by_cells(self, measured: Measurement, expected: Floats) -> Floats:
        """Return the same if cells depart independently, with variance in proportion to expected counts."""
        mean = measured.grouping.join(expected)
        return residual_likelihood(measured.marginal.counts - mean, mean, measured.variance)

    def denoise_by_cells(
        self, measured: Measurement, expected: Floats, dispersion: float, margins: tuple[Marginal, ...]
    ) -> Marginal:
        """Return the posterior mean if cells depart independently; groups are shared out as expected."""
        grouping = Grouping(groups_of(measured))
        mean = grouping.join(expected)
        sides = tuple(side.join(grouping.project((axis,))) for axis, side in enumerate(margins))
        counts = denoise(measured, mean, dispersion, sides).counts
        return fit_margins(Marginal(_over(margins), grouping.scale(expected, counts)), margins)

    def denoise(
        self, measured: Measurement, expected: Floats, dispersion: float, margins: tuple[Marginal, ...]
    ) -> Marginal:
        """Return the posterior mean of a pair, non-negative and with the given margins.

        Parameters
        ----------
        measured : Measurement, optionally in groups
        expected : array of shape (codes, codes), with the given margins
        dispersion : float
        margins : tuple of Marginal
        """
        a, b = self.spectra(measured)
        scale, noise = dispersion * self._total(measured), float(measured.variance.mean())
        scatter = scale * np.outer(a.variances, b.variances) + noise
        found = a.vectors.T @ _residual(measured, expected) @ b.vectors
        departure = scale * a.lift @ (found / scatter) @ b.lift.T
        left = scale * np.outer(a.prior, b.prior) - scale**2 * a.lift**2 @ (1 / scatter) @ b.lift.T**2
        floor = FLOOR * (1 + expected) * (expected > 0)
        domain = _over(margins)
        counts = np.where(expected > 0, expected + departure, 0.0)
        variance = np.where(expected > 0, left, 0.0).clip(0.0)
        return settle([domain], counts[np.newaxis], variance[np.newaxis], floor[np.newaxis], [margins])[0]

    def left(self, measured: Measurement, dispersion: float, blocks: Grouping) -> Floats:
        """Return the posterior variance of a measured pair's counts in blocks of codes."""
        scale, noise = dispersion * self._total(measured), float(measured.variance.mean())
        spectra, lifts, priors = self.spectra(measured), [], []
        for axis, (name, spectrum) in enumerate(zip(measured.attributes, spectra, strict=True)):
            along = blocks.project((axis,))
            lifts.append(along.join(spectrum.lift) ** 2)
            priors.append(np.diag(along.project((0, 0)).join(self.covariance(name))))
        scatter = scale * np.outer(*(spectrum.variances for spectrum in spectra)) + noise
        left = scale * np.outer(*priors) - scale**2 * lifts[0] @ (1 / scatter) @ lifts[1].T
        return np.asarray(left.clip(0.0))

    def expect(
        self, measured: Measurement, independent: Floats, sides: tuple[Marginal, ...]
    ) -> tuple[Floats, Floats]:
        """Return the expected counts, and their `likelihood`.

        The counts are those of independence, or of the copula that explains the measured counts best.
        """
        away = _residual(measured, independent)
        counts = [side.domain.ordered[0] for side in sides]
        both = np.ix_(*map(np.arange, counts))
        if min(counts) <= 2 or not (total := independent[both].sum()) > 0:
            return independent, self.likelihoods(measured, [away])[0]
        groups = [group[:count] for group, count in zip(groups_of(measured), counts, strict=True)]
        block = np.ix_(*(np.arange(group.max() + 1) for group in groups))
        residual, joined = away[block] / total, (groups[0], groups[1])
        a, b = (self._integrals(name) for name in measured.attributes)
        shares = independent[both].sum(axis=1) / total, independent[both].sum(axis=0) / total
        candidates = [independent]
        for cells in (
            copula(best_correlation(residual, joined, (a, b)), (a, b)),
            gumbel(*best_gumbel(residual, joined, shares), shares),
        ):
            found = independent.copy()
            found[both] = total * cells
            candidates.append(np.asarray(fit_margins(Marginal(_over(sides), found), sides).counts))
        fits = self.likelihoods(measured, [away, *(_residual(measured, found) for found in candidates[1:])])
        gains = np.nan_to_num([fits[0].max() + GAINED, *(fit.max() for fit in fits[1:])], nan=-np.inf)
        best = int(gains.argmax())
        return candidates[best], fits[best]

    def _smoothness(self, name: str) -> float:
        """Return the smoothness, or 0 for a nominal attribute, whose prior does not depend on it."""
        return self.smoothness if self._one_way[name].domain.ordered[0] > 1 else 0.0

    def _integrals(self, name: str) -> Floats:
        if name not in self._hermite:
            self._hermite[name] = hermite(self._one_way[name])
        return self._hermite[name]

    def _total(self, measured: Measurement) -> float:
        return self._one_way[measured.attributes[0]].total


def fitted_smoother(
    one_ways: Sequence[Marginal], measured: Sequence[Measurement], expected: Sequence[Floats]
) -> Smoother:
    """Return the smoother whose smoothness explains the measured pairs best."""
    step = -(-len(measured) // MOST_SEEN) if measured else 1
    pairs = list(zip(measured, expected, strict=True))[::step]
    seen = [(m, [_residual(m, e)]) for m, e in pairs]
    best, most = Smoother(one_ways), -np.inf
    for smoothness in SMOOTHNESSES if seen else ():
        smoother = replace(best, smoothness=smoothness)  # with the results that do not depend on it
        likelihood = sum(float(smoother.likelihoods(m, away)[0].max()) for m, away in seen)
        if likelihood > most:
            best, most = smoother, likelihood
    return best


def groups_of(measured: Measurement) -> tuple[Codes, ...]:
    """Return the group of each code of a measured table's attributes."""
    return measured.grouping.of_codes(measured.marginal.domain.shape)


def _over(sides: tuple[Marginal, ...]) -> Domain:
    """Return the domain of the table of two attributes."""
    names, sizes, ordered = zip(
        *((side.attributes[0], side.domain.sizes[0], side.domain.ordered[0]) for side in sides), strict=True
    )
    return Domain(names, sizes, ordered)


def _residual(measured: Measurement, expected: Floats) -> Floats:
    return np.asarray(measured.marginal.counts - measured.grouping.join(expected))
