r"""A better expectation than independence: a mixture of a few products, fitted to all pairs together.

.. math:: P(a, b) = \sum_k \pi_k \theta_{ka} \theta_{kb}

With a small budget, noise dominates each single pair. All pairs share the classes, which have too few
parameters to fit the noise of each (latent class analysis: Lazarsfeld and Henry, 1968).
"""

from __future__ import annotations

import numpy as np

from privsyn.inference import _kernels
from privsyn.marginals.domain import Domain
from privsyn.marginals.ipf import CELLS_AT_ONCE, sums_of
from privsyn.marginals.marginal import Marginal, alike
from privsyn.marginals.types import Floats, Ints

CLASSES = 20
ROUNDS = 100  # of expectation-maximisation; stopping early helps against fitting noise
START_SCATTER = 0.5  # standard deviation of ln(weight) among classes at the start
KEPT_OPEN = 1e-9  # least share of a value in a class, over its overall share: no value is ruled out
TINY = 1e-12


def latent_class_pairs(
    domain: Domain, one_ways: tuple[Marginal, ...], pairs: tuple[Marginal, ...], rng: np.random.Generator
) -> tuple[Floats, ...]:
    """Return the expected counts of each pair, by a mixture of `CLASSES` products fitted to all `pairs`.

    Parameters
    ----------
    domain : Domain
    one_ways : tuple of Marginal, one per attribute, in the domain's order
    pairs : tuple of Marginal over two attributes
        Non-negative counts.
    rng : numpy.random.Generator
        Draws the starting classes.

    Returns
    -------
    tuple of arrays, one per pair and of its shape, in records.
    """
    if not pairs:
        return ()
    starts = np.cumsum([0, *domain.sizes])
    edges = np.array([[starts[axis] for axis in domain.axes(pair.attributes)] for pair in pairs], np.int64)
    shares = np.concatenate([one_way.counts / one_way.total for one_way in one_ways])[:, np.newaxis]
    factors = np.exp(rng.normal(0.0, START_SCATTER, (len(shares), CLASSES)))
    values = _per_attribute((shares + TINY) * factors, starts)
    classes = np.full(CLASSES, 1 / CLASSES)
    shapes, totals = np.array([pair.domain.shape for pair in pairs]), np.empty(len(pairs))
    groups = list(alike([pair.domain.shape for pair in pairs], shapes.prod(axis=1).tolist(), CELLS_AT_ONCE))
    for places in groups:
        totals[places] = sums_of(np.array([pairs[place].counts for place in places]))
    observed = np.concatenate([pair.counts.ravel() for pair in pairs])
    observed /= np.repeat(totals, shapes.prod(axis=1))
    for _ in range(ROUNDS):
        evidence = np.zeros_like(values)
        _kernels.add_class_evidence(values, classes, observed, edges, shapes, evidence)
        classes = evidence.sum(axis=0) / evidence.sum()
        values = _per_attribute(evidence + KEPT_OPEN * shares + TINY, starts)
    found: dict[int, Floats] = {}
    for places in groups:
        first, second = (
            values[edges[places, axis, np.newaxis] + np.arange(shapes[places[0], axis])] for axis in (0, 1)
        )
        weights = totals[places, np.newaxis, np.newaxis] * (first * classes)
        found.update(zip(places, weights @ second.transpose(0, 2, 1), strict=True))
    return tuple(found[place] for place in range(len(pairs)))


def parameters(domain: Domain) -> int:
    """Return the number of free parameters of the mixture."""
    return CLASSES * (sum(size - 1 for size in domain.sizes) + 1) - 1


def _per_attribute(values: Floats, starts: Ints) -> Floats:
    """Return weights of shape (values of all attributes, classes), normalised within each attribute."""
    sums = np.add.reduceat(values, starts[:-1], axis=0)
    return values / np.repeat(sums, np.diff(starts), axis=0)
