"""Trace the error of a synthetic table to its sources: noise, unmeasured pairs, consistency, synthesis.

It compares a release and a sample from it with the real table: NOT PRIVATE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from privsyn.evaluation.scores import Origin
from privsyn.inference.consistency import norm_sub
from privsyn.marginals.counting import count
from privsyn.marginals.domain import Attributes, Floats
from privsyn.marginals.marginal import Grouping
from privsyn.marginals.statistics import total_variation
from privsyn.release.release import Release

if TYPE_CHECKING:
    import pandas as pd


def trace(release: Release, real: pd.DataFrame, synthetic: pd.DataFrame) -> tuple[Origin, ...]:
    """Return the mean error of pairs after each stage, for measured pairs and for the others.

    Parameters
    ----------
    release : Release
    real : pandas.DataFrame
        The table that the release was fitted to.
    synthetic : pandas.DataFrame
        A sample from the release.

    Returns
    -------
    tuple of Origin
        Errors are total variation, in the groups in which a pair was counted. Empty without pairs.
    """
    merging = release.fitted.merging
    codec = release.codec
    synthetic = synthetic.reindex(columns=codec.names)  # it lacks free text, which is not looked at
    tables = [merging.merge(codec.encode(frame)) for frame in (real, synthetic)]
    pairs = list(combinations(merging.merged.names, 2))
    columns_asked = dict(_asked(release, pairs))
    errors: dict[str, list[float]] = {
        "asked: as answered, noise and all": [],
        "asked: made consistent": [],
        "asked: in the synthetic table": [],
        "not asked: in the synthetic table": [],
    }
    noisy, consistent, sampled, unasked = errors.values()
    for pair in pairs:
        true, synthetic_shares = (count(records, pair) / max(len(records), 1) for records in tables)
        if pair in columns_asked:
            grouping, *answers = columns_asked[pair]
            true, synthetic_shares = grouping.join(true), grouping.join(synthetic_shares)
            for distances, answer in zip((noisy, consistent), answers, strict=True):
                distances.append(total_variation(answer, true))
        (sampled if pair in columns_asked else unasked).append(total_variation(synthetic_shares, true))
    return tuple(
        Origin(title, len(distances), float(np.mean(distances)))
        for title, distances in errors.items()
        if distances
    )


def _asked(
    release: Release, pairs: Iterable[Attributes]
) -> Iterator[tuple[Attributes, tuple[Grouping, Floats, Floats]]]:
    """Yield each pair in a measured table, with its grouping of codes, its noisy and its released shares."""
    fitted = release.fitted
    measured = fitted.measured_marginals
    for pair in pairs:
        for certainty, table in measured:
            if set(pair) <= set(table.attributes):
                grouping = certainty.measured.grouping.project(table.domain.axes(pair))
                noisy = certainty.measured.marginal.project(pair).counts
                positive = norm_sub(noisy.ravel(), fitted.total).reshape(noisy.shape)
                released = grouping.join(table.project(pair).counts)
                yield pair, (grouping, positive / fitted.total, released / fitted.total)
                break
