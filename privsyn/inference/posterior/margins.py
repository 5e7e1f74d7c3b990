"""Noise of the combined one-way tables, with its covariances; and draws of one-way tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from privsyn.inference.consistency import EXACT, covariance_of, information_of
from privsyn.inference.fitted import Fitted
from privsyn.inference.posterior.cells import draw_cells
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.marginals.types import Floats

ROUNDS = 50  # of the fixed-point iteration; the variances then agree to a few per cent

DEPARTS = 0.05
"""Prior standard deviation of a mean about the released one, in standard deviations of the numbers.

Chosen on six runs of each real table of docs/inference.md, with the widths in `inside` and `places`."""

STEEPEST = 2.0  # largest tilt: it moves the mean of a normal column by as many standard deviations
HALVINGS = 30  # of the interval of tilts: its ends then agree to 4e-9
NO_NUMBERS: Mapping[str, Floats] = MappingProxyType({})


def noise_factor(combined: Measurement, tables: Iterable[Measurement]) -> Floats:
    r"""Return a matrix F such that F z, with z standard normal, has the noise of a combined one-way table.

    Tables measured in groups of codes inform sums of cells only. The noise of cells in one group is then
    negatively correlated, with covariance :math:`C = (V^{-1} + I)^{-1}`: V is the diagonal of variances
    before these tables were used, and I their information. A release states the diagonal of C. V follows by
    iteration.

    Parameters
    ----------
    combined : Measurement
        Of one attribute, from all tables.
    tables : iterable of Measurement
        Those that hold the attribute and contributed to `combined`.
    """
    stated = np.maximum(combined.variance, EXACT)
    name = combined.attributes
    joined = [(m.grouping.groups[0], m.variance) for m in (t.project(name) for t in tables) if m.grouping]
    if not joined:
        return np.diag(np.sqrt(stated))
    information, alone = information_of(joined), stated
    for _ in range(ROUNDS):
        covariance = covariance_of(alone, information)
        alone = alone * stated / np.maximum(np.diag(covariance), EXACT)
    values, vectors = np.linalg.eigh(covariance_of(alone, information))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def noise_of(fitted: Fitted, possible: StructuralZeros, name: str) -> Floats:
    """Return the `noise_factor` of one attribute of a release."""
    first, domain = len(fitted.one_ways), fitted.merging.merged
    combined = fitted.certainties[domain.names.index(name)].measured
    answers = [c.measured for c in fitted.certainties[first:] if name in c.attributes]
    # Tables with structural zeros did not contribute to the one-way tables.
    return noise_factor(combined, [m for m in answers if possible.of(domain.project(m.attributes)).all()])


def draw_margins(
    measured: Sequence[Measurement],
    released: Sequence[Marginal],
    factors: Sequence[Floats],
    rng: np.random.Generator,
    numbers: Mapping[str, Floats] = NO_NUMBERS,
) -> tuple[Marginal, ...]:
    """Return one-way tables drawn from their posterior, with the released totals.

    Attributes that have `numbers`, the mean number of each ordered code, get a mean from its posterior too.
    """
    drawn = []
    for m, table, factor in zip(measured, released, factors, strict=True):
        noise = factor @ rng.standard_normal(len(factor))
        answers = Measurement(Marginal(table.domain, m.marginal.counts + noise), m.variance)
        found = draw_cells(table, answers, (), rng)
        number = numbers.get(table.attributes[0])
        drawn.append(found if number is None else _with_mean(found, answers, table, number, factor, rng))
    return tuple(drawn)


def _with_mean(
    drawn: Marginal,
    answers: Measurement,
    released: Marginal,
    number: Floats,
    factor: Floats,
    rng: np.random.Generator,
) -> Marginal:
    """Return the table, tilted until its numbers have a mean drawn from its posterior.

    A few records far out decide the mean of a skewed number. Their cells are below the noise, so that they
    are drawn near the estimate. The mean itself is drawn about its measurement.
    """
    size = len(number)
    counts, expected, found = (t.counts[:size] for t in (drawn, released, answers.marginal))
    if not min(expected.sum(), found.sum(), counts.sum()) > 0:
        return drawn
    middle = float(expected @ number / expected.sum())
    spread = float(np.sqrt(expected @ (number - middle) ** 2 / expected.sum()))
    if not spread > 0:
        return drawn
    place = (number - middle) / spread
    noise = float((((place @ factor[:size]) / expected.sum()) ** 2).sum())
    share = DEPARTS**2 / (DEPARTS**2 + noise)
    scatter = float(np.sqrt(share * (1 - share) * noise)) * rng.standard_normal()
    wanted = share * float(place @ found / found.sum()) + scatter
    low, high = -STEEPEST, STEEPEST
    for _ in range(HALVINGS):
        tilt = (low + high) / 2
        power = tilt * place
        weight = counts * np.exp(np.minimum(power - power[counts > 0].max(), 0.0))
        low, high = (tilt, high) if weight @ place < wanted * weight.sum() else (low, tilt)
    tilted = np.array(drawn.counts)
    tilted[:size] = weight * (counts.sum() / weight.sum())
    return Marginal(drawn.domain, tilted)
