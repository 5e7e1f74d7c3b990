r"""Priors of tables, above all of pairs with an order: measured in groups, and shrunk to smooth tables.

In the prior `Waves`, departures vary smoothly along ordered codes and freely among nominal ones. Those of a
pair are a Gaussian process :math:`D_{ab} = p_a p_b f(a, b)`, where p are the shares of the codes. Along
ordered codes, f is a sum of cosines in the cumulated share. The prior variance of the k-th is
:math:`k^{-2s}`. Each nominal code has its own value, of variance 1/p. So the covariance of a pair is the
product of one matrix per attribute, times the pair's dispersion. Margins are known from other tables: D sums
to 0 along every axis.

Noise is white in the cells of a table, so the eigenvectors of the two matrices are independent components.
The posterior mean, its variance and the likelihood are sums over them. For a table measured in groups of
codes, the same matrices give the prior inside its groups.

The prior mean is independence. A copula, Gaussian or with tail dependence, replaces it if that explains the
measured counts better. It may leave a share of the records unrelated (`copula.with_unrelated`). In the prior
`Cells`, each cell departs alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from privsyn.inference.consistency import FLOOR, denoise_all, settle
from privsyn.inference.measured_columns import Estimate
from privsyn.inference.prior.copula import (
    best_correlation,
    best_gumbel,
    copula,
    gumbel,
    hermite,
    with_unrelated,
)
from privsyn.inference.prior.dispersion import DISPERSIONS, deviation_likelihoods, log_possible
from privsyn.marginals.domain import Codes, Domain, Floats, keep
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.tolerances import TINY_SHARE

SMOOTHNESS = 0.75
"""Default s: departures between columns of real tables have s between 0.5 and 1.5."""

HARMONICS = 4  # cosines per code: faster ones average out inside the codes
MAJORITY = 0.5  # share of the records: an ordered code with more, such as 0, departs as if it had no order
NEGLIGIBLE = 1e-9  # of the largest eigenvalue: smaller ones are dropped
SMOOTHNESSES = (0.25, 0.5, 0.75, 1.0, 1.5)
MOST_SEEN = 200  # pairs used to choose the smoothness of all
GAINED = 2.0  # log-likelihood that a copula has to gain; noise alone gains it in 1 pair of 20


def is_smooth(pair: Domain) -> bool:
    """Return whether a pair has an attribute with an order."""
    return max(pair.ordered) > 2


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Independent components of the departures along one attribute, for a measurement in groups of codes.

    Parameters
    ----------
    vectors : array of shape (groups, components)
        Orthonormal.
    variances : array of shape (components,)
        Prior variance of each component, for a dispersion of 1 and one record.
    lift : array of shape (codes, components)
        Covariance of each code's departure with each component.
    prior : array of shape (codes,)
        Prior variance of each code's departure.
    """

    vectors: Floats
    variances: Floats
    lift: Floats
    prior: Floats

    def __post_init__(self) -> None:
        keep(self, "vectors", "variances", "lift", "prior")


class Prior(Protocol):
    """How counts depart from expected ones."""

    def evidence(self, tables: Sequence[Estimate]) -> list[Floats]:
        """Return the log-likelihood of each of the `DISPERSIONS` of each table, by its measurement."""

    def mean(self, tables: Sequence[Estimate], dispersions: Floats) -> list[Marginal]:
        """Return the posterior mean of each table: not negative, and with its margins."""


class Cells:
    """Cells depart independently, with variance in proportion to their expected counts."""

    def evidence(self, tables: Sequence[Estimate]) -> list[Floats]:
        """See `Prior`."""
        means = [t.measured.grouping.join(t.table.counts) for t in tables]
        likelihoods = deviation_likelihoods([t.measured for t in tables], means)
        return [likelihood + log_possible(mean) for likelihood, mean in zip(likelihoods, means, strict=True)]

    def mean(self, tables: Sequence[Estimate], dispersions: Floats) -> list[Marginal]:
        """See `Prior`. Groups are shared out among their codes as expected."""
        joined = [t.measured.grouping.join(t.table.counts) for t in tables]
        sides = [
            tuple(side.join(grouping.project((axis,))) for axis, side in enumerate(t.margins))
            if (grouping := t.measured.grouping)
            else t.margins
            for t in tables
        ]
        means = denoise_all([t.measured for t in tables], joined, dispersions, sides)
        for i, t in enumerate(tables):
            if grouping := t.measured.grouping:
                scaled = Marginal(t.table.domain, grouping.scale(t.table.counts, means[i].counts))
                means[i] = fit_margins(scaled, t.margins)
        return means


CELLS = Cells()


@dataclass(eq=False)
class Waves:
    """Departures vary smoothly along ordered codes; computed once and used for all pairs.

    Parameters
    ----------
    one_ways : tuple of Marginal, one per attribute
        Non-negative counts.
    smoothness : float
        Exponent s of the prior.
    apart : bool
        Whether an ordered code with more than `MAJORITY` of the records departs as one without an order.
    """

    one_ways: Sequence[Marginal]
    smoothness: float = SMOOTHNESS
    apart: bool = False
    _covariances: dict[tuple[str, float, bool], Floats] = field(default_factory=dict)
    _spectra: dict[tuple[str, float, bool, bytes], Spectrum] = field(default_factory=dict)
    _hermite: dict[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._one_way = {table.attributes[0]: table for table in self.one_ways}

    def covariance(self, name: str) -> Floats:
        """Return the prior covariance along one attribute."""
        key = (name, self._smoothness(name), self.apart)
        if key not in self._covariances:
            self._covariances[key] = covariance(self._one_way[name], self.smoothness, apart=self.apart)
        return self._covariances[key]

    def spectra(self, measured: Measurement) -> tuple[Spectrum, Spectrum]:
        """Return the components along both attributes of a measured pair."""
        a, b = (
            self.along(*name_and_groups)
            for name_and_groups in zip(measured.attributes, groups_of(measured), strict=True)
        )
        return a, b

    def along(self, name: str, group: Codes) -> Spectrum:
        """Return the components along one attribute in groups of codes."""
        key = (name, self._smoothness(name), self.apart, group.tobytes())
        if key not in self._spectra:
            self._spectra[key] = spectrum_of(self.covariance(name), group)
        return self._spectra[key]

    def evidence(self, tables: Sequence[Estimate]) -> list[Floats]:
        """See `Prior`."""
        return [self.likelihoods(t.measured, [_deviation(t.measured, t.table.counts)])[0] for t in tables]

    def likelihoods(self, measured: Measurement, deviations: Sequence[Floats]) -> list[Floats]:
        """Return the log-likelihood of each of the `DISPERSIONS`, for each of several deviations."""
        a, b = self.spectra(measured)
        prior = np.outer(a.variances, b.variances).ravel() * self._total(measured)
        scatter = np.multiply.outer(DISPERSIONS, prior) + float(measured.variance.mean())
        logs, energies = np.log(scatter), [(a.vectors.T @ r @ b.vectors).ravel() ** 2 for r in deviations]
        return [np.asarray(-0.5 * (logs + energy / scatter).sum(axis=1)) for energy in energies]

    def mean(self, tables: Sequence[Estimate], dispersions: Floats) -> list[Marginal]:
        """See `Prior`."""
        return list(map(self._mean, tables, dispersions.tolist()))

    def _mean(self, table: Estimate, dispersion: float) -> Marginal:
        measured, expected = table.measured, table.table.counts
        a, b = self.spectra(measured)
        scale, noise = dispersion * self._total(measured), float(measured.variance.mean())
        scatter = scale * np.outer(a.variances, b.variances) + noise
        components = a.vectors.T @ _deviation(measured, expected) @ b.vectors
        departure = scale * a.lift @ (components / scatter) @ b.lift.T
        posterior = scale * np.outer(a.prior, b.prior) - scale**2 * a.lift**2 @ (1 / scatter) @ b.lift.T**2
        floor = FLOOR * (1 + expected) * (expected > 0)
        counts = np.where(expected > 0, expected + departure, 0.0)
        variance = np.where(expected > 0, posterior, 0.0).clip(0.0)
        counts, variance, floor = (values[np.newaxis] for values in (counts, variance, floor))
        return settle([table.table.domain], counts, variance, floor, [table.margins])[0]

    def posterior_variance(self, table: Estimate, blocks: Grouping) -> Floats:
        """Return the posterior variance of a measured pair's counts in blocks of codes."""
        measured = table.measured
        scale, noise = table.dispersion * self._total(measured), float(measured.variance.mean())
        spectra, lifts, priors = self.spectra(measured), [], []
        for axis, (name, spectrum) in enumerate(zip(measured.attributes, spectra, strict=True)):
            along = blocks.project((axis,))
            lifts.append(along.join(spectrum.lift) ** 2)
            priors.append(np.diag(along.project((0, 0)).join(self.covariance(name))))
        scatter = scale * np.outer(*(spectrum.variances for spectrum in spectra)) + noise
        posterior = scale * np.outer(*priors) - scale**2 * lifts[0] @ (1 / scatter) @ lifts[1].T
        return np.asarray(posterior.clip(0.0))

    def expect(self, table: Estimate) -> tuple[Marginal, Floats]:
        """Return the expected counts of a pair, and their `evidence`.

        The counts are the table's, or the counts by the copula that explains the measured counts best.
        """
        measured, sides, independent = table.measured, table.margins, table.table.counts
        away = _deviation(measured, independent)
        counts = [side.domain.ordered[0] for side in sides]
        both = np.ix_(*map(np.arange, counts))
        if min(counts) <= 2 or not (total := independent[both].sum()) > 0:
            return table.table, self.likelihoods(measured, [away])[0]
        groups = [group[:count] for group, count in zip(groups_of(measured), counts, strict=True)]
        block = np.ix_(*(np.arange(group.max() + 1) for group in groups))
        deviation, joined = away[block] / total, (groups[0], groups[1])
        for name in measured.attributes:
            if name not in self._hermite:
                self._hermite[name] = hermite(self._one_way[name])
        a, b = (self._hermite[name] for name in measured.attributes)
        shares = independent[both].sum(axis=1) / total, independent[both].sum(axis=0) / total
        sigma = float(measured.variance.mean()) ** 0.5 / total
        candidates = [table.table]
        for fit in (
            lambda rest: copula(best_correlation(rest, joined, (a, b)), (a, b)),
            lambda rest: gumbel(*best_gumbel(rest, joined, shares), shares),
        ):
            counts_expected = independent.copy()
            counts_expected[both] = total * with_unrelated(fit, deviation, joined, shares, sigma)
            candidates.append(fit_margins(Marginal(table.table.domain, counts_expected), sides))
        deviations = [
            away,
            *(_deviation(measured, counts_expected.counts) for counts_expected in candidates[1:]),
        ]
        fits = self.likelihoods(measured, deviations)
        gains = np.nan_to_num([fits[0].max() + GAINED, *(fit.max() for fit in fits[1:])], nan=-np.inf)
        best = int(gains.argmax())
        return candidates[best], fits[best]

    def _smoothness(self, name: str) -> float:
        """Return the smoothness, or 0 for a nominal attribute, whose prior does not depend on it."""
        return self.smoothness if self._one_way[name].domain.ordered[0] > 1 else 0.0

    def _total(self, measured: Measurement) -> float:
        return self._one_way[measured.attributes[0]].total


def has_majority(one_way: Marginal) -> bool:
    """Return whether an ordered code of several has more than `MAJORITY` of the records."""
    ordered = one_way.domain.ordered[0]
    return ordered > 2 and float(one_way.counts[:ordered].max()) > MAJORITY * one_way.total


def covariance(one_way: Marginal, smoothness: float, *, apart: bool = False) -> Floats:
    """Return the prior covariance of the departures of an attribute's codes, which sum to 0.

    For `apart` see `Waves`.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> coin = Marginal(Domain(("coin",), (2,)), np.array([5.0, 5.0]))
    >>> covariance(coin, 1.0).tolist()
    [[0.25, -0.25], [-0.25, 0.25]]
    """
    shares = np.maximum(one_way.counts, TINY_SHARE * max(one_way.total, 1.0))
    shares = shares / shares.sum()
    matrix = np.diag(shares)
    ordered = np.arange(one_way.domain.ordered[0])
    if apart and has_majority(one_way):
        ordered = np.delete(ordered, shares[: len(ordered)].argmax())
    if len(ordered) > 1:
        along = shares[ordered]
        mass = along.sum()
        ends = np.concatenate([[0.0], np.cumsum(along)]) / mass
        orders = np.arange(1, HARMONICS * len(ordered) + 1)
        waves = np.sqrt(2) * mass * np.diff(np.sin(np.pi * np.outer(ends, orders)), axis=0) / (np.pi * orders)
        smooth = (waves * orders ** (-2 * smoothness)) @ waves.T
        matrix[np.ix_(ordered, ordered)] = (smooth + np.outer(along, along)) / mass
    sums = matrix.sum(axis=1)
    return np.asarray(matrix - np.outer(sums, sums) / sums.sum())


def spectrum_of(prior: Floats, group: Codes) -> Spectrum:
    """Return the components of a covariance when its codes are measured in groups."""
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    half = np.add.reduceat(prior[:, order], starts, axis=1)
    both = np.add.reduceat(half[order], starts, axis=0)
    variances, vectors = np.linalg.eigh((both + both.T) / 2)
    significant = variances > NEGLIGIBLE * max(float(variances.max(initial=0.0)), TINY_SHARE)
    vectors = vectors[:, significant]
    return Spectrum(vectors, variances[significant], half @ vectors, np.diag(prior))


def fitted_waves(one_ways: Sequence[Marginal], tables: Sequence[Estimate]) -> Waves:
    """Return the waves whose smoothness explains the measured pairs best."""
    some = tables[:: -(-len(tables) // MOST_SEEN) or 1]
    best, best_likelihood = Waves(one_ways), -np.inf
    for smoothness in SMOOTHNESSES if some else ():
        waves = replace(best, smoothness=smoothness)  # with the results that do not depend on it
        likelihood = sum(float(evidence.max()) for evidence in waves.evidence(some))
        if likelihood > best_likelihood:
            best, best_likelihood = waves, likelihood
    return best


def groups_of(measured: Measurement) -> tuple[Codes, ...]:
    """Return the group of each code of a measured table's attributes."""
    return measured.grouping.of_codes(measured.marginal.domain.shape)


def _deviation(measured: Measurement, expected: Floats) -> Floats:
    return np.asarray(measured.marginal.counts - measured.grouping.join(expected))
