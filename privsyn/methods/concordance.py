"""Ask which way each pair of ordered columns goes together."""

from __future__ import annotations

from privsyn.inference.ordered.concordance import Concordance, signs_of
from privsyn.marginals.channel import Channels
from privsyn.marginals.domain import Attributes
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.private.measure import PrivateTable


def measure_concordances(
    private: PrivateTable,
    margins: tuple[Marginal, ...],
    candidates: tuple[Attributes, ...],
    rho: float,
    possible: StructuralZeros,
    channels: Channels,
) -> tuple[Concordance, ...]:
    """Return the noisy concordance of each candidate pair of ordered columns; see `Concordance`.

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
    signs = {
        name: signs_of(margin)
        for name, margin in zip(private.domain.names, margins, strict=True)
        if margin.domain.ordered[0] > 2 and not channels.random((name,))
    }
    halved = {name for name, sign in signs.items() if {-1, 1} <= set(sign.tolist())}
    pairs = tuple(
        pair for pair in candidates if halved >= set(pair) and possible.of(private.domain.project(pair)).all()
    )
    if not pairs:
        return ()
    found, variance = private.concordances(pairs, signs, rho)
    return tuple(
        Concordance((a, b), (signs[a], signs[b]), concordance, variance)
        for (a, b), concordance in zip(pairs, found.tolist(), strict=True)
    )
