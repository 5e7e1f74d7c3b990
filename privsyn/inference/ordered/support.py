"""Support: which values of a column of few whole numbers occur, if its bounds were found under privacy.

Found bounds are generous. The released counts of the values have far more budget, so they decide here. A
value at an end stays only if it stands out of the noise, alone or with its neighbours. A value between others
goes if they lead to expect many rows, and hardly any are counted. So 1, 2 and 5 stay three values, and ages
stay dense. A value that goes is never drawn.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privsyn.marginals.domain import Floats, Mask

FALSE_VALUE, FALSE_END = 0.01, 0.05
"""Probabilities that noise alone makes a value stand out, and that it extends the end of a column of at most
`FEW` values, in any column, about."""

LONGER = 0.02
"""Probability that noise alone extends an end of a column of more values, about: a tail is likelier there."""

FEW = 3
"""Values: flags and the like."""

ABSENT, SURELY = 2.0, 3.5
"""Standard deviations that values between others hold at most if no row has them, and by which they hold
fewer rows than their neighbours lead to expect. The second counts if that is at most a `TENTH` of these."""

TENTH = 0.1


def occurring(
    counts: Floats, variances: Floats, deviations: Callable[[float], float], columns: int = 1
) -> Mask:
    """Return which values occur; all of them if none stands out of the noise.

    Parameters
    ----------
    counts, variances : arrays of shape (values,)
        Noisy counts in the order of the values, and the variances of their noise.
    deviations : function of a probability
        Standard deviations that noise exceeds with it, such as `Law.deviations`.
    columns : int
        Number of columns that share the probabilities of an error.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> noise = np.full(8, 100.0)
    >>> occurring(np.array([3.0, 400, 380, -9, 12, 310, 11, -15]), noise, norm.isf).nonzero()[0].tolist()
    [1, 2, 5]
    >>> occurring(np.array([3.0, 60, 38, 22, 12, 50, 11, -15]), noise, norm.isf).nonzero()[0].tolist()
    [1, 2, 3, 4, 5]
    """
    standing_out = float(deviations(FALSE_VALUE / (columns * len(counts))))
    clear = np.flatnonzero(counts > standing_out * np.sqrt(variances))
    found = np.zeros(len(counts), np.bool_)
    if not len(clear):
        return ~found
    first, last = int(clear[0]), int(clear[-1])
    needed = float(deviations(FALSE_END / (2 * columns) if last - first < FEW else LONGER))
    if first == last and len(counts) > 1:  # the other value of a flag may be too rare to be seen
        first, last = (first - 1, last) if first else (0, 1)
    first -= _further(counts[:first][::-1], variances[:first][::-1], needed)
    last += _further(counts[last + 1 :], variances[last + 1 :], needed)
    found[first : last + 1] = True
    for before, after in zip(clear[:-1].tolist(), clear[1:].tolist(), strict=True):
        found[before + 1 : after] = not _absent(slice(before + 1, after), counts, variances)
    return found


def _further(counts: Floats, variances: Floats, needed: float) -> int:
    """Return how many values, going outwards, belong to the column too: they stand out together."""
    heights = np.cumsum(counts) / np.sqrt(np.maximum(np.cumsum(variances), np.finfo(float).tiny))
    clear = np.flatnonzero(heights > needed)
    if not len(clear):
        return 0
    end = int(clear[0]) + 1
    return end + _further(counts[end:], variances[end:], needed)


def _absent(between: slice, counts: Floats, variances: Floats) -> bool:
    """Return whether values between two clear ones hold no rows, although their neighbours do."""
    if between.start == between.stop:
        return False
    noise = np.sqrt(variances[between].sum())
    expected = min(counts[between.start - 1], counts[between.stop]) * (between.stop - between.start)
    seen = counts[between].sum()
    most = np.clip(TENTH * expected, ABSENT * noise, SURELY * noise)
    return bool(seen < most and expected - seen > ABSENT * noise)
