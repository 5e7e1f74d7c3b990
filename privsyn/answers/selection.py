"""Stage 2: which pairs of attributes to measure, and with how much of the budget.

A pair that is left out is taken as independent and errs by its dependence (InDif); a pair that is
measured errs by its noise. DenseMarg adds pairs greedily while the sum of both errors falls.
"""

from __future__ import annotations

from math import pi

import numpy as np

from privsyn.answers.arrays import Floats
from privsyn.answers.domain import Attributes, Domain


def allocate(cells: Floats, rho: float) -> Floats:
    r"""Split `rho` so that the sum of the expected L1 errors is least: in proportion to cells^(2/3).

    Parameters
    ----------
    cells : array of shape (k,)
        Number of cells of each table.
    rho : float
        Budget of all of them, in zCDP.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 4.2: minimise
    :math:`\sum c_i / \sqrt{\pi \rho_i}` subject to :math:`\sum \rho_i = \rho`.

    Examples
    --------
    >>> allocate(np.array([8.0, 1.0]), 1.0).tolist()
    [0.8, 0.2]
    """
    weights = np.cbrt(cells) ** 2
    return rho * weights / weights.sum()


def dense_marg(dependences: dict[Attributes, float], domain: Domain, rho: float) -> tuple[Attributes, ...]:
    """Choose pairs greedily while the expected error of the whole falls.

    Parameters
    ----------
    dependences : dict of pair to float
        Noisy InDif of each pair, in records; a negative one counts as 0.
    domain : Domain
        Sizes of the attributes.
    rho : float
        Budget that will be spent on the pairs chosen.

    Returns
    -------
    tuple of pairs, in the order in which they were chosen.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 4.2, Eq. (1) and Algorithm 1. The total
    error is kept as two running sums, so that each step costs one pass over the pairs.

    Examples
    --------
    >>> domain = Domain(("a", "b", "c"), (2, 2, 2))
    >>> dense_marg({("a", "b"): 900.0, ("a", "c"): 2.0, ("b", "c"): 0.5}, domain, rho=0.1)
    (('a', 'b'),)
    """
    pairs = list(dependences)
    left_out = np.maximum(np.array([dependences[pair] for pair in pairs]), 0.0)
    weights = np.cbrt([float(domain.project(pair).cells) for pair in pairs]) ** 2
    chosen: list[int] = []
    weight, dependence = 0.0, float(left_out.sum())
    error = dependence
    open_pairs = np.ones(len(pairs), np.bool_)
    while open_pairs.any():
        errors = (weight + weights) ** 1.5 / np.sqrt(pi * rho) + dependence - left_out
        best = int(np.argmin(np.where(open_pairs, errors, np.inf)))
        if errors[best] >= error:
            break
        error, weight, dependence = errors[best], weight + weights[best], dependence - left_out[best]
        open_pairs[best] = False
        chosen.append(best)
    return tuple(pairs[i] for i in chosen)
