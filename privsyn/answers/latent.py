r"""A better expectation than independence: a mixture of a few products, fitted to all pairs together.

.. math:: P(a, b) = \sum_k \pi_k \theta_{ka} \theta_{kb}

Each pair alone is drowned in noise where the budget is small; the classes are shared by all pairs and
have too few parameters to follow the noise of each (latent class analysis: Lazarsfeld and Henry, 1968).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privsyn.answers.domain import Domain
from privsyn.answers.marginal import Marginal

Floats = npt.NDArray[np.float64]

CLASSES = 20
ROUNDS = 100  # of expectation-maximisation; stopping early is part of what keeps it from following noise
TINY = 1e-12


def latent_class_pairs(
    domain: Domain, one_ways: tuple[Marginal, ...], pairs: tuple[Marginal, ...], rng: np.random.Generator
) -> tuple[Floats, ...]:
    """What a mixture of `CLASSES` products, fitted to all `pairs`, expects in each of them.

    Parameters
    ----------
    domain : Domain
    one_ways : tuple of Marginal, one for each attribute, in the domain's order
    pairs : tuple of Marginal over two attributes
        Non-negative counts.
    rng : numpy.random.Generator
        Draws where the classes start.

    Returns
    -------
    tuple of arrays, one a pair and of its shape, in records.
    """
    if not pairs:
        return ()
    ends = np.cumsum(domain.sizes)
    places = {
        name: slice(end - size, end) for name, size, end in zip(domain.names, domain.sizes, ends, strict=True)
    }
    observed = np.zeros((ends[-1], ends[-1]))
    for pair in pairs:
        rows, columns = (places[name] for name in pair.attributes)
        observed[rows, columns] = pair.counts / pair.total
        observed[columns, rows] = observed[rows, columns].T
    shares = np.concatenate([one_way.counts / one_way.total for one_way in one_ways])
    values = _per_attribute((shares + TINY) * np.exp(rng.normal(0.0, 0.5, (CLASSES, ends[-1]))), places)
    classes = np.full(CLASSES, 1 / CLASSES)
    for _ in range(ROUNDS):
        fitted = (values.T * classes) @ values
        # Expected share of each value in each class, summed over the pairs that hold the value.
        evidence = values * (values @ (observed / np.maximum(fitted, TINY))) * classes[:, np.newaxis]
        classes = evidence.sum(axis=1) / evidence.sum()
        values = _per_attribute(evidence + 1e-9 * shares + TINY, places)
    fitted = (values.T * classes) @ values
    return tuple(
        pair.total * fitted[places[pair.attributes[0]], places[pair.attributes[1]]] for pair in pairs
    )


def parameters(domain: Domain) -> int:
    """How many free numbers the mixture has."""
    return CLASSES * (sum(size - 1 for size in domain.sizes) + 1) - 1


def _per_attribute(values: Floats, places: dict[str, slice]) -> Floats:
    """Each class's weights scaled to a distribution over every attribute's values."""
    for place in places.values():
        values[:, place] /= values[:, place].sum(axis=1, keepdims=True)
    return values
