"""Which columns have missing cells: a test of all of them together, from released counts alone."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from privsyn.inference.consistency import variance_of_total
from privsyn.marginals.marginal import Measurement
from privsyn.marginals.tolerances import TINY_VARIANCE
from privsyn.private.noise_laws import Law

FALSE_ALARM = 0.01  # probability that a table without missing cells gets some
FALSE_DISCOVERY = 0.05  # rate: share of complete columns among those that get missing cells
# The same if the schema leaves columns open: most are complete. With 0.05, 1 in 7 tables of 20 columns, three
# with missing cells, had an invented one.
OF_OPEN = 0.01
FALSE_ALARM_OF_TARGET = 1e-6  # the same for the target column: a row without it trains no model


def missing_thresholds(
    one_ways: tuple[Measurement, ...],
    total: float,
    nullable: Collection[str],
    law: Law,
    target: str | None = None,
    *,
    discovery: float = FALSE_DISCOVERY,
) -> dict[str, float]:
    """Return for each nullable attribute the count from which its missing cells are kept.

    All attributes decide together. First, does any column have missing cells? The test of Simes (Biometrika
    1986) is wrong about a complete table with probability `FALSE_ALARM`, however many columns it has. If one
    does, the rule of Benjamini and Hochberg (JRSS B 1995) chooses which: about `discovery` of those chosen
    are complete. So the more columns have missing cells, the fewer of them each needs.

    A count is compared after the difference of the column's sum from `total`, which is nearly exact, is
    divided among its counts.

    Parameters
    ----------
    one_ways : tuple of Measurement
        Released counts of each column, without bias. The last count is that of missing cells.
    total : float
        Estimated number of records.
    nullable : collection of attributes
    law : Law
    target : str, optional
        The attribute to be predicted. Noise alone exceeds its threshold in `FALSE_ALARM_OF_TARGET` of fits.
    discovery : float
        Rate of false discoveries.

    Examples
    --------
    With noise of 10 records, one count of 27 is noise beside two of 0, and none beside another of 50:

    >>> from privsyn.marginals.domain import Domain
    >>> from privsyn.marginals.marginal import Marginal
    >>> from privsyn.private.noise_laws import GAUSSIAN
    >>> def kept(*counts, target=None):
    ...     tables = [Marginal(Domain((name,), (2,)), np.array([1e3, n])) for name, n in zip("abc", counts)]
    ...     one_ways = tuple(Measurement(table, np.array([1e12, 100.0])) for table in tables)
    ...     least = missing_thresholds(one_ways, 1e3, "abc", GAUSSIAN, target)
    ...     return [name for name, n in zip("abc", counts) if n >= least[name]]
    >>> kept(27, 0, 0), kept(27, 0, 50), kept(27, 0, 50, target="a")
    ([], ['a', 'c'], ['c'])
    """
    some = [m for m in one_ways if m.attributes[0] in nullable]
    if not some:
        return {}
    of_total = variance_of_total(one_ways)
    of_sums = np.maximum([m.variance.sum() for m in some], TINY_VARIANCE)
    counts, variances = np.array([(m.marginal.counts[-1], m.variance[-1]) for m in some]).T
    share = variances / of_sums
    surplus = share * (np.array([m.marginal.counts.sum() for m in some]) - total)
    sigmas = np.sqrt(np.maximum(variances * (1 - share * (1 - of_total / of_sums)), TINY_VARIANCE))
    ranked, ranks = np.sort((counts - surplus) / sigmas)[::-1], np.arange(1, len(some) + 1) / len(some)
    thresholds = law.deviations(FALSE_ALARM * ranks)
    if (ranked >= thresholds).any():
        thresholds = law.deviations(discovery * ranks)
    needed = np.full(len(some), thresholds[np.flatnonzero(ranked >= thresholds).max(initial=0)])
    names = [m.attributes[0] for m in some]
    needed[[name == target for name in names]] = law.deviations(FALSE_ALARM_OF_TARGET)
    return dict(zip(names, (surplus + needed * sigmas).tolist(), strict=True))
