"""Ask for the concordance of each pair of ordered columns, as a distance from a table of counts."""

from __future__ import annotations

import numpy as np

from privsyn.inference.posterior.concordance import Concordance
from privsyn.marginals.channel import Channels
from privsyn.marginals.domain import Attributes
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.recoding import joined
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.private.measure import PrivateTable

FAR = 2.0**40
"""Records: more than any table has, so that no count exceeds it."""


def measure_concordances(
    private: PrivateTable,
    margins: tuple[Marginal, ...],
    candidates: tuple[Attributes, ...],
    rho: float,
    possible: StructuralZeros,
    channels: Channels,
) -> tuple[Concordance, ...]:
    """Return the noisy concordance of each candidate pair of ordered columns; see `Concordance`.

    It is the distance from a table that expects nothing where codes are concordant, and `FAR` where they are
    discordant, less a constant: there, the distance of M records is FAR - M. One more record changes one cell
    by 1, so it moves the distance by 1, and m distances by sqrt(m) together (m in L1): `departures` states
    and pays this. That holds even if a count exceeds `FAR`. The halves come from released counts.

    A pair is left out if a constraint rules out some of its cells, if a column was randomised, or if all
    records of a column are in one half.

    Parameters
    ----------
    private : PrivateTable
    margins : tuple of Marginal, one per column
        Released counts, which define the halves.
    candidates : tuple of pairs of columns
        From public facts alone.
    rho : float
        Budget of all concordances together, in zCDP.
    possible : StructuralZeros
    channels : Channels
        Of the randomised columns.
    """
    if not rho:
        return ()
    halves = joined(private.domain, margins, 2)
    signs = {}
    for name, codes, size, ordered in zip(
        private.domain.names, private.domain.ordered, halves.merged.sizes, halves.merged.ordered, strict=True
    ):
        if codes > 2 and ordered == 2 and not channels.random((name,)):
            signs[name] = np.append(-1.0, np.ones(size - 1))  # codes without an order: 1
    pairs = [
        pair
        for pair in candidates
        if signs.keys() >= set(pair) and possible.of(private.domain.project(pair)).all()
    ]
    if not pairs:
        return ()
    expected = tuple(
        Marginal(
            halves.merged.project(pair), np.where(np.outer(*(signs[name] for name in pair)) > 0, 0.0, FAR)
        )
        for pair in pairs
    )
    distances, sigma = private.departures(expected, rho, halves)
    found = (distances - [table.total for table in expected]).tolist()
    fine = {name: signs[name][halves.groups_of((name,))[0]] for name in signs}
    return tuple(
        Concordance(pair, (fine[pair[0]], fine[pair[1]]), concordance, sigma**2)
        for pair, concordance in zip(pairs, found, strict=True)
    )
